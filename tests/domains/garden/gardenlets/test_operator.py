"""The operator path: a Gardenlet becomes a gardenlet in its seed, which registers the Seed and follows from then on."""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.domains.garden.gardenlets.world import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    NAMESPACES,
    NEW,
    OLD,
    SEEDS,
    GardenWorld,
    configuration,
    garden_world,
)
from tests.waiting import until

from hortus.domains.garden.gardenlets import bootstrap
from hortus.domains.garden.gardenlets.bootstrap import SECRETS
from hortus.domains.garden.gardenlets.checks import SeedChecks
from hortus.domains.garden.types import GARDENLETS
from hortus.kube import yaml
from hortus.kube.errors import Forbidden, Invalid
from hortus.testing.apiserver import TestServer


@pytest.fixture
async def world(server: TestServer, tmp_path: Path) -> AsyncIterator[GardenWorld]:
    async with garden_world(server, tmp_path, "one", "two") as made:
        yield made


async def test_a_gardenlet_is_deployed_registers_its_seed_and_the_kubeconfig_is_dropped(world: GardenWorld) -> None:
    secret = await world.add_kubeconfig("one")
    await world.add_gardenlet("one", kubeconfig=secret, deployment={"podLabels": {"foo": "bar"}})
    async with world.gardenlets(), world.operating():
        found = await world.healthy("one")
    assert "kubeconfigSecretRef" not in found["spec"]
    assert await world.get(world.management, SECRETS, secret, "garden") is None
    seed = await world.garden.get(SEEDS, "one")
    assert seed["spec"]["provider"] == {"type": "local", "region": "local"}
    assert seed["status"]["gardener"]["version"] == f"v{OLD}"
    client = world.seeds["one"]
    config = yaml.load((await client.get(CONFIG_MAPS, "gardenlet-configmap", "garden"))["data"]["config.yaml"])
    assert config["seedConfig"]["metadata"] == {"name": "one", "labels": {"ring": "canary"}}
    assert config["leaderElection"] == {"resourceNamespace": "garden"}
    assert config["controllers"] == {"shoot": {"concurrentSyncs": 20}}
    deployment = await client.get(DEPLOYMENTS, "gardenlet", "garden")
    assert deployment["spec"]["template"]["metadata"]["labels"]["foo"] == "bar"
    assert await world.get(client, SECRETS, "gardenlet-kubeconfig", "garden") is not None
    # The token has served; the gardenlet has no bootstrap data any more.
    assert await world.get(client, SECRETS, "gardenlet-kubeconfig-bootstrap", "garden") is None
    assert "bootstrapKubeconfig" not in config["gardenClientConnection"]


async def test_a_gardenlet_follows_its_gardenlet_once_the_seed_is_registered(world: GardenWorld) -> None:
    await world.add_gardenlet("one")
    async with world.gardenlets(), world.operating():
        await world.healthy("one")
        place = {"deployment": {"helm": {"ociRepository": {"ref": world.chart(NEW)}}, "imageVectorOverwrite": "a: b"}}
        await world.management.patch(GARDENLETS, "one", {"spec": place}, "garden")
        found = await world.healthy("one")
        assert found["status"]["observedGeneration"] == found["metadata"]["generation"]
        assert await world.image("one") == f"v{NEW}"
        overwrite = await world.seeds["one"].get(CONFIG_MAPS, "gardenlet-imagevector-overwrite", "garden")
        assert overwrite["data"]["images_overwrite.yaml"].strip() == "a: b"
        # A value that is unset again is removed from the seed.
        unset = {"deployment": {"imageVectorOverwrite": None}}
        await world.management.patch(GARDENLETS, "one", {"spec": unset}, "garden")
        await world.healthy("one")
        name = "gardenlet-imagevector-overwrite"
        assert await world.get(world.seeds["one"], CONFIG_MAPS, name, "garden") is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"data": {}}, "has no key kubeconfig", id="no-key"),
        pytest.param({"data": {"kubeconfig": b""}}, "is empty", id="empty"),
        pytest.param({"data": {"kubeconfig": b"{"}}, "not YAML", id="no-yaml"),
        pytest.param(
            {"data": {"kubeconfig": b"users: [{name: a, user: {exec: {command: sh}}}]"}}, "exec", id="program"
        ),
    ],
)
async def test_a_wrong_kubeconfig_is_reported_with_its_field(
    world: GardenWorld, changes: dict[str, Any], says: str
) -> None:
    secret = await world.add_kubeconfig("one", **changes)
    await world.add_gardenlet("one", kubeconfig=secret)
    async with world.operating():
        found = await world.condition("one", "SeedRegistered", "False", reason="ReconcileError", text=says)
    assert "spec.kubeconfigSecretRef: Secret garden/one-kubeconfig" in str(found["status"])


async def test_a_kubeconfig_that_does_not_exist_is_reported_and_found_later(world: GardenWorld) -> None:
    await world.add_gardenlet("one", kubeconfig="one-kubeconfig")
    async with world.gardenlets(), world.operating():
        await world.condition("one", "SeedRegistered", "False", text="does not exist")
        assert await world.get(world.garden, SEEDS, "one") is None
        await world.add_kubeconfig("one")
        await world.healthy("one")
        assert await world.get(world.garden, SEEDS, "one") is not None


async def test_the_kubeconfig_of_another_seed_is_refused(world: GardenWorld) -> None:
    await world.add_gardenlet("one")
    async with world.gardenlets(), world.operating():
        await world.healthy("one")
        wrong = await world.add_kubeconfig("one")
        await world.add_gardenlet("two", kubeconfig=wrong)
        await world.condition("two", "SeedRegistered", "False", text="gardenlet of Seed one")
    assert await world.get(world.garden, SEEDS, "two") is None


async def test_a_second_cluster_for_one_seed_is_refused(world: GardenWorld) -> None:
    await world.add_gardenlet("one")
    async with world.gardenlets(), world.operating():
        await world.healthy("one")
        other = await world.add_kubeconfig("two")
        identity = {"metadata": {"name": "cluster-identity", "namespace": "kube-system"}}
        await world.seeds["two"].apply(
            CONFIG_MAPS, {**identity, "data": {"cluster-identity": "another"}}, field_manager="test"
        )
        patch = {
            "spec": {"kubeconfigSecretRef": {"name": other}},
            "metadata": {"annotations": {"gardener.cloud/operation": "force-redeploy"}},
        }
        await world.management.patch(GARDENLETS, "one", patch, "garden")
        await world.condition("one", "SeedRegistered", "False", text="two gardenlets must not have one Seed")
    assert await world.get(world.seeds["two"], DEPLOYMENTS, "gardenlet", "garden") is None


async def test_a_forced_deployment_repairs_a_gardenlet_and_asks_once(world: GardenWorld) -> None:
    await world.add_gardenlet("one")
    async with world.gardenlets(), world.operating(upgraded=()):
        await world.condition("one", "SeedRegistered", "True")
        await world.seeds["one"].delete(DEPLOYMENTS, "gardenlet", "garden")
        secret = await world.add_kubeconfig("one")
        patch = {
            "spec": {"kubeconfigSecretRef": {"name": secret}},
            "metadata": {"annotations": {"gardener.cloud/operation": "force-redeploy"}},
        }
        await world.management.patch(GARDENLETS, "one", patch, "garden")

        async def done() -> bool:
            found = await world.gardenlet("one")
            return "kubeconfigSecretRef" not in found["spec"] and not found["metadata"].get("annotations")

        await until(done)
        assert await world.image("one") == f"v{OLD}"


async def test_a_seed_that_is_gone_is_missed_after_other_errors_as_well(world: GardenWorld) -> None:
    await world.add_gardenlet("one")
    async with world.gardenlets(), world.operating():
        await world.healthy("one")
    await world.garden.delete(SEEDS, "one")
    async with world.operating():
        await world.condition("one", "SeedRegistered", "False", reason="SeedMissing", text="cluster of Hortus itself")
        for reference in ({"name": "missing"}, None):
            patch = {"spec": {"kubeconfigSecretRef": reference}}
            await world.management.patch(GARDENLETS, "one", patch, "garden")
            reason, says = ("SeedMissing", "is gone") if reference is None else ("ReconcileError", "SecretMissing")
            await world.condition("one", "SeedRegistered", "False", reason=reason, text=says)
    assert await world.get(world.management, DEPLOYMENTS, "gardenlet", "garden") is None


async def test_a_gardenlet_for_the_own_cluster_is_refused_without_access(
    world: GardenWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(checks: SeedChecks) -> bool:
        raise Forbidden('deployments.apps "gardenlet" is forbidden')

    monkeypatch.setattr(SeedChecks, "is_deployed", refuse)
    await world.add_gardenlet("one", kubeconfig="")
    async with world.operating(upgraded=()):
        await world.condition("one", "SeedRegistered", "False", text="OwnClusterForbidden: ")
    assert await world.get(world.management, DEPLOYMENTS, "gardenlet", "garden") is None


async def test_an_expired_bootstrap_token_is_renewed_with_its_secret_kept(world: GardenWorld) -> None:
    token = bootstrap.next_token("garden", "one", None, now=0.0)
    await world.garden.apply(SECRETS, bootstrap.token_secret(token, "garden", "one"), field_manager="test")
    await world.add_gardenlet("one")
    async with world.gardenlets(), world.operating():
        await world.healthy("one")
    name = bootstrap.token_name(token.identifier)
    found = await world.garden.get(SECRETS, name, "kube-system")
    data = {key: base64.b64decode(value).decode() for key, value in found["data"].items()}
    assert found["type"] == "bootstrap.kubernetes.io/token"
    assert data["token-secret"] == token.secret.reveal()
    assert data["expiration"] > "2020"


async def test_a_kubeconfig_is_renewed_on_request(world: GardenWorld) -> None:
    await world.add_gardenlet("one")
    async with world.gardenlets(), world.operating():
        await world.healthy("one")
        before = await world.seeds["one"].get(SECRETS, "gardenlet-kubeconfig", "garden")
        await world.annotate("one", "renew-kubeconfig")

        async def renewed() -> bool:
            found = await world.get(world.seeds["one"], SECRETS, "gardenlet-kubeconfig", "garden")
            return found is not None and found["data"] != before["data"]

        await until(renewed)

        async def settled() -> bool:
            return not (await world.gardenlet("one"))["metadata"].get("annotations")

        await until(settled)


@pytest.mark.parametrize(
    ("name", "namespace", "operation", "says"),
    [
        pytest.param("self-hosted-shoot-a", "garden", "", "self-hosted-shoot-", id="reserved"),
        pytest.param("a.b", "garden", "", "DNS label", id="no-label"),
        pytest.param("one", "default", "", "must be garden", id="namespace"),
        pytest.param("one", "garden", "retry", "must be one of reconcile", id="operation"),
    ],
)
async def test_metadata_is_judged_at_admission(
    world: GardenWorld, name: str, namespace: str, operation: str, says: str
) -> None:
    annotations = {"gardener.cloud/operation": operation} if operation else {}
    with pytest.raises((Forbidden, Invalid), match=says):
        await world.add_gardenlet(name, kubeconfig="", namespace=namespace, annotations=annotations)


@pytest.mark.parametrize("operation", ["reconcile", "renew-kubeconfig", "force-redeploy"])
async def test_known_operations_are_accepted(world: GardenWorld, operation: str) -> None:
    made = await world.add_gardenlet("one", kubeconfig="", annotations={"gardener.cloud/operation": operation})
    assert made["spec"]["deployment"]["replicaCount"] == 2
    assert made["spec"]["deployment"]["enableHealthProbes"] is True


async def test_a_seed_that_another_gardenlet_has_is_refused(world: GardenWorld) -> None:
    config = configuration()
    config["seedConfig"]["metadata"]["name"] = "two"
    await world.add_gardenlet("one", config=config)
    async with world.operating():
        await world.condition("one", "SeedRegistered", "False", text="two gardenlets must not have one Seed")
    assert await world.get(world.seeds["one"], DEPLOYMENTS, "gardenlet", "garden") is None


async def test_a_chart_that_fails_or_is_missing_is_reported(world: GardenWorld) -> None:
    await world.add_gardenlet("one", version="9.9.9")
    async with world.operating():
        await world.condition("one", "SeedRegistered", "False", text="9.9.9")
        assert await world.get(world.seeds["one"], DEPLOYMENTS, "gardenlet", "garden") is None
        place = {"deployment": {"helm": {"ociRepository": {"ref": world.chart()}}, "env": [{"name": "A"}]}}
        await world.management.patch(GARDENLETS, "one", {"spec": place}, "garden")
        await world.condition("one", "SeedRegistered", "Progressing", reason="WaitingForRegistration")
    assert await world.get(world.seeds["one"], DEPLOYMENTS, "gardenlet", "garden") is not None


async def test_a_missing_backup_secret_stops_the_deployment(world: GardenWorld) -> None:
    reference = {"kind": "Secret", "apiVersion": "v1", "name": "backup", "namespace": "garden"}
    config = configuration(backup={"provider": "local", "credentialsRef": reference})
    await world.add_gardenlet("one", config=config)
    async with world.operating():
        await world.condition("one", "SeedRegistered", "False", text="Secret garden/backup does not exist")
        await world.garden.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden"}})
        await world.garden.apply(
            SECRETS,
            {"metadata": {"name": "backup", "namespace": "garden"}, "data": {"key": "dmFsdWU="}},
            field_manager="test",
        )
        await world.condition("one", "SeedRegistered", "Progressing")
    deployment = await world.seeds["one"].get(DEPLOYMENTS, "gardenlet", "garden")
    annotations = deployment["spec"]["template"]["metadata"]["annotations"]
    assert annotations["checksum/seed-backup-secret"].startswith("backup-")
    assert len(annotations["checksum/seed-backup-secret"]) == len("backup-") + 8


async def test_charts_by_tag_can_be_forbidden(world: GardenWorld) -> None:
    await world.add_gardenlet("one")
    async with world.operating(by_digest=True):
        await world.condition("one", "SeedRegistered", "False", text="by digest alone")
    assert await world.get(world.seeds["one"], DEPLOYMENTS, "gardenlet", "garden") is None
