"""Reads, and the one write, behind `hortus canary`. Raises CommandError with what helps."""

from __future__ import annotations

import asyncio

from hortus.domains.canary import book as books
from hortus.domains.canary.book import CONFIG_MAPS, Book, ConfigMap
from hortus.engine import read
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import format_micro_time
from hortus.terminal import CommandError

PATIENCE = 5.0
"""Seconds for controllers that have just started to begin the book."""


async def current(client: Client, namespace: str) -> Book:
    """The book as it is now."""
    try:
        config_map = read(ConfigMap, await client.get(CONFIG_MAPS, books.NAME, namespace))
    except NotFound:
        raise _missing(namespace) from None
    found = books.read_book(config_map)
    if found is None:
        raise CommandError(f"configmap/{books.NAME} in namespace {namespace} was edited and cannot be read")
    return found


async def opened(client: Client, namespace: str, patience: float = PATIENCE) -> None:
    """Return once there is a book."""
    watch = client.watch(CONFIG_MAPS, namespace, name=books.NAME, initial_events=True)
    try:
        async with asyncio.timeout(patience), watch as events:
            async for event in events:
                if event.type in ("ADDED", "MODIFIED"):
                    return
    except TimeoutError:
        raise _missing(namespace) from None


async def ask(client: Client, namespace: str, now: float) -> ConfigMap:
    """Ask for a run; it begins when the one under way is over."""
    patch = {"metadata": {"annotations": {books.ASKED: format_micro_time(now)}}}
    return read(ConfigMap, await client.patch(CONFIG_MAPS, books.NAME, patch, namespace))


async def ended(client: Client, namespace: str, asked: ConfigMap, timeout: float) -> Book | None:
    """The book once the run that was asked for is over; None when that takes too long."""
    wanted, version = books.asked(asked), asked.metadata.resource_version
    watch = client.watch(CONFIG_MAPS, namespace, resource_version=version, name=books.NAME)
    try:
        async with asyncio.timeout(timeout), watch as events:
            async for event in events:
                if event.type == "DELETED":
                    raise CommandError("the canary's book was deleted")
                if event.type not in ("ADDED", "MODIFIED"):
                    continue
                found = books.read_book(read(ConfigMap, event.object))
                if found is not None and found.run is None and found.answered >= wanted:
                    return found
    except TimeoutError:
        return None
    return None


def _missing(namespace: str) -> CommandError:
    return CommandError(
        f"there is no canary in namespace {namespace}: it is switched on with --canary-template, see docs/canary.md"
    )
