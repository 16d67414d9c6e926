"""Bodies of audit webhooks: an EventList of audit.k8s.io/v1, taken apart into lines without decoding its events.

The bytes of an event are kept as they came, so that sinks receive what the API server sent. Only white space that would
break a line is taken out.
"""

from __future__ import annotations

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


def lines_of(body: bytes) -> EventLines:
    """The events of a webhook's body. Raises NotEventsError."""
    try:
        # The decoder skips over the events, and does not look at their texts.
        body.decode()
        found = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NotEventsError(f"the body is no EventList: {error}") from None
    if found.kind != "EventList" or not found.apiVersion.startswith("audit.k8s.io/"):
        raise NotEventsError(f"the body is a {found.kind} of {found.apiVersion}, not an EventList of audit.k8s.io/v1")
    events = [bytes(item) for item in found.items]
    for index, event in enumerate(events):
        if not event.startswith(b"{"):
            raise NotEventsError(f"items[{index}] is no object")
    payload = b"\n".join(events)
    if payload.count(b"\n") != max(len(events) - 1, 0):
        payload = b"\n".join(msgspec.json.format(event, indent=-1) for event in events)
    return EventLines(payload + b"\n" if events else b"", len(events))
