"""Versions that no object is stored in are removed from the status of CRDs, on a real API server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

import pytest
from prometheus_client import CollectorRegistry

from hortus.domains.modules.kyma.documents import CRDS
from hortus.domains.modules.storedversions import add_stored_versions, kept_versions
from hortus.domains.modules.types import Kyma, Manifest
from hortus.engine import Manager
from hortus.kube import Client
from hortus.kube.objects import Object
from hortus.testing.apiserver import running_apiserver
from hortus.testing.clusters import install
from hortus.testing.waiting import wait_for

KYMA_CRD = "kymas.operator.kyma-project.io"
MANIFEST_CRD = "manifests.operator.kyma-project.io"


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as found:
        await install(found, Kyma, Manifest)
        yield found


def stored(crd: Object) -> list[str]:
    return list(crd["status"]["storedVersions"])


async def store(client: Client, name: str, *versions: str) -> None:
    patch = {"status": {"storedVersions": [*versions]}}
    await client.patch(CRDS, name, patch, subresource="status")


async def until(client: Client, name: str, versions: list[str]) -> None:
    await wait_for(client, CRDS, name, until=lambda crd: stored(crd) == versions)


async def test_named_versions_are_dropped_at_the_start_and_when_they_come_back(client: Client) -> None:
    for name in (KYMA_CRD, MANIFEST_CRD):
        await store(client, name, "v1beta1", "v1beta2")
    manager = Manager(client, registry=CollectorRegistry())
    add_stored_versions(manager, client, {"Kyma": frozenset({"v1beta1"}), "Watcher": frozenset({"v1beta1"})})
    async with manager.running():
        await until(client, KYMA_CRD, ["v1beta2"])
        await store(client, KYMA_CRD, "v1beta2", "v1beta1")
        await until(client, KYMA_CRD, ["v1beta2"])
    assert stored(await client.get(CRDS, MANIFEST_CRD)) == ["v1beta1", "v1beta2"]


@pytest.mark.parametrize(
    ("listed", "dropped", "kept"),
    [
        (["v1beta1", "v1beta2"], ["v1beta1"], ["v1beta2"]),
        (["v1beta2"], ["v1beta1"], ["v1beta2"]),
        (["v1beta1", "v1beta2"], ["v1beta1", "v1beta2"], ["v1beta2"]),
        ([], ["v1beta1"], []),
    ],
)
def test_the_version_that_is_stored_now_is_kept(listed: list[str], dropped: Iterable[str], kept: list[str]) -> None:
    versions = [{"name": "v1beta1"}, {"name": "v1beta2", "storage": True}]
    assert kept_versions({"spec": {"versions": versions}, "status": {"storedVersions": listed}}, dropped) == (
        listed,
        kept,
    )
    assert kept_versions({}, dropped) == ([], [])
