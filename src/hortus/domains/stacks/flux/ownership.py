"""Gives the fields that helm-controller wrote to the manager by which Hortus applies, once it has released them.

Server-side apply leaves a field in place that another manager owns too: helm's labels, and the fields that a later
release drops. With one owner the next apply removes what its chart does not have. kubectl does the same for fields of
client-side apply (kubernetes/client-go, `util/csaupgrade`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from hortus.domains.stacks.types import ManagedResource
from hortus.engine.applysets import Kinds, UnknownKind
from hortus.kube import Client, PatchKind
from hortus.kube.errors import Conflict, NotFound
from hortus.kube.objects import GroupVersionKind, Object, Resource

FLUX_MANAGER: Final = "helm-controller"
_APPLY: Final = "Apply"
_ATTEMPTS: Final = 5
"""Patches of one object whose version changes meanwhile, as each change of a status does."""


async def take_fields(
    client: Client, kinds: Kinds, listed: Iterable[ManagedResource], *, namespace: str, manager: str
) -> None:
    """Make helm-controller's fields of the listed objects those of `manager`. May be repeated. Raises KubeError.

    `namespace` is that of objects that name none. An object that is gone is left to the next apply; one that changes
    meanwhile is read again.
    """
    for one in listed:
        with suppress(UnknownKind, NotFound):
            resource = await kinds.resource(GroupVersionKind(one.group, one.version, one.kind))
            place = (one.namespace or namespace) if resource.namespaced else ""
            await _take(client, resource, one.name, place, manager=manager)


async def _take(client: Client, resource: Resource, name: str, namespace: str, *, manager: str) -> None:
    for attempt in range(1, _ATTEMPTS + 1):
        live = await client.get(resource, name, namespace)
        entries = taken(live["metadata"].get("managedFields") or (), manager=manager)
        if entries is None:
            return
        try:
            await client.patch(resource, name, _patch(live, entries), namespace, PatchKind.JSON)
        except Conflict:
            if attempt == _ATTEMPTS:
                raise
        else:
            return


def taken(entries: Sequence[Object], *, manager: str) -> list[Object] | None:
    """The managedFields with helm-controller's entries joined to those of `manager`; None where it has none."""
    theirs = [entry for entry in entries if _is_of(entry, FLUX_MANAGER)]
    if not theirs:
        return None
    found = [entry for entry in entries if not _is_of(entry, FLUX_MANAGER)]
    for entry in theirs:
        for place, mine in enumerate(found):
            is_applied = _is_of(mine, manager) and mine.get("operation") == _APPLY
            if is_applied and mine.get("apiVersion") == entry.get("apiVersion"):
                found[place] = {**mine, "fieldsV1": _united(mine.get("fieldsV1"), entry.get("fieldsV1"))}
                break
        else:
            found.append({**entry, "manager": manager, "operation": _APPLY})
    return found


def _is_of(entry: Object, manager: str) -> bool:
    return entry.get("manager") == manager and not entry.get("subresource")


def _united(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> dict[str, Any]:
    """The union of two sets of fields, in the form of managedFields (KEP-555)."""
    found = dict(one or {})
    for path, below in (other or {}).items():
        found[path] = _united(found.get(path), below)
    return found


def _patch(live: Object, entries: Sequence[Object]) -> list[dict[str, Any]]:
    """A JSON patch for just this version of the object: its fields may have other owners a moment later."""
    version = live["metadata"]["resourceVersion"]
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": list(entries)},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": version},
    ]


__all__ = ["take_fields", "taken"]
