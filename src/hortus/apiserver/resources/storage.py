"""The store as writers see it: every commit is told to listeners before its writer is answered.

Caches that a client may rely on at once (which kinds a CRD serves, which namespaces take objects, who may do what)
listen here, so a write that has been acknowledged has taken effect. Listeners must be quick and may not fail; whatever
takes time puts a key into a queue and looks at the store itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hortus.apiserver.store.backend import Backend, Change, Key, Page, Record, Value, Watch

Listener = Callable[[Change], None]


class Storage:
    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._listeners: dict[str, list[Listener]] = {}
        self._everything: list[Listener] = []

    def listen(self, listener: Listener, suffix: str = "") -> None:
        """Tell `listener` of each change of the kind `<group or core>/<plural>` in any cluster, or of every change."""
        if suffix:
            self._listeners.setdefault(suffix, []).append(listener)
        else:
            self._everything.append(listener)

    @property
    def revision(self) -> int:
        return self.backend.revision

    async def get(self, key: Key) -> Record | None:
        return await self.backend.get(key)

    async def put(self, key: Key, value: Value, *, replaced: Record | None) -> Record:
        """Write over `replaced` (None: the object must not exist). Raises Mismatch when something else is there."""
        record = await self.backend.put(key, value, expected=0 if replaced is None else replaced.revision)
        self._tell(Change(record.revision, record, replaced))
        return record

    async def delete(self, replaced: Record, final: Value) -> int:
        """Remove exactly this state of an object. Raises Mismatch when it has changed or gone."""
        revision = await self.backend.delete(replaced.key, expected=replaced.revision, final=final)
        self._tell(Change(revision, None, replaced, final.at(revision)))
        return revision

    async def list(self, bucket: str, *, prefix: str = "", after: str = "", limit: int = 0, revision: int = 0) -> Page:
        return await self.backend.list(bucket, prefix=prefix, after=after, limit=limit, revision=revision)

    async def count(self, bucket: str) -> int:
        return await self.backend.count(bucket)

    async def buckets(self, prefix: str) -> Sequence[str]:
        return await self.backend.buckets(prefix)

    def watch(self, bucket: str, *, after: int, prefix: str = "") -> Watch:
        return self.backend.watch(bucket, after=after, prefix=prefix)

    def _tell(self, change: Change) -> None:
        stored = change.record or change.replaced
        assert stored is not None, "a change writes or removes"
        bucket = stored.bucket
        for listener in self._listeners.get(bucket[bucket.index("/") + 1 :], ()):
            listener(change)
        for listener in self._everything:
            listener(change)
