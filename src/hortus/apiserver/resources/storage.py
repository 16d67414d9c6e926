"""The store as writers see it, and its commits as caches see them.

Caches that must be current for clients (kinds of CRDs, states of namespaces, RBAC rules) listen here. They get every
commit in order of revision, before its writer is answered: this process's own writes and, where several servers share a
store, those of the others. So an acknowledged write has taken effect here, and a write that another server acknowledged
takes effect before it can be read here. Listeners must be quick; long work is queued by key and reads the store itself.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Unpack

from hortus.apiserver.store.backend import (
    Backend,
    Commit,
    ListOptions,
    RecordPage,
    StoredRecord,
    StoreKey,
    StoreWatch,
    Value,
)
from hortus.kube.errors import RequestEntityTooLarge

Listener = Callable[[Commit], None]
LARGEST_OBJECT = 1536 * 1024 - 2048
"""Bytes; etcd accepts requests of 1.5 MiB; the rest is for the request around the object. The same for every store."""

_log = logging.getLogger("hortus.apiserver.storage")


class Storage:
    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._listeners: dict[str, list[Listener]] = {}
        self._everything: list[Listener] = []
        self._forgetting: list[Callable[[str], None]] = []
        backend.follow(self._notify, self._dropped)

    def listen(self, listener: Listener, suffix: str = "") -> None:
        """Calls `listener` with each change of the kind `<group or core>/<plural>` in any cluster, or with every
        change."""
        if suffix:
            self._listeners.setdefault(suffix, []).append(listener)
        else:
            self._everything.append(listener)

    def on_dropped(self, forget: Callable[[str], None]) -> None:
        """Calls `forget` with a logical cluster's name when all its objects were dropped."""
        self._forgetting.append(forget)

    @property
    def revision(self) -> int:
        return self.backend.revision

    async def get(self, key: StoreKey, *, fresh: bool = True) -> StoredRecord | None:
        return await self.backend.get(key, fresh=fresh)

    async def put(self, key: StoreKey, value: Value, *, replaced: StoredRecord | None) -> StoredRecord:
        """Writes over `replaced` (None: the object must not exist).

        Raises Mismatch when the stored state is another one, RequestEntityTooLarge.
        """
        if len(value.head) + len(value.tail) > LARGEST_OBJECT:
            raise RequestEntityTooLarge(f"the object is larger than the {LARGEST_OBJECT} bytes that can be stored")
        return await self.backend.put(key, value, expected=0 if replaced is None else replaced.revision)

    async def delete(self, replaced: StoredRecord, final: Value) -> int:
        """Removes exactly this state of an object. Raises Mismatch when it has changed or was removed."""
        return await self.backend.delete(replaced.key, expected=replaced.revision, final=final)

    async def list(self, bucket: str, **options: Unpack[ListOptions]) -> RecordPage:
        return await self.backend.list(bucket, **options)

    async def survey(self, look: Callable[[StoredRecord], object], suffix: str = "") -> None:
        """Calls `look` with every object of the kind `suffix` in any cluster, or with every object.

        For parts that start from the stored objects. An object for which `look` fails is logged and skipped, so that it
        only affects its author.
        """
        for bucket in await self.buckets(""):
            if suffix and not bucket.endswith(f"/{suffix}"):
                continue
            for record in (await self.list(bucket)).records:
                try:
                    look(record)
                except Exception:
                    _log.exception(
                        "an object is not understood and left out",
                        extra={"bucket": record.key.bucket, "object": record.key.name},
                    )

    async def count(self, bucket: str) -> int:
        return await self.backend.count(bucket)

    async def buckets(self, prefix: str) -> Sequence[str]:
        return await self.backend.buckets(prefix)

    def watch(self, bucket: str, *, after: int, prefix: str = "") -> StoreWatch:
        return self.backend.watch(bucket, after=after, prefix=prefix)

    def _notify(self, change: Commit) -> None:
        bucket = change.bucket
        for listener in self._listeners.get(bucket[bucket.index("/") + 1 :], ()):
            _notify_one(listener, change)
        for listener in self._everything:
            _notify_one(listener, change)

    def _dropped(self, prefix: str) -> None:
        for forget in self._forgetting:
            forget(prefix.rstrip("/"))


def _notify_one(listener: Listener, change: Commit) -> None:
    try:
        listener(change)
    except Exception:
        # The commit is made, and the other listeners must get it even when one fails.
        _log.exception(
            "a cache could not follow a change", extra={"bucket": change.key.bucket, "object": change.key.name}
        )
