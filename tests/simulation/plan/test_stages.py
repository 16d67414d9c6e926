"""The stages of a plan: the time in which the clusters of each change, and the soak after it."""

from __future__ import annotations

import orjson

from hortus.simulation.plan.building import stages
from hortus.simulation.plan.snapshot import ForkSnapshot

ROLLOUTS = "root/fleet.hortus.dev/rollouts"


def test_the_time_of_a_stage_begins_after_the_soak_of_the_one_before_and_a_stage_without_clusters_soaks_not() -> None:
    terms = [{"name": name, "minSuccessTime": "24h"} for name in ("empty", "canary", "rest")]
    settled = [
        {"name": "empty", "clusters": 0, "settledAt": "2026-01-01T00:00:00Z"},
        {"name": "canary", "clusters": 1, "succeeded": 1, "settledAt": "2026-01-01T01:00:00Z"},
        {"name": "rest", "clusters": 2, "succeeded": 2, "settledAt": "2026-01-02T03:00:00Z"},
    ]
    rollout = {
        "apiVersion": "fleet.hortus.dev/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "minor", "namespace": "fleet"},
        "spec": {
            "change": {"kind": "kubernetes-version", "subject": "kubernetes", "to": "1.35.0"},
            "policy": {"stages": terms},
        },
        "status": {"startedAt": "2026-01-01T00:00:00Z", "stages": settled},
    }
    after = ForkSnapshot({ROLLOUTS: {"fleet/minor": orjson.dumps(rollout)}})
    found = [(one.stage, one.seconds, one.soak) for one in stages(ForkSnapshot({}), after, ())]
    assert found == [("empty", 0.0, 0.0), ("canary", 3600.0, 86400.0), ("rest", 7200.0, 86400.0)]
