"""Protobuf on the wire: what Go clients send is read, and nothing they could send hurts."""

from __future__ import annotations

import random
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.apiserver.builtin.protobuf import decode, decode_watch_events, encode, encode_watch_event, speaks
from hortus.apiserver.builtin.protobuf.envelope import type_of
from hortus.apiserver.builtin.protobuf.wire import delimited, key
from hortus.kube.errors import BadRequest, NotAcceptable
from hortus.kube.objects import GroupVersionKind

from .objects import random_object

_SECRET: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "a", "namespace": "b", "creationTimestamp": "2024-01-01T00:00:00Z", "labels": {"x": "y"}},
    "data": {"k": "YQ=="},
    "type": "Opaque",
}
# Taken down by hand from the wire format: the envelope, TypeMeta, ObjectMeta with every field that Go holds by value.
_SECRET_BYTES = (
    b"k8s\0"
    b"\n\x0c\n\x02v1\x12\x06Secret"
    b'\x124\n"\n\x01a\x12\x00\x1a\x01b"\x00*\x002\x008\x00B\x08\x08\x80\x81\xc8\xac\x06\x10\x00Z\x06\n\x01x\x12\x01y'
    b"\x12\x06\n\x01k\x12\x01a\x1a\x06Opaque"
    b'\x1a\x00"\x00'
)


def _wrapped(raw: bytes, kind: str = "Secret") -> bytes:
    head = key(1, 2) + delimited(b"v1") + key(2, 2) + delimited(kind.encode())
    return b"k8s\0" + key(1, 2) + delimited(head) + key(2, 2) + delimited(raw)


def test_a_secret_is_these_bytes() -> None:
    assert encode(_SECRET) == _SECRET_BYTES
    assert decode(_SECRET_BYTES) == _SECRET


def test_a_body_without_a_kind_has_the_expected_one() -> None:
    raw = b"k8s\0" + key(2, 2) + delimited(key(3, 2) + delimited(b"Opaque"))
    found = decode(raw, GroupVersionKind("", "v1", "Secret"))
    assert found == {"apiVersion": "v1", "kind": "Secret", "metadata": {}, "type": "Opaque"}


def test_a_watch_is_read_frame_by_frame() -> None:
    status = {"apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure", "code": 410}
    stream = encode_watch_event("ADDED", _SECRET) + encode_watch_event("ERROR", status)
    assert list(decode_watch_events(stream)) == [("ADDED", _SECRET), ("ERROR", status)]
    assert list(decode_watch_events(stream[:-1])) == [("ADDED", _SECRET)]


def test_only_built_in_kinds_have_a_protobuf_form() -> None:
    assert speaks("v1", "SecretList")
    assert speaks("apps/v1", "DeleteOptions")
    assert not speaks("example.com/v1", "Widget")
    assert not speaks("v1", "Widget")
    with pytest.raises(NotAcceptable):
        encode({"apiVersion": "example.com/v1", "kind": "Widget"})


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (b'{"kind":"Secret"}', "provided data does not appear to be a protobuf message, expected prefix"),
        (b"k8s\0\xff", "unexpected EOF"),
        (_wrapped(b"", "Widget"), 'no kind "Widget" is registered for version "v1"'),
        (_wrapped(b"\x0a\xff\xff\xff\xff\x0f"), "cannot be handled as a Secret: unexpected EOF"),
        (_wrapped(b"\x0a" + b"\xff" * 9 + b"\x01"), "negative length"),
        (_wrapped(b"\x08\x01"), "wrong wireType = 0 for field metadata"),
        (_wrapped(b"\x00"), "illegal tag 0"),
        (_wrapped(b"\x7b"), "illegal wireType 3"),
        (_wrapped(key(3, 2) + delimited(b"\xff")), "not valid UTF-8"),
    ],
)
def test_malformed_messages_are_bad_requests(data: bytes, text: str) -> None:
    with pytest.raises(BadRequest, match=text.replace("[", r"\[").replace('"', ".")):
        decode(data)


def test_every_cut_of_a_message_is_refused_or_read() -> None:
    read, refused = [], 0
    for length in range(len(_SECRET_BYTES)):
        try:
            read.append(decode(_SECRET_BYTES[:length], GroupVersionKind("", "v1", "Secret")))
        except BadRequest:
            refused += 1
    assert refused > len(_SECRET_BYTES) // 2
    assert {found["kind"] for found in read} == {"Secret"}


@settings(max_examples=300, deadline=None)
@given(noise=st.binary(max_size=200), kind=st.sampled_from(["Secret", "Pod", "Event", "SecretList", "Status"]))
def test_noise_never_raises_anything_but_a_bad_request(noise: bytes, kind: str) -> None:
    for data in (noise, b"k8s\0" + noise, _wrapped(noise, kind)):
        try:
            assert "kind" in decode(data)
        except BadRequest:
            continue


@settings(max_examples=100, deadline=None)
@given(
    dice=st.randoms(use_true_random=True),
    kind=st.sampled_from([("v1", "Pod"), ("v1", "Event"), ("apiextensions.k8s.io/v1", "CustomResourceDefinition")]),
)
def test_a_round_trip_changes_nothing(dice: random.Random, kind: tuple[str, str]) -> None:
    obj = {"apiVersion": kind[0], "kind": kind[1], **random_object(dice, type_of(*kind)[0])}
    once = decode(encode(decode(encode(obj))))
    assert decode(encode(once)) == once


def test_a_message_cannot_blow_up_in_memory() -> None:
    """Two bytes a container: a body of 3 MB would make a million and a half objects."""
    containers = key(2, 2) + b"\0"
    bomb = _wrapped(key(2, 2) + delimited(containers * 1_500_000), "Pod")
    tracemalloc.start()
    try:
        with pytest.raises(BadRequest, match="more than 200000 values"):
            decode(bomb)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 64 * 1024 * 1024


def test_a_message_cannot_nest_without_end() -> None:
    nested = b""
    for _ in range(200):
        nested = key(26, 2) + delimited(nested)
    schema = key(1, 2) + delimited(nested)
    version = key(7, 2) + delimited(key(1, 2) + delimited(b"v1") + key(4, 2) + delimited(schema))
    head = key(1, 2) + delimited(b"apiextensions.k8s.io/v1") + key(2, 2) + delimited(b"CustomResourceDefinition")
    body = b"k8s\0" + key(1, 2) + delimited(head) + key(2, 2) + delimited(key(2, 2) + delimited(version))
    with pytest.raises(BadRequest, match="nested more than"):
        decode(body)
