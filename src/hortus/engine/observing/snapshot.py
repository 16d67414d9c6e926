"""The state of a process of controllers, as plain values: queues, work, failures, caches, memory.

Made only when asked for, on the event loop, from what is there anyway; walking a cache for its size takes a sample of
it. Keys of objects are shown and nothing that is in them.
"""

from __future__ import annotations

import asyncio
import gc
import heapq
import os
import sys
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

import msgspec

from hortus.engine.cache import Cache
from hortus.engine.controller import Controller
from hortus.engine.manager import Manager
from hortus.engine.queue import Priority
from hortus.kube.objects import Object, ObjectKey, format_time

MOST_KEYS = 100
"""The most entries of each list; the total is always given."""
SAMPLE = 64
"""Objects whose size is measured for that of a cache."""
_PAGE = os.sysconf("SC_PAGE_SIZE")


class TimedKey(msgspec.Struct, frozen=True):
    """A key and a number of seconds: in work, until due, or of the longest reconcile."""

    key: str
    seconds: float


class Failing(msgspec.Struct, frozen=True):
    key: str
    times: int
    """In a row."""
    due_in: float | None


class QueueState(msgspec.Struct, frozen=True):
    name: str
    workers: int
    waiting: Mapping[str, int]
    """The number of keys that wait now, by priority."""
    next: list[str]
    """The first of those that wait."""
    running: list[TimedKey]
    """Longest first."""
    delayed: int
    due: list[TimedKey]
    """The next whose time comes."""
    failing: list[Failing]
    """Most often first."""
    failing_count: int
    slowest: list[TimedKey]
    """The longest reconciles since the start, one of each object."""


class CacheState(msgspec.Struct, frozen=True):
    name: str
    objects: int
    synced: bool
    bytes: int
    """Estimated from a sample."""
    problem: str


class Snapshot(msgspec.Struct, frozen=True):
    at: str
    started: bool
    queues: list[QueueState]
    caches: list[CacheState]
    tasks: int
    memory_bytes: int
    """Resident."""
    collections: list[int]
    """The collections of the garbage collector, by generation."""
    python: str


def snapshot(manager: Manager) -> Snapshot:
    """The present state of `manager`."""
    caches = [(cache, problem) for each in manager.all_caches for cache, problem in each.problems()]
    return Snapshot(
        at=format_time(manager.clock.now()),
        started=manager.started,
        queues=[queue_state(controller) for controller in manager.controllers],
        caches=sorted((cache_state(*pair) for pair in caches), key=lambda state: -state.bytes),
        tasks=len(asyncio.all_tasks()),
        memory_bytes=resident(),
        collections=[generation["collections"] for generation in gc.get_stats()],
        python=sys.version.partition(" ")[0],
    )


def queue_state(controller: Controller) -> QueueState:
    queue = controller.queue
    waiting, now = queue.waiting, controller.clock.monotonic()
    counts = {priority.name.lower(): 0 for priority in Priority}
    for priority in waiting.values():
        counts[Priority(priority).name.lower()] += 1
    failures = queue.all_failures
    return QueueState(
        name=controller.name,
        workers=controller.workers,
        waiting=counts,
        next=[str(key) for key in heapq.nsmallest(MOST_KEYS, waiting, key=waiting.__getitem__)],
        running=_longest((str(key), now - since) for key, since in queue.running.items()),
        delayed=queue.delayed,
        due=[TimedKey(str(key), seconds) for key, seconds in queue.next_due(MOST_KEYS)],
        failing=[_failing(controller, key) for key in heapq.nlargest(MOST_KEYS, failures, key=failures.__getitem__)],
        failing_count=len(failures),
        slowest=_longest((str(key), seconds) for key, seconds in controller.slowest.items()),
    )


def _failing(controller: Controller, key: ObjectKey) -> Failing:
    return Failing(str(key), controller.queue.failures(key), controller.queue.due_in(key))


def _longest(pairs: Iterable[tuple[str, float]]) -> list[TimedKey]:
    return [TimedKey(*pair) for pair in heapq.nlargest(MOST_KEYS, pairs, key=lambda pair: pair[1])]


def cache_state(cache: Cache, problem: Exception | None) -> CacheState:
    return CacheState(cache.name, len(cache), cache.has_synced, size_of(cache), str(problem or ""))


def size_of(cache: Cache) -> int:
    """Bytes of all objects, estimated from a sample of those that have been there longest."""
    sample = list(islice(cache.values(), SAMPLE))
    seen: set[int] = set()
    return sum(_deep(obj, seen) for obj in sample) * len(cache) // len(sample) if sample else 0


def _deep(value: object, seen: set[int]) -> int:
    """Bytes of a tree of JSON; what is shared counts once."""
    if id(value) in seen:
        return 0
    seen.add(id(value))
    size = sys.getsizeof(value)
    if isinstance(value, dict):
        size += sum(_deep(key, seen) + _deep(part, seen) for key, part in value.items())
    elif isinstance(value, list | tuple):
        size += sum(_deep(part, seen) for part in value)
    return size


def resident() -> int:
    """Bytes of memory that this process has; 0 where the system does not tell."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE
    except OSError:
        return 0


def as_object(state: Snapshot) -> Object:
    """The snapshot as JSON takes it."""
    made: Object = msgspec.to_builtins(state)
    return made


__all__ = ["CacheState", "Failing", "QueueState", "Snapshot", "TimedKey", "as_object", "snapshot"]
