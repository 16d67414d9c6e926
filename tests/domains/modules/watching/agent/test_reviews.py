"""Decisions on AdmissionReviews."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.domains.modules.watching.agent.world import review

from hortus.domains.modules.watching.agent.reviews import NoReview, judge
from hortus.domains.modules.watching.events import PROBE_NAME, WatchedEvent, decode, encode

KYMA = WatchedEvent("kyma-system", "default", "operator.kyma-project.io", "v1beta2", "Kyma")


def _object(**parts: Any) -> dict[str, Any]:
    return {"metadata": {"namespace": "kyma-system", "name": "default"}, **parts}


@pytest.mark.parametrize("operation", ["CREATE", "DELETE"])
def test_create_and_delete_are_always_reported(operation: str) -> None:
    assert judge(review(operation)).event == KYMA


@pytest.mark.parametrize(
    ("subresource", "old", "new", "reported"),
    [
        ("", {"spec": {"a": 1}}, {"spec": {"a": 1}}, False),
        ("", {"spec": {"a": 1}}, {"spec": {"a": 2}}, True),
        ("", {"spec": {"a": 1}}, {"spec": {"a": True}}, True),
        ("", {"spec": {"a": 1, "b": 2}}, {"spec": {"b": 2, "a": 1}}, False),
        ("", {}, {}, True),
        ("", {"spec": {}}, {}, True),
        ("", {"spec": {}, "status": {"a": 1}}, {"spec": {}, "status": {"a": 2}}, False),
        ("status", {"spec": {"a": 1}, "status": {}}, {"spec": {"a": 2}, "status": {}}, False),
        ("status", {"status": {"a": 1}}, {"status": {"a": 2}}, True),
    ],
)
def test_an_update_is_reported_where_the_part_that_it_writes_differs(
    subresource: str, old: dict[str, Any], new: dict[str, Any], reported: bool
) -> None:
    """2.4: UPDATE compares spec, or status; without a spec on either side it is reported."""
    body = review("UPDATE", subResource=subresource, object=_object(**new), oldObject=_object(**old))
    assert (judge(body).event is not None) is reported


def test_a_dry_run_is_not_reported_unless_it_is_the_control_planes_check() -> None:
    assert judge(review(dryRun=True)).event is None
    probe = judge(review(name=PROBE_NAME, dryRun=True)).event
    assert probe is not None and probe.is_probe


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (review("CONNECT"), "operation CONNECT is not supported"),
        (review("UPDATE", oldObject=None), "oldObject of the review: Expected `object`, got `null`"),
        (
            review(object={"metadata": {"name": "x" * 254}}),
            "object of the review: Expected `str` of length <= 253 - at `$.metadata.name`",
        ),
        (review(object={"metadata": None}), "object of the review: Expected `object`, got `null` - at `$.metadata`"),
        (review(object=[]), "object of the review: Expected `object`, got `array`"),
    ],
)
def test_a_review_that_cannot_be_decided_is_allowed_with_the_reason(body: bytes, problem: str) -> None:
    verdict = judge(body)
    response = orjson.loads(verdict.review)["response"]
    assert (verdict.event, response) == (None, {"uid": "u-1", "allowed": True, "status": {"message": problem}})


@pytest.mark.parametrize(
    "body", [b"", b"[]", b'{"request": 1}', b'{"request": {"uid": 1}}', b'{"request": {"uid": "a"}}']
)
def test_a_body_that_is_no_review_is_refused(body: bytes) -> None:
    with pytest.raises(NoReview):
        judge(body)


def test_the_review_of_an_api_server_is_read(upstream: Path) -> None:
    body = orjson.loads((upstream / "klm/watcher/admissionreview-spec.json").read_bytes())
    body["apiVersion"] = "admission.k8s.io/v1"
    assert judge(orjson.dumps(body)).event == WatchedEvent(
        "default", "kyma-sample", "operator.kyma-project.io", "v1alpha1", "Kyma"
    )


def test_an_event_is_read_in_both_spellings_and_a_former_owner_is_ignored(upstream: Path) -> None:
    """2.4: capitalised keys are written, both spellings are accepted."""
    received = decode((upstream / "klm/watcher/event-small.json").read_bytes())
    assert received.event == WatchedEvent(
        "kcp-system", "watched-resource", "operator.kyma-project.io", "v1alpha1", "kyma"
    )
    assert (decode(encode(KYMA)).event, decode(encode(KYMA, sender="r")).sender) == (KYMA, "r")
    assert orjson.loads(encode(KYMA))["watched"] == {"Namespace": "kyma-system", "Name": "default"}


@pytest.mark.parametrize("body", [b"", b"[]", b'{"watched": 1}', b'{"watched": {"Name": 1}}', b'{"sender": "x"}'])
def test_a_body_of_another_shape_is_no_event(body: bytes) -> None:
    with pytest.raises(ValueError):
        decode(body)
