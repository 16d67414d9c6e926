"""The interface between the API server and its store: a dozen methods with the semantics of etcd.

A store is one ordered history. Every commit gets the next revision; revisions are global to the store, never reused and
never decrease, also not after a crash. Objects are bytes. Keys are split in two: a `bucket` (one kind of one logical
cluster, `<cluster>/<group or core>/<plural>`) and the rest (`<namespace>/<name>`, or `/<name>` without namespace);
lists and watches are always within one bucket, which makes thousands of logical clusters cheap.

An object's own resourceVersion is its revision, which is known only when it is committed. So writers pass the bytes in
two halves and the store inserts the decimal revision between them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, Self, TypedDict, Unpack

import msgspec


class StoreKey(NamedTuple):
    bucket: str
    name: str

    @property
    def cluster(self) -> str:
        """The logical cluster that the object belongs to."""
        return self.bucket.partition("/")[0]


class Value(NamedTuple):
    """An encoded object, split at the digits of its resourceVersion."""

    head: bytes
    tail: bytes
    leaving: bool = False
    """The object is being deleted: this write advances the deletion, and is accepted where only deletions still have
    space."""

    def at(self, revision: int) -> bytes:
        return b"%s%d%s" % (self.head, revision, self.tail)


class StoredRecord(msgspec.Struct, frozen=True, gc=False):
    """One stored object. Not a tuple: there are many, which must be small and not burden the garbage collector."""

    bucket: str
    name: str
    value: bytes
    revision: int
    """Revision of the last write of this object."""

    @property
    def key(self) -> StoreKey:
        return StoreKey(self.bucket, self.name)


class Commit(msgspec.Struct, frozen=True, gc=False):
    """One committed write: `record` is stored now (None: deleted), `replaced` was stored before (None: nothing).

    `final` is the last state of a deleted object with the deletion's own revision in it, as watchers are shown it.
    """

    revision: int
    record: StoredRecord | None
    replaced: StoredRecord | None
    final: bytes | None = None

    @property
    def key(self) -> StoreKey:
        return StoreKey(self._either.bucket, self._either.name)

    @property
    def bucket(self) -> str:
        return self._either.bucket

    @property
    def name(self) -> str:
        return self._either.name

    @property
    def value(self) -> bytes | None:
        return None if self.record is None else self.record.value

    @property
    def previous(self) -> bytes | None:
        return None if self.replaced is None else self.replaced.value

    @property
    def _either(self) -> StoredRecord:
        either = self.record or self.replaced
        assert either is not None, "a change writes or removes"
        return either


class RecordPage(NamedTuple):
    records: Sequence[StoredRecord]
    revision: int
    """The revision this page is a snapshot of."""
    remaining: int
    """The number of further records in that snapshot; 0 on the last page."""
    state: object | None = None
    """A token of a whole bucket or a prefix in it: the same object until the bucket changes."""


class StoreUsage(NamedTuple):
    objects: int
    bytes: int
    """Sum of the lengths of the objects' values."""


class RevisionCompacted(Exception):
    """The requested revision is older than the history."""


class RevisionInFuture(Exception):
    """The requested revision has not been written yet."""


class Mismatch(Exception):
    """A write's expectation did not hold; `current` is the stored state (None: nothing)."""

    def __init__(self, key: StoreKey, current: StoredRecord | None) -> None:
        super().__init__(f"{key.bucket}/{key.name}")
        self.key = key
        self.current = current


class StoreFailed(Exception):
    """The store cannot write (disk full, connection lost): the write is not acknowledged and may or may not be kept."""


class ObjectTooLarge(StoreFailed):
    """The store accepts other writes, but none of this size."""


class StoreWatch(Protocol):
    """An open watch: iterate for batches of changes, `aclose` when done (`contextlib.aclosing` does).

    Cancelling a wait for the next batch loses nothing; the watch stays open and the next wait continues it.
    """

    @property
    def seen(self) -> int:
        """The revision up to which all changes were delivered; a bookmark after the last batch may have it."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> Sequence[Commit]:
        """The changes since the last batch, in order. Ends when the store closes; raises RevisionCompacted."""

    async def aclose(self) -> None:
        """Stop listening; a wait in progress ends."""


Follower = Callable[[Commit], None]
"""Called with one commit. It must be quick and may not fail."""


class ListOptions(TypedDict, total=False):
    """The options of `Backend.list`; the default of each is everything, now."""

    prefix: str
    """Names begin with it."""
    after: str
    """Names sort after it."""
    limit: int
    """The most records of a page; 0 for all."""
    revision: int
    """The state at this revision; 0 for the present."""
    fresh: bool
    """False: the state known to this process, also while the rest of a shared store is unreachable."""


class Backend(Protocol):
    """A store. Reads of one that processes share see the acknowledged writes of all, or raise StoreFailed."""

    async def start(self) -> None:
        """Opens and recovers the store. Raises StoreFailed, which names the fix."""

    async def close(self) -> None:
        """Completes acknowledged writes, ends all watches, releases files and connections."""

    @property
    def revision(self) -> int:
        """The last committed revision that reads can see."""

    async def sync(self) -> int:
        """Makes reads and watches see everything that was committed anywhere before this call; returns the revision.

        Called for revisions that a client got from another server on the same store, before they count as future.
        Raises StoreFailed when the rest of the store cannot be reached.
        """

    async def check(self) -> None:
        """Raises StoreFailed with the cause where the next write would fail, as far as that is known without a
        write."""

    def follow(self, follower: Follower, dropped: Callable[[str], None]) -> None:
        """Calls `follower` with every change from now on, of any writer, and `dropped` with the prefix of every drop.

        The calls are in order of revision, in the step in which reads begin to see the change: before its writer is
        answered and before any watch delivers it. A change that this process missed (it was cut off from a shared store
        for longer than the history) is reported when it is found, as the difference that it made.
        """

    @property
    def compacted(self) -> int:
        """History above this revision is complete; older history is partly or wholly removed. The present state never
        is."""

    async def put(self, key: StoreKey, value: Value, *, expected: int | None) -> StoredRecord:
        """Writes when the object's revision is `expected` (0: it must not exist; None: any).

        Returns when the write is durable and visible. Raises Mismatch, StoreFailed.
        """

    async def delete(self, key: StoreKey, *, expected: int | None, final: Value | None = None) -> int:
        """Removes when the revision is `expected` (None: any); returns the revision of the removal.

        Raises Mismatch, also when there is nothing to remove (its `current` is then None), and StoreFailed.
        """

    async def get(self, key: StoreKey, *, fresh: bool = True) -> StoredRecord | None:
        """Without `fresh`, the state known to this process, also while the rest of a shared store is unreachable."""

    async def list(self, bucket: str, **options: Unpack[ListOptions]) -> RecordPage:
        """Records of a bucket, sorted by name. Raises RevisionCompacted, RevisionInFuture."""

    async def count(self, bucket: str) -> int: ...

    async def buckets(self, prefix: str) -> Sequence[str]:
        """The names of non-empty buckets that begin with `prefix`, sorted."""

    async def usage(self, prefix: str) -> StoreUsage:
        """The usage of all buckets with `prefix`, for quotas."""

    async def drop(self, prefix: str, *, guard: StoreKey | None = None, expected: int = 0) -> int:
        """Removes every object of all buckets with `prefix`, without one change per object.

        For whole logical clusters: their watches end with RevisionCompacted. Returns the number of removed objects.
        With a `guard` only while that object is at `expected` (0: does not exist), else raises Mismatch, so that none
        of several servers empties a cluster that another has made again.
        """

    def watch(self, bucket: str, *, after: int, prefix: str = "") -> StoreWatch:
        """Every change of the bucket with a revision above `after`, in order, none twice, in batches as they commit.

        Listens from this call on, and raises known problems here: RevisionCompacted when `after` is older than the
        bucket's history, RevisionInFuture. Later RevisionCompacted means that this reader fell too far behind, or that
        the bucket was dropped.
        """

    async def compact(self, revision: int) -> None:
        """Drops the history up to and including `revision`."""
