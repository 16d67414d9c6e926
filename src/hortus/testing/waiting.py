"""Waiting for objects in tests: by a watch, never by time, with a limit that fails the test and shows what is there.

ready = await wait_for(client, Greeting, "hello", until=lambda found: found.status.words == 2)
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Any, TypeVar, overload

from hortus.engine.typed import read, resource_of
from hortus.kube import Client, yaml
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource
from hortus.kube.watch import BOOKMARK, DELETED
from hortus.schema import Kind

K = TypeVar("K", bound=Kind)

PATIENCE = 60.0
"""Seconds after which whatever was waited for fails the test."""


@overload
async def wait_for(
    client: Client,
    what: type[K],
    name: str,
    namespace: str = "default",
    *,
    until: Callable[[K], bool] | None = None,
    patience: float = PATIENCE,
) -> K: ...


@overload
async def wait_for(
    client: Client,
    what: Resource,
    name: str,
    namespace: str = "default",
    *,
    until: Callable[[Object], bool] | None = None,
    patience: float = PATIENCE,
) -> Object: ...


async def wait_for(
    client: Client,
    what: type[Kind] | Resource,
    name: str,
    namespace: str = "default",
    *,
    until: Callable[[Any], bool] | None = None,
    patience: float = PATIENCE,
) -> Any:
    """Returns the object as soon as it exists and `until` holds for it: as its struct for a kind, else as it is.

    Raises AssertionError after `patience` seconds, with the object as it is then.
    """
    resource = what if isinstance(what, Resource) else resource_of(what)
    place = namespace if resource.namespaced else ""
    last: Object | None = None

    async def follow() -> Any:
        nonlocal last
        while True:
            async with aclosing(client.watch(resource, place, name=name)) as events:
                async for event in events:
                    if event.type == BOOKMARK:
                        continue
                    last = None if event.type == DELETED else event.object
                    if last is not None:
                        found = last if isinstance(what, Resource) else read(what, last)
                        if until is None or until(found):
                            return found

    try:
        return await asyncio.wait_for(follow(), patience)
    except TimeoutError:
        raise AssertionError(_unmet(resource, name, place, last, patience)) from None


async def wait_gone(
    client: Client,
    what: type[Kind] | Resource,
    name: str,
    namespace: str = "default",
    *,
    patience: float = PATIENCE,
) -> None:
    """Returns when the object does not exist; raises AssertionError after `patience` seconds."""
    resource = what if isinstance(what, Resource) else resource_of(what)
    place = namespace if resource.namespaced else ""
    last: Object | None = None

    async def follow() -> None:
        nonlocal last
        try:
            last = await client.get(resource, name, place)
        except NotFound:
            return
        version = last["metadata"]["resourceVersion"]
        async with aclosing(client.watch(resource, place, name=name, resource_version=version)) as events:
            async for event in events:
                last = last if event.type == BOOKMARK else event.object
                if event.type == DELETED:
                    return

    try:
        await asyncio.wait_for(follow(), patience)
    except TimeoutError:
        raise AssertionError(_unmet(resource, name, place, last, patience)) from None


def condition_is(kind: str, status: str = "True", *, reason: str = "") -> Callable[[Any], bool]:
    """A test for `until`: a condition of a struct or plain object has this status, and this reason if one is given."""

    def holds(found: Any) -> bool:
        if isinstance(found, Kind):
            known = [(one.type, one.status, one.reason) for one in getattr(found, "status").conditions]  # noqa: B009
        else:
            conditions = (found.get("status") or {}).get("conditions") or ()
            known = [(one["type"], one["status"], one.get("reason", "")) for one in conditions]
        return any(one[:2] == (kind, status) and reason in ("", one[2]) for one in known)

    return holds


def _unmet(resource: Resource, name: str, namespace: str, last: Object | None, patience: float) -> str:
    place = f" in namespace {namespace}" if namespace else ""
    head = f"waited {patience:g} s for {resource.plural} {name}{place}"
    if last is None:
        return f"{head}: it does not exist"
    metadata = {key: value for key, value in last["metadata"].items() if key != "managedFields"}
    shown = {**last, "metadata": metadata}
    if resource.kind == "Secret":
        shown = {key: sorted(value) if key in ("data", "stringData") else value for key, value in shown.items()}
    return f"{head}; it is:\n{yaml.dump(shown)}"
