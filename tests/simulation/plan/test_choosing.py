"""The objects that belong to a cluster which a plan is not about."""

from __future__ import annotations

from typing import Any

import pytest

from hortus.simulation.plan.choosing import _is_other, _Stored
from hortus.simulation.plan.grouping import Aliases


def _stored(suffix: str, name: str, spec: Any = None, **labels: str) -> _Stored:
    metadata = {"name": name, "namespace": "fleet", "labels": labels}
    return _Stored(f"root/{suffix}", f"fleet/{name}", {"metadata": metadata, "spec": spec})


@pytest.mark.parametrize(
    ("stored", "belongs"),
    [
        (_stored("operator.kyma-project.io/kymas", "prod"), True),
        (_stored("operator.kyma-project.io/kymas", "canary"), False),
        (_stored("operator.kyma-project.io/manifests", "x-1", **{"operator.kyma-project.io/kyma-name": "prod"}), True),
        (_stored("core/secrets", "kubeconfig-prod"), True),
        (_stored("core/secrets", "sh.helm.release.v1.prod"), False),
        (_stored("fleet.hortus.dev/rolloutpolicies", "prod"), False),
        (_stored("fleet.hortus.dev/rolloutpolicies", "prod-policy"), False),
        (_stored("fleet.hortus.dev/agentplacements", "agent.prod", {"cluster": "prod"}), True),
        (_stored("clusterstack.x-k8s.io/clusteraddons", "addon", {"clusterRef": {"name": "prod"}}), True),
    ],
)
def test_an_object_belongs_to_a_cluster_by_its_kind_its_labels_or_its_spec(stored: _Stored, belongs: bool) -> None:
    aliases = Aliases()
    aliases.add("prod")
    aliases.add("canary")
    assert _is_other(stored, aliases, frozenset({"canary"})) is belongs
