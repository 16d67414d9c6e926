"""The seam between the API server and what keeps its objects: a dozen methods, as etcd would answer them.

A store is one ordered history. Every commit gets the next revision; revisions are global to the store, never reused
and never go back, also not over a crash. Objects are bytes. Keys are split in two: a `bucket` (one kind of one logical
cluster, `<cluster>/<group or core>/<plural>`) and the rest (`<namespace>/<name>`, or `/<name>` without namespace);
lists and watches are always within one bucket, which is what makes thousands of logical clusters cheap.

An object's own resourceVersion is its revision, which is known only when it is committed. So writers hand over the
bytes in two halves and the store puts the decimal revision between them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import NamedTuple, Protocol


class Key(NamedTuple):
    bucket: str
    name: str


class Value(NamedTuple):
    """Encoded object, cut where its resourceVersion's digits stand."""

    head: bytes
    tail: bytes

    def at(self, revision: int) -> bytes:
        return b"%s%d%s" % (self.head, revision, self.tail)


class Record(NamedTuple):
    key: Key
    value: bytes
    revision: int
    """Revision of the last write of this object."""


class Change(NamedTuple):
    """One committed write. `value` is what is kept now, or None when deleted; `previous` what was kept before, or None.

    `final` is the last state of a deleted object with the deletion's own revision in it, as watchers are shown it.
    """

    revision: int
    key: Key
    value: bytes | None
    previous: bytes | None
    final: bytes | None = None


class Page(NamedTuple):
    records: Sequence[Record]
    revision: int
    """The revision this page is a snapshot of."""
    remaining: int
    """How many more records follow in that snapshot; 0 on the last page."""


class RevisionCompacted(Exception):
    """The revision asked for is older than what is kept."""


class RevisionInFuture(Exception):
    """The revision asked for has not been written yet."""


class Mismatch(Exception):
    """A write's expectation did not hold; `current` is what is there (None: nothing)."""

    def __init__(self, key: Key, current: Record | None) -> None:
        super().__init__(f"{key.bucket}/{key.name}")
        self.key = key
        self.current = current


class StoreFailed(Exception):
    """The store cannot write (disk full, connection lost): the write is not acknowledged and may or may not be kept."""


class Backend(Protocol):
    async def start(self) -> None:
        """Open, recover and be ready to serve. Raises StoreFailed with what a person can do about it."""

    async def close(self) -> None:
        """Finish what was acknowledged, end all watches, release files and connections."""

    @property
    def revision(self) -> int:
        """The last committed revision that reads can see."""

    @property
    def compacted(self) -> int:
        """History up to and including this revision is gone; the present state never is."""

    async def put(self, key: Key, value: Value, *, expected: int | None) -> Record:
        """Write when the object's revision is `expected` (0: it must not exist; None: whatever it is).

        Returns when the write is durable. Raises Mismatch, StoreFailed.
        """

    async def delete(self, key: Key, *, expected: int | None, final: Value | None = None) -> int:
        """Remove when the revision is `expected`; returns the revision of the removal. Raises Mismatch, StoreFailed."""

    async def get(self, key: Key) -> Record | None: ...

    async def list(self, bucket: str, *, prefix: str = "", after: str = "", limit: int = 0, revision: int = 0) -> Page:
        """Records of a bucket whose name begins with `prefix` and sorts after `after`; at most `limit`, 0 being all.

        `revision` 0 is now; another gives the state as it was then, or raises RevisionCompacted / RevisionInFuture.
        """

    async def count(self, bucket: str) -> int: ...

    async def buckets(self, prefix: str) -> Sequence[str]:
        """The names of non-empty buckets that begin with `prefix`, sorted."""

    async def drop(self, prefix: str) -> int:
        """Remove every object of all buckets that begin with `prefix`, without one change per object.

        For whole logical clusters: their watches end with RevisionCompacted. Returns how many objects went.
        """

    def watch(self, bucket: str, *, after: int, prefix: str = "") -> AsyncIterator[Sequence[Change]]:
        """Every change of the bucket with a revision above `after`, in order, none twice, in batches as they commit.

        Raises RevisionCompacted when `after` is older than the history or when this reader fell too far behind.
        """

    async def compact(self, revision: int) -> None:
        """Forget history up to `revision`."""
