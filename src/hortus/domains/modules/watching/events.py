"""The body of the request by which an agent reports that an object changed.

The wire form is that of Kyma's runtime-watcher: `{"watched": {"Namespace", "Name"}, "watchedGvk": {...}}`. Its keys are
written with capitals below `watched` and read in any case, since both spellings are in use. A former key `owner` is
ignored. An event may name its `sender` (the runtime id), which an agent of Hortus does.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import orjson

PROBE_NAME: Final = "hortus-watcher-probe"
"""Name of the Kyma whose creation is tried, without creating it, to see whether an event arrives."""
LARGEST_BODY: Final = 16384
"""Bytes that the listener accepts."""


class WatchedEvent(msgspec.Struct, frozen=True):
    """An object changed in a managed cluster."""

    namespace: str
    name: str
    group: str
    version: str
    kind: str

    @property
    def is_probe(self) -> bool:
        """True for the event of a check; nothing changed."""
        return self.name == PROBE_NAME


class Received(msgspec.Struct, frozen=True):
    """An event as a listener reads it."""

    event: WatchedEvent
    sender: str = ""
    """The runtime id that the event names; empty where it names none."""


def encode(event: WatchedEvent, *, sender: str = "") -> bytes:
    """Returns the body for `event`."""
    body: dict[str, Any] = {
        "watched": {"Namespace": event.namespace, "Name": event.name},
        "watchedGvk": {"group": event.group, "version": event.version, "kind": event.kind},
    }
    if sender:
        body["sender"] = {"runtimeId": sender}
    return orjson.dumps(body)


class _Watched(msgspec.Struct, frozen=True):
    namespace: str = ""
    name: str = ""


class _Gvk(msgspec.Struct, frozen=True):
    group: str = ""
    version: str = ""
    kind: str = ""


class _Sender(msgspec.Struct, frozen=True):
    runtimeid: str = ""


class _Body(msgspec.Struct, frozen=True):
    watched: _Watched = _Watched()
    watchedgvk: _Gvk = _Gvk()
    sender: _Sender = _Sender()


def decode(body: bytes) -> Received:
    """Returns the event of a body. Raises ValueError for anything else than an object of the known shape."""
    found = orjson.loads(body)
    if not isinstance(found, dict):
        raise ValueError("the event must be a JSON object")
    try:
        read = msgspec.convert({key.lower(): _lowered(value) for key, value in found.items()}, _Body)
    except msgspec.ValidationError as error:
        raise ValueError(f"the event: {error}") from None
    watched, gvk = read.watched, read.watchedgvk
    event = WatchedEvent(watched.namespace, watched.name, gvk.group, gvk.version, gvk.kind)
    return Received(event, read.sender.runtimeid)


def _lowered(value: object) -> object:
    return {key.lower(): item for key, item in value.items()} if isinstance(value, dict) else value
