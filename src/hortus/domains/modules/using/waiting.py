"""Objects that a command waits for, by watches: until a condition holds, or until they are gone."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from hortus.engine import metadata_of
from hortus.engine.conditions import has_condition
from hortus.kube import Client
from hortus.kube.errors import NotFound, NotServed
from hortus.kube.objects import Object, Resource, key_of
from hortus.kube.watch import DELETED
from hortus.terminal import EXIT_TIMEOUT, CommandError


async def await_condition(client: Client, resource: Resource, obj: Object, condition: str, *, seconds: float) -> None:
    """Return once a condition of the object is True. Raises CommandError, KubeError."""
    if not await _awaited(client, resource, obj, lambda found: has_condition(found, condition), seconds):
        raise CommandError(f"{resource.kind} {key_of(obj).name} is deleted by somebody else")


async def await_gone(client: Client, resource: Resource, obj: Object, *, seconds: float) -> None:
    """Return once the object is gone. Raises CommandError, KubeError."""
    with contextlib.suppress(NotServed):
        await _awaited(client, resource, obj, lambda found: False, seconds)


async def _awaited(
    client: Client, resource: Resource, obj: Object, holds: Callable[[Object], bool], seconds: float
) -> bool:
    """Returns whether `holds` became true; False for an object that is gone."""
    key = key_of(obj)
    try:
        async with asyncio.timeout(seconds):
            while True:
                try:
                    found = await client.get(resource, key.name, key.namespace)
                except NotFound:
                    return False
                if holds(found):
                    return True
                version = metadata_of(found).resource_version
                async with contextlib.aclosing(
                    client.watch(resource, key.namespace, name=key.name, resource_version=version, bookmarks=False)
                ) as events:
                    async for event in events:
                        if event.type == DELETED:
                            return False
                        if holds(event.object):
                            return True
    except TimeoutError:
        place = f"{key.namespace}/{key.name}" if key.namespace else key.name
        raise CommandError(
            f"{resource.kind} {place} is not ready, or not gone, after {seconds:g} s; its status and its finalizers "
            "say why",
            code=EXIT_TIMEOUT,
        ) from None
