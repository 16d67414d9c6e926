"""A GardenerCluster reaches no Secret of another one, whatever permissions its namespace has."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.domains.credentials.world import NAMESPACES, World, condition, content, kubeconfig, world

from hortus.domains.credentials.garden import GardenFailure
from hortus.domains.credentials.types import GARDENER_CLUSTERS, Annotation, Label
from hortus.engine import Actor
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube.objects import Object
from hortus.testing.apiserver import running_apiserver

TEAM = "team-a"
CREATED = "KubeconfigSecretCreated"
REFUSED = "FailedToGetKubeconfig"


@pytest.fixture
async def fleet() -> AsyncIterator[World]:
    """All namespaces are watched, and trusted: what is held here does not rest on permissions."""
    async with running_apiserver() as server, world(server, "kcp-system") as here:
        here.watched = "*"
        here.garden.shoots |= {"c-2", "c-3"}
        await here.client.create(NAMESPACES, {"metadata": {"name": TEAM}})
        yield here


def theirs(here: World, name: str = "rt-1", *, shoot: str = "c-2", **secret: str) -> Object:
    """A GardenerCluster of the attacker."""
    made = here.cluster(name, shoot=shoot, secret={"namespace": TEAM, **secret})
    made["metadata"]["namespace"] = TEAM
    return made


async def said(here: World, reason: str, name: str = "rt-1") -> str:
    found = await here.until("GardenerCluster", name, lambda obj: condition(obj).get("reason") == reason, TEAM)
    return str(condition(found)["message"])


async def test_a_namesake_in_another_namespace_neither_changes_nor_deletes_the_secret(fleet: World) -> None:
    """Nor do the two rotate against each other."""
    here = fleet
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        before = await here.secret()
        await here.client.create(GARDENER_CLUSTERS, theirs(here, namespace="kcp-system"))
        text = await said(here, "ConditionReasonFailedToCreateSecret")
        assert "secret kcp-system/kubeconfig-rt-1 exists" in text
        await here.rest()
        assert await here.secret() == before
        await here.advance(9)
        assert here.garden.calls == ["c-1"]
        await here.client.delete(GARDENER_CLUSTERS, "rt-1", TEAM)
        await here.until_gone("GardenerCluster", "rt-1", TEAM)
        await here.rest()
        assert await here.secret() == before


async def test_a_namesake_deleted_while_nobody_was_there_takes_nothing_along(fleet: World) -> None:
    here = fleet
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        await here.client.create(GARDENER_CLUSTERS, theirs(here))
        await said(here, CREATED)
        before = await here.secret()
    await here.client.delete(GARDENER_CLUSTERS, "rt-1", TEAM)
    async with here.controlled():
        await here.until_gone("Secret", "kubeconfig-rt-1", TEAM)
        await here.rest()
        assert await here.secret() == before


async def test_a_secret_elsewhere_says_whose_it_is_and_goes_with_it(fleet: World) -> None:
    here = fleet
    async with here.controlled():
        made = await here.create(here.cluster(secret={"namespace": TEAM}))
        await here.until_condition(CREATED)
        secret = await here.client.get(SECRETS, "kubeconfig-rt-1", TEAM)
        uid = made["metadata"]["uid"]
        assert secret["metadata"]["annotations"][Annotation.OWNER] == f"kcp-system/rt-1/{uid}"
        await here.client.patch(
            SECRETS, "kubeconfig-rt-1", {"metadata": {"annotations": {Annotation.LAST_SYNC: None}}}, TEAM
        )
        await here.until("Secret", "kubeconfig-rt-1", lambda obj: content(obj) == kubeconfig("c-1-2"), TEAM)
        await here.client.delete(GARDENER_CLUSTERS, "rt-1", "kcp-system")
        await here.until_gone("Secret", "kubeconfig-rt-1", TEAM)


async def test_a_secret_in_its_own_namespace_is_not_had_by_naming_it(here: World) -> None:
    here.garden.shoots |= {"c-2"}
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        before = await here.secret()
        await here.create(here.cluster("rt-2", shoot="c-2", secret={"name": "kubeconfig-rt-1"}))
        await here.until_condition("ConditionReasonFailedToCreateSecret", "rt-2")
        await here.client.delete(GARDENER_CLUSTERS, "rt-2", here.namespace)
        await here.until_gone("GardenerCluster", "rt-2")
        await here.rest("rt-2")
        assert await here.secret() == before


async def test_a_secret_is_not_had_by_the_label_of_a_shoot_that_its_owner_has_left(here: World) -> None:
    """The owner is about to write the label again; until then it leads somebody else to it."""
    here.garden.shoots |= {"c-2"}
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
    await here.change(GARDENER_CLUSTERS, "rt-1", {"spec": {"shoot": {"name": "c-2"}}})
    await here.create(here.cluster("a-first"))
    async with here.controlled():
        await here.until_condition(CREATED, "a-first")
        await here.until_condition("KubeconfigSecretRotated")
        assert (await here.secret())["metadata"]["labels"][Label.CLUSTER_NAME] == "rt-1"
        assert (await here.secret("kubeconfig-a-first"))["metadata"]["labels"][Label.CLUSTER_NAME] == "a-first"


async def undo(here: World) -> None:
    """Edit the Secret as soon as it was written."""
    await here.change(SECRETS, "kubeconfig-rt-1", {"data": {"config": "ZWRpdGVk"}})
    await here.rest()


async def test_writers_that_undo_each_other_back_off_with_a_reason(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        await undo(here)
        await here.until_secret(lambda obj: content(obj) == kubeconfig("c-1-2"))
        waits = []
        for turn in range(3, 8):
            await undo(here)
            shown = await here.until_condition("FailedToUpdateSecret")
            assert "is changed by somebody else each time it was written" in shown["message"]
            before = here.clock.monotonic()
            for _ in range(400):
                if content(await here.secret()) == kubeconfig(f"c-1-{turn}"):
                    break
                await here.advance(1)
            waits.append(here.clock.monotonic() - before)
            await here.until_condition("KubeconfigSecretRotated")
        for wait, least in zip(waits, (10, 20, 40, 80, 160), strict=True):
            # The queue spreads what it is asked for by a few percent.
            assert least - 1 <= wait <= 1.2 * least + 1
        assert len(here.garden.calls) == 7


async def test_a_repair_that_fails_is_no_turn_of_two_writers(here: World) -> None:
    """The garden is down: that is what is said, and it is asked as soon as the queue has it."""
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        here.garden.failure = GardenFailure("the garden is down", actor=Actor.PROVIDER)
        await undo(here)
        for _ in range(3):
            await here.rest()
        assert "the garden is down" in (await here.until_condition(REFUSED))["message"]
        here.garden.failure = None
        await here.rest()
        assert content(await here.secret()).startswith(b"apiVersion")


async def test_a_secret_deleted_over_and_over_comes_back_less_and_less_often(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        await here.client.delete(SECRETS, "kubeconfig-rt-1", here.namespace)
        await here.until_secret(lambda obj: content(obj) == kubeconfig("c-1-2"))
        await here.rest()
        await here.client.delete(SECRETS, "kubeconfig-rt-1", here.namespace)
        await here.until_condition("FailedToUpdateSecret")
        await here.rest()
        assert len(here.garden.calls) == 2
        await here.advance(11)
        await here.until_secret(lambda obj: content(obj) == kubeconfig("c-1-3"))


async def test_a_rotation_is_forced_on_the_secret_too(here: World) -> None:
    async with here.controlled():
        await here.create()
        await here.until_condition(CREATED)
        force = {"metadata": {"annotations": {Annotation.FORCE_ROTATION: "now"}}}
        await here.change(SECRETS, "kubeconfig-rt-1", force)
        secret = await here.until_secret(lambda obj: content(obj) == kubeconfig("c-1-2"))
        assert Annotation.FORCE_ROTATION not in secret["metadata"]["annotations"]
        await here.until_condition("KubeconfigSecretRotated")
        await here.rest()
        assert here.garden.calls == ["c-1", "c-1"]
