"""Removes what a load made, wherever a run ended: whatever bears its load id goes, kind by kind.

Works from the load id alone, so that it mends what a killed run left. Objects of the management cluster go before those
of the garden, as a GardenerCluster whose Shoot is gone is a failure to its controllers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random

from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.discovery import Discovery
from hortus.kube.errors import Forbidden, KubeError, MethodNotAllowed, NotFound
from hortus.kube.objects import Resource
from hortus.simulation.load.calling import Caller
from hortus.simulation.load.following import Follower
from hortus.simulation.load.measuring import Recorder
from hortus.simulation.load.operations import delete_confirmed
from hortus.simulation.load.templates import LOAD_LABEL

_PARALLEL = 32
_PATIENCE = 300.0
"""Seconds after which objects that do not go are named and left."""
_SHOWN = 5


class LeftBehind(Exception):
    """Some objects did not go; the message names them."""


async def remove_load(
    client: Client, load_id: str, *, clock: Clock, on_progress: Callable[[int, int], None] = lambda done, total: None
) -> int:
    """Delete every object with this load id in one cluster and wait until they are gone; returns how many a load made.

    What controllers made for those bears the label too and has an owner: it goes by itself, sooner or later, uncounted.

    Raises KubeError, LeftBehind.
    """
    selector = f"{LOAD_LABEL}={load_id}"
    caller = Caller(client, Recorder(), clock, Random())  # noqa: S311 - jitter
    total = 0
    for resource in await _kinds(client, selector):
        follower = Follower(client, resource, labels=selector, clock=clock, metadata_only=True)
        watching = asyncio.create_task(follower.run())
        try:
            total += await _remove(caller, resource, follower, selector, on_progress)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
    return total


async def _remove(
    caller: Caller, resource: Resource, follower: Follower, selector: str, on_progress: Callable[[int, int], None]
) -> int:
    listed = await caller.client.list(resource, labels=selector, metadata_only=True)
    gate, gone, total = asyncio.Semaphore(_PARALLEL), 0, len(listed.items)
    problems: list[str] = []
    await follower.synced.wait()

    async def remove(namespace: str, name: str) -> None:
        nonlocal gone
        try:
            async with gate:
                await delete_confirmed(caller, resource, namespace, name)
        except KubeError as error:
            problems.append(f"{name}: {error}")
            return
        await follower.until(name, lambda seen: seen is None)
        gone += 1
        on_progress(gone, total)

    try:
        async with asyncio.timeout(_PATIENCE), asyncio.TaskGroup() as group:
            for obj in listed.items:
                group.create_task(remove(obj["metadata"].get("namespace", ""), obj["metadata"]["name"]))
    except TimeoutError:
        raise LeftBehind(
            f"{follower.count} {resource.plural} did not go within {_PATIENCE:.0f} s; see: "
            f"kubectl get {resource.plural} -A -l {selector}"
        ) from None
    if problems:
        shown = "; ".join(problems[:_SHOWN])
        raise LeftBehind(f"{len(problems)} {resource.plural} could not be deleted: {shown}")
    return sum(1 for obj in listed.items if not obj["metadata"].get("ownerReferences"))


async def _kinds(client: Client, selector: str) -> list[Resource]:
    """The kinds of which there are objects with the load id; each once, in its preferred version."""
    found: dict[tuple[str, str], Resource] = {}
    for one in (await Discovery.look(client)).served:
        if {"list", "delete", "watch"} <= one.verbs:
            found.setdefault((one.resource.group, one.resource.plural), one.resource)
    gate = asyncio.Semaphore(8)

    async def holds(resource: Resource) -> bool:
        async with gate:
            try:
                return bool((await client.list(resource, labels=selector, limit=1, metadata_only=True)).items)
            except (NotFound, MethodNotAllowed, Forbidden):
                return False

    answers = await asyncio.gather(*(holds(resource) for resource in found.values()))
    there = [resource for resource, holds_some in zip(found.values(), answers, strict=True) if holds_some]
    # Owners before what controllers made for them, such as Secrets that bear their labels: those go by themselves.
    return sorted(there, key=lambda resource: "." not in resource.group or resource.group.endswith(".k8s.io"))
