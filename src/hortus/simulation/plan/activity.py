"""The writes in a fork as they happen: when the last one was that changed something, and objects that go in circles.

A write counts when it brings content that is new. One that only brings times (a heartbeat) does not, nor one that
brings back a state that the object had before, once that has happened several times: two writers then undo each
other's work, and would never rest. What is written again and again after a while, as a token that is renewed, counts
three times: it goes on for ever, and is reported as recurring.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

import orjson

from hortus.apiserver.store.backend import Commit, StoreKey
from hortus.simulation.fork import Fork
from hortus.simulation.fork.store import UNREAD
from hortus.simulation.plan.differences import FieldDifference, differences

_ROUNDS: Final = 4
"""Times that an object comes back to a state until that is called a loop; Kubernetes' own controllers need two."""
_STILL: Final = 3600.0
"""Seconds without a write after which a loop is over."""
_REPEATS: Final = 2
LULL: Final = 600.0
"""Seconds without a write after which the next one begins another burst."""
_WHILE: Final = 300.0
"""Seconds; operations report their progress more often, and are over some time."""
_TIME: Final = re.compile(rb'"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"')
_COUNTER: Final = re.compile(
    rb'"(observedGeneration|deprecated\.daemonset\.template\.generation|deployment\.kubernetes\.io/revision)":"?\d+"?'
)
"""Grows with each write of the spec, also with one that brings an old spec back."""
_CLUSTERS: Final = "_"
"""Begins the names of buckets that belong to the server itself."""


class Burst(NamedTuple):
    """Writes that follow each other, from the first to the last, in seconds of the fork's monotonic time."""

    begin: float
    end: float


def busy(bursts: Iterable[Burst]) -> list[Burst]:
    """Bursts of several objects, in order, those that meet as one."""
    found: list[Burst] = []
    for one in sorted(bursts):
        if found and one.begin - found[-1].end <= LULL:
            found[-1] = Burst(found[-1].begin, max(found[-1].end, one.end))
        else:
            found.append(one)
    return found


class Loop(NamedTuple):
    """An object that goes in circles."""

    cluster: str
    kind: str
    name: str
    writes: int
    managers: tuple[str, ...]
    """The field managers that write it. One that only removes fields is none."""
    differences: tuple[FieldDifference, ...]
    """The last change of each field that goes back and forth."""


class Recurring(NamedTuple):
    """An object that is written again and again, with something new each time."""

    cluster: str
    kind: str
    name: str
    writes: int
    period: float
    """Seconds between the last two writes."""


class _Track:
    __slots__ = (
        "at",
        "circle",
        "fields",
        "last",
        "managers",
        "period",
        "previous",
        "repeats",
        "returns",
        "seen",
        "writes",
    )

    def __init__(self) -> None:
        self.seen: dict[bytes, int] = {}
        self.last: bytes = b""
        self.returns = 0
        self.writes = 0
        self.at = 0.0
        self.period = 0.0
        self.fields: frozenset[str] = frozenset()
        self.repeats = 0
        """Times in a row that the same fields were written, after a while."""
        self.previous: tuple[bytes | None, bytes] = (None, b"")
        self.circle: dict[str, FieldDifference] = {}
        """By path, the last change of each field by a step that brought an old state back."""
        self.managers: set[str] = set()
        """The field managers of the object before and after such steps."""


class Activity:
    """Follows the writes of one fork."""

    def __init__(self, fork: Fork) -> None:
        self._fork = fork
        self._tracks: dict[StoreKey, _Track] = {}
        self.last = fork.clock.monotonic()
        """When something was written last that is new, in seconds of the fork's monotonic time."""
        self.latest: StoreKey | None = None
        """The object of that write."""
        self.writes = 0
        self.bursts: dict[StoreKey, list[Burst]] = {}
        """By object, when such writes were."""
        self.on_write: list[Callable[[Commit], None]] = []
        fork.server.context.storage.listen(self._changed)

    def begin(self) -> None:
        """The change comes now: counts begin again, and what recurs is still known."""
        self.bursts.clear()
        self.writes, self.last = 0, self._fork.clock.monotonic()

    @property
    def loops(self) -> list[Loop]:
        """The objects that go in circles still, as far as that is seen."""
        since = self._fork.clock.monotonic() - _STILL
        return [
            self._loop(key, track)
            for key, track in sorted(self._tracks.items())
            if track.returns >= _ROUNDS and track.at >= since
        ]

    @property
    def repeated(self) -> Mapping[StoreKey, frozenset[str]]:
        """The objects of which the same fields were written at least twice, with a while in between, and the fields."""
        return {key: track.fields for key, track in self._tracks.items() if track.repeats}

    @property
    def recurring(self) -> list[Recurring]:
        """The objects that are written again and again."""
        return [
            Recurring(
                key.cluster,
                str(_decoded(track.previous[1]).get("kind") or key.bucket),
                key.name.lstrip("/"),
                track.writes,
                track.period,
            )
            for key, track in sorted(self._tracks.items())
            if track.repeats >= _REPEATS
        ]

    def _changed(self, change: Commit) -> None:
        key = change.key
        cluster, _, suffix = key.bucket.partition("/")
        if cluster.startswith(_CLUSTERS) or suffix in UNREAD or self._fork.store.is_filling:
            return
        for heard in self.on_write:
            heard(change)
        track = self._tracks.setdefault(key, _Track())
        digest = _digest(change.value)
        if not track.last:
            before = _digest(change.previous)
            if digest == before:
                return
            track.seen[before] = 1
        elif digest == track.last:
            return
        track.last = digest
        track.writes += 1
        track.previous = (change.previous, change.value or b"")
        now = self._fork.clock.monotonic()
        if now - track.at > _STILL:
            track.returns = 0
            track.circle.clear()
            track.managers.clear()
        self._compare(track, now, returned=digest in track.seen)
        track.seen[digest] = track.seen.get(digest, 0) + 1
        if track.returns >= _ROUNDS or track.repeats >= _REPEATS:
            return
        self.last, self.latest = now, key
        self.writes += 1
        bursts = self.bursts.setdefault(key, [])
        if bursts and now - bursts[-1].end <= LULL:
            bursts[-1] = Burst(bursts[-1].begin, now)
        else:
            bursts.append(Burst(now, now))

    def _compare(self, track: _Track, now: float, *, returned: bool) -> None:
        """Notes whether the same fields are written as before, a while later, or an old state was brought back."""
        before, after = (_decoded(one) for one in track.previous)
        found = {one.path: one for one in differences(before, after)}
        fields = frozenset(found)
        if returned:
            track.returns += 1
            track.circle |= found
            track.managers |= _managers(before) | _managers(after)
        track.period, track.at = now - track.at, now
        repeated = fields == track.fields and track.period >= _WHILE
        track.repeats, track.fields = track.repeats + 1 if repeated else 0, fields

    def _loop(self, key: StoreKey, track: _Track) -> Loop:
        old, new = (_decoded(one) for one in track.previous)
        cluster, _, suffix = key.bucket.partition("/")
        kind = str(new.get("kind") or old.get("kind") or suffix)
        managers, fields = tuple(sorted(track.managers)), tuple(track.circle[path] for path in sorted(track.circle))
        return Loop(cluster, kind, key.name.lstrip("/"), track.writes, managers, fields)


def _managers(obj: Mapping[str, Any]) -> set[str]:
    return {str(entry.get("manager")) for entry in (obj.get("metadata") or {}).get("managedFields") or ()}


def _decoded(value: bytes | None) -> Mapping[str, Any]:
    found: Mapping[str, Any] = orjson.loads(value) if value else {}
    return found


def _digest(value: bytes | None) -> bytes:
    """A digest of what an object says, without times, counters and the bookkeeping of the server."""
    if not value:
        return b"gone"
    obj = orjson.loads(value)
    metadata = obj["metadata"]
    for field in ("resourceVersion", "managedFields", "generation"):
        metadata.pop(field, None)
    text = _COUNTER.sub(b'"counter":0', _TIME.sub(b'"time"', orjson.dumps(obj)))
    return hashlib.blake2b(text, digest_size=12).digest()
