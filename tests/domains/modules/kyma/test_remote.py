"""Modules and channel of the Kyma in the cluster, in the Kyma that is reconciled (2.1.2 step 11)."""

from __future__ import annotations

import pytest

from hortus.domains.modules.kyma.remote import effective
from hortus.domains.modules.types import Kyma, KymaSpec
from hortus.schema import ObjectMeta

KYMA = Kyma(metadata=ObjectMeta(name="k", namespace="kcp-system"), spec=KymaSpec(channel="regular"))
REMOTE = {
    "apiVersion": "operator.kyma-project.io/v1beta2",
    "kind": "Kyma",
    "metadata": {"name": "default", "namespace": "kyma-system"},
    "spec": {"channel": "fast", "modules": [{"name": "istio", "managed": True}], "skipMaintenanceWindows": True},
}


@pytest.mark.parametrize("taken", [False, True])
def test_windows_are_skipped_by_the_cluster_s_wish_where_the_operator_allows_it(*, taken: bool) -> None:
    """Limit (f) of the Go system, as an option: there, only the control plane decides it."""
    found = effective(KYMA, REMOTE, windows_from_remote=taken)
    assert found.spec.skip_maintenance_windows is taken
    assert found.spec.channel == "fast"
    assert [module.name for module in found.spec.modules] == ["istio"]
    assert found.metadata is KYMA.metadata
