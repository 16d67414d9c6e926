"""Bodies of audit webhooks: an EventList of audit.k8s.io/v1, taken apart into lines without decoding its events.

The bytes of an event are kept as they came, so that sinks receive what the API server sent. Only white space that would
break a line is taken out.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec


class NotEventsError(ValueError):
    """The body is no list of audit events; the message says where it is wrong."""


class EventLines(NamedTuple):
    """Events as NDJSON."""

    payload: bytes
    lines: int


class _EventList(msgspec.Struct):
    items: list[msgspec.Raw]
    kind: str = "EventList"
    apiVersion: str = "audit.k8s.io/v1"


_decoder = msgspec.json.Decoder(_EventList)
_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*+"|[][{}]', re.DOTALL)
"""Texts, which may hold brackets, and brackets."""
_EVENT = 3
"""The depth of an event: in the list, which is in the body."""


def lines_of(body: bytes) -> EventLines:
    """The events of a webhook's body. Raises NotEventsError."""
    try:
        # The decoder skips over the events, and does not look at their texts.
        body.decode()
        try:
            found = _decoder.decode(body)
            events = [bytes(item) for item in found.items]
        except RecursionError:
            outer, events = _cut(body)
            found = _decoder.decode(outer)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NotEventsError(f"the body is no EventList: {error}") from None
    if found.kind != "EventList" or not found.apiVersion.startswith("audit.k8s.io/"):
        raise NotEventsError(f"the body is a {found.kind} of {found.apiVersion}, not an EventList of audit.k8s.io/v1")
    for index, event in enumerate(events):
        if not event.startswith(b"{"):
            raise NotEventsError(f"items[{index}] is no object")
    payload = b"\n".join(events)
    if payload.count(b"\n") != max(len(events) - 1, 0):
        payload = b"\n".join(map(_without_breaks, events))
    return EventLines(payload + b"\n" if events else b"", len(events))


def _without_breaks(event: bytes) -> bytes:
    try:
        return msgspec.json.format(event, indent=-1)
    except RecursionError:
        return event.translate(None, b"\r\n")  # texts of JSON have no break as it stands


def _cut(body: bytes) -> tuple[bytes, list[bytes]]:
    """The body without its events, and the events, each up to the bracket that ends it. Raises NotEventsError.

    An event holds what a client has sent, which an API server takes down to 10,000 levels; the decoder goes less deep.
    """
    events: list[bytes] = []
    outer, depth, begin = bytearray(), 0, 0
    kept = 0
    for token in _TOKENS.finditer(body):
        if token[0] in b"{[":
            depth += 1
            if depth == _EVENT:
                begin = token.start()
        elif token[0] in b"}]":
            depth -= 1
            if depth == _EVENT - 1:
                events.append(body[begin : token.end()])
                outer += body[kept:begin] + b"{}"
                kept = token.end()
    outer += body[kept:]
    if depth:
        raise NotEventsError("the body is no EventList: its brackets do not match")
    return bytes(outer), events
