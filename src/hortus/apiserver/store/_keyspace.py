"""The layout of keys and values in etcd, which all servers of one root share.

**Keys.** Below the root, `objects/<bucket>:<name>` holds an object and `last` is written by every transaction: its
revision is that of the last write of any server, and one watch on the root sees all. `last` also holds the final state
of a deleted object, or the prefix of a dropped cluster. `drops/<prefix>` is written when that is dropped, for reads of
the past. `format` holds the version of this layout.

**Values** are kept in their two halves; the revision is inserted between them at reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hortus.apiserver.store.backend import StoredRecord, StoreKey, Value
from hortus.etcd.wire import Message, number, raw, text

FORMAT = b"1"
"""Version of this layout, as `format` holds it."""
FINAL, DROP = b"f", b"d"
"""The first byte of a note in `last`: the final state of the deleted object follows, or the prefix of a dropped
cluster."""

_LONGEST_LENGTH = 10
"""Digits of a length that may be one of ours; Python refuses to read numbers of thousands."""


class Keyspace:
    """The keys below one root."""

    def __init__(self, root: str) -> None:
        self.root = root.encode()
        self.objects = self.root + b"objects/"
        self.drops = self.root + b"drops/"
        self.last = self.root + b"last"
        self.format = self.root + b"format"

    def path(self, key: StoreKey) -> bytes:
        """The key of an object in etcd. Raises ValueError when its bucket's name has a colon."""
        if ":" in key.bucket:
            raise ValueError(f"bucket {key.bucket!r} has a colon; etcd's keys need it to tell bucket from name")
        return self.objects + f"{key.bucket}:{key.name}".encode()

    def key(self, entry: Message) -> StoreKey | None:
        """The object's key of an entry; None when it is no object's entry."""
        path = raw(entry, "key")
        if not path.startswith(self.objects) or b":" not in path:
            return None
        try:
            bucket, _, name = path[len(self.objects) :].decode().partition(":")
        except UnicodeDecodeError:
            return None
        return StoreKey(bucket, name)

    def records(self, entries: Iterable[Message]) -> Sequence[StoredRecord]:
        """The objects among etcd's entries; entries that Hortus did not write are skipped."""
        records = []
        for entry in entries:
            key, revision = self.key(entry), number(entry, "mod_revision")
            value = spliced(raw(entry, "value"), revision)
            if key is not None and value is not None:
                records.append(StoredRecord(key.bucket, key.name, value, revision))
        return records


def packed(value: Value) -> bytes:
    """`<length of head>:<head><tail>`"""
    return b"%d:%s%s" % (len(value.head), value.head, value.tail)


def spliced(stored: bytes, revision: int) -> bytes | None:
    """The object in a `packed` value, with that revision; None when the value has another form."""
    length, colon, halves = stored.partition(b":")
    if not colon or not length.isdigit() or len(length) > _LONGEST_LENGTH:
        return None
    cut = int(length)
    return Value(halves[:cut], halves[cut:]).at(revision)


def writing(where: bytes, value: bytes) -> Message:
    """The part of a transaction that writes."""
    return {"request_put": {"key": text(where), "value": text(value)}}


def revision_is(where: bytes, expected: int) -> Message:
    """The part of a transaction that compares; 0 is the revision of a missing key."""
    return {"key": text(where), "target": "MOD", "result": "EQUAL", "mod_revision": expected}
