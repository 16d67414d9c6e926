"""Waiting for objects of a cluster: by watches, each begun at a state that was read."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from hortus.engine import metadata_of
from hortus.engine.applysets.readiness import ObjectStatus, Readiness, readiness
from hortus.kube import Client
from hortus.kube.errors import Expired, NotFound
from hortus.kube.objects import Object, Resource
from hortus.kube.watch import DELETED
from hortus.terminal import CommandError

Seen = Callable[[Object | None], bool]
"""Gets each state of an object, None for its absence; true ends the wait."""


async def follow(client: Client, resource: Resource, name: str, namespace: str, until: Seen) -> None:
    """Return when `until` is true of the object. Raises KubeError."""
    while True:
        try:
            found = await client.get(resource, name, namespace)
        except NotFound:
            if until(None):
                return
            found = None
        if found is not None and until(found):
            return
        # An object that does not exist has no version to begin at: its first state comes with the events.
        version = metadata_of(found).resource_version if found is not None else ""
        watch = client.watch(resource, namespace, name=name, resource_version=version, initial_events=found is None)
        with contextlib.suppress(Expired):
            async with watch as events:
                async for event in events:
                    if event.type in ("ADDED", "MODIFIED", DELETED) and until(
                        None if event.type == DELETED else event.object
                    ):
                        return


async def until_current(client: Client, resource: Resource, name: str, namespace: str, last: list[Readiness]) -> None:
    """Return when an object is Current; `last` gets each readiness on the way. Raises CommandError for a failed one."""

    def seen(obj: Object | None) -> bool:
        found = readiness(obj)
        last.append(found)
        if found.status is ObjectStatus.FAILED:
            raise CommandError(f"{resource.kind} {namespace + '/' if namespace else ''}{name}: {found.message}")
        return found.ready

    await follow(client, resource, name, namespace, seen)


async def until_gone(client: Client, resource: Resource, name: str, namespace: str) -> None:
    """Return when an object does not exist. Raises KubeError."""
    await follow(client, resource, name, namespace, lambda obj: obj is None)
