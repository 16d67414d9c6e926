"""The demo objects of `hortus up`: created at each start where they do not exist, and followed until they are Ready.

The domains describe them. They are created and never changed or deleted: an object stays as people edit it, and returns
at the next start after people delete it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

import structlog

from hortus.domains import DemoFleet, all_domains
from hortus.engine import Caches
from hortus.engine.cache import Change
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import AlreadyExists, KubeError
from hortus.kube.objects import Object, ObjectKey, Resource, key_of

FIRST = 20
"""Objects that exist when the start is reported; the others follow. Creating these takes less than 0.1 s."""
_PARALLEL = 16
_PAUSE = 2.0
"""Seconds between two attempts while the API server refuses objects."""
_PERIOD = 1.0
"""Seconds between two reports of progress."""
_STEPS = 10
"""The most reports of progress."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)
Report = Callable[[str, bool], None]
"""Takes the progress as text, and True with the last one."""


class Demo:
    """The demo objects of all domains for the clusters of one fleet."""

    def __init__(self, client: Client, fleet: DemoFleet, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        domains = all_domains()
        objects = [entry for domain in domains for entry in domain.demo(fleet)]
        self._objects = sorted(objects, key=lambda entry: entry[0].namespaced)
        self._gate = asyncio.Semaphore(_PARALLEL)
        kinds = {resource for domain in domains for resource, kind in domain.kinds().items() if kind.FACTS.status}
        self._wanted: dict[Resource, set[ObjectKey]] = {}
        for resource, obj in self._objects:
            if resource in kinds:
                self._wanted.setdefault(resource, set()).add(key_of(obj))
        self._ready: dict[Resource, set[ObjectKey]] = {resource: set() for resource in self._wanted}
        self._changed = asyncio.Event()

    async def begin(self) -> None:
        """Create the first objects, namespaces before what lies in them. Raises KubeError."""
        namespaces = [entry for entry in self._objects if not entry[0].namespaced]
        for entries in (namespaces, self._objects[len(namespaces) : FIRST]):
            await asyncio.gather(*(self._create(*entry) for entry in entries))

    async def complete(self, report: Report) -> None:
        """Create the other objects, and report the progress until all are Ready."""
        await self._create_all(self._objects[FIRST:])
        caches = Caches(self._client, clock=self._clock)
        for resource in self._wanted:
            caches.get(resource, transform=_reduced).subscribe(self._note_in(resource))
        caches.start()
        try:
            await self._follow(report)
        finally:
            await caches.stop()

    async def _create_all(self, entries: Sequence[tuple[Resource, Object]]) -> None:
        while entries:
            failed = await asyncio.gather(*(self._failed(*entry) for entry in entries))
            entries = [entry for entry, has_failed in zip(entries, failed, strict=True) if has_failed]
            if entries:
                await self._clock.sleep(_PAUSE)

    async def _failed(self, resource: Resource, obj: Object) -> bool:
        try:
            await self._create(resource, obj)
        except KubeError as error:
            _log.warning("a demo object was not created", kind=resource.kind, object=str(key_of(obj)), error=str(error))
            return True
        return False

    async def _create(self, resource: Resource, obj: Object) -> None:
        async with self._gate:
            with suppress(AlreadyExists):
                await self._client.create(resource, obj)

    def _note_in(self, resource: Resource) -> Callable[[Change], None]:
        wanted, ready = self._wanted[resource], self._ready[resource]

        def note(change: Change) -> None:
            if change.key not in wanted:
                return
            before = len(ready)
            (ready.add if change.new is not None and _is_ready(change.new) else ready.discard)(change.key)
            if len(ready) != before:
                self._changed.set()

        return note

    async def _follow(self, report: Report) -> None:
        total, shown = sum(map(len, self._wanted.values())), -1
        await self._clock.sleep(_PERIOD)  # the start is reported first
        while (count := sum(map(len, self._ready.values()))) < total:
            if (step := count * _STEPS // total) > shown:
                shown = step
                report(self._progress(), False)
                await self._clock.sleep(_PERIOD)
            else:
                self._changed.clear()
                await self._changed.wait()
        if total:
            report(self._progress(), True)

    def _progress(self) -> str:
        kinds = sorted(self._wanted, key=lambda kind: -len(self._wanted[kind]))
        return ", ".join(f"{kind.plural} {len(self._ready[kind])}/{len(self._wanted[kind])}" for kind in kinds)


def _reduced(obj: Object) -> Object:
    """The object as the cache keeps it: its name and its readiness."""
    metadata = obj["metadata"]
    kept = {name: metadata[name] for name in ("name", "namespace", "resourceVersion", "uid") if name in metadata}
    status = obj.get("status") or {}
    conditions = [one for one in status.get("conditions") or () if one.get("type") == "Ready"]
    return {"metadata": kept, "status": {"state": status.get("state"), "conditions": conditions}}


def _is_ready(obj: Object) -> bool:
    status = obj["status"]
    return status["state"] == "Ready" or any(one.get("status") == "True" for one in status["conditions"])
