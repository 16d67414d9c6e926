"""Series of single objects are dropped when another replica becomes the owner of the object."""

from __future__ import annotations

import re

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from hortus.domains.access.metrics import AccessMetrics
from hortus.domains.clusters.metrics import RuntimeMetrics
from hortus.domains.clusters.types import Runtime
from hortus.domains.credentials.metrics import CredentialMetrics
from hortus.domains.credentials.settings import contract_policy
from hortus.domains.credentials.types import GardenerCluster
from hortus.engine import read
from hortus.kube.objects import ObjectKey

KEPT, MOVED = ObjectKey("default", "kept"), ObjectKey("default", "moved")


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


def holds(key: ObjectKey) -> bool:
    return key == KEPT


def shown(registry: CollectorRegistry) -> str:
    return generate_latest(registry).decode()


def test_runtimes(registry: CollectorRegistry) -> None:
    metrics = RuntimeMetrics(registry)
    for key in (KEPT, MOVED):
        metrics.set_state(key, Runtime(metadata=cluster(key).metadata), key.name)
    assert "moved" in shown(registry)
    metrics.shed(holds)
    assert "kept" in shown(registry)
    assert "moved" not in shown(registry)


def test_gardener_clusters(registry: CollectorRegistry) -> None:
    metrics = CredentialMetrics(registry)
    for key in (KEPT, MOVED):
        metrics.set_state(cluster(key), "Ready", "KubeconfigSecretCreated")
        metrics.set_expiration(cluster(key), 1_700_000_000.0, contract_policy())
    assert len(re.findall("moved", shown(registry))) == 2
    metrics.shed(holds)
    assert len(re.findall("kept", shown(registry))) == 2
    assert "moved" not in shown(registry)


def test_cluster_accesses(registry: CollectorRegistry) -> None:
    metrics = AccessMetrics(registry)
    metrics.see(KEPT, "Issued", 2000.0)
    metrics.see(MOVED, "Issued", 1000.0)
    metrics.shed(holds)
    assert 'hortus_access_requests{reason="Issued"} 1.0' in shown(registry)
    assert "hortus_access_earliest_expiry_seconds 2000.0" in shown(registry)


def cluster(key: ObjectKey) -> GardenerCluster:
    secret = {"name": "kubeconfig", "namespace": key.namespace, "key": "config"}
    return read(
        GardenerCluster,
        {
            "metadata": {"name": key.name, "namespace": key.namespace},
            "spec": {"shoot": {"name": key.name}, "kubeconfig": {"secret": secret}},
        },
    )
