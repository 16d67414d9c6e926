"""The clusters of a rollout whose clusters join, ask or are created at odd times."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.domains.rollouts.world import APPLIANCE_KIND

from hortus.domains.rollouts.changekinds import CompiledKind
from hortus.domains.rollouts.fleet import FleetClusters
from hortus.domains.rollouts.membership import Membership
from hortus.domains.rollouts.starting import wanted_version
from hortus.domains.rollouts.tracking import ChangeTracker
from hortus.engine import Cache
from hortus.engine.rollouts.types import ChangeKind, Rollout
from hortus.kube.objects import Object
from hortus.kube.selectors import LabelSelector
from hortus.schema import decode

ENDED = "2026-01-01T12:00:00Z"


def _rollout(*, to: str = "2", phase: str = "Succeeded", ended: str | None = ENDED, **spec: object) -> Rollout:
    document: Object = {
        "metadata": {"name": "r-1", "namespace": "fleet"},
        "spec": {"change": {"kind": "appliance", "subject": "press", "to": to}, **spec},
        "status": {"phase": phase, **({"endedAt": ended} if ended else {})},
    }
    return decode(Rollout, document)


def _members(rollout: Rollout, created: dict[str, str]) -> set[str]:
    """The members of a rollout over appliances of version 1 by the times of their creation."""
    kind = decode(ChangeKind, {**APPLIANCE_KIND, "metadata": {"name": "appliance", "generation": 1}})
    cache = Cache("appliances")
    for version, (name, at) in enumerate(created.items(), 1):
        metadata = {"name": name, "namespace": "fleet", "resourceVersion": str(version), "creationTimestamp": at}
        cache.put({"metadata": metadata, "spec": {"product": "press", "version": "1"}})
    tracker = ChangeTracker(CompiledKind(kind), cache, lambda kind, subject: None)
    fleet = FleetClusters(Cache("profiles"), changed=lambda: None)
    made = Membership(rollout, LabelSelector.from_object({}), tracker, fleet, {}, refusals={}, now=0.0)
    return {one.cluster for one in made.members()}


def test_a_rollout_that_sets_objects_leaves_alone_what_is_made_after_its_end() -> None:
    created = {"before": "2026-01-01T11:00:00Z", "after": "2026-01-01T12:00:01Z"}
    assert _members(_rollout(execute="Patch"), created) == {"before"}
    assert _members(_rollout(execute="Patch", phase="Progressing", ended=None), created) == {"before", "after"}


@pytest.mark.parametrize(
    ("rollout", "version"),
    [
        (_rollout(execute="Owner"), ""),
        (_rollout(execute="Patch"), "2"),
        (_rollout(execute="Owner", clusters={"matchLabels": {"ring": "canary"}}), "2"),
        (_rollout(execute="Patch", phase="Progressing", ended=None), ""),
        (_rollout(execute="Patch", phase="Aborted"), ""),
    ],
)
def test_clusters_that_wait_for_a_version_that_was_rolled_out_to_chosen_clusters_get_a_rollout(
    rollout: Rollout, version: str
) -> None:
    assert wanted_version(Counter({"2": 3}), rollout) == version
