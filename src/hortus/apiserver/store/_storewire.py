"""etcd's wire for the store: its failures are those of a store."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from hortus.apiserver.store.backend import ObjectTooLarge, StoreFailed
from hortus.etcd.wire import EtcdFailed, EtcdWire, Message, RequestTooLarge

_READ = "/v3/kv/range"
_LEADER_CHANGED = "leader changed"
"""etcd ends reads in flight with this when the leadership moves. The new leader is known then."""
_READS = 3
"""Attempts of a read whose leader changes; writes are never sent again here."""
_GAVE_UP = "request timed out"
"""etcd ends a write with this after 7 s. One that a follower passes to a leader that gives the leadership away is lost
(etcd 3.6.4, and 3 ms are enough for it)."""


class WriteUnsettled(StoreFailed):
    """etcd waits no longer for a write: it was carried out, or may be yet, or never will."""


class StoreWire(EtcdWire):
    """An `EtcdWire` that raises StoreFailed and ObjectTooLarge, and repeats reads whose leader changed."""

    async def call(self, path: str, body: Message) -> Message:
        for attempt in range(_READS):
            try:
                return await super().call(path, body)
            except EtcdFailed as error:
                if path != _READ or _LEADER_CHANGED not in error.words or attempt + 1 == _READS:
                    raise _mapped(error) from error
        raise AssertionError("the last attempt returns or raises")

    async def watch(self, body: Message) -> AsyncGenerator[Message, None]:
        try:
            async for message in super().watch(body):
                yield message
        except EtcdFailed as error:
            raise _mapped(error) from error


def _mapped(error: EtcdFailed) -> StoreFailed:
    if isinstance(error, RequestTooLarge):
        return ObjectTooLarge(str(error))
    return (WriteUnsettled if _GAVE_UP in error.words else StoreFailed)(str(error))
