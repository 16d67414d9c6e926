"""All objects of a cluster, to compare what was there before something with what is there after it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from hortus.kube import Client
from hortus.kube.discovery import Discovery
from hortus.kube.errors import MethodNotAllowed, NotFound
from hortus.kube.objects import Object

PATIENCE = 60.0
_PAUSE = 0.1
"""Seconds between two snapshots, of which each is a list of all kinds."""
_WRITTEN_BY_ITSELF = ("events", "componentstatuses", "apiservices", "flowschemas", "prioritylevelconfigurations")
"""Events end by themselves; the others change their status without anybody's doing."""

Snapshot = dict[str, Object]


async def snapshot(client: Client) -> Snapshot:
    """Each object by kind, name and namespace, without the marks of its writes."""
    found: Snapshot = {}
    for entry in (await Discovery.look(client)).served:
        resource = entry.resource
        if "list" not in entry.verbs or resource.plural in _WRITTEN_BY_ITSELF:
            continue
        try:
            items = (await client.list(resource)).items
        except (NotFound, MethodNotAllowed):
            continue
        for obj in items:
            metadata = obj["metadata"]
            place = f"@{metadata['namespace']}" if metadata.get("namespace") else ""
            if place == "@kube-system" and resource.plural == "leases":
                continue
            found[f"{resource.kind}/{metadata['name']}{place}"] = _plain(obj)
    return found


async def until(client: Client, holds: Callable[[Snapshot], Any]) -> Snapshot:
    """The first snapshot for which `holds` is true, or the last one within the patience."""
    end = asyncio.get_running_loop().time() + PATIENCE
    while True:
        found = await snapshot(client)
        if holds(found) or asyncio.get_running_loop().time() > end:
            return found
        await asyncio.sleep(_PAUSE)


def _plain(obj: Object) -> Object:
    dropped = ("resourceVersion", "managedFields", "generation")
    metadata = {name: value for name, value in obj["metadata"].items() if name not in dropped}
    return {**obj, "metadata": metadata}
