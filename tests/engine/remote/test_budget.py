"""One budget for the connections to all clusters: watches never take what calls need, and the state says who waits."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from multidict import CIMultiDict, CIMultiDictProxy
from prometheus_client import generate_latest
from tests.engine.remote.test_blame import Drawer
from tests.engine.remote.test_watching import Follower, following, watched
from tests.engine.remote.world import CONFIGMAPS, NAMESPACE, World, http_kubeconfig, place_of, settings_with

from hortus.engine.remote import RemotePool
from hortus.engine.remote.budget import SLOW_HANDSHAKE, Account, Budget, SocketUse, WatchSlot
from hortus.kube import Access, Answer
from hortus.kube.objects import Object, ObjectKey
from hortus.testing import FakeClock

NAMES = ["a", "b", "c", "d", "e"]
SCARCE = {"sockets": 6, "watch_share": 0.5}


async def _join_all(world: World, follower: Follower) -> None:
    for number, name in enumerate(NAMES):
        cluster = ("red", "blue", "green")[number % 3]
        await world.give(f"w-scarce-{name}", world.server.kubeconfig_dict(cluster))
        await follower.join(name, f"w-scarce-{name}")


def _reasons(world: World) -> list[str]:
    return [world.pool.state(place_of(f"w-scarce-{name}")).reason for name in NAMES]


@pytest.mark.parametrize("world", [SCARCE], indirect=True)
async def test_watches_keep_to_their_share_and_calls_to_every_cluster_get_through(world: World) -> None:
    async with following(world) as follower:
        await _join_all(world, follower)
        await world.until(lambda: sorted(_reasons(world)) == ["Connected"] * 3 + ["NoConnectionFree"] * 2)
        assert world.pool.budget.watches == 3
        async with asyncio.timeout(60):
            for name in NAMES * 3:
                await world.pool.at(place_of(f"w-scarce-{name}")).list(CONFIGMAPS)
        assert sorted(_reasons(world)) == ["Connected"] * 3 + ["NoConnectionFree"] * 2
        assert world.pool.budget.held <= 6
        for name in NAMES:
            await world.client.delete(CONFIGMAPS, name, NAMESPACE)
        await world.until(lambda: len(follower.remote) == 0)
        await world.until(lambda: world.pool.budget.watches == 0)


@pytest.mark.parametrize("world", [SCARCE], indirect=True)
async def test_a_watch_that_waits_is_reported_and_continues_when_another_ends(world: World) -> None:
    async with following(world) as follower:
        await _join_all(world, follower)
        await world.until(lambda: _reasons(world).count("NoConnectionFree") == 2)
        waiting = NAMES[_reasons(world).index("NoConnectionFree")]
        status, _, message = world.pool.state(place_of(f"w-scarce-{waiting}")).condition()
        assert status == "Unknown"
        assert "as many watches are open as may be" in message
        assert isinstance(follower.remote.problem(ObjectKey(NAMESPACE, waiting)), Exception)
        assert 'hortus_remote_clusters{state="Waiting"} 2.0' in generate_latest(world.manager.registry).decode()

        served = [name for name in NAMES if world.pool.state(place_of(f"w-scarce-{name}")).reason == "Connected"]
        for name in served[:2]:
            await world.client.delete(CONFIGMAPS, name, NAMESPACE)
        await world.reaches(place_of(f"w-scarce-{waiting}"), "Connected")
        assert follower.remote.problem(ObjectKey(NAMESPACE, waiting)) is None
        remote = world.pool.at(place_of(f"w-scarce-{waiting}"))
        await remote.apply(CONFIGMAPS, watched("late", n="1"), field_manager="test")
        await world.until(lambda: follower.latest(waiting) == {"late": {"n": "1"}})
        await remote.delete(CONFIGMAPS, "late", NAMESPACE)
        for name in {*NAMES} - {*served[:2]}:
            await world.client.delete(CONFIGMAPS, name, NAMESPACE)


@pytest.mark.parametrize("world", [{**SCARCE, "watch_turn": 1.0}], indirect=True)
async def test_where_most_places_are_taken_a_watch_ends_soon_and_every_cluster_has_its_turn(world: World) -> None:
    async with following(world) as follower:
        await _join_all(world, follower)
        await world.until(lambda: all(follower.latest(name) is not None for name in NAMES))
        assert world.pool.budget.watches <= world.pool.budget.watch_limit == 3
        for name in NAMES:
            await world.client.delete(CONFIGMAPS, name, NAMESPACE)


@pytest.mark.parametrize("world", [{"sockets": 4, "watch_share": 0.5, "deadline": 60.0}], indirect=True)
async def test_sockets_that_a_watched_cluster_does_not_use_are_there_for_others(world: World) -> None:
    """A watched cluster is never unused as a whole; what its calls left open is taken back all the same."""
    async with following(world) as follower:
        await world.give("w-scarce-busy", world.server.kubeconfig_dict("red"))
        await follower.join("busy", "w-scarce-busy")
        busy = place_of("w-scarce-busy")
        await world.until(lambda: world.pool.budget.watches == 1)
        async with asyncio.timeout(60):
            while world.pool.remote(busy).account.sockets < 4:
                await asyncio.gather(*(world.pool.at(busy).list(CONFIGMAPS) for _ in range(8)))
        other = await world.give("w-scarce-other", world.server.kubeconfig_dict("blue"))
        assert (await world.pool.at(other).list(CONFIGMAPS)).resource_version
        await world.client.delete(CONFIGMAPS, "busy", NAMESPACE)
        await world.until(lambda: len(follower.remote) == 0)


@pytest.mark.parametrize("world", [{"qps": 0.01, "burst": 1, "sockets": 4, "handshakes": 1}], indirect=True)
async def test_calls_that_wait_for_the_rate_of_their_cluster_hold_nothing_that_others_need(world: World) -> None:
    slow = await world.give("w-rate-slow", world.server.kubeconfig_dict("red"))
    other = await world.give("w-rate-other", world.server.kubeconfig_dict("blue"))
    await world.pool.at(slow).list(CONFIGMAPS)
    waiting = [asyncio.create_task(world.pool.at(slow).list(CONFIGMAPS)) for _ in range(20)]
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await world.pool.at(other).list(CONFIGMAPS)
    assert not any(task.done() for task in waiting)
    assert world.pool.remote(slow).account.uses == 0
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)


@settings(deadline=None)
@given(steps=st.lists(st.tuples(st.integers(0, 5), st.sampled_from(("call", "watch", "end", "drop"))), max_size=60))
def test_whatever_comes_and_goes_the_limits_hold_and_nobody_waits_while_there_is_room(
    steps: list[tuple[int, str]],
) -> None:
    async def play() -> None:
        clock = FakeClock()
        budget = Budget(sockets=4, watch_share=0.5, handshakes=2, clock=clock)
        clusters = [_Cluster(budget) for _ in range(6)]
        for number, step in steps:
            await getattr(clusters[number], step)()
            await clock.advance(2)  # a handshake whose end nobody reported is no longer counted
            assert budget.held <= 4
            assert budget.watches <= 2
            waiting = [task for cluster in clusters for task in cluster.waiting]
            busy = sum(cluster.account.uses for cluster in clusters)
            wait_for_slot = sum(cluster.watching for cluster in clusters)
            assert not waiting or busy == 4 or (budget.watches == 2 and wait_for_slot)
        for cluster in clusters:
            await cluster.close()
        await clock.settle()
        assert (budget.held, budget.watches, budget.waiting) == (0, 0, 0)

    asyncio.run(play())


class _Cluster:
    """Opens a socket for each use that finds none unused, as an HTTP client does."""

    def __init__(self, budget: Budget) -> None:
        self.account = Account(budget, self._close_idle)
        self._budget = budget
        self._tasks: list[tuple[asyncio.Task[None], WatchSlot | None]] = []

    @property
    def waiting(self) -> list[asyncio.Task[None]]:
        return [task for task, _ in self._tasks if not task.done()]

    @property
    def watching(self) -> int:
        return sum(not task.done() and slot is not None for task, slot in self._tasks)

    async def call(self) -> None:
        self._begin(None)

    async def watch(self) -> None:
        self._begin(WatchSlot(self._budget))

    def _begin(self, slot: WatchSlot | None) -> None:
        self._tasks.append((asyncio.ensure_future(self._enter(slot)), slot))

    async def _enter(self, slot: WatchSlot | None) -> SocketUse:
        if slot is not None:
            await slot.take()
        try:
            use = await self.account.enter()
        except BaseException:
            if slot is not None:
                slot.give()
            raise
        if self.account.sockets < self.account.uses:
            self.account.opened_socket()
        self.account.opened()
        return use

    async def end(self) -> None:
        """The oldest of what was begun ends, or is given up while it waits."""
        if self._tasks:
            task, slot = self._tasks.pop(0)
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                return
            if slot is not None:
                slot.give()
            task.result().end()

    async def drop(self) -> None:
        """The server closes a connection that nobody uses."""
        if self.account.sockets > self.account.uses:
            self.account.closed_socket()

    def _close_idle(self) -> int:
        unused = self.account.sockets - self.account.uses
        for _ in range(unused):
            asyncio.get_running_loop().call_soon(self._closed)
        return unused

    def _closed(self) -> None:
        if self.account.sockets > self.account.uses:
            self.account.closed_socket()

    async def close(self) -> None:
        while self._tasks:
            await self.end()
        await asyncio.sleep(0)
        while self.account.sockets:
            self.account.closed_socket()


async def test_slots_are_given_in_the_order_in_which_they_were_asked_for() -> None:
    budget, order = Budget(sockets=2, watch_share=0.5, handshakes=1, clock=FakeClock()), list[str]()
    await budget.slot()

    async def watch(name: str) -> None:
        await budget.slot()
        order.append(name)

    first, second = asyncio.ensure_future(watch("first")), asyncio.ensure_future(watch("second"))
    await asyncio.sleep(0)
    assert (budget.waiting, budget.has_slot) == (2, False)
    budget.slot_over()
    late = asyncio.ensure_future(watch("late"))  # there is room, and others have waited longer
    await asyncio.wait([first])
    assert (order, budget.watches, budget.waiting) == (["first"], 1, 2)
    budget.slot_over()
    await asyncio.wait([second])
    budget.slot_over()
    await asyncio.wait([late])
    assert order == ["first", "second", "late"]
    budget.slot_over()
    assert budget.has_slot


@pytest.mark.parametrize("granted", [False, True], ids=["while it waits", "when its turn has come"])
async def test_who_gives_up_a_slot_hands_it_to_the_next(granted: bool) -> None:
    budget = Budget(sockets=2, watch_share=0.5, handshakes=1, clock=FakeClock())
    await budget.slot()
    first, second = asyncio.ensure_future(budget.slot()), asyncio.ensure_future(budget.slot())
    await asyncio.sleep(0)
    if granted:
        budget.slot_over()
    first.cancel()
    await asyncio.wait([first])
    assert first.cancelled()
    if not granted:
        assert (second.done(), budget.waiting) == (False, 1)
        budget.slot_over()
    await asyncio.wait_for(second, 60)
    assert (budget.watches, budget.waiting, budget.has_slot) == (1, 0, False)
    budget.slot_over()
    assert budget.has_slot


async def test_no_more_pass_than_there_is_room_for_when_several_turns_come_at_once() -> None:
    budget = Budget(sockets=4, watch_share=0.5, handshakes=1, clock=FakeClock())
    for _ in range(2):
        await budget.slot()
    waiting = [asyncio.ensure_future(budget.slot()) for _ in range(4)]
    await asyncio.sleep(0)
    budget.slot_over()
    budget.slot_over()
    assert not budget.has_slot, "two have their turn, though they have not had the loop"
    await asyncio.wait(waiting[:2])
    assert (budget.watches, budget.waiting) == (2, 2)
    for task in waiting[2:]:
        task.cancel()
    await asyncio.wait(waiting)


async def test_a_handshake_that_nobody_ends_counts_for_a_while_and_is_ended_once() -> None:
    clock = FakeClock()
    budget = Budget(sockets=4, watch_share=0.5, handshakes=1, clock=clock)
    first = await budget.handshake()
    second = asyncio.ensure_future(budget.handshake())
    await asyncio.sleep(0)
    assert not second.done()
    first.over()
    first.over()
    held = await second
    third = asyncio.ensure_future(budget.handshake())
    await clock.settle()
    assert not third.done(), "ending one twice makes room once"
    await clock.advance(SLOW_HANDSHAKE)
    await third
    held.over()
    fourth = asyncio.ensure_future(budget.handshake())
    await clock.settle()
    assert not fourth.done()
    fourth.cancel()
    await asyncio.wait([fourth])


async def test_a_call_that_found_an_open_connection_keeps_no_place_from_others() -> None:
    """Watches use sockets for minutes. While they do, the end of a call is the end of its place, too."""
    budget, clock = Budget(sockets=100, watch_share=0.5, handshakes=2, clock=FakeClock()), FakeClock()
    account = Account(budget, lambda: 0)
    for _ in range(3):
        await account.enter()
        account.opened_socket()
        account.opened()
    for _ in range(5):
        call = asyncio.ensure_future(account.enter())
        await clock.settle()
        assert call.done(), "the places of calls before it are free"
        call.result().end()
    others = [asyncio.ensure_future(Account(budget, lambda: 0).enter()) for _ in range(2)]
    await clock.settle()
    assert all(one.done() for one in others)


async def test_watches_line_up_for_their_connections_a_few_at_a_time() -> None:
    clock = FakeClock()
    budget = Budget(sockets=100, watch_share=0.9, handshakes=4, clock=clock)
    watches = [asyncio.ensure_future(budget.handshake(patient=True)) for _ in range(50)]
    await clock.settle()
    assert [task.done() for task in watches] == [True] * 3 + [False] * 47
    first, second = asyncio.ensure_future(budget.handshake()), asyncio.ensure_future(budget.handshake())
    await clock.settle()
    assert (first.done(), second.done()) == (True, False)
    watches[0].result().over()
    await clock.settle()
    assert second.done(), "it waited for one connection, not for those of all watches"
    first.result().over()
    await clock.settle()
    assert [task.done() for task in watches] == [True] * 4 + [False] * 46
    for task in watches[4:]:
        task.cancel()
    await asyncio.gather(*watches, return_exceptions=True)
    for task in watches[1:4]:
        task.result().over()
    third = [asyncio.ensure_future(budget.handshake(patient=True)) for _ in range(3)]
    await clock.settle()
    assert all(task.done() for task in third), "who gave up waiting holds nothing"


class _Hanging:
    """A connection to a cluster that answers no probe, unless it is called "well"."""

    def __init__(self, access: Access, **_: object) -> None:
        self.access = access
        self.host = access.server

    async def call(self, method: str, target: str, *_: object, **__: object) -> Answer:
        if "well" not in self.host:
            await asyncio.get_running_loop().create_future()
        listed: Object = {"metadata": {"resourceVersion": "1", "uid": "u"}, "items": []}
        return Answer(200, CIMultiDictProxy(CIMultiDict()), orjson.dumps(listed))

    async def close(self) -> None: ...


async def test_a_call_does_not_wait_behind_the_watches_that_begin_with_their_process() -> None:
    """Thousands of watches begin at once; in one line with them a reconcile's call would not be done in time."""
    drawer, clock = Drawer(), FakeClock()
    places = [place_of(f"w-{number}") for number in range(200)]
    well = place_of("well")
    for place in (*places, well):
        drawer.put(place, http_kubeconfig(f"http://{place.name}.example"))
    settings = settings_with(handshakes=32, deadline=20.0)
    async with RemotePool(drawer, settings=settings, clock=clock, connect=_Hanging) as pool:  # type: ignore[arg-type]
        lists = [asyncio.ensure_future(pool.watcher(place).list(CONFIGMAPS)) for place in places]
        await clock.settle()
        assert drawer.reads == 24, "those that wait have not even read their Secrets"
        asked = asyncio.ensure_future(pool.at(well).list(CONFIGMAPS))
        await clock.settle()
        assert asked.done()
        assert (await asked).items == []
        await clock.advance(SLOW_HANDSHAKE)
        assert drawer.reads == 49, "connections that take long are waits for the network, and hold no others up"
        for task in lists:
            task.cancel()
        await asyncio.gather(*lists, return_exceptions=True)
