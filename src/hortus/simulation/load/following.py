"""Sees from one watch when objects of a load become what is waited for.

Of each object a few values are kept, not the object: 20,000 of them take some MiB. A watch that breaks, which faults
may want, is followed by a new list, so nothing that happened in between is missed; only its time is known later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import NamedTuple

from hortus.engine.backoff import Backoff
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import Gone, KubeError
from hortus.kube.objects import Object, Resource

_RETRY = Backoff(first=0.1, cap=1.0, jitter=0.5)
"""Short: what it adds to a time that is measured is ours, not the system's."""


class Seen(NamedTuple):
    """The facts that are kept of an object."""

    version: int
    """Its resourceVersion; those of one collection can be compared (KEP-5504)."""
    uid: str
    ready: bool
    annotations: frozenset[str]
    """Keys of those that somebody waits for to go."""
    words: str
    """The object's own message, for failures."""


Predicate = Callable[[Seen | None], bool]
_Waiting = tuple[Predicate, "asyncio.Future[float]"]


class Follower:
    """The objects of one kind that `labels` select and `wanted` lets through."""

    def __init__(
        self,
        client: Client,
        resource: Resource,
        *,
        labels: str,
        clock: Clock,
        ready: Callable[[Object], bool] = lambda obj: True,
        wanted: Callable[[Object], bool] = lambda obj: True,
        annotations: frozenset[str] = frozenset(),
        metadata_only: bool = False,
    ) -> None:
        self._client = client
        self._resource = resource
        self._labels = labels
        self._clock = clock
        self._ready = ready
        self._wanted = wanted
        self._annotations = annotations
        self._metadata_only = metadata_only
        self._random = Random()  # noqa: S311 - jitter
        self._version = ""
        self._seen: dict[str, Seen] = {}
        self._waiting: dict[str, list[_Waiting]] = {}
        self.synced = asyncio.Event()
        self.ready = 0
        """The number of objects that are ready now."""
        self.events = 0

    @property
    def count(self) -> int:
        """The number of objects that exist now."""
        return len(self._seen)

    def get(self, name: str) -> Seen | None:
        """The known state of the object."""
        return self._seen.get(name)

    async def until(self, name: str, predicate: Predicate) -> float:
        """The monotonic time at which `predicate` was seen to hold of the object, which may be now."""
        if predicate(self._seen.get(name)):
            return self._clock.monotonic()
        future: asyncio.Future[float] = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(name, [])
        waiting.append((predicate, future))
        try:
            return await future
        finally:
            self._waiting[name] = [one for one in self._waiting.get(name, ()) if one[1] is not future]
            if not self._waiting[name]:
                del self._waiting[name]

    async def run(self) -> None:
        """List and watch until cancelled."""
        failures = 0
        while True:
            try:
                self._version = self._version or await self._list()
                self.synced.set()
                failures = await self._watch(self._version)
            except Gone:
                self._version = ""
            except (KubeError, OSError):
                await self._clock.sleep(_RETRY.delay(failures, random=self._random))
                failures += 1

    async def _list(self) -> str:
        listed = await self._client.list(self._resource, labels=self._labels, metadata_only=self._metadata_only)
        there = set()
        for obj in listed.items:
            there.add(obj["metadata"]["name"])
            self._take(obj)
        for name in self._seen.keys() - there:
            self._lose(name)
        return listed.resource_version

    async def _watch(self, version: str) -> int:
        """Watch until it ends in good order; where it stopped is kept. Returns how many failures that leaves: none."""
        watch = self._client.watch(
            self._resource, resource_version=version, labels=self._labels, metadata_only=self._metadata_only
        )
        async with watch:
            async for event in watch:
                self.events += 1
                self._version = watch.resource_version
                if event.type in ("ADDED", "MODIFIED"):
                    self._take(event.object)
                elif event.type == "DELETED":
                    self._lose(event.object["metadata"]["name"])
        return 0

    def _take(self, obj: Object) -> None:
        metadata = obj["metadata"]
        name = metadata["name"]
        if not self._wanted(obj):
            return
        ready = not metadata.get("deletionTimestamp") and self._ready(obj)
        annotations = self._annotations & (metadata.get("annotations") or {}).keys()
        words = "" if ready else _words(obj)
        self._change(name, Seen(int(metadata["resourceVersion"]), metadata["uid"], ready, annotations, words))

    def _lose(self, name: str) -> None:
        if name in self._seen:
            self._change(name, None)

    def _change(self, name: str, seen: Seen | None) -> None:
        before = self._seen.get(name)
        self.ready += (seen is not None and seen.ready) - (before is not None and before.ready)
        if seen is None:
            del self._seen[name]
        else:
            self._seen[name] = seen
        for predicate, future in self._waiting.get(name, ()):
            if not future.done() and predicate(seen):
                future.set_result(self._clock.monotonic())


def _words(obj: Object) -> str:
    """The message of an object that is not ready, shortened."""
    status = obj.get("status") or {}
    said = [str(status["state"])] if isinstance(status.get("state"), str) else []
    said += [
        f"{one.get('type')}: {one.get('reason', '')} {one.get('message', '')}".strip()
        for one in status.get("conditions") or ()
        if str(one.get("status")) != "True"
    ]
    return "; ".join(said)[:300]
