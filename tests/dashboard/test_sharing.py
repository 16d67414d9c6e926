"""Several viewers of one fleet: what they see alike is decoded, held, ordered and drawn once, and nothing else is."""

from __future__ import annotations

import gc
from collections.abc import Iterable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.dashboard.conftest import HOME, World, make_cluster, set_state

from hortus.dashboard import rendering
from hortus.dashboard.composing import Beats, Composer
from hortus.dashboard.readers import FleetWatch
from hortus.dashboard.sharing import SharedKind, SharedObject, marks_of
from hortus.dashboard.viewers import Viewer
from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster
from hortus.engine.fleet import FleetKind, FleetObjects, FleetRow, FleetView, KeptRows, RowStanding, reading
from hortus.kube.objects import Object, ObjectKey
from hortus.testing import FakeClock

READS = ["get", "list", "watch"]
KIND = FleetKind(GARDENER_CLUSTERS, reading(GardenerCluster))


def watch_of(viewer: Viewer) -> FleetWatch:
    return viewer.watch("")


def held(viewer: Viewer, resource: Any = GARDENER_CLUSTERS) -> list[Object]:
    (kind,) = (kind for kind in watch_of(viewer)._caches if kind.resource == resource)
    return list(watch_of(viewer)._caches[kind].values())


async def test_viewers_who_see_the_same_share_its_objects_and_one_picture(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[object] = []
    made: list[object] = []
    draw, overview = rendering.draw, Composer._overview

    def drawing(content: Any, **more: Any) -> Any:
        drawn.append(content)
        return draw(content, **more)

    def making(self: Composer, *given: Any) -> Any:
        made.append(given)
        return overview(self, *given)

    monkeypatch.setattr("hortus.dashboard.composing.draw", drawing)
    monkeypatch.setattr(Composer, "_overview", making)
    monkeypatch.setattr(Composer, "judged", 0)
    await make_cluster(world.admin, "one")
    everything = [{"apiGroups": ["*"], "resources": ["*"], "verbs": READS}]
    browsers = [await world.signed_in(await world.account(f"same-{number}", everything)) for number in range(3)]
    for browser in browsers:
        assert len((await browser.document("/clusters"))["rows"]["items"]) == 1
    before = len(made), len(drawn)
    pages = [await browser.get("/clusters") for browser in browsers]
    assert all(">one</a>" in page.text for page in pages)
    assert len(made) == before[0] and len(drawn) <= before[1] + 1
    viewers = list(world.dashboard._viewers._known.values())
    assert len(viewers) == 3 and len({viewer.username for viewer in viewers}) == 3
    assert len({id(one) for viewer in viewers for one in held(viewer)}) == 1
    # In one order for all: each viewer's caches stand in the order in which its permissions were answered.
    kinds = world.dashboard._composer.kinds(world.dashboard._catalogue.pages["clusters"], None)
    assert len({watch_of(viewer).seen(kinds) for viewer in viewers}) == 1


async def test_a_viewer_who_sees_less_is_shown_less_of_the_same_objects(world: World) -> None:
    await make_cluster(world.admin, "one")
    rules = [{"apiGroups": [GARDENER_CLUSTERS.group], "resources": ["gardenerclusters"], "verbs": READS}]
    full = await world.signed_in()
    part = await world.signed_in(await world.account("part", rules))
    for browser in (full, part):
        assert [row["name"] for row in (await browser.document("/clusters"))["rows"]["items"]] == ["one"]
    assert (await full.document("/clusters"))["notes"] == []
    assert any("list and watch secrets" in note for note in (await part.document("/clusters"))["notes"])
    admin, reader = world.dashboard._viewers._known.values()
    assert held(admin)[0] is held(reader)[0]
    assert [kind.resource.kind for kind in watch_of(reader)._caches] == ["GardenerCluster"]
    await set_state(world.admin, "one", "Error", "shoot one is gone")
    for browser in (full, part):
        async with browser.stream("/clusters") as events:
            async for name, data in events:
                if name == "change" and "shoot one is gone" in data["parts"].get("part-rows", ""):
                    break


def cluster(name: str, uid: str, version: int) -> Object:
    return {
        "apiVersion": GARDENER_CLUSTERS.api_version,
        "kind": GARDENER_CLUSTERS.kind,
        "metadata": {"name": name, "namespace": HOME, "uid": uid, "resourceVersion": str(version)},
        "spec": {"shoot": {"name": name}, "kubeconfig": {"secret": {"name": name, "namespace": HOME, "key": "config"}}},
    }


def page(shared: SharedKind, *objects: Object) -> list[Any]:
    found: Any = shared.page(orjson.dumps({"metadata": {"resourceVersion": "9"}, "items": list(objects)}))
    assert found["metadata"] == {"resourceVersion": "9"}
    return list(found["items"])


def test_only_the_same_object_at_the_same_version_is_shared() -> None:
    shared, one = SharedKind(KIND), cluster("one", "u1", 1)
    (first,) = page(shared, one)
    assert first == one and not isinstance(first, SharedObject)
    kept = shared.kept(first)
    assert page(shared, one)[0] is kept and shared.kept(kept) is kept and shared.kept(dict(one)) is kept
    event: Any = shared.event(orjson.dumps({"type": "MODIFIED", "object": one}))
    assert event["type"] == "MODIFIED" and event["object"] is kept
    for other in (cluster("one", "u1", 2), cluster("one", "u2", 1)):
        assert page(shared, other) == [other]
        changed: Any = shared.event(orjson.dumps({"type": "MODIFIED", "object": other}))
        assert changed["object"] == other and shared.kept(other) is not kept


def test_an_object_that_no_viewer_holds_any_more_is_forgotten() -> None:
    shared, one = SharedKind(KIND), cluster("one", "u1", 1)
    kept: Object | None = shared.kept(one)
    assert page(shared, one)[0] is kept
    del kept
    gc.collect()
    assert not isinstance(page(shared, one)[0], SharedObject)


@pytest.mark.parametrize(
    "item", [{}, {"metadata": {}}, {"metadata": {"name": "a"}}, {"metadata": {"uid": 1, "resourceVersion": []}}, 5]
)
def test_what_is_no_object_comes_as_json_has_it(item: Any) -> None:
    body = orjson.dumps({"metadata": {}, "items": [item]})
    made: Any = SharedKind(KIND).page(body)
    typed = {"apiVersion": GARDENER_CLUSTERS.api_version, "kind": GARDENER_CLUSTERS.kind}
    assert made["items"] == [{**typed, **item} if isinstance(item, dict) else item]
    line = orjson.dumps({"type": "BOOKMARK", "object": item})
    assert SharedKind(KIND).event(line) == orjson.loads(line)


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"items": 5}', b'{"metadata": 1, "items": null}', b"nothing"])
def test_a_body_that_is_no_list_is_judged_as_without_sharing(text: bytes) -> None:
    for read in (SharedKind(KIND).page, SharedKind(KIND).event):
        try:
            plain: Any = orjson.loads(text)
        except orjson.JSONDecodeError:
            with pytest.raises(orjson.JSONDecodeError):
                read(text)
        else:
            found: Any = read(text)
            assert found == plain or found == {**plain, "items": []}


async def test_pages_are_drawn_more_rarely_the_more_work_they_are_and_within_half_a_second() -> None:
    clock = FakeClock()
    beats = Beats(clock)
    for spent, length in ((0.0, 0.1), (0.3, 0.3), (0.9, 0.5), (0.0, 0.1)):
        with beats.working():
            await clock.advance(spent)
        await clock.advance(1.0 - spent)
        assert 0.0 < beats.left() <= beats.length
        assert beats.length == pytest.approx(length)


class Rows(FleetView[tuple[Object]]):
    """One row for each object, which counts how often it is made."""

    kinds = (KIND,)

    def __init__(self) -> None:
        self.made = 0

    def subjects(self, objects: FleetObjects) -> Iterable[tuple[Object]]:
        return ((found,) for found in objects.all(KIND, dict))

    def row(self, subject: tuple[Object]) -> FleetRow:
        self.made += 1
        return FleetRow(kind="A", namespace="", name=subject[0]["name"], standing=RowStanding.WELL, state="Ready")


def test_a_row_is_made_once_for_viewers_who_see_different_parts_and_forgotten_when_nobody_needs_it() -> None:
    view = Rows()
    kept = KeptRows(view)
    values = {ObjectKey("", str(number)): {"name": str(number)} for number in range(3000)}
    parts = [FleetObjects({KIND: dict(list(values.items())[first : first + 2000])}) for first in (0, 1000)]
    for _ in range(3):
        assert [len(kept.rows(part)) for part in parts] == [2000, 2000]
    assert view.made == 3000
    for turn in range(3):
        kept.rows(FleetObjects({KIND: {ObjectKey("", str(one)): {"name": f"{turn}-{one}"} for one in range(1001)}}))
    before = view.made
    kept.rows(parts[0])
    assert view.made == before + 2000


@given(st.lists(st.integers(0, 5), unique=True), st.randoms())
def test_marks_tell_sets_of_objects_apart_and_not_their_order(numbers: list[int], random: Any) -> None:
    known = [SharedObject({"metadata": {"name": str(number)}}) for number in range(6)]
    chosen = [known[number] for number in numbers]
    shuffled = list(chosen)
    random.shuffle(shuffled)
    assert marks_of(chosen) == marks_of(shuffled)
    assert all(marks_of(chosen[:cut]) != marks_of(chosen) for cut in range(len(chosen)))
