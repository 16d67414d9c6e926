"""A GardenerCluster of a namespace that is not trusted has what the deputy of its namespace may, and no more."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import pytest
from tests.domains.credentials.world import CRDS, NAMESPACES, World, condition, content, kubeconfig, world
from tests.domains.granting import grant_verbs, take_back

from hortus.domains.credentials.debts import RELEASE_AFTER
from hortus.domains.credentials.types import FINALIZER, GARDENER_CLUSTERS, Annotation, Label, Reason
from hortus.engine import read
from hortus.engine.deputies import deputy_of
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.leftovers.types import LEFTOVERS, Leftover
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object
from hortus.schema import crd
from hortus.testing.apiserver import running_apiserver

TEAM, VAULT, GARDEN = "team-a", "vault", "garden-demo"
MANY = ("get", "create", "patch", "delete")


@pytest.fixture
async def fleet() -> AsyncIterator[World]:
    """All namespaces are watched; that of the Go system is trusted, and the team's is not."""
    async with running_apiserver() as server, world(server, "kcp-system") as here:
        here.watched, here.trusted = "*", "kcp-system"
        here.garden.shoots |= {"c-2", "c-3"}
        for name in (TEAM, VAULT, GARDEN):
            await here.client.create(NAMESPACES, {"metadata": {"name": name}})
        yield here


def theirs(here: World, name: str = "rt-1", *, shoot: str = "c-2", **secret: str) -> Object:
    """A GardenerCluster of the team."""
    made = here.cluster(name, shoot=shoot, secret={"namespace": TEAM, **secret})
    made["metadata"]["namespace"] = TEAM
    return made


async def reported(here: World, reason: str, name: str = "rt-1") -> str:
    found = await here.until("GardenerCluster", name, lambda obj: condition(obj).get("reason") == reason, TEAM)
    return str(condition(found)["message"])


async def allow_shoots(here: World, *names: str) -> str:
    subresource = "shoots/adminkubeconfig"
    return await grant_verbs(here.client, TEAM, "core.gardener.cloud", subresource, "create", where=GARDEN, names=names)


async def secret_of(here: World, namespace: str, name: str = "kubeconfig-rt-1") -> Object:
    return await here.client.get(SECRETS, name, namespace)


async def test_no_shoot_is_had_that_the_deputy_may_not_have(fleet: World) -> None:
    here = fleet
    await allow_shoots(here, "c-2")
    async with here.controlled():
        await here.client.create(GARDENER_CLUSTERS, theirs(here, "rt-3", shoot="c-3"))
        text = await reported(here, Reason.KUBECONFIG_FAILED, "rt-3")
        assert text == (
            "Failed to get kubeconfig. Error: namespace team-a may not create shoots/adminkubeconfig/c-3 of "
            "core.gardener.cloud in namespace garden-demo: its objects act with the permissions of ServiceAccount "
            f"hortus-deputy in it; grant them to {deputy_of(TEAM)}, or add the namespace to --trusted-namespaces"
        )
        await here.client.create(GARDENER_CLUSTERS, theirs(here, "rt-4", shoot="no-such"))
        assert await reported(here, Reason.KUBECONFIG_FAILED, "rt-4") == text.replace("c-3", "no-such")
        assert here.garden.calls == []
        await here.client.create(GARDENER_CLUSTERS, theirs(here))
        await reported(here, Reason.CREATED)
        assert here.garden.calls == ["c-2"]
        with pytest.raises(NotFound):
            await secret_of(here, TEAM, "kubeconfig-rt-3")


async def test_a_grant_that_is_taken_back_stops_the_next_rotation(fleet: World) -> None:
    here = fleet
    binding = await allow_shoots(here, "c-2")
    async with here.controlled():
        await here.client.create(GARDENER_CLUSTERS, theirs(here))
        await reported(here, Reason.CREATED)
        await take_back(here.client, binding, where=GARDEN)
        force = {"metadata": {"annotations": {Annotation.FORCE_ROTATION: "true"}}}
        here.clock.skip(600)
        await here.client.patch(GARDENER_CLUSTERS, "rt-1", force, TEAM)
        await reported(here, Reason.KUBECONFIG_FAILED)
        assert here.garden.calls == ["c-2"]
        assert content(await secret_of(here, TEAM)) == kubeconfig("c-2-1")


async def test_a_secret_elsewhere_is_written_and_deleted_by_the_deputy(fleet: World) -> None:
    here = fleet
    await allow_shoots(here, "c-2")
    async with here.controlled():
        await here.client.create(GARDENER_CLUSTERS, theirs(here, namespace=VAULT))
        text = await reported(here, Reason.CREATE_FAILED)
        assert "namespace team-a may not create secrets in namespace vault" in text
        made = await here.client.get(GARDENER_CLUSTERS, "rt-1", TEAM)
        assert "finalizers" not in made["metadata"]
        assert here.garden.calls == []
        await grant_verbs(here.client, TEAM, "", "secrets", *MANY, where=VAULT)
        await here.advance(600)
        await reported(here, Reason.CREATED)
        secret = await secret_of(here, VAULT)
        assert secret["metadata"]["annotations"][Annotation.OWNER] == f"{TEAM}/rt-1/{made['metadata']['uid']}"
        await here.client.delete(GARDENER_CLUSTERS, "rt-1", TEAM)
        await here.until_gone("Secret", "kubeconfig-rt-1", VAULT)
        await here.until_gone("GardenerCluster", "rt-1", TEAM)


async def test_a_secret_of_another_system_is_taken_over_by_the_deputy_alone(fleet: World) -> None:
    """The label of a shoot has one taken over within its namespace, and deleted with its cluster."""
    here = fleet
    await allow_shoots(here, "c-2")
    laid_out = {"metadata": {"name": "precious", "labels": {Label.SHOOT_NAME: "c-2"}}, "data": {"password": "eHg="}}
    made = await here.client.create(SECRETS, {**laid_out, "metadata": {**laid_out["metadata"], "namespace": TEAM}})
    async with here.controlled():
        await here.client.create(GARDENER_CLUSTERS, theirs(here, key="password"))
        text = await reported(here, Reason.UPDATE_FAILED)
        assert f'User "{deputy_of(TEAM)}" cannot get resource "secrets"' in text
        assert await secret_of(here, TEAM, "precious") == made


async def test_a_deletion_ends_though_the_deputy_may_not_delete_the_secret_any_more(fleet: World) -> None:
    here = fleet
    await here.client.apply(CRDS, crd(Leftover), field_manager="tests")
    here.clock.jump(time.time() - here.clock.now())  # the time of the server, which stamps the deletion
    here.leftovers = True
    await allow_shoots(here, "c-2")
    binding = await grant_verbs(here.client, TEAM, "", "secrets", *MANY, where=VAULT)
    async with here.controlled():
        await here.client.create(GARDENER_CLUSTERS, theirs(here, namespace=VAULT))
        await reported(here, Reason.CREATED)
        await take_back(here.client, binding, where=VAULT)
        await here.client.delete(GARDENER_CLUSTERS, "rt-1", TEAM)
        await here.rest(namespace=TEAM)
        await here.advance(RELEASE_AFTER + 600)
        await here.until_gone("GardenerCluster", "rt-1", TEAM)
        assert content(await secret_of(here, VAULT)) == kubeconfig("c-2-1")
    [found] = (await here.client.list(LEFTOVERS, "kcp-system")).items
    assert [item.what for item in read(Leftover, found).spec.items] == ["Secret vault/kubeconfig-rt-1"]


async def test_a_deletion_records_no_secret_of_others_as_left(fleet: World) -> None:
    """People delete what a Leftover names."""
    here = fleet
    here.leftovers = True
    await here.client.create(SECRETS, {"metadata": {"name": "theirs", "namespace": VAULT}})
    made = theirs(here, namespace=VAULT, name="theirs")
    made["metadata"]["finalizers"] = [FINALIZER]
    made["metadata"]["name"] = "rt-1"
    await here.client.create(GARDENER_CLUSTERS, made)
    await here.client.delete(GARDENER_CLUSTERS, "rt-1", TEAM)
    async with here.controlled():
        await here.until_gone("GardenerCluster", "rt-1", TEAM)
    assert await secret_of(here, VAULT, "theirs")
