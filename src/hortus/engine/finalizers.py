"""Finalizers, added and removed by patches that touch nothing else.

The patch names the list it was made for: when somebody else changed that list meanwhile the server refuses, and we
look again. Writes to any other part of the object, such as a status, do not disturb it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from hortus.kube import PatchKind
from hortus.kube.errors import Conflict, Invalid, NotFound
from hortus.kube.objects import Object, Resource

ATTEMPTS = 4
"""The number of attempts when the list changes meanwhile, before the reconcile is left to its back-off."""


class FinalizerClient(Protocol):
    """The part of `hortus.kube.Client` that finalizers use."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object: ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Object | Sequence[Object],
        namespace: str = "",
        kind: PatchKind = PatchKind.MERGE,
    ) -> Object: ...


def finalizers_of(obj: Object) -> list[str]:
    found: list[str] = obj["metadata"].get("finalizers") or []
    return found


def has_finalizer(obj: Object, finalizer: str) -> bool:
    return finalizer in finalizers_of(obj)


def is_deleting(obj: Object) -> bool:
    """True when deletion has begun; the object is deleted when its last finalizer is removed."""
    return bool(obj["metadata"].get("deletionTimestamp"))


async def add_finalizer(client: FinalizerClient, resource: Resource, obj: Object, finalizer: str) -> Object:
    """The object with the finalizer; no call when it is there. Raises NotFound, or Conflict once deletion has begun."""
    return await _edit(client, resource, obj, lambda live: _addition(live, finalizer))


async def remove_finalizer(client: FinalizerClient, resource: Resource, obj: Object, finalizer: str) -> Object | None:
    """The object without the finalizer, None when it is gone; no call when the finalizer is not there."""
    try:
        return await _edit(client, resource, obj, lambda live: _removal(live, finalizer))
    except NotFound:
        return None


class _Edit(NamedTuple):
    kind: PatchKind
    body: Object | Sequence[Object]


def _addition(live: Object, finalizer: str) -> _Edit | None:
    known = finalizers_of(live)
    if finalizer in known:
        return None
    if is_deleting(live):
        raise Conflict(f"{live['metadata']['name']} is being deleted: it takes no new finalizer")
    if not known:
        version = live["metadata"]["resourceVersion"]
        return _Edit(PatchKind.MERGE, {"metadata": {"resourceVersion": version, "finalizers": [finalizer]}})
    path = "/metadata/finalizers"
    return _Edit(
        PatchKind.JSON,
        [{"op": "test", "path": path, "value": known}, {"op": "add", "path": f"{path}/-", "value": finalizer}],
    )


def _removal(live: Object, finalizer: str) -> _Edit | None:
    known = finalizers_of(live)
    if finalizer not in known:
        return None
    path = f"/metadata/finalizers/{known.index(finalizer)}"
    return _Edit(
        PatchKind.JSON,
        [
            {"op": "test", "path": "/metadata/uid", "value": live["metadata"]["uid"]},
            {"op": "test", "path": path, "value": finalizer},
            {"op": "remove", "path": path},
        ],
    )


async def _edit(
    client: FinalizerClient, resource: Resource, obj: Object, edit_of: Callable[[Object], _Edit | None]
) -> Object:
    metadata = obj["metadata"]
    name, namespace, uid = metadata["name"], metadata.get("namespace", ""), metadata["uid"]
    for attempt in range(ATTEMPTS):
        edit = edit_of(obj)
        if edit is None:
            return obj
        try:
            return await client.patch(resource, name, edit.body, namespace, edit.kind)
        except (Conflict, Invalid):
            if attempt == ATTEMPTS - 1:
                raise
        obj = await client.get(resource, name, namespace)
        if obj["metadata"]["uid"] != uid:
            raise NotFound(f"{resource.plural} {name!r} with uid {uid} is gone; another has its name")
    raise AssertionError("the last attempt returns or raises")
