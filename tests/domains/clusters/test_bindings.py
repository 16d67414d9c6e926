"""A cluster that leaves its SecretBinding takes the CredentialsBinding of the same Secret."""

from __future__ import annotations

import pytest
from tests.domains.clusters.world import World, is_ready, said

from hortus.domains.clusters.bindings import (
    CREDENTIALS_BINDINGS,
    SECRET_BINDINGS,
    credentials_binding_of,
    secret_binding_of,
    successor,
)
from hortus.domains.clusters.garden import SHOOTS
from hortus.kube.errors import Forbidden
from hortus.kube.objects import Object

FORCED = "force-migrated-sb-1"
QUOTA = {"name": "small", "namespace": "garden-t"}


def secret_binding(namespace: str = "garden-t", *, name: str = "sb-1", **fields: object) -> Object:
    made = {
        "metadata": {"name": name, "namespace": namespace},
        "provider": {"type": "aws"},
        "secretRef": {"name": "account", "namespace": namespace},
    }
    return {"apiVersion": SECRET_BINDINGS.api_version, "kind": SECRET_BINDINGS.kind, **made, **fields}


def credentials_binding(name: str, namespace: str = "garden-t", *, kind: str = "Secret", **fields: object) -> Object:
    version = "v1" if kind == "Secret" else "security.gardener.cloud/v1alpha1"
    made = {
        "metadata": {"name": name, "namespace": namespace},
        "provider": {"type": "aws"},
        "credentialsRef": {"apiVersion": version, "kind": kind, "name": "account", "namespace": namespace},
    }
    return {"apiVersion": CREDENTIALS_BINDINGS.api_version, "kind": CREDENTIALS_BINDINGS.kind, **made, **fields}


OTHER_SECRET = {"apiVersion": "v1", "kind": "Secret", "name": "another", "namespace": "garden-t"}


@pytest.mark.parametrize(
    ("present", "wanted", "chosen"),
    [
        ([], "", None),
        ([credentials_binding("sb-1")], "", "sb-1"),
        ([credentials_binding("b"), credentials_binding("sb-1")], "b", "b"),
        ([credentials_binding("b"), credentials_binding("a"), credentials_binding(FORCED)], "x", FORCED),
        ([credentials_binding("b"), credentials_binding("a")], "x", "a"),
        ([credentials_binding("sb-1", credentialsRef=OTHER_SECRET), credentials_binding("z")], "sb-1", "z"),
        ([credentials_binding("sb-1", kind="WorkloadIdentity")], "sb-1", None),
        ([credentials_binding("sb-1", kind="InternalSecret")], "sb-1", None),
        ([credentials_binding("sb-1", provider={"type": "gcp"})], "sb-1", None),
        ([credentials_binding("a", quotas=[QUOTA])], "", None),
        ([credentials_binding("a", quotas=[QUOTA])], "a", "a"),
    ],
)
def test_which_credentials_binding_takes_the_place(present: list[Object], wanted: str, chosen: str | None) -> None:
    bindings = map(credentials_binding_of, present)
    found = successor(secret_binding_of(secret_binding()), bindings, "aws", wanted=wanted)
    assert (found.name if found is not None else None) == chosen


async def _old(here: World) -> None:
    """A Ready cluster of Kubernetes 1.33 with a SecretBinding."""
    await here.garden.create(SECRET_BINDINGS, secret_binding(here.garden_namespace))
    await here.grow(here.runtime(kubernetes={"version": "1.33.5"}))
    assert (await here.shoot())["spec"]["secretBindingName"] == "sb-1"


async def _raise(here: World) -> Object:
    return await here.change({"spec": {"shoot": {"kubernetes": {"version": "1.34.1"}}}})


def _binding(shoot: Object) -> tuple[str | None, str | None]:
    return shoot["spec"].get("secretBindingName"), shoot["spec"].get("credentialsBindingName")


@pytest.mark.parametrize("name", ["sb-1", FORCED, "by-hand"])
async def test_an_upgrade_to_1_34_takes_the_credentials_binding_of_the_same_secret(here: World, name: str) -> None:
    async with here.controlled():
        await _old(here)
        await here.garden.create(CREDENTIALS_BINDINGS, credentials_binding(name, here.garden_namespace))
        runtime = await _raise(here)
        shoot = await here.until_patched(runtime["metadata"]["generation"])
        assert (_binding(shoot), shoot["spec"]["kubernetes"]["version"]) == ((None, name), "1.34.1")
        await here.operate("Reconcile", "Succeeded")
        await here.until("Runtime", "rt-1", is_ready)
        before = here.garden_requests.writes
        await here.update(7)
        assert _binding(await here.shoot()) == (None, name)
        assert here.garden_requests.writes > before


async def test_an_upgrade_without_a_credentials_binding_names_the_command_and_goes_on_by_itself(here: World) -> None:
    async with here.controlled():
        await _old(here)
        generation = (await here.shoot())["metadata"]["generation"]
        await _raise(here)
        found = await here.until_reason("ProcessingErr")
        place = here.garden_namespace
        assert said(found)[3] == (
            f"shoot c-1 must name a CredentialsBinding, and none in {place} leads to the Secret {place}/account of its "
            "SecretBinding sb-1: make it, by hand or by `hortus migrate-credentials c-1 --apply`"
        )
        assert (await here.shoot())["metadata"]["generation"] == generation
        await here.garden.create(CREDENTIALS_BINDINGS, credentials_binding("sb-1", place))
        await here.advance(330)
        shoot = await here.until_patched(2)
        assert _binding(shoot) == (None, "sb-1")


async def test_where_bindings_cannot_be_read_the_name_of_the_runtime_is_sent(here: World) -> None:
    async with here.controlled():
        await _old(here)
        here.failures["list", "credentialsbindings"] = Forbidden("may not list")
        runtime = await _raise(here)
        shoot = await here.until_patched(runtime["metadata"]["generation"])
        assert _binding(shoot) == (None, "sb-1")


async def test_a_shoot_that_gardener_has_moved_is_followed(here: World) -> None:
    """Gardener raises clusters by force and makes CredentialsBindings; each patch used to be refused then."""
    async with here.controlled():
        await _old(here)
        name = FORCED
        await here.garden.create(CREDENTIALS_BINDINGS, credentials_binding(name, here.garden_namespace))
        spec = {"kubernetes": {"version": "1.34.1"}, "secretBindingName": None, "credentialsBindingName": name}
        await here.garden.patch(SHOOTS, "c-1", {"spec": spec}, here.garden_namespace)
        await here.operate("Reconcile", "Succeeded")
        await here.update(8)
        shoot = await here.shoot()
        assert (_binding(shoot), shoot["spec"]["kubernetes"]["version"]) == ((None, name), "1.34.1")


async def test_the_key_moves_a_cluster_with_its_next_patch_whatever_its_version(here: World) -> None:
    async with here.controlled():
        await _old(here)
    await here.garden.create(CREDENTIALS_BINDINGS, credentials_binding("sb-1", here.garden_namespace))
    here.keys["gardener__enableCredentialBinding"] = True
    async with here.controlled():
        await here.rest()
        assert _binding(await here.shoot()) == ("sb-1", None)
        await here.update(9)
        shoot = await here.shoot()
        assert (_binding(shoot), shoot["spec"]["kubernetes"]["version"]) == ((None, "sb-1"), "1.33.5")
