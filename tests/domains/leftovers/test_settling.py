"""Items are looked at when their cluster answers, and settled when they are seen to be gone, never before."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from tests.domains.access.world import CONFIGMAPS
from tests.domains.leftovers.world import KEEP, SHOOTS, Ledger

from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.domains.leftovers.service import LOOK_AGAIN
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.leftovers import infrastructure_item, object_item
from hortus.engine.leftovers.types import LEFTOVERS, Leftover, LeftoverItem, LeftoverPhase
from hortus.engine.remote import MemberIdentity
from hortus.kube.objects import Object, Resource


def config_map(uid: str = "", name: str = "left") -> LeftoverItem:
    return object_item(CONFIGMAPS, "default", name, where="Cluster", uid=uid, actor="ClusterOwner")


async def leave(here: Ledger, name: str = "left") -> str:
    """An object in the cluster; returns its uid."""
    async with here.access.inside() as inside:
        made = await inside.create(CONFIGMAPS, {"metadata": {"name": name, "namespace": "default"}})
    return str(made["metadata"]["uid"])


async def remove(here: Ledger, name: str = "left") -> None:
    async with here.access.inside() as inside:
        await inside.delete(CONFIGMAPS, name, "default")


async def rests(here: Ledger) -> None:
    """Return once an object is not asked for in the time from one look to the next, since its watch works."""
    calls: list[str] = []
    here.requests.on_answer = lambda *_: calls.append(task.get_name() if (task := asyncio.current_task()) else "")
    for _ in range(20):
        calls.clear()
        await here.pass_time(LOOK_AGAIN + 10)
        if all(name.startswith("probe") for name in calls):
            return
    raise AssertionError(f"watched objects are asked for again and again: {calls}")


def looked(leftover: Leftover) -> bool:
    return bool(leftover.status.phase)


def settled(leftover: Leftover) -> bool:
    return leftover.status.phase == LeftoverPhase.SETTLED


def states(leftover: Leftover) -> list[str]:
    return sorted(item.state for item in leftover.status.items)


async def test_what_is_gone_is_settled_reported_and_deleted_after_its_time(here: Ledger) -> None:
    await here.access.cluster()
    await here.record([config_map("some-uid")])
    async with here.controlled():
        found = await here.until(settled)
        assert found.status.left == 0
        assert found.status.settled_at
        [condition] = found.status.conditions
        assert (condition.type, condition.status, condition.reason) == ("Settled", "True", "Settled")
        assert here.metric("Settled") == 1
        await here.clock.advance(KEEP / 2)
        assert await here.leftovers()
        await here.until_none()


async def test_what_is_left_stays_open_until_somebody_removes_it(here: Ledger) -> None:
    await here.access.cluster()
    uid = await leave(here)
    await here.record([config_map(uid)])
    async with here.controlled():
        found = await here.until(lambda one: states(one) == ["Left"])
        assert (found.status.phase, found.status.left) == (LeftoverPhase.OPEN, 1)
        assert here.metric("Open") == 1
        await here.pass_time(700)
        assert await here.only() == found, "a look that finds the same writes nothing"
        await remove(here)
        await here.until(settled)


async def test_what_is_removed_is_settled_at_once_without_a_look_in_between(here: Ledger) -> None:
    """Time stands still from the removal on, so that nothing but a watch can report it."""
    await here.access.cluster()
    first, second = await leave(here), await leave(here, "second")
    await here.record([config_map(first), config_map(second, "second")])
    async with here.controlled():
        await here.until(lambda one: states(one) == ["Left", "Left"])
        await rests(here)
        await remove(here)
        await here.shown(lambda one: states(one) == ["Gone", "Left"])
        await remove(here, "second")
        assert await leave(here, "second") != second, "another object of its name is not it"
        await here.shown(settled)


async def test_more_objects_than_may_be_watched_are_looked_at_now_and_then(here: Ledger) -> None:
    await here.access.cluster()
    uids = [await leave(here, name) for name in ("a", "b", "c")]
    await here.record([config_map(uid, name) for uid, name in zip(uids, ("a", "b", "c"), strict=True)])
    async with here.controlled(watches=2) as manager:
        await here.until(lambda one: states(one) == ["Left"] * 3)
        assert manager.started
        for name in ("a", "b", "c"):
            await remove(here, name)
        await here.until(settled)


async def test_another_object_of_its_name_is_not_it(here: Ledger) -> None:
    await here.access.cluster()
    await leave(here)
    await here.record([config_map("the-uid-of-one-before")])
    async with here.controlled():
        await here.until(settled)
    async with here.access.inside() as inside:
        assert await inside.get(CONFIGMAPS, "left", "default"), "and it is left alone"


async def test_a_cluster_that_comes_back_is_looked_at(here: Ledger) -> None:
    await here.access.cluster()
    before = await here.lead()
    await here.record([config_map("some-uid")])
    async with here.controlled():
        found = await here.until(looked)
        assert states(found) == ["Unknown"]
        assert found.status.phase == LeftoverPhase.OPEN
        await here.pass_time(400)
        assert not settled(await here.only())
        await here.lead(before)
        await here.until(settled)


async def test_a_cluster_that_never_does_keeps_its_record_open(here: Ledger) -> None:
    await here.access.cluster()
    await here.lead()
    await here.record([config_map("some-uid")])
    async with here.controlled():
        await here.until(looked)
        for _ in range(20):
            await here.clock.advance(86400)
        assert (await here.only()).status.phase == LeftoverPhase.OPEN


async def test_items_are_gone_with_their_cluster(here: Ledger) -> None:
    await here.plant()
    await here.record([config_map("some-uid"), config_map("other-uid", "second")], shoot="tulip")
    async with here.controlled():
        found = await here.until(looked)
        assert states(found) == ["Unknown", "Unknown"]
        assert "no kubeconfig" in found.status.items[0].message
        await here.fell()
        found = await here.until(settled)
        assert "the garden has no Shoot tulip" in found.status.items[0].message


async def test_a_cluster_made_again_under_the_name_is_another_one(here: Ledger) -> None:
    await here.access.cluster()
    uid = await leave(here)
    await here.record([config_map(uid)], identity="uid-of-the-first-kube-system")
    async with here.controlled():
        found = await here.until(settled)
    assert "another one answers under its name" in found.status.items[0].message


async def member(here: Ledger) -> MemberIdentity:
    """The cluster of the test, as its kubeconfig leads there."""
    async with here.access.inside() as inside:
        found = await inside.get_raw("/api/v1/namespaces/kube-system")
        return MemberIdentity.reached(inside.access, found["metadata"]["uid"])


ELSEWHERE = {"address": "https://elsewhere.example.org:443", "authority": "another"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (ELSEWHERE, "nothing but the uid says that its cluster has moved"),
        ({"uid": "another", **ELSEWHERE}, "another cluster answers under its name, at another address"),
    ],
)
async def test_an_item_is_not_gone_because_another_address_does_not_show_it(
    here: Ledger, changes: dict[str, str], message: str
) -> None:
    await here.access.cluster()
    await here.record([config_map("some-uid")], member=(await member(here))._replace(**changes))
    async with here.controlled():
        found = await here.until(looked)
        assert states(found) == ["Unknown"]
        assert message in found.status.items[0].message
        await here.pass_time(2 * LOOK_AGAIN)
        assert states(await here.only()) == ["Unknown"]


@pytest.mark.parametrize("changes", [{}, {"authority": "before it was replaced"}, {"address": "https://before:443"}])
async def test_a_cluster_is_known_by_its_uid_with_its_address_or_its_authorities(
    here: Ledger, changes: dict[str, str]
) -> None:
    await here.access.cluster()
    await here.record([config_map("some-uid")], member=(await member(here))._replace(**changes))
    async with here.controlled():
        found = await here.until(settled)
    assert found.status.items[0].message == "the server has no such object"


async def test_another_uid_at_the_address_of_the_debt_is_a_cluster_that_was_made_again(here: Ledger) -> None:
    await here.access.cluster()
    uid = await leave(here)
    await here.record([config_map(uid)], member=(await member(here))._replace(uid="of-the-first", authority="first"))
    async with here.controlled():
        found = await here.until(settled)
    assert "another one answers under its name" in found.status.items[0].message


async def test_a_kubeconfig_that_appears_opens_the_cluster(here: Ledger) -> None:
    await here.record([config_map("some-uid")])
    async with here.controlled():
        assert states(await here.until(looked)) == ["Unknown"]
        await here.access.cluster()
        await here.until(settled)


async def test_objects_of_the_garden_and_of_the_management_cluster_are_looked_at_too(here: Ledger) -> None:
    await here.plant("rose")
    await here.client.create(
        SECRETS, {"metadata": {"name": "kubeconfig-rose", "namespace": here.namespace}, "data": {}}
    )
    items = [
        object_item(SHOOTS, here.garden_namespace, "rose", where="Garden"),
        object_item(CONFIGMAPS, here.garden_namespace, "structured-auth-config-rose", where="Garden"),
        object_item(SECRETS, here.namespace, "kubeconfig-rose", where="Management"),
        object_item(GARDENER_CLUSTERS, here.namespace, "rose", where="Management"),
    ]
    await here.record(items)
    async with here.controlled():
        await here.until(lambda one: states(one) == ["Gone", "Gone", "Left", "Left"])
        await here.fell("rose")
        await here.client.delete(SECRETS, "kubeconfig-rose", here.namespace)
        found = await here.until(settled)
        assert states(found) == ["Gone"] * 4


async def test_infrastructure_is_settled_by_nobody(here: Ledger) -> None:
    await here.record([infrastructure_item("disks", "c-1", look="look", remove="remove")])
    async with here.controlled():
        found = await here.until(looked)
        await here.clock.advance(86400)
        assert (await here.only()).status == found.status
        assert "acknowledge" in found.status.items[0].message


async def test_an_acknowledged_one_is_counted_apart_and_still_settled(here: Ledger) -> None:
    await here.access.cluster()
    uid = await leave(here)
    name = await here.record([config_map(uid)])
    async with here.controlled():
        await here.until(looked)
        patch: Object = {"spec": {"acknowledgement": {"by": "alice", "reason": "known"}}}
        await here.client.patch(LEFTOVERS, name, patch, here.namespace)
        await here.until(lambda one: one.status.phase == LeftoverPhase.ACKNOWLEDGED)
        assert (here.metric("Open"), here.metric("Acknowledged")) == (0, 1)
        await remove(here)
        await here.until(settled)


async def test_a_record_that_grows_after_it_was_settled_is_open_again(here: Ledger) -> None:
    await here.access.cluster()
    await here.record([config_map("some-uid")])
    uid = await leave(here, "second")
    async with here.controlled():
        await here.until(settled)
        items = (await here.only()).spec.items
        name = (await here.only()).metadata.name
        added = config_map(uid, "second")
        wanted = [msgspec.to_builtins(item) for item in (*items, added)]
        await here.client.patch(LEFTOVERS, name, {"spec": {"items": wanted}}, here.namespace)
        found = await here.until(lambda one: one.status.phase == LeftoverPhase.OPEN)
        assert (states(found), found.status.settled_at) == (["Gone", "Left"], None)


async def test_a_leftover_leads_to_no_secret_and_no_kind_of_its_writer(here: Ledger) -> None:
    """A writer of Leftovers learns nothing of other objects by them."""
    await here.access.cluster()
    roles = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
    items = [
        object_item(roles, "", "no-such-role", where="Management"),
        object_item(SHOOTS, "garden-of-another-project", "rose", where="Garden"),
    ]
    await here.record(items)
    async with here.controlled():
        found = await here.until(looked)
        assert states(found) == ["Unknown", "Unknown"]


async def test_a_path_for_a_name_reaches_no_other_object(here: Ledger) -> None:
    await here.access.cluster()
    await here.record([config_map("some-uid", "../../../api/v1/namespaces/default")])
    async with here.controlled():
        found = await here.until(looked)
        assert states(found) in (["Unknown"], ["Gone"])
