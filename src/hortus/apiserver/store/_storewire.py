"""etcd's wire for the store: its failures are those of a store."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from hortus.apiserver.store.backend import ObjectTooLarge, StoreFailed
from hortus.etcd.wire import EtcdFailed, EtcdWire, Message, RequestTooLarge

_READ = "/v3/kv/range"
_LEADER_CHANGED = "leader changed"
"""etcd ends reads in flight with this when the leadership moves. The new leader is known then."""
_READS = 3
"""Attempts of a read whose leader changes; writes are never sent again."""


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
    return ObjectTooLarge(str(error)) if isinstance(error, RequestTooLarge) else StoreFailed(str(error))
