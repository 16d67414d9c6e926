"""Objects of cluster stacks with any value in any field that takes one: conditions report them, no reconcile breaks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.bad_inputs.hostile import VALUES, changed, places
from tests.domains.stacks.catalog.world import CLUSTERS, HOME, TEMPLATES, CatalogWorld, catalog_world

from hortus.domains.stacks.types import CLUSTER_ADDONS, CLUSTER_STACK_RELEASES, CLUSTER_STACKS, STACK_POLICIES
from hortus.kube.errors import ApiError
from hortus.kube.objects import Resource
from hortus.testing.apiserver import TestServer

V1 = "docker-ferrol-1-27-v1"
STACK = {
    "provider": "docker",
    "name": "ferrol",
    "kubernetesVersion": "1.27",
    "channel": "custom",
    "versions": ["v1", "v0-sha.abc"],
    "autoSubscribe": True,
    "noProvider": False,
    "providerRef": {
        "apiVersion": TEMPLATES.api_version,
        "kind": TEMPLATES.kind,
        "name": "template",
        "namespace": HOME,
        "fieldPath": "spec",
        "uid": "u",
        "resourceVersion": "1",
    },
}
CLUSTER = {
    "paused": False,
    "topology": {
        "class": V1,
        "classNamespace": HOME,
        "version": "v1.27.3",
        "variables": [{"name": "image", "value": {"a": ["b"]}}],
    },
    "controlPlaneEndpoint": {"host": "example.org", "port": 6443},
    "infrastructureRef": {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
        "kind": "DockerCluster",
        "name": "a",
    },
}
POLICY = {"provider": "docker", "name": "ferrol", "kubernetesVersion": "1.27", "versions": ["v1"], "namespaces": [HOME]}
RELEASE = {"providerRef": STACK["providerRef"]}
ADDON = {
    "clusterRef": {"apiVersion": CLUSTERS.api_version, "kind": "Cluster", "name": "good", "namespace": HOME},
    "version": "v1",
    "clusterStack": V1,
    "hook": "AfterControlPlaneInitialized",
}
WHOLE = (
    (STACK_POLICIES, POLICY),
    (CLUSTERS, CLUSTER),
    (CLUSTER_STACKS, STACK),
    (CLUSTER_STACK_RELEASES, RELEASE),
    (CLUSTER_ADDONS, ADDON),
)


@pytest.fixture
async def here(server: TestServer, tmp_path: Path) -> AsyncIterator[CatalogWorld]:
    async with catalog_world(server, tmp_path) as made:
        yield made


def specs(whole: Any) -> Iterator[Any]:
    """Yields documents in which one place has another value; each place takes every fifth of them, in turn."""
    for number, place in enumerate(places(whole)):
        yield from (changed(whole, place, value) for value in VALUES[number % 5 :: 5] if place)


@pytest.mark.parametrize(("resource", "whole"), WHOLE, ids=[one.plural for one, _ in WHOLE])
async def test_no_value_that_is_stored_breaks_a_reconcile(here: CatalogWorld, resource: Resource, whole: Any) -> None:
    here.release(V1)
    await here.template("image")
    stored = await store(here, resource, specs(whole))
    assert stored > 20, "the API server must let some of them through"
    with capture_logs() as lines:
        async with here.controllers() as manager:
            await here.stack("v1", name="good")
            await here.ready(V1)
            await here.cluster("good", V1)
            for controller in manager.controllers:
                await controller.queue.join()
    broken = [line for line in lines if "exc_info" in line or line["log_level"] == "critical"]
    assert broken == []


async def store(here: CatalogWorld, resource: Resource, found: Iterator[Any]) -> int:
    """Creates the objects that the API server takes, and returns their number."""
    stored = 0
    for number, spec in enumerate(found):
        try:
            await here.create(resource, f"odd-{number}", spec=spec)
        except (ApiError, ValueError, TypeError, OverflowError):
            continue
        stored += 1
    return stored
