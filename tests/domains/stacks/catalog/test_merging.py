"""Conditions that several controllers write at once, by the rules of cluster-api's `util/conditions/patcher.go`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domains.stacks.catalog.world import HOME, CatalogWorld

from hortus.domains.stacks.conditions import ConditionConflict, Severity, merged
from hortus.domains.stacks.context import StackContext
from hortus.domains.stacks.types import CLUSTER_STACKS, ClusterStack
from hortus.engine import Cache, EventRecorder, Wiring
from hortus.engine.context import Superseded
from hortus.kube import Client, PatchKind
from hortus.kube.clock import SystemClock
from hortus.kube.objects import Object

EARLY, LATE, THEIRS = "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z", "2026-01-01T00:02:00Z"


def true(kind: str = "A", time: str = EARLY) -> Object:
    return {"type": kind, "status": "True", "lastTransitionTime": time}


def false(kind: str = "A", reason: str = "Waits", time: str = EARLY) -> Object:
    return {"type": kind, "status": "False", "severity": "Info", "reason": reason, "lastTransitionTime": time}


NONE: list[Object] = []


@pytest.mark.parametrize(
    ("before", "after", "latest", "found"),
    [
        pytest.param(NONE, [true()], NONE, [true()], id="added"),
        pytest.param(NONE, [true(time=LATE)], [true(time=THEIRS)], [true(time=THEIRS)], id="added by both alike"),
        pytest.param([true()], [false(time=LATE)], [true()], [false(time=LATE)], id="changed"),
        pytest.param(
            [true()], [false(time=LATE)], [false(time=THEIRS)], [false(time=THEIRS)], id="changed by both alike"
        ),
        pytest.param([true()], NONE, [true()], NONE, id="removed"),
        pytest.param([true()], NONE, NONE, NONE, id="removed by both"),
        pytest.param([true()], NONE, [true(time=THEIRS)], NONE, id="removed, its time alone changed"),
        pytest.param([true()], [true()], [false(time=THEIRS)], [false(time=THEIRS)], id="changed by the other alone"),
        pytest.param([true()], [true()], NONE, NONE, id="removed by the other alone"),
        pytest.param(
            NONE, [true("A")], [true("Z"), true("B")], [true("A"), true("B"), true("Z")], id="others' stay in order"
        ),
        pytest.param(
            [true("Ready")], [false("Ready")], [false("Ready", "Other")], [false("Ready")], id="Ready is made again"
        ),
    ],
)
def test_each_condition_is_of_who_changed_it(
    before: list[Object], after: list[Object], latest: list[Object], found: list[Object]
) -> None:
    assert merged(before, after, latest) == found


@pytest.mark.parametrize(
    ("before", "after", "latest"),
    [
        pytest.param(NONE, [true()], [false()], id="added by both, to other states"),
        pytest.param([true()], [false()], [false(reason="Other")], id="changed by both, to other states"),
        pytest.param([true()], [false()], [true(time=THEIRS)], id="changed, and its time by the other"),
        pytest.param([true()], [false()], NONE, id="changed here, removed there"),
        pytest.param([true()], NONE, [false()], id="removed here, changed there"),
    ],
)
def test_a_condition_that_both_changed_is_a_conflict(
    before: list[Object], after: list[Object], latest: list[Object]
) -> None:
    with pytest.raises(ConditionConflict, match="the condition A was changed by another writer"):
        merged(before, after, latest)


_STATES = st.dictionaries(st.sampled_from("ABCD"), st.sampled_from([true, false])).map(
    lambda found: [make(kind) for kind, make in sorted(found.items())]
)


@given(before=_STATES, after=_STATES)
def test_without_another_writer_the_draft_is_what_is_written(before: list[Object], after: list[Object]) -> None:
    assert merged(before, after, before) == after


@given(before=_STATES, latest=_STATES)
def test_without_a_draft_of_ours_all_stays_as_the_other_wrote_it(before: list[Object], latest: list[Object]) -> None:
    assert merged(before, before, latest) == latest


class _Reconcile:
    """A reconcile of a ClusterStack that began before another controller wrote its status."""

    def __init__(self, here: CatalogWorld, client: Client, raw: Object) -> None:
        self.here = here
        clock, cache = SystemClock(), Cache("stacks")
        cache.replace([raw], 1)
        events = EventRecorder(client, component="test", clock=clock)
        wiring = Wiring(
            kind=ClusterStack,
            client=client,
            cache=cache,
            owned={},
            events=events,
            field_manager="test",
            clock=clock,
            holds=lambda key: True,
        )
        self.context = StackContext(wiring, raw)

    async def other_writes(self, *found: Object, **status: Any) -> None:
        patch = {"status": {"conditions": list(found), **status}}
        await self.here.client.patch(CLUSTER_STACKS, "stack", patch, HOME, PatchKind.MERGE, "status")

    async def conditions(self) -> dict[str, str]:
        found = (await self.here.client.get(CLUSTER_STACKS, "stack", HOME))["status"]["conditions"]
        return {one["type"]: one.get("reason", one["status"]) for one in found}


@pytest.fixture
async def reconcile(here: CatalogWorld) -> Any:
    raw = await here.stack("v1")
    async with Client(here.client.access, observer=here.requests) as client:
        yield _Reconcile(here, client, raw)


async def test_conditions_of_another_controller_stay(reconcile: _Reconcile, here: CatalogWorld) -> None:
    await reconcile.other_writes(false("Theirs", "Slow"), latestRelease="theirs")
    reconcile.context.true("Ours")
    reconcile.context.set_status("usableVersions", "v1")
    assert await reconcile.context.checkpoint()
    assert await reconcile.conditions() == {"Ready": "Slow", "Ours": "True", "Theirs": "Slow"}
    status = (await here.client.get(CLUSTER_STACKS, "stack", HOME))["status"]
    assert (status["latestRelease"], status["usableVersions"]) == ("theirs", "v1")
    assert here.requests.methods == ["PATCH", "GET", "PATCH"]


async def test_a_condition_that_another_controller_set_otherwise_has_the_reconcile_begin_again(
    reconcile: _Reconcile, here: CatalogWorld
) -> None:
    await reconcile.other_writes(false("Ours", "Other"))
    reconcile.context.false("Ours", "Waits", Severity.INFO)
    with pytest.raises(Superseded, match="the condition Ours was changed by another writer"):
        await reconcile.context.checkpoint()
    assert await reconcile.conditions() == {"Ours": "Other"}
    raw = reconcile.context.wiring.cache.raw.get(reconcile.context.key)
    assert raw is not None
    assert raw["status"]["conditions"][0]["reason"] == "Other", "the next reconcile begins with what is there"


async def test_a_spec_that_changed_meanwhile_is_not_acted_on(reconcile: _Reconcile, here: CatalogWorld) -> None:
    await here.client.patch(CLUSTER_STACKS, "stack", {"spec": {"versions": ["v2"]}}, HOME)
    reconcile.context.true("Ours")
    with pytest.raises(Superseded):
        await reconcile.context.checkpoint()
    assert await reconcile.conditions() == {"Ours": "True", "Ready": "True"}


async def test_an_object_that_is_gone_has_no_status(reconcile: _Reconcile, here: CatalogWorld) -> None:
    await here.client.delete(CLUSTER_STACKS, "stack", HOME)
    reconcile.context.true("Ours")
    assert not await reconcile.context.checkpoint()


async def test_a_status_without_other_conditions_is_written_for_any_version(
    reconcile: _Reconcile, here: CatalogWorld
) -> None:
    await reconcile.other_writes(false("Theirs", "Slow"))
    reconcile.context.set_status("usableVersions", "v1")
    assert await reconcile.context.checkpoint()
    assert await reconcile.conditions() == {"Theirs": "Slow"}
    assert here.requests.methods == ["PATCH"]
