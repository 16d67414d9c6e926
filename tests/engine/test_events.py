from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest
from structlog.testing import capture_logs
from tests.engine.fake_api import FakeApi, widget

from hortus.engine.events import BURST, EVENTS, MOST_PENDING, NORMAL, WARNING, EventRecorder
from hortus.kube.errors import ConnectionFailed, Forbidden
from hortus.kube.objects import Object, Resource
from hortus.testing import FakeClock

A = widget("a", metadata={"uid": "u1"})


class Stage:
    def __init__(self) -> None:
        self.clock, self.api = FakeClock(), FakeApi()
        self.recorder = EventRecorder(self.api, component="widget-controller", instance="pod-1", clock=self.clock)

    def stored(self) -> list[Object]:
        return [obj for (resource, _), obj in self.api.objects.items() if resource == EVENTS]


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    made = Stage()
    await made.recorder.start()
    yield made
    stopping = asyncio.create_task(made.recorder.stop())
    await made.clock.advance(30)
    await stopping


async def test_an_event_says_what_happened_to_whom(stage: Stage) -> None:
    stage.recorder.event(A, NORMAL, "Rotated", "Rotated the kubeconfig: default/a")
    await stage.clock.settle()
    (event,) = stage.stored()
    name = event["metadata"].pop("name")
    assert name.startswith("a.") and len(name) == 18
    assert event["metadata"]["namespace"] == "default"
    del event["metadata"]
    assert event == {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {
            "apiVersion": "example.org/v1",
            "kind": "Widget",
            "namespace": "default",
            "name": "a",
            "uid": "u1",
        },
        "type": "Normal",
        "reason": "Rotated",
        "message": "Rotated the kubeconfig: default/a",
        "count": 1,
        "firstTimestamp": "2023-01-01T12:00:00Z",
        "lastTimestamp": "2023-01-01T12:00:00Z",
        "source": {"component": "widget-controller"},
        "reportingComponent": "widget-controller",
        "reportingInstance": "pod-1",
    }


async def test_the_same_again_raises_a_count(stage: Stage) -> None:
    for _ in range(3):
        stage.recorder.event(A, WARNING, "Failed", "no answer")
        await stage.clock.advance(60)
    stage.recorder.event(A, WARNING, "Failed", "another answer")
    await stage.clock.settle()
    first, second = stage.stored()
    assert (first["count"], first["lastTimestamp"], second["count"]) == (3, "2023-01-01T12:02:00Z", 1)


async def test_what_happens_often_between_two_writes_is_written_once(stage: Stage) -> None:
    for _ in range(5):
        stage.recorder.event(A, NORMAL, "Seen", "again")
    await stage.clock.settle()
    assert [event["count"] for event in stage.stored()] == [5]
    assert len(stage.api.calls) == 1


async def test_an_event_that_the_server_has_forgotten_is_created_again(stage: Stage) -> None:
    stage.recorder.event(A, NORMAL, "Seen", "again")
    await stage.clock.settle()
    stage.api.objects.clear()
    await stage.clock.advance(3600)
    stage.recorder.event(A, NORMAL, "Seen", "again")
    await stage.clock.settle()
    (event,) = stage.stored()
    assert (event["count"], event["firstTimestamp"]) == (1, "2023-01-01T13:00:00Z")


async def test_many_similar_events_become_one(stage: Stage) -> None:
    for number in range(20):
        stage.recorder.event(A, WARNING, "Failed", f"attempt {number}")
    await stage.clock.settle()
    events = stage.stored()
    assert len(events) == 11
    assert (events[-1]["message"], events[-1]["count"]) == ("(combined from similar events) Failed", 10)


async def test_an_object_that_will_not_be_quiet_is_cut_off_and_others_are_not(stage: Stage) -> None:
    for number in range(100):
        stage.recorder.event(A, WARNING, f"Reason{number}", "x")
    stage.recorder.event(widget("b"), NORMAL, "Fine", "x")
    await stage.clock.settle()
    assert len(stage.stored()) == BURST + 1
    assert stage.recorder.dropped == 100 - BURST
    await stage.clock.advance(300)
    stage.recorder.event(A, WARNING, "Reason", "x")
    await stage.clock.settle()
    assert len(stage.stored()) == BURST + 2


async def test_an_api_that_is_away_costs_nothing_but_events(stage: Stage) -> None:
    stage.api.down = ConnectionFailed("api", "connection refused")
    stage.recorder.event(A, NORMAL, "Kept", "tried again")
    await stage.clock.advance(6)
    stage.api.down = None
    await stage.clock.advance(10)
    assert [event["reason"] for event in stage.stored()] == ["Kept"]
    stage.api.down = ConnectionFailed("api", "connection refused")
    for number in range(MOST_PENDING + 50):
        stage.recorder.event(widget(f"n{number}"), NORMAL, "Flood", "x")
    assert stage.recorder.dropped == 50
    await stage.clock.advance(3600 * 24)
    assert stage.recorder._pending == {}


async def test_what_may_not_be_written_is_not_tried_again(stage: Stage) -> None:
    stage.api.down = Forbidden("events is forbidden")
    stage.recorder.event(A, NORMAL, "Seen", "x")
    await stage.clock.advance(60)
    assert len(stage.api.calls) == 1


async def test_stop_writes_what_is_pending() -> None:
    stage = Stage()
    await stage.recorder.start()
    stage.recorder.event(A, NORMAL, "Last", "words")
    await stage.recorder.stop()
    assert [event["reason"] for event in stage.stored()] == ["Last"]


async def test_a_credential_in_a_message_is_cut_out_and_a_long_one_cut_off(stage: Stage) -> None:
    stage.recorder.event(A, WARNING, "Failed", "server said: token=c4n4ryc4n4ry " + "x" * 5000)
    await stage.clock.settle()
    (event,) = stage.stored()
    assert "c4n4ry" not in str(event)
    assert len(event["message"]) == 1024


async def test_cluster_scoped_objects_and_long_names_have_events_too(stage: Stage) -> None:
    long = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n" * 253}}
    stage.recorder.event(long, NORMAL, "Seen", "x")
    await stage.clock.settle()
    (event,) = stage.stored()
    assert event["metadata"]["namespace"] == "default"
    assert len(event["metadata"]["name"]) == 253
    assert "namespace" not in event["involvedObject"]


async def test_an_event_that_cannot_be_encoded_is_dropped_and_the_next_one_written(stage: Stage) -> None:
    written = stage.api.create

    async def encoding(resource: Resource, obj: Object, *, namespace: str = "") -> Object:
        orjson.dumps(obj)
        return await written(resource, obj, namespace=namespace)

    stage.api.create = encoding  # type: ignore[method-assign, assignment]
    with capture_logs() as logs:
        stage.recorder.event(A, WARNING, "Broken", "half of a pair: \ud800")
        stage.recorder.event(widget("b"), NORMAL, "Fine", "x")
        await stage.clock.settle()
    assert [event["reason"] for event in stage.stored()] == ["Fine"]
    assert stage.recorder.dropped == 1
    assert "half of a pair" not in str(logs)
    await stage.clock.advance(60)
    stage.recorder.event(widget("c"), NORMAL, "Later", "x")
    await stage.clock.settle()
    assert [event["reason"] for event in stage.stored()] == ["Fine", "Later"]


async def test_an_event_about_what_is_no_object_fails_nobody(stage: Stage) -> None:
    with capture_logs():
        stage.recorder.event({"kind": "Widget"}, NORMAL, "Odd", "x")
        stage.recorder.event(A, NORMAL, "Odd", None)  # type: ignore[arg-type]
    assert stage.recorder.dropped == 2


async def test_a_cancellation_from_elsewhere_does_not_end_the_recorder(stage: Stage) -> None:
    stage.api.down = asyncio.CancelledError()  # type: ignore[assignment]
    stage.recorder.event(A, NORMAL, "Lost", "x")
    await stage.clock.settle()
    stage.api.down = None
    stage.recorder.event(A, NORMAL, "Kept", "x")
    await stage.clock.settle()
    assert [event["reason"] for event in stage.stored()] == ["Kept"]
