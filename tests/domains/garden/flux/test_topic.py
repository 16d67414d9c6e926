"""Flux in a Shoot, from its first installation on: all through real sockets; tests write Flux's statuses."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from tests.domains.garden.flux.shoots import TYPE, FluxShoot, flux_shoot, manifests, topic, write_access
from tests.domains.garden.flux.test_config import GIT, OCI, SYNC, config, whole, with_
from tests.domains.garden.world import SeedWorld, seed_world
from tests.waiting import until

from hortus.domains.garden.flux.names import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    GIT_REPOSITORIES,
    KUSTOMIZATIONS,
    OCI_REPOSITORIES,
    SECRETS,
)
from hortus.domains.garden.types import EXTENSIONS, SEED_CLUSTERS
from hortus.engine.remote import RemoteSettings
from hortus.kube import Resource
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer
from hortus.testing.clock import FakeClock

MARK = "app.kubernetes.io/managed-by"


async def test_flux_is_installed_and_given_its_source_and_kustomization(seed: SeedWorld) -> None:
    async with flux_shoot(seed) as shoot, seed.running(topic()):
        await shoot.refer("ref-project-git-key", {"identity": "k"})
        written = whole(flux={"registry": "registry.example.org/flux"})
        written["source"]["secretResourceName"] = "git-key"
        await shoot.extend(written)
        assert await shoot.get(GIT_REPOSITORIES, "flux-system") is None
        await shoot.run("source-controller")
        source = await shoot.there(GIT_REPOSITORIES, "flux-system")
        assert source["spec"]["secretRef"] == {"name": "flux-system"}
        secret = await shoot.there(SECRETS, "flux-system")
        assert secret["metadata"]["labels"] == {MARK: "gardener-extension-shoot-flux"}
        assert await shoot.get(KUSTOMIZATIONS, "flux-system") is None
        found = await shoot.bootstrap()
        assert await shoot.info() == {
            "SHOOT_INFO_CLUSTER_IDENTITY": f"{shoot.id}-u-1-garden-1",
            "SHOOT_INFO_NAME": "foo",
            "SHOOT_INFO_TECHNICAL_ID": shoot.id,
            "SHOOT_INFO_GARDEN_CLUSTER_IDENTITY": "garden-1",
        }
        bootstrapped = next(one for one in found["status"]["conditions"] if one["type"] == "FluxBootstrapped")
        assert (bootstrapped["status"], bootstrapped["reason"]) == ("True", "BootstrapSuccessful")
        for type_ in ("SystemComponentsHealthy", "FluxSourceReady", "FluxKustomizationReady"):
            await shoot.condition(type_, "True")
        controller = await shoot.there(DEPLOYMENTS, "source-controller")
        (container,) = controller["spec"]["template"]["spec"]["containers"]
        assert container["image"] == "registry.example.org/flux/source-controller:v1.9.3"


async def test_flux_alone_is_installed_without_a_source(seed: SeedWorld) -> None:
    async with flux_shoot(seed) as shoot, seed.running(topic()):
        await shoot.extend(None)
        await shoot.run()
        found = await shoot.operated()
        await shoot.condition("SystemComponentsHealthy", "True", "FluxRunning")
        assert found["status"]["state"] == {"fluxBootstrapped": True}
        assert await shoot.get(GIT_REPOSITORIES, "flux-system") is None


async def bootstrapped(shoot: FluxShoot, written: Any = None) -> Object:
    await shoot.extend(written if written is not None else whole())
    return await shoot.bootstrap("OCIRepository" if written == whole(OCI) else "GitRepository")


async def test_a_source_that_fails_at_first_is_an_error_and_later_a_condition(seed: SeedWorld) -> None:
    async with flux_shoot(seed) as shoot, seed.running(topic()):
        await shoot.extend(whole())
        await shoot.run()
        await shoot.report("GitRepository", "False", "repository not found")
        failed = await shoot.operated("Error")
        assert (
            "GitRepository flux-system/flux-system: repository not found"
            in failed["status"]["lastError"]["description"]
        )
        await shoot.bootstrap()
        await shoot.report("GitRepository", "False", "repository not found")
        seen = await shoot.condition("FluxSourceReady", "False")
        assert seen["message"].endswith("repository not found")
        await seed.ask(shoot.id, TYPE, "reconcile")
        await shoot.operated(kind="Reconcile")


async def test_changes_of_what_is_configured_are_undone_and_others_are_kept(seed: SeedWorld) -> None:
    async with flux_shoot(seed) as shoot, seed.running(topic()):
        await bootstrapped(shoot)
        await shoot.client.patch(GIT_REPOSITORIES, "flux-system", {"spec": {"suspend": True}}, "flux-system")
        await shoot.condition("FluxSourceReady", "True", "Suspended")
        await shoot.client.patch(GIT_REPOSITORIES, "flux-system", {"spec": {"url": "https://evil"}}, "flux-system")

        async def repaired() -> bool:
            found = await shoot.there(GIT_REPOSITORIES, "flux-system")
            return bool(found["spec"]["url"] == GIT["spec"]["url"] and found["spec"]["suspend"])

        await until(repaired)
        former = await shoot.there(DEPLOYMENTS, "source-controller")
        await shoot.client.delete(DEPLOYMENTS, "source-controller", "flux-system")
        await shoot.run("source-controller")
        await shoot.condition("SystemComponentsHealthy", "True")
        await shoot.operated(kind="Reconcile")
        made = await shoot.there(DEPLOYMENTS, "source-controller")
    assert made["metadata"]["uid"] != former["metadata"]["uid"]
    assert made["spec"]["template"] == former["spec"]["template"]


async def test_at_rest_nothing_is_written(seed: SeedWorld) -> None:
    async with flux_shoot(seed) as shoot, seed.running(topic()):
        await bootstrapped(shoot)
        for type_ in ("SystemComponentsHealthy", "FluxSourceReady", "FluxKustomizationReady"):
            await shoot.condition(type_, "True")
        before = (await shoot.operated())["metadata"]["resourceVersion"]
        deployment = await shoot.there(DEPLOYMENTS, "source-controller")
        await seed.ask(shoot.id, TYPE, "reconcile")
        after = await shoot.operated(kind="Reconcile")
        assert after["metadata"]["resourceVersion"] != before
        assert await shoot.there(DEPLOYMENTS, "source-controller") == deployment


async def test_an_upgrade_replaces_the_controllers_and_removes_what_the_version_lacks(
    seed: SeedWorld, tmp_path: Path
) -> None:
    old, new = tmp_path / "v2.9.2", tmp_path / "v2.9.3"
    old.mkdir(), new.mkdir()
    manifests(old)

    def changed(name: str, obj: Object) -> Object | None:
        if obj["kind"] == "NetworkPolicy":
            return None
        if obj["kind"] == "Deployment":
            container = obj["spec"]["template"]["spec"]["containers"][0]
            container["image"] = f"fluxcd/{obj['metadata']['name']}:v9"
        return obj

    manifests(new, changed)
    policies = Resource("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
    async with flux_shoot(seed) as shoot, seed.running(topic(manifests=str(tmp_path / "{version}"))):
        await bootstrapped(shoot)
        await shoot.there(policies, "allow-egress")
        await shoot.configure(
            whole(flux={"version": "v2.9.3", "components": ["source-controller", "kustomize-controller"]})
        )
        await shoot.operated(kind="Reconcile")
        found = await shoot.there(DEPLOYMENTS, "source-controller")
        assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "ghcr.io/fluxcd/source-controller:v9"
        assert found["metadata"]["labels"]["app.kubernetes.io/version"] == "v2.9.3"
        await shoot.gone(policies, "allow-egress")
        await shoot.gone(DEPLOYMENTS, "helm-controller")
        await shoot.condition("SystemComponentsHealthy", "Progressing")
        await shoot.run("source-controller", "kustomize-controller")
        await shoot.condition("SystemComponentsHealthy", "True")


async def test_a_changed_source_takes_the_place_of_the_former(seed: SeedWorld) -> None:
    async with flux_shoot(seed) as shoot, seed.running(topic()):
        await bootstrapped(shoot)
        await shoot.configure(whole(OCI))
        await shoot.operated(kind="Reconcile")
        await shoot.gone(GIT_REPOSITORIES, "flux-system")
        found = await shoot.there(OCI_REPOSITORIES, "flux-system")
        assert found["spec"]["url"] == OCI["spec"]["url"]
        sync = await shoot.there(KUSTOMIZATIONS, "flux-system")
        assert sync["spec"]["sourceRef"]["kind"] == "OCIRepository"
        await shoot.condition("FluxSourceReady", "Progressing")
        await shoot.report("OCIRepository")
        await shoot.condition("FluxSourceReady", "True")


async def test_a_former_kustomization_is_suspended_before_it_goes_so_that_nothing_is_pruned(seed: SeedWorld) -> None:
    async with flux_shoot(seed) as shoot, seed.running(topic()):
        await bootstrapped(shoot)
        held = {"metadata": {"finalizers": ["finalizers.fluxcd.io/test"]}}
        await shoot.client.patch(KUSTOMIZATIONS, "flux-system", held, "flux-system")
        await shoot.configure(whole(sync=with_(SYNC, metadata__name="other")))
        await shoot.there(KUSTOMIZATIONS, "other")

        async def going() -> Object | None:
            found = await shoot.there(KUSTOMIZATIONS, "flux-system")
            return found if "deletionTimestamp" in found["metadata"] else None

        assert (await until(going))["spec"]["suspend"] is True


async def test_suspend_in_the_configuration_pauses_both_and_is_taken_back(seed: SeedWorld) -> None:
    async with flux_shoot(seed) as shoot, seed.running(topic()):
        await bootstrapped(shoot)
        await shoot.configure(whole(suspend=True))
        for type_ in ("FluxSourceReady", "FluxKustomizationReady"):
            await shoot.condition(type_, "True", "Suspended")
        await shoot.configure(whole())
        await shoot.operated(kind="Reconcile")
        for resource in (GIT_REPOSITORIES, KUSTOMIZATIONS):
            assert "suspend" not in (await shoot.there(resource, "flux-system"))["spec"]


async def test_sync_mode_once_keeps_the_secrets_alone(seed: SeedWorld) -> None:
    async with flux_shoot(seed) as shoot, seed.running(topic()):
        await shoot.refer("ref-project-vault", {"token": "1"})
        once = whole(syncMode="Once", additionalSecretResources=[{"name": "vault"}])
        await bootstrapped(shoot, once)
        await shoot.client.patch(GIT_REPOSITORIES, "flux-system", {"spec": {"url": "https://own"}}, "flux-system")
        await shoot.refer("ref-project-vault", {"token": "2"})
        await seed.ask(shoot.id, TYPE, "reconcile")
        await shoot.operated(kind="Reconcile")
        assert (await shoot.there(SECRETS, "vault"))["data"] == {"token": "Mg=="}
        assert (await shoot.there(GIT_REPOSITORIES, "flux-system"))["spec"]["url"] == "https://own"
        await shoot.configure(whole(syncMode="Once"))
        await shoot.gone(SECRETS, "vault")


@pytest.mark.parametrize(("annotated", "labels"), [(None, {}), ("true", {"team": "a"}), ("false", {})])
async def test_labels_of_a_secret_are_copied_where_its_annotation_says_so(
    seed: SeedWorld, annotated: str | None, labels: dict[str, str]
) -> None:
    async with flux_shoot(seed) as shoot, seed.running(topic()):
        annotations = {"gardener-extension-shoot-flux/copy-labels": annotated} if annotated else {}
        await shoot.refer("ref-project-vault", {"token": "1"}, annotations=annotations, labels={"team": "a"})
        await shoot.extend(config(additionalSecretResources=[{"name": "vault", "targetName": "copy"}]))
        await shoot.run()
        await shoot.operated()
        found = await shoot.there(SECRETS, "copy")
        assert found["metadata"]["labels"] == {**labels, MARK: "gardener-extension-shoot-flux"}


async def test_a_secret_that_is_missing_or_empty_is_named(seed: SeedWorld) -> None:
    async with flux_shoot(seed) as shoot, seed.running(topic()):
        await shoot.extend(config(additionalSecretResources=[{"name": "vault"}]))
        await shoot.run()
        failed = await shoot.operated("Error")
        assert (
            f"Secret {shoot.id}/ref-project-vault of the seed does not exist"
            in failed["status"]["lastError"]["description"]
        )
        await shoot.refer("ref-project-vault", {})

        async def empty() -> bool:
            found = await shoot.operated("Error")
            return "has no keys" in found["status"]["lastError"]["description"]

        await until(empty)
        await shoot.refer("ref-project-vault", {"token": "1"})
        await seed.ask(shoot.id, TYPE, "reconcile")
        await shoot.operated()


async def test_a_hibernated_shoot_is_left_alone_until_it_wakes(seed: SeedWorld) -> None:
    async with flux_shoot(seed, hibernation={"enabled": True}) as shoot, seed.running(topic()):
        await shoot.extend(whole())
        found = await shoot.operated()
        assert "FluxBootstrapped" not in {one["type"] for one in found["status"].get("conditions", ())}
        assert await shoot.get(DEPLOYMENTS, "source-controller") is None
        awake = {"spec": {"shoot": {"spec": {"hibernation": {"enabled": False}}}}}
        await seed.client.patch(SEED_CLUSTERS, shoot.id, awake)
        await shoot.bootstrap()


@pytest.mark.parametrize("operation", ["delete", "migrate", "force-delete"])
async def test_flux_stays_when_its_extension_goes(seed: SeedWorld, operation: str) -> None:
    async with flux_shoot(seed) as shoot, seed.running(topic()):
        await bootstrapped(shoot)
        if operation == "migrate":
            await seed.ask(shoot.id, TYPE, "migrate")
            found = await shoot.operated(kind="Migrate")
            assert found["status"]["state"] == {"fluxBootstrapped": True}
            assert "finalizers" not in found["metadata"]
        else:
            if operation == "force-delete":
                forced = {"confirmation.gardener.cloud/force-deletion": "true"}
                patch = {"spec": {"shoot": {"metadata": {"annotations": forced}}}}
                await seed.client.patch(SEED_CLUSTERS, shoot.id, patch)
            await seed.client.delete(EXTENSIONS, TYPE, shoot.id)
            await seed.gone(EXTENSIONS, TYPE, shoot.id)
        for resource, name in ((DEPLOYMENTS, "source-controller"), (GIT_REPOSITORIES, "flux-system")):
            assert await shoot.get(resource, name) is not None


async def test_a_restored_shoot_is_not_bootstrapped_again(seed: SeedWorld) -> None:
    async with flux_shoot(seed) as shoot:
        async with seed.running(topic()):
            await bootstrapped(shoot)
            await seed.ask(shoot.id, TYPE, "migrate")
            await shoot.operated(kind="Migrate")
        await seed.client.delete(EXTENSIONS, TYPE, shoot.id)
        await shoot.report("GitRepository", "False", "away")
        await shoot.extend(whole(), operation="wait-for-state")
        await seed.status(EXTENSIONS, TYPE, shoot.id, {"state": {"fluxBootstrapped": True}})
        await seed.ask(shoot.id, TYPE, "restore")
        async with seed.running(topic()):
            found = await shoot.operated(kind="Restore")
            await shoot.condition("FluxBootstrapped", "True")
            await shoot.condition("FluxSourceReady", "False")
        assert found["status"]["state"] == {"fluxBootstrapped": True}


async def test_flux_that_keeps_itself_is_left_to_itself(seed: SeedWorld) -> None:
    own = {"metadata": {"labels": {"kustomize.toolkit.fluxcd.io/name": "flux-system"}}}
    async with flux_shoot(seed) as shoot, seed.running(topic()):
        await bootstrapped(shoot)
        for resource, name in ((DEPLOYMENTS, "source-controller"), (GIT_REPOSITORIES, "flux-system")):
            await shoot.client.patch(resource, name, own, "flux-system")
        await shoot.client.patch(GIT_REPOSITORIES, "flux-system", {"spec": {"url": "https://own"}}, "flux-system")
        before = await shoot.there(DEPLOYMENTS, "source-controller")
        await shoot.configure(whole(flux={"registry": "registry.example.org/flux"}))
        await shoot.operated(kind="Reconcile")
        after = await shoot.there(DEPLOYMENTS, "source-controller")
        assert after["spec"] == before["spec"]
        assert (await shoot.there(GIT_REPOSITORIES, "flux-system"))["spec"]["url"] == "https://own"


async def test_a_stage_that_takes_too_long_is_an_error(server: TestServer) -> None:
    clock = FakeClock()
    patient = topic(calls=RemoteSettings(deny=(), deadline=86_400.0))
    async with seed_world(server, clock) as seed, flux_shoot(seed) as shoot, seed.running(patient):
        await shoot.extend(config())

        async def waits() -> bool:
            found = await seed.extension(shoot.id, TYPE)
            last = (found.get("status") or {}).get("lastOperation") or {}
            return (last.get("progress"), last.get("description")) == (20, "Installing Flux")

        await until(waits)
        await shoot.there(DEPLOYMENTS, "notification-controller")

        async def late() -> str:
            await clock.advance(61)
            error = (await seed.extension(shoot.id, TYPE))["status"].get("lastError") or {}
            return str(error.get("description", ""))

        assert (await until(late)).startswith("Installing Flux: not done after 60 s: Deployment")


async def test_a_version_that_lacks_a_component_is_refused_and_the_former_one_goes_on(
    seed: SeedWorld, tmp_path: Path
) -> None:
    for version in ("v2.9.2", "v2.9.3"):
        (tmp_path / version).mkdir()
    manifests(tmp_path / "v2.9.2")
    manifests(tmp_path / "v2.9.3", lambda name, obj: obj if name != "helm-controller" else None)
    async with flux_shoot(seed) as shoot, seed.running(topic(manifests=str(tmp_path / "{version}"))):
        await bootstrapped(shoot)
        await shoot.configure(whole(flux={"version": "v2.9.3"}))
        failed = await shoot.operated("Error")
        assert failed["status"]["lastError"]["description"] == "the manifests of Flux v2.9.3 have no helm-controller"
        found = await shoot.there(DEPLOYMENTS, "helm-controller")
        assert found["metadata"]["labels"]["app.kubernetes.io/version"] == "v2.9.2"
        await shoot.configure(whole(flux={"version": "v9.9.9"}))

        async def named() -> bool:
            error = (await shoot.operated("Error"))["status"]["lastError"]["description"]
            return "no such folder; flag --flux-manifests names it" in error

        await until(named)
        await shoot.configure(whole())
        await shoot.operated()


async def test_flux_goes_on_once_gardenlet_has_written_the_way_into_the_shoot(seed: SeedWorld) -> None:
    async with flux_shoot(seed) as shoot:
        found = await seed.get(SECRETS, "gardener", shoot.id)
        assert found is not None
        await seed.client.delete(SECRETS, "gardener", shoot.id)
        async with seed.running(topic()):
            await shoot.extend(config())
            await shoot.operated("Processing", kind="Create")
            assert await shoot.get(DEPLOYMENTS, "source-controller") is None
            await write_access(seed, shoot.id, base64.b64decode(found["data"]["kubeconfig"]).decode())
            await shoot.run()
            await shoot.operated()


async def test_another_namespace_takes_all_of_flux_along(seed: SeedWorld) -> None:
    async with flux_shoot(seed) as shoot, seed.running(topic()):
        await bootstrapped(shoot)
        await shoot.configure(whole(flux={"namespace": "gitops"}))
        await shoot.operated(kind="Reconcile")
        await shoot.there(KUSTOMIZATIONS, "flux-system", "gitops")
        assert (await shoot.info("gitops"))["SHOOT_INFO_NAME"] == "foo"
        for resource, name in (
            (DEPLOYMENTS, "source-controller"),
            (GIT_REPOSITORIES, "flux-system"),
            (KUSTOMIZATIONS, "flux-system"),
            (CONFIG_MAPS, "shoot-info"),
        ):
            await shoot.gone(resource, name)


async def test_a_wrong_configuration_from_before_admission_is_named_and_changes_nothing(seed: SeedWorld) -> None:
    async with flux_shoot(seed) as shoot, seed.running(topic()):
        await bootstrapped(shoot)
        await shoot.configure(config(source={"template": GIT}))
        failed = await shoot.operated("Error")
        assert failed["status"]["lastError"]["codes"] == ["ERR_CONFIGURATION_PROBLEM"]
        assert "spec.providerConfig.kustomization: Required value" in failed["status"]["lastError"]["description"]
        assert await shoot.get(KUSTOMIZATIONS, "flux-system") is not None
