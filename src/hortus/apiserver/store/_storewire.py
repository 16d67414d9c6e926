"""etcd's wire for the store: its failures are those of a store."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from hortus.apiserver.store.backend import ObjectTooLarge, StoreFailed
from hortus.etcd.wire import EtcdFailed, EtcdWire, Message, RequestTooLarge


class StoreWire(EtcdWire):
    """An `EtcdWire` that raises StoreFailed and ObjectTooLarge."""

    async def call(self, path: str, body: Message) -> Message:
        try:
            return await super().call(path, body)
        except EtcdFailed as error:
            raise _mapped(error) from error

    async def watch(self, body: Message) -> AsyncGenerator[Message, None]:
        try:
            async for message in super().watch(body):
                yield message
        except EtcdFailed as error:
            raise _mapped(error) from error


def _mapped(error: EtcdFailed) -> StoreFailed:
    return ObjectTooLarge(str(error)) if isinstance(error, RequestTooLarge) else StoreFailed(str(error))
