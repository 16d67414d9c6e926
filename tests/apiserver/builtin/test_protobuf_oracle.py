"""Our protobuf and JSON shape against those of the Go libraries, on random objects of every built-in kind."""

from __future__ import annotations

import base64
import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.oracles.programs import GoProgram, go_program

from hortus.apiserver.builtin.catalogue import definitions
from hortus.apiserver.builtin.protobuf import decode, encode, encode_watch_event
from hortus.apiserver.builtin.protobuf.envelope import type_of
from hortus.apiserver.builtin.shapes import plain_shapes
from hortus.kube.errors import BadRequest

from .objects import random_object

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(900)]

_KINDS = sorted({(d.resource.api_version, d.resource.kind) for d in definitions()})
_LISTED = [(api_version, kind) for api_version, kind in _KINDS if kind != "Binding" and not kind.endswith("Review")]
_OTHERS = [
    ("v1", "Status"),
    ("v1", "DeleteOptions"),
    ("policy/v1", "Eviction"),
    ("autoscaling/v1", "Scale"),
    ("authentication.k8s.io/v1", "TokenRequest"),
]
_SHAPES = plain_shapes()


@pytest.fixture(scope="session")
def go() -> Iterator[GoProgram]:
    yield from go_program("protobuf")


def _random(dice: random.Random, api_version: str, kind: str) -> dict[str, Any]:
    return {"apiVersion": api_version, "kind": kind, **random_object(dice, type_of(api_version, kind)[0])}


def _json(answer: dict[str, str]) -> Any:
    return json.loads(base64.b64decode(answer["json"]))


def _shaped(obj: dict[str, Any]) -> dict[str, Any]:
    shaped = copy.deepcopy(obj)
    _SHAPES.shape_whole(shaped, type_of(obj["apiVersion"], obj["kind"])[0])
    return shaped


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(dice=st.randoms(use_true_random=True), which=st.sampled_from(_KINDS + _OTHERS))
def test_an_object_is_the_same_bytes_and_the_same_json_as_in_go(
    go: GoProgram, dice: random.Random, which: tuple[str, str]
) -> None:
    obj = _random(dice, *which)
    theirs = go.ask(json=obj)
    assert "error" not in theirs, (theirs, orjson.dumps(obj))
    data = base64.b64decode(theirs["protobuf"])
    assert encode(_shaped(obj)) == data
    assert decode(data) == _json(go.ask(protobuf=theirs["protobuf"]))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(dice=st.randoms(use_true_random=True), which=st.sampled_from(_LISTED))
def test_a_list_is_the_same_bytes_as_in_go(go: GoProgram, dice: random.Random, which: tuple[str, str]) -> None:
    api_version, kind = which
    items = [_shaped(_random(dice, api_version, kind)) for _ in range(dice.randrange(3))]
    metadata = {"resourceVersion": "7", "continue": "x", "remainingItemCount": 3}
    found = {"apiVersion": api_version, "kind": f"{kind}List", "metadata": metadata, "items": items}
    theirs = go.ask(json=found)
    data = base64.b64decode(theirs["protobuf"])
    assert encode(found) == data
    assert decode(data) == {"items": [], **_json(go.ask(protobuf=theirs["protobuf"]))} | (
        {} if items else {"items": []}
    )


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(dice=st.randoms(use_true_random=True), which=st.sampled_from(_KINDS))
def test_a_watch_event_is_the_same_frame_as_in_go(go: GoProgram, dice: random.Random, which: tuple[str, str]) -> None:
    obj = _shaped(_random(dice, *which))
    theirs = base64.b64decode(go.ask(watch=obj, type="MODIFIED")["protobuf"])
    assert encode_watch_event("MODIFIED", obj) == theirs


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(dice=st.randoms(use_true_random=True), which=st.sampled_from(_KINDS))
def test_damaged_bytes_are_read_as_go_reads_them(go: GoProgram, dice: random.Random, which: tuple[str, str]) -> None:
    """Both refuse the same bytes; other bytes have the same meaning."""
    data = bytearray(encode(_shaped(_random(dice, *which))))
    for _ in range(dice.randrange(1, 4)):
        place = dice.randrange(4, len(data))
        data[place] = dice.randrange(256)
    theirs = go.ask(protobuf=base64.b64encode(data).decode())
    try:
        ours = decode(bytes(data))
    except BadRequest:
        return
    if "json" in theirs:
        assert _without_nulls(ours) == _without_nulls(_json(theirs))


@pytest.mark.parametrize("seed", [1530, 2164, 2833, 53047])
def test_damaged_entries_of_maps_are_read_as_go_reads_them(go: GoProgram, seed: int) -> None:
    """Seeds of once found differences: a value that is missing, and wire types that Go does not look at."""
    dice = random.Random(seed)
    data = bytearray(encode(_shaped(_random(dice, "certificates.k8s.io/v1", "CertificateSigningRequest"))))
    for _ in range(dice.randrange(1, 4)):
        place = dice.randrange(4, len(data))
        data[place] = dice.randrange(256)
    theirs = go.ask(protobuf=base64.b64encode(data).decode())
    assert _without_nulls(decode(bytes(data))) == _without_nulls(_json(theirs))


def _without_nulls(value: Any) -> Any:
    """The value as API servers take it: a field that is null is not there."""
    if isinstance(value, dict):
        return {key: _without_nulls(found) for key, found in value.items() if found is not None}
    return [_without_nulls(found) for found in value] if isinstance(value, list) else value
