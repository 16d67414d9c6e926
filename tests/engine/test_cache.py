from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from random import Random

import orjson
import pytest
from structlog.testing import capture_logs
from tests.engine.fake_api import SECRETS, WIDGETS, FakeApi, widget

from hortus.engine.cache import Cache, Change, copy_of, version_of
from hortus.engine.caches import Caches
from hortus.engine.indexes import by_label, by_owner_uid, managed_fields_of, without_managed_fields
from hortus.engine.reflector import Event, Reflector, Selection
from hortus.kube import ObjectList
from hortus.kube.errors import ConnectionFailed, NotServed, ResponseTooLarge, ServiceUnavailable
from hortus.kube.objects import Object, ObjectKey
from hortus.testing import FakeClock


class World:
    def __init__(self) -> None:
        self.clock = FakeClock()
        self.api = FakeApi()
        self.caches = Caches(self.api, clock=self.clock, random=Random(0))
        self.seen: list[tuple[str, str, bool]] = []

    def record(self, change: Change) -> None:
        kind = "deleted" if change.new is None else "added" if change.old is None else "changed"
        self.seen.append((kind, change.key.name, change.initial))


@pytest.fixture
async def world() -> AsyncIterator[World]:
    made = World()
    yield made
    await made.caches.stop()


async def started(world: World) -> Cache:
    cache = world.caches.get(WIDGETS)
    cache.subscribe(world.record)
    world.caches.start()
    await world.clock.settle()
    return cache


async def test_a_cache_lists_then_follows_the_watch(world: World) -> None:
    world.api.put(WIDGETS, widget("a"))
    cache = await started(world)
    world.api.put(WIDGETS, widget("b"))
    world.api.put(WIDGETS, widget("a", spec={"size": 2}))
    world.api.remove(WIDGETS, "b")
    await world.clock.settle()
    assert world.seen == [("added", "a", True), ("added", "b", False), ("changed", "a", False), ("deleted", "b", False)]
    assert cache[ObjectKey("default", "a")]["spec"] == {"size": 2}
    assert len(cache) == 1
    assert world.api.count("list") == 1


async def test_callers_with_the_same_selection_share_one_watch(world: World) -> None:
    assert world.caches.get(WIDGETS) is world.caches.get(WIDGETS)
    assert world.caches.get(WIDGETS, namespace="x") is not world.caches.get(WIDGETS)
    assert world.caches.get(WIDGETS, transform=without_managed_fields) is not world.caches.get(WIDGETS)
    world.caches.start()
    await world.caches.synced()
    assert len(world.api.streams) == 3
    world.caches.get(SECRETS)
    await world.caches.synced()
    assert len(world.api.streams) == 4


async def test_a_dropped_watch_resumes_where_it_was_without_a_list(world: World) -> None:
    await started(world)
    world.api.put(WIDGETS, widget("a"))
    await world.clock.settle()
    world.api.drop_watches(ConnectionFailed("api", "connection reset"))
    world.api.put(WIDGETS, widget("b"))
    await world.clock.advance(2)
    assert [name for _, name, _ in world.seen] == ["a", "b"]
    assert world.api.count("list") == 1


async def test_a_watch_that_lasted_is_resumed_at_once(world: World) -> None:
    await started(world)
    await world.clock.advance(300)
    world.api.drop_watches()
    world.api.put(WIDGETS, widget("a"))
    await world.clock.settle()
    assert [name for _, name, _ in world.seen] == ["a"]


async def test_bookmarks_move_the_point_of_resumption(world: World) -> None:
    await started(world)
    world.api.put(SECRETS, {"metadata": {"name": "other", "namespace": "default"}})
    world.api.bookmark(WIDGETS)
    await world.clock.settle()
    world.api.compact()
    world.api.drop_watches()
    await world.clock.advance(2)
    assert world.api.count("list") == 1
    assert world.api.calls[-1] == ("watch", "widgets", "2")


async def test_after_410_deletions_in_the_gap_are_noticed_and_only_differences_reported(world: World) -> None:
    for name in ("same", "changes", "goes"):
        world.api.put(WIDGETS, widget(name))
    cache = await started(world)
    world.seen.clear()
    await world.clock.advance(60)
    world.api.drop_watches()
    world.api.down = ServiceUnavailable("etcd has no leader")
    await world.clock.advance(60)
    world.api.remove(WIDGETS, "goes")
    world.api.put(WIDGETS, widget("changes", spec={"size": 2}))
    world.api.put(WIDGETS, widget("comes"))
    world.api.compact()
    world.api.down = None
    await world.clock.advance(120)
    assert sorted(world.seen) == [("added", "comes", False), ("changed", "changes", False), ("deleted", "goes", False)]
    assert sorted(key.name for key in cache) == ["changes", "comes", "same"]
    assert world.api.count("list") == 2


async def test_failures_back_off_with_a_cap(world: World) -> None:
    world.api.down = ConnectionFailed("api", "connection refused")
    cache = await started(world)
    await world.clock.advance(600)
    assert 20 <= world.api.count("list") <= 45
    assert not cache.has_synced
    assert world.caches.waiting_for == ["widgets.example.org[]: api: connection refused"]
    world.api.down = None
    await world.clock.advance(46)
    assert cache.has_synced


async def test_a_crd_that_is_not_installed_is_named_once_and_work_begins_when_it_is(world: World) -> None:
    world.api.down = NotServed("the server could not find the requested resource")
    with capture_logs() as logs:
        cache = await started(world)
        await world.clock.advance(600)
        (waiting,) = world.caches.waiting_for
        world.api.down = None
        await world.clock.advance(5)
    assert cache.has_synced
    problem = waiting.removeprefix("widgets.example.org[]: ")
    assert problem.startswith("the CRD widgets.example.org is not installed or does not serve version v1: apply it")
    assert [(entry["log_level"], entry["event"], entry.get("error")) for entry in logs] == [
        ("error", "the kind is not served", problem),
        ("info", "the kind is served now", None),
    ]


async def test_a_crd_that_is_deleted_and_installed_again_ends_nothing(world: World) -> None:
    cache = await started(world)
    world.api.put(WIDGETS, widget("a"))
    await world.clock.settle()
    world.api.down = NotServed("the server could not find the requested resource")
    world.api.remove(WIDGETS, "a")
    await world.clock.settle()
    for stream in list(world.api.streams):
        stream.failure = NotServed("the server could not find the requested resource")
        stream.wake.set()
    await world.clock.advance(60)
    world.api.down = None
    world.api.put(WIDGETS, widget("b"))
    await world.clock.advance(5)
    assert [key.name for key in cache] == ["b"]
    assert world.caches.waiting_for == []


async def test_an_answer_nobody_planned_for_is_survived(world: World) -> None:
    cache = await started(world)
    world.api.history.append((1, WIDGETS, "ADDED", {"metadata": {}}))
    world.api.version = 1
    with capture_logs() as logs:
        for stream in world.api.streams:
            stream.wake.set()
        await world.clock.settle()
        assert any(entry["event"] == "list or watch was not understood" for entry in logs)
        world.api.history.clear()
        world.api.put(WIDGETS, widget("a"))
        await world.clock.advance(5)
    assert len(cache) == 1


async def test_a_handler_that_fails_harms_nobody_else(world: World) -> None:
    cache = await started(world)

    def broken(change: Change) -> None:
        raise KeyError("spec")

    cache.subscribe(broken)
    cache.subscribe(world.record)
    with capture_logs() as logs:
        world.api.put(WIDGETS, widget("a"))
        await world.clock.settle()
    assert [entry["event"] for entry in logs] == ["a handler failed on a change"]
    assert len(world.seen) == 2


async def test_who_subscribes_late_hears_of_what_is_there(world: World) -> None:
    world.api.put(WIDGETS, widget("a"))
    cache = await started(world)
    late: list[Change] = []
    stop = cache.subscribe(late.append)
    assert [(change.key.name, change.initial) for change in late] == [("a", True)]
    stop()
    world.api.put(WIDGETS, widget("b"))
    await world.clock.settle()
    assert len(late) == 1


def labelled(name: str, team: str, version: int, *, uid: str = "") -> Object:
    return widget(name, metadata={"labels": {"team": team}, "resourceVersion": str(version), "uid": uid or name})


def test_indexes_follow_every_change() -> None:
    cache = Cache("widgets")
    cache.put(labelled("a", "red", 1))
    cache.add_index("team", by_label("team"))
    cache.put(labelled("b", "red", 2))
    assert [obj["metadata"]["name"] for obj in cache.by("team", "red")] == ["a", "b"]
    cache.put(labelled("a", "blue", 3))
    assert cache.keys_by("team", "red") == [ObjectKey("default", "b")]
    cache.drop(ObjectKey("default", "b"))
    assert (cache.by("team", "red"), list(cache.values_of("team"))) == ([], ["blue"])


def test_objects_are_found_by_their_owner() -> None:
    cache = Cache("secrets")
    cache.add_index("owner", by_owner_uid)
    cache.put(widget("s", metadata={"ownerReferences": [{"uid": "u1"}], "resourceVersion": "1"}))
    assert cache.keys_by("owner", "u1") == [ObjectKey("default", "s")]


def test_an_own_write_is_seen_before_the_watch_event_and_reported_once() -> None:
    cache = Cache("widgets")
    reported: list[Change] = []
    cache.replace([labelled("a", "red", 1)], 1)
    cache.subscribe(reported.append)
    cache.learn(labelled("a", "blue", 5))
    assert cache[ObjectKey("default", "a")]["metadata"]["labels"] == {"team": "blue"}
    cache.observe(labelled("a", "green", 4))
    cache.observe(labelled("a", "blue", 5))
    assert [change.current["metadata"]["labels"]["team"] for change in reported] == ["red", "blue"]


def test_what_was_deleted_meanwhile_is_not_brought_back_by_a_late_answer() -> None:
    cache = Cache("widgets")
    cache.replace([labelled("a", "red", 1)], 1)
    cache.drop(ObjectKey("default", "a"))
    cache.advance(6)
    cache.learn(labelled("a", "blue", 5))
    assert len(cache) == 0


def test_an_own_creation_survives_the_late_news_that_its_predecessor_was_deleted() -> None:
    cache = Cache("widgets")
    cache.replace([labelled("a", "red", 1, uid="u1")], 1)
    cache.learn(labelled("a", "blue", 6, uid="u2"))
    cache.drop(ObjectKey("default", "a"), labelled("a", "red", 5, uid="u1"))
    assert cache[ObjectKey("default", "a")]["metadata"]["uid"] == "u2"
    cache.drop(ObjectKey("default", "a"), labelled("a", "blue", 7, uid="u2"))
    assert len(cache) == 0


def test_an_own_write_survives_the_late_news_that_the_object_did_not_match_before_it() -> None:
    """To a watch with a selector, an object that no longer matches is deleted; it may match again by now."""
    cache = Cache("widgets", belongs=lambda obj: obj["metadata"]["labels"]["team"] == "red")
    cache.replace([labelled("a", "red", 1)], 1)
    cache.learn(labelled("a", "red", 6))
    gone: list[Change] = []
    cache.subscribe(lambda change: gone.append(change) if change.new is None else None)
    cache.drop(ObjectKey("default", "a"), labelled("a", "blue", 5))
    assert cache[ObjectKey("default", "a")]["metadata"]["resourceVersion"] == "6"
    assert gone == []
    cache.drop(ObjectKey("default", "a"), labelled("a", "red", 7))
    assert len(gone) == 1


def test_an_own_creation_newer_than_a_list_survives_that_list() -> None:
    cache = Cache("widgets")
    cache.replace([], 3)
    cache.learn(labelled("new", "red", 5))
    cache.replace([], 4)
    assert len(cache) == 1
    cache.replace([], 6)
    assert len(cache) == 0


async def test_a_selector_keeps_foreign_writes_out_and_lets_ones_own_in(world: World) -> None:
    red = world.caches.get(WIDGETS, labels="team in (red, pink)")
    inside = world.caches.get(WIDGETS, namespace="inside")
    named = world.caches.get(WIDGETS, fields="metadata.name=a")
    for cache in (red, inside, named):
        cache.learn(labelled("a", "blue", 5))
    assert (len(red), len(inside), len(named)) == (0, 0, 0)
    red.learn(labelled("a", "red", 6))
    assert len(red) == 1


def test_transforms_save_what_nobody_reads() -> None:
    full = widget("a", metadata={"managedFields": [{"manager": "kubectl"}, {"manager": "hortus"}], "annotations": {}})
    assert managed_fields_of("hortus")(copy_of(full))["metadata"]["managedFields"] == [{"manager": "hortus"}]
    assert "managedFields" not in without_managed_fields(copy_of(full))["metadata"]


def _sized(obj: Object) -> Object:
    """A transform that understands only numbers."""
    return {"metadata": obj["metadata"], "size": int(obj["spec"]["size"])}


async def test_an_object_on_which_the_transform_fails_is_passed_over_and_reported(world: World) -> None:
    world.api.put(WIDGETS, widget("good", spec={"size": 1}))
    world.api.put(WIDGETS, widget("bad", spec={"size": "xl"}))
    cache = world.caches.get(WIDGETS, transform=_sized)
    world.caches.start()
    with capture_logs() as logs:
        await world.clock.settle()
        assert cache.has_synced
        assert {key.name for key in cache} == {"good"}
        [(_, problem)] = world.caches.problems()
        assert "1 objects are not understood, one is default/bad: ValueError" in str(problem)

        world.api.put(WIDGETS, widget("good", spec={"size": "xxl"}))
        world.api.put(WIDGETS, widget("new", spec={"size": 3}))
        await world.clock.settle()
        assert {obj["metadata"]["name"]: obj["size"] for obj in cache.values()} == {"good": 1, "new": 3}
        cache.learn({**widget("own", spec={"size": "s"}), "metadata": {"name": "own", "resourceVersion": "99"}})
    assert world.api.count("list") == 1, "nothing was begun again"
    assert sum(entry["event"] == "an object was not understood" for entry in logs) == 3

    # A list returns it as well: it is not gone.
    world.api.put(SECRETS, {"metadata": {"name": "other", "namespace": "default"}})
    world.api.compact()
    world.api.drop_watches()
    with capture_logs():
        await world.clock.advance(60)
    assert world.api.count("list") == 2
    assert {obj["metadata"]["name"]: obj["size"] for obj in cache.values()} == {"good": 1, "new": 3}

    world.api.put(WIDGETS, widget("good", spec={"size": 2}))
    world.api.remove(WIDGETS, "bad")
    await world.clock.settle()
    assert cache[ObjectKey("default", "good")]["size"] == 2
    assert cache.problem is None


async def test_an_object_on_which_an_index_fails_is_kept_and_hides_no_other(world: World) -> None:
    cache = world.caches.get(WIDGETS)
    cache.add_index("size", lambda obj: [str(int(obj["spec"]["size"]))])
    world.caches.start()
    with capture_logs() as logs:
        for name, size in (("a", 1), ("b", "xl"), ("c", 1)):
            world.api.put(WIDGETS, widget(name, spec={"size": size}))
        await world.clock.settle()
        world.api.put(WIDGETS, widget("a", spec={"size": "xs"}))
        world.api.put(WIDGETS, widget("b", spec={"size": 1}))
        await world.clock.settle()
        assert sorted(key.name for key in cache.keys_by("size", "1")) == ["b", "c"]
        world.api.remove(WIDGETS, "a")
        await world.clock.settle()
    assert len(cache) == 2
    assert any(entry["event"] == "an index failed on an object" for entry in logs)
    assert world.api.count("list") == 1


async def test_a_deletion_reports_the_object_in_the_shape_in_which_it_was_kept(world: World) -> None:
    reported: list[Object] = []
    cache = world.caches.get(WIDGETS, transform=_sized)
    cache.subscribe(lambda change: reported.append(change.current))
    world.caches.start()
    world.api.put(WIDGETS, widget("a", spec={"size": 1}))
    await world.clock.settle()
    world.api.remove(WIDGETS, "a")
    await world.clock.settle()
    assert [obj.keys() for obj in reported] == [{"metadata", "size"}] * 2


async def test_a_server_that_names_a_time_is_not_asked_for_a_list_before(world: World) -> None:
    world.api.down = ServiceUnavailable("too busy", retry_after=90)
    await started(world)
    for _ in range(9):
        await world.clock.advance(9.9)
        assert world.api.count("list") == 1
    await world.clock.advance(12)
    assert world.api.count("list") == 2


async def test_a_list_that_fails_slowly_is_not_repeated_without_a_pause(world: World) -> None:
    async def slow(*_: object) -> None:
        world.api.calls.append(("list",))
        await world.clock.sleep(15)
        raise ConnectionFailed("api", "timed out")

    world.api._call = slow  # type: ignore[method-assign]
    await started(world)
    await world.clock.advance(600)
    # 15 s each and a pause that grows to 30 s; without one it would be 40.
    assert 12 <= world.api.count("list") <= 25


async def test_a_cancellation_from_elsewhere_does_not_end_a_watch(world: World) -> None:
    cache = await started(world)
    world.api.drop_watches(asyncio.CancelledError())  # type: ignore[arg-type]
    await world.clock.advance(10)
    world.api.put(WIDGETS, widget("a"))
    await world.clock.settle()
    assert len(cache) == 1


async def test_a_healthy_watch_that_ends_with_a_wish_for_a_pause_is_not_resumed_before(world: World) -> None:
    await started(world)
    world.api.put(WIDGETS, widget("a"))
    await world.clock.advance(300)
    watches = world.api.count("watch")
    world.api.drop_watches(ServiceUnavailable("shutting down", retry_after=60))
    await world.clock.advance(59)
    assert world.api.count("watch") == watches
    await world.clock.advance(31)
    assert world.api.count("watch") == watches + 1


async def test_a_watch_that_fails_slowly_is_not_repeated_without_a_pause(world: World) -> None:
    begun = 0

    class Silent:
        def __aiter__(self) -> Silent:
            return self

        async def __anext__(self) -> Event:
            await world.clock.sleep(15)
            raise ConnectionFailed("api", "timed out")

        async def aclose(self) -> None: ...

    def watch(*_: object, **__: object) -> Silent:
        nonlocal begun
        begun += 1
        return Silent()

    world.api.watch = watch  # type: ignore[method-assign, assignment]
    await started(world)
    await world.clock.advance(600)
    assert 12 <= begun <= 25


async def test_an_object_that_a_restarted_list_omits_is_gone_even_if_it_was_not_understood(world: World) -> None:
    world.api.put(WIDGETS, widget("goes", spec={"size": 1}))
    cache = world.caches.get(WIDGETS, transform=_sized)
    world.caches.start()
    await world.clock.settle()
    bad = widget("goes", spec={"size": "xl"})

    async def pages(*_: object, **__: object) -> AsyncIterator[ObjectList]:
        yield ObjectList([bad], "7")
        yield ObjectList([], "8", restarted=True)

    world.api.pages = pages  # type: ignore[method-assign, assignment]
    world.api.put(SECRETS, {"metadata": {"name": "other", "namespace": "default"}})
    world.api.compact()
    world.api.drop_watches()
    with capture_logs():
        await world.clock.advance(60)
    assert len(cache) == 0
    assert cache.problem is None


def test_a_cache_that_is_reset_has_no_problem() -> None:
    cache = Cache("widgets", transform=_sized)
    with capture_logs():
        assert cache.taken(widget("bad", spec={"size": "xl"})) is None
    assert cache.problem is not None
    cache.reset()
    assert cache.problem is None


async def test_a_server_that_is_not_trusted_fills_a_cache_up_to_its_bound(world: World) -> None:
    cache = Cache("bounded")
    selection = Selection(WIDGETS)
    reflector = Reflector(world.api, selection, cache, clock=world.clock, random=Random(0), largest=5_000)
    following = asyncio.create_task(reflector.run())
    await world.clock.settle()
    for number in range(20):
        world.api.put(WIDGETS, widget(f"w-{number}", spec={"text": "x" * 900}))
        world.api.put(WIDGETS, widget("grows", spec={"text": "x" * 400 * number}))
    await world.clock.advance(120)
    held = sum(len(orjson.dumps(obj)) for obj in cache.values())
    assert 2_000 < held <= 5_000
    assert isinstance(reflector.problem, ResponseTooLarge)
    for number in range(1, 20):
        world.api.remove(WIDGETS, f"w-{number}")
    world.api.remove(WIDGETS, "grows")
    world.api.compact()
    await world.clock.advance(120)
    assert (list(cache), reflector.problem) == ([ObjectKey("default", "w-0")], None)
    following.cancel()


@pytest.mark.parametrize(
    ("version", "number"),
    [("12", 12), ("", 0), ("a", 0), ("²", 0), ("9" * 39, 10**39 - 1), ("9" * 5_000, 0), (7, 0), (None, 0), (["1"], 0)],
)
def test_a_version_of_another_sort_is_no_number_and_no_error(version: object, number: int) -> None:
    """The answer to a write is not looked at before it is learnt, and a hostile server may say anything there."""
    assert version_of({"metadata": {"name": "a", "resourceVersion": version}}) == number
