"""The simulated Flux: charts of OCIRepositories in clusters of HelmReleases, with the statuses and records of Flux."""

from __future__ import annotations

import base64
import gzip
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.waiting import until

from hortus.engine import Manager
from hortus.kube import Client, ConnectionSettings, Resource, Secret, yaml
from hortus.kube.objects import Object
from hortus.render.archive import Folder
from hortus.render.artifacts import TransferSettings
from hortus.render.helm import package_chart
from hortus.render.oci import CredentialStore, OciClient, OciSettings, RegistryCredentials, parse_reference
from hortus.simulation.flux.composition import add_flux
from hortus.simulation.flux.definitions import install
from hortus.simulation.flux.kinds import HELM_RELEASES, OCI_REPOSITORIES, REQUESTED
from hortus.simulation.flux.releases import HelmController
from hortus.simulation.flux.settings import FluxSimulationSettings
from hortus.simulation.registry import RegistryFolder, RegistryServer
from hortus.testing.apiserver import TestServer
from hortus.testing.waiting import wait_for, wait_gone

HOME = "default"
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRETS = Resource("", "v1", "secrets", "Secret")
_numbers = itertools.count(1)


class Landscape:
    """A management cluster with Flux, a workload cluster, and a registry with charts."""

    def __init__(self, server: TestServer, client: Client, inside: Client, registry: RegistryServer) -> None:
        self.server, self.client, self.inside, self.registry = server, client, inside, registry
        self.actions: list[tuple[str, str]] = []
        self.flux: HelmController

    async def publish(self, folder: Path, version: str, *maps: str) -> str:
        """Push the chart `web` with these ConfigMaps; its digest."""
        folder.mkdir(parents=True)
        (folder / "Chart.yaml").write_text("apiVersion: v2\nname: web\nversion: 1.0.0\n")
        (folder / "templates").mkdir()
        for name in maps:
            text = (
                f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{of: '{{{{ .Values.of }}}}'}}\n"
            )
            (folder / "templates" / f"{name}.yaml").write_text(text)
        packed = package_chart(Folder(folder).tree(), version=version)
        host = self.registry.address
        settings = OciSettings(transfer=TransferSettings(deny=(), plain_http=frozenset({host})))
        login = CredentialStore({host: RegistryCredentials(username="me", password=Secret("secret"))})
        async with OciClient(settings=settings, credentials=login) as client:
            reference = parse_reference(f"{host}/charts/web:{version}")
            return await client.push_chart(reference, packed.archive, metadata={"name": "web", "version": version})

    async def source(self, digest: str) -> None:
        spec = {"interval": "1h", "url": f"oci://{self.registry.address}/charts/web", "insecure": True}
        await self._apply(OCI_REPOSITORIES, {**spec, "ref": {"digest": digest}})

    async def release(self, **more: Any) -> None:
        spec = {
            "interval": "10m",
            "releaseName": "shop",
            "targetNamespace": "web",
            "storageNamespace": "records",
            "chartRef": {"kind": "OCIRepository", "name": "web"},
            "kubeConfig": {"secretRef": {"name": "web-kubeconfig"}},
            "values": {"of": "flux"},
        }
        await self._apply(HELM_RELEASES, {**spec, **more})

    async def _apply(self, resource: Resource, spec: Object) -> None:
        obj = {"metadata": {"name": "web", "namespace": HOME}, "spec": spec}
        await self.client.apply(resource, obj, field_manager="test")

    async def says(self, reason: str, resource: Resource = HELM_RELEASES) -> Object:
        def holds(obj: Object) -> bool:
            conditions = obj.get("status", {}).get("conditions", [{}])
            return bool(conditions[0].get("reason") == reason)

        return await wait_for(self.client, resource, "web", HOME, until=holds)

    async def maps(self) -> dict[str, Object]:
        found = await self.inside.list(CONFIG_MAPS, "web", labels="app.kubernetes.io/managed-by=Helm")
        return {one["metadata"]["name"]: one for one in found.items}

    async def records(self) -> dict[str, Object]:
        """helm's records, as helm reads them."""
        found = await self.inside.list(SECRETS, "records", labels="owner=helm,name=shop")
        return {
            one["metadata"]["name"]: orjson.loads(
                gzip.decompress(base64.b64decode(base64.b64decode(one["data"]["release"])))
            )
            for one in found.items
        }


@pytest.fixture
async def here(server: TestServer, tmp_path: Path) -> AsyncIterator[Landscape]:
    names = [f"flux-{next(_numbers)}" for _ in range(2)]
    for name in names:
        server.create_cluster(name)
    connection = ConnectionSettings(user_agent="test")
    registry = RegistryServer(RegistryFolder(tmp_path / "registry"), users={"me": "secret"})
    clients = [Client.from_kubeconfig(server.kubeconfig_for(name), settings=connection) for name in names]
    async with registry, clients[0] as client, clients[1] as inside:
        await install(client)
        for name in ("web", "records"):
            await inside.apply(
                Resource("", "v1", "namespaces", "Namespace", namespaced=False),
                {"metadata": {"name": name}},
                field_manager="test",
            )
        text = base64.b64encode(yaml.dump(server.kubeconfig_dict(names[1])).encode()).decode()
        secret = {"metadata": {"name": "web-kubeconfig", "namespace": HOME}, "data": {"value": text}}
        await client.apply(SECRETS, secret, field_manager="test")
        made = Landscape(server, client, inside, registry)
        manager = Manager(client, grace=0.0)
        flux = made.flux = add_flux(manager, client=client, settings=FluxSimulationSettings(retry=0.1))
        flux.on_action = lambda action, chart: made.actions.append((action, chart))
        async with manager.running():
            yield made


async def test_a_release_is_installed_and_upgraded_with_helms_records(here: Landscape, tmp_path: Path) -> None:
    one = await here.publish(tmp_path / "one", "1.0.0", "stays", "leaves")
    await here.source(one)
    await here.release()
    found = await here.says("InstallSucceeded")
    assert set(await here.maps()) == {"stays", "leaves"}
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
    two = await here.publish(tmp_path / "two", "2.0.0", "stays", "comes")
    await here.source(two)
    found = await here.says("UpgradeSucceeded")
    assert set(await here.maps()) == {"stays", "comes"}
    (last,) = found["status"]["history"]
    assert (last["version"], last["chartName"], last["ociDigest"]) == (2, "web", two)
    assert last["chartVersion"] == f"2.0.0+{two.removeprefix('sha256:')[:12]}"
    ((name, record),) = (await here.records()).items()
    assert name == "sh.helm.release.v1.shop.v2"
    assert (record["name"], record["version"], record["config"]) == ("shop", 2, {"of": "flux"})
    assert here.actions == [("install", "web"), ("upgrade", "web")]


async def test_new_values_are_an_upgrade(here: Landscape, tmp_path: Path) -> None:
    await here.source(await here.publish(tmp_path / "one", "1.0.0", "stays"))
    await here.release()
    await here.says("InstallSucceeded")
    await here.release(values={"of": "others"})
    await here.says("UpgradeSucceeded")
    assert (await here.maps())["stays"]["data"] == {"of": "others"}


async def test_a_release_that_is_deleted_is_uninstalled(here: Landscape, tmp_path: Path) -> None:
    await here.source(await here.publish(tmp_path / "one", "1.0.0", "stays"))
    await here.release()
    await here.says("InstallSucceeded")
    await here.client.delete(HELM_RELEASES, "web", HOME)
    await wait_gone(here.client, HELM_RELEASES, "web", HOME)
    assert await here.maps() == {}
    assert await here.records() == {}


async def test_a_release_that_is_suspended_first_leaves_its_objects(here: Landscape, tmp_path: Path) -> None:
    await here.source(await here.publish(tmp_path / "one", "1.0.0", "stays"))
    await here.release()
    await here.says("InstallSucceeded")
    await here.release(suspend=True, values={"of": "others"})
    await here.client.delete(HELM_RELEASES, "web", HOME)
    await wait_gone(here.client, HELM_RELEASES, "web", HOME)
    assert (await here.maps())["stays"]["data"] == {"of": "flux"}
    assert set(await here.records()) == {"sh.helm.release.v1.shop.v1"}


async def test_drift_is_repaired_when_somebody_asks(here: Landscape, tmp_path: Path) -> None:
    await here.source(await here.publish(tmp_path / "one", "1.0.0", "stays"))
    await here.release()
    await here.says("InstallSucceeded")
    await here.inside.delete(CONFIG_MAPS, "stays", "web")
    asked = {"metadata": {"annotations": {REQUESTED: "now"}}}
    await here.client.patch(HELM_RELEASES, "web", asked, HOME)
    found = await wait_for(
        here.client,
        HELM_RELEASES,
        "web",
        HOME,
        until=lambda obj: obj.get("status", {}).get("lastHandledReconcileAt") == "now",
    )
    assert set(await here.maps()) == {"stays"}
    assert found["status"]["history"][0]["version"] == 1


async def test_a_chart_that_cannot_be_fetched_is_reported_and_tried_again(here: Landscape, tmp_path: Path) -> None:
    await here.source("sha256:" + "0" * 64)
    await here.release()
    found = await here.says("SourceNotReady")
    assert "observedGeneration" not in found["status"]
    source = await here.says("OCIArtifactPullFailed", OCI_REPOSITORIES)
    assert source["status"]["conditions"][0]["status"] == "False"
    await here.source(await here.publish(tmp_path / "one", "1.0.0", "stays"))
    await here.says("InstallSucceeded")
    assert set(await here.maps()) == {"stays"}


async def test_a_cluster_without_a_kubeconfig_is_reported_and_holds_up_no_deletion(
    here: Landscape, tmp_path: Path
) -> None:
    await here.source(await here.publish(tmp_path / "one", "1.0.0", "stays"))
    await here.release(kubeConfig={"secretRef": {"name": "nowhere"}})
    found = await here.says("RESTClientError")
    assert found["status"]["conditions"][0]["message"] == f"Secret {HOME}/nowhere does not exist"
    await here.client.delete(HELM_RELEASES, "web", HOME)
    await wait_gone(here.client, HELM_RELEASES, "web", HOME)
    assert here.actions == []


async def test_a_chart_is_kept_as_long_as_a_source_has_it(here: Landscape, tmp_path: Path) -> None:
    digest = await here.publish(tmp_path / "one", "1.0.0", "stays")
    await here.source(digest)
    await here.release()
    await here.says("InstallSucceeded")
    assert set(here.flux.charts) == {digest}
    await here.client.delete(OCI_REPOSITORIES, "web", HOME)
    await until(lambda: not here.flux.charts)
    assert set(await here.maps()) == {"stays"}
