"""Kinds in two forms are one set of objects, whichever form somebody reads or writes."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.apiserver.wire import Wire

from hortus.apiserver.builtin.forms import FORMS, autoscaler_v1, autoscaler_v2
from hortus.apiserver.builtin.shapes import plain_shapes

from .objects import random_object

_SHAPES = plain_shapes()


def _shaped(dice: random.Random, name: str, api_version: str) -> dict[str, Any]:
    obj = random_object(dice, name)
    _SHAPES.shape_whole(obj, name)
    obj["metadata"].pop("annotations", None)
    return {"apiVersion": api_version, **obj}


def _without_order(obj: dict[str, Any]) -> dict[str, Any]:
    """The processor's metric comes first in what version 1 gives back."""
    spec, status = obj["spec"], obj["status"]
    for place, key in ((spec, "metrics"), (status, "currentMetrics")):
        place[key] = sorted(place.get(key) or [], key=repr)
    return obj


@settings(max_examples=200, deadline=None)
@given(dice=st.randoms(use_true_random=True))
def test_an_autoscaler_read_as_version_1_and_written_back_loses_nothing(dice: random.Random) -> None:
    obj = _shaped(dice, "autoscaling2.HorizontalPodAutoscaler", "autoscaling/v2")
    obj["spec"]["metrics"] = obj["spec"].get("metrics") or [{"type": "Pods"}]
    for metric in obj["spec"]["metrics"]:
        if (metric.get("resource") or {}).get("name") == "cpu":
            metric["resource"]["target"] = {"type": "Utilization", "averageUtilization": 50}
    again = autoscaler_v2(autoscaler_v1(obj))
    expected, found = _without_order(obj), _without_order(again)
    for form in (expected, found):
        for part in ("spec", "status"):
            form[part] = {key: value for key, value in form[part].items() if value not in (None, [], {})}
        form["status"].setdefault("currentReplicas", 0)
    assert found == expected


@settings(max_examples=100, deadline=None)
@given(dice=st.randoms(use_true_random=True))
def test_an_event_is_the_same_in_both_groups(dice: random.Random) -> None:
    stored = FORMS["events.Event"]
    event = _shaped(dice, "core.Event", "v1")
    assert stored.write(stored.read(event)) == event


async def test_an_event_of_one_group_is_seen_in_the_other(wire: Wire, namespace: str) -> None:
    event = {
        "metadata": {"name": "e", "namespace": namespace},
        "regarding": {"kind": "Pod", "name": "p", "namespace": namespace},
        "note": "it happened",
        "reason": "Happened",
        "type": "Normal",
        "action": "Look",
        "reportingController": "example.com/tester",
        "reportingInstance": "tester-0",
        "eventTime": "2024-01-01T00:00:00.000000Z",
    }
    path = f"/apis/events.k8s.io/v1/namespaces/{namespace}/events"
    created = await wire.post(path, event)
    assert created.code == 201
    assert created.body["note"] == "it happened"
    seen = (await wire.get(f"/api/v1/namespaces/{namespace}/events/e")).body
    assert seen["apiVersion"] == "v1"
    assert seen["message"] == "it happened"
    assert seen["involvedObject"]["name"] == "p"
    selected = await wire.get(
        f"/api/v1/namespaces/{namespace}/events?fieldSelector=involvedObject.name=p,source=example.com/tester"
    )
    assert [item["metadata"]["name"] for item in selected.body["items"]] == ["e"]
    listed = await wire.get(path)
    assert listed.body["kind"] == "EventList"
    assert listed.body["items"][0]["regarding"]["name"] == "p"


async def test_an_autoscaler_of_version_1_is_one_of_version_2(wire: Wire, namespace: str) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"maxReplicas": 3, "scaleTargetRef": target, "targetCPUUtilizationPercentage": 60}
    first = f"/apis/autoscaling/v1/namespaces/{namespace}/horizontalpodautoscalers"
    created = await wire.post(first, {"metadata": {"name": "web"}, "spec": spec})
    assert created.code == 201
    assert created.body["apiVersion"] == "autoscaling/v1"
    assert created.body["spec"] == {**spec, "minReplicas": 1}
    second = f"/apis/autoscaling/v2/namespaces/{namespace}/horizontalpodautoscalers/web"
    seen = (await wire.get(second)).body
    cpu = {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}
    assert seen["spec"]["metrics"] == [{"type": "Resource", "resource": cpu}]
    created.body["spec"]["targetCPUUtilizationPercentage"] = 70
    assert (await wire.put(f"{first}/web", created.body)).code == 200
    seen = (await wire.get(second)).body
    assert seen["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 70
    shown = await wire.post(first + "?dryRun=All", {"metadata": {"name": "dry"}, "spec": spec})
    assert shown.body["spec"]["targetCPUUtilizationPercentage"] == 60


async def test_nodes_are_selected_by_omitted_fields(wire: Wire) -> None:
    for name, spec in (("open", {}), ("closed", {"unschedulable": True})):
        assert (await wire.post("/api/v1/nodes", {"metadata": {"name": name}, "spec": spec})).code == 201
    for value, expected in (("false", ["open"]), ("true", ["closed"])):
        found = await wire.get(f"/api/v1/nodes?fieldSelector=spec.unschedulable={value}")
        assert [node["metadata"]["name"] for node in found.body["items"]] == expected
