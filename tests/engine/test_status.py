from __future__ import annotations

from typing import Any

import pytest
from tests.engine.fake_api import WIDGETS, FakeApi, widget

from hortus.engine.cache import Cache, copy_of
from hortus.engine.conditions import (
    FALSE,
    TRUE,
    UNKNOWN,
    find_condition,
    has_condition,
    mark_ready,
    mark_reconciling,
    mark_stalled,
    remove_condition,
    set_condition,
)
from hortus.engine.status import StatusDraft
from hortus.kube.errors import Conflict
from hortus.kube.objects import Object, ObjectKey, format_time
from hortus.testing import FakeClock

NOON = 1_672_574_400.0


def test_a_transition_is_a_flip_of_status_and_nothing_else() -> None:
    status: Object = {}
    assert set_condition(status, "Ready", FALSE, reason="Down", message="no answer", generation=1, now=NOON)
    assert not set_condition(status, "Ready", FALSE, reason="Down", message="no answer", generation=1, now=NOON + 60)
    assert set_condition(status, "Ready", FALSE, reason="Slow", message="late", generation=2, now=NOON + 60)
    expected = {
        "type": "Ready",
        "status": "False",
        "reason": "Slow",
        "message": "late",
        "observedGeneration": 2,
        "lastTransitionTime": "2023-01-01T12:00:00Z",
    }
    assert status == {"conditions": [expected]}
    assert set_condition(status, "Ready", TRUE, reason="Up", generation=2, now=NOON + 90)
    assert status["conditions"][0]["lastTransitionTime"] == "2023-01-01T12:01:30Z"


def test_fields_that_a_server_adds_or_leaves_out_of_a_condition_are_no_change() -> None:
    status: Object = {}
    set_condition(status, "Ready", TRUE, reason="Up", generation=1, now=NOON)
    status["conditions"] = [{**status["conditions"][0], "lastProbeTime": None}]
    del status["conditions"][0]["message"]
    assert not set_condition(status, "Ready", TRUE, reason="Up", generation=1, now=NOON + 60)
    assert set_condition(status, "Ready", TRUE, reason="Up", now=NOON + 60)
    assert status["conditions"][0].keys() == {"type", "status", "reason", "lastProbeTime", "lastTransitionTime"}


def test_a_status_shared_with_the_cache_is_never_changed_in_place() -> None:
    status: Object = {}
    set_condition(status, "Ready", TRUE, reason="Up", now=NOON)
    shared = dict(status)
    before = copy_of(shared)
    set_condition(status, "Ready", FALSE, reason="Down", now=NOON)
    set_condition(status, "Other", TRUE, reason="Up", now=NOON)
    remove_condition(status, "Ready")
    assert shared == before


@pytest.mark.parametrize("reason", ["", "has space", "1st", "ends-", "a" * 1025])
def test_a_reason_that_the_api_would_refuse_is_refused_here(reason: str) -> None:
    with pytest.raises(ValueError, match="must be CamelCase"):
        set_condition({}, "Ready", TRUE, reason=reason, now=NOON)


def test_ready_reconciling_and_stalled_read_as_kstatus_wants_them() -> None:
    status: Object = {}

    def shown() -> dict[str, str]:
        return {condition["type"]: condition["status"] for condition in status["conditions"]}

    mark_reconciling(status, reason="Creating", now=NOON)
    assert shown() == {"Reconciling": "True", "Ready": "Unknown"}
    mark_stalled(status, reason="BadSpec", message="spec.x is wrong", now=NOON)
    assert shown() == {"Stalled": "True", "Ready": "False"}
    assert mark_ready(status, reason="Done", now=NOON)
    assert shown() == {"Ready": "True"}
    assert not mark_ready(status, reason="Done", now=NOON + 5)


def test_an_absent_condition_is_unknown() -> None:
    obj = widget("a")
    assert find_condition(obj, "Ready") is None
    assert has_condition(obj, "Ready", UNKNOWN)
    assert not has_condition(obj, "Ready")


class Stage:
    def __init__(self, **status: Any) -> None:
        self.clock, self.api = FakeClock(), FakeApi()
        self.live = self.api.put(WIDGETS, widget("a", status=status))
        self.cache = Cache("widgets")
        self.cache.replace([self.live], self.api.version)

    def draft(self) -> StatusDraft:
        return StatusDraft(self.cache[ObjectKey("default", "a")], clock=self.clock)

    def stored(self) -> Object:
        return self.api.objects[WIDGETS, ObjectKey("default", "a")]


async def test_a_second_write_of_a_draft_leaves_what_others_wrote_before_the_first() -> None:
    stage = Stage()
    draft = stage.draft()
    await stage.api.patch(WIDGETS, "a", {"status": {"theirs": 1}}, "default", subresource="status")
    draft.fields["ours"] = 1
    await draft.write(stage.api, WIDGETS, cache=stage.cache)
    assert not draft.changed
    draft.fields["ours"] = 2
    await draft.write(stage.api, WIDGETS, cache=stage.cache)
    assert stage.stored()["status"] == {"theirs": 1, "ours": 2}


async def test_nothing_is_written_when_nothing_differs() -> None:
    stage = Stage()
    draft = stage.draft()
    draft.ready(reason="Done")
    assert await draft.write(stage.api, WIDGETS, cache=stage.cache) is not None
    await stage.clock.advance(3600)
    again = stage.draft()
    again.ready(reason="Done")
    assert await again.write(stage.api, WIDGETS, cache=stage.cache) is None
    assert stage.api.count("patch") == 1


async def test_one_patch_carries_only_what_differs_and_fields_of_others_stay() -> None:
    stage = Stage(mine={"a": 1, "b": 2}, theirs={"x": 1})
    draft = stage.draft()
    draft.fields["mine"]["a"] = 5
    del draft.fields["mine"]["b"]
    assert draft.patch() == {"status": {"mine": {"a": 5, "b": None}}}
    stage.api.put(WIDGETS, widget("a", status={"mine": {"a": 1, "b": 2}, "theirs": {"x": 2}}))
    await draft.write(stage.api, WIDGETS)
    assert stage.stored()["status"] == {"mine": {"a": 5}, "theirs": {"x": 2}}
    assert stage.api.calls[-1] == ("patch", "widgets", "a", "merge", "status")


async def test_the_cached_object_stays_whole_while_drafting() -> None:
    stage = Stage(mine={"a": 1})
    draft = stage.draft()
    draft.fields["mine"]["a"] = 2
    assert stage.cache[ObjectKey("default", "a")]["status"] == {"mine": {"a": 1}}


async def test_conditions_speak_for_the_generation_that_was_read() -> None:
    stage = Stage()
    draft = stage.draft()
    draft.reconciling(reason="Creating")
    draft.condition("Synced", TRUE, reason="Yes", message="all")
    assert {condition["observedGeneration"] for condition in draft.fields["conditions"]} == {1}
    assert draft.fields["conditions"][-1]["lastTransitionTime"] == format_time(stage.clock.now())
    draft.without_condition("Synced")
    draft.stalled(reason="Bad", message="fix it")
    assert [condition["type"] for condition in draft.fields["conditions"]] == ["Ready", "Stalled"]


async def test_an_exclusive_write_meets_a_newer_object_with_a_conflict() -> None:
    stage = Stage()
    draft = stage.draft()
    draft.fields["x"] = 1
    stage.api.put(WIDGETS, widget("a", status={"x": 2}))
    with pytest.raises(Conflict):
        await draft.write(stage.api, WIDGETS, exclusive=True)
    await draft.write(stage.api, WIDGETS)
    assert stage.stored()["status"] == {"x": 1}


async def test_the_status_of_what_is_gone_is_not_missed() -> None:
    stage = Stage()
    draft = stage.draft()
    draft.fields["x"] = 1
    stage.api.remove(WIDGETS, "a")
    assert await draft.write(stage.api, WIDGETS) is None
