"""The page of changes: who changed which object, as the API server records it in managedFields.

A field manager is a program and not a person; the names of users stand in the audit log of the API server. Of each
object only the latest change of each manager is known.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from hortus.engine.fleet import FleetKind, FleetObjects
from hortus.engine.pages import Block, Cell, FleetPage, Grid, PageLink, TimeCell
from hortus.kube.objects import Object, Resource, key_of

_SHOWN: Final = 200
"""Changes, the newest first."""
_PEOPLE: Final = ("kubectl", "hortus-cli", "hortus-dashboard", "k9s", "Mozilla")
"""Beginnings of the managers by which people work; all others are controllers and pipelines."""


class ManagedChange(NamedTuple):
    """The latest change of one object by one manager."""

    at: str
    kind: str
    namespace: str
    name: str
    manager: str
    operation: str
    subresource: str


class ObjectChanges(NamedTuple):
    """The changes of one object."""

    changes: tuple[ManagedChange, ...]


class ChangesPage(FleetPage):
    """The newest changes of all objects of Hortus' kinds."""

    name = "audit"
    title = "Audit"
    order = 90
    intro = "Who changed what: the latest change of each object by each field manager, the newest first."

    def __init__(self, kinds: Iterable[Resource], pages: Mapping[str, str]) -> None:
        """`pages` are the pages that show objects, by kind."""
        self.kinds = tuple(FleetKind(kind, partial(_changes_of, kind), metadata_only=True) for kind in kinds)
        self._pages = pages

    def blocks(self, objects: FleetObjects, now: float) -> Sequence[Block]:
        known = [
            change for kind in self.kinds for found in objects.all(kind, ObjectChanges) for change in found.changes
        ]
        newest = heapq.nlargest(_SHOWN, known)
        by_people = heapq.nlargest(_SHOWN, (one for one in known if one.manager.startswith(_PEOPLE)))
        managers = Counter(one.manager for one in known)
        heads = ("Object", "Manager", "Change", "When")
        return (
            Grid(
                "By people",
                heads,
                [_row(one, self._pages) for one in by_people],
                "No object was changed by kubectl or by hortus.",
            ),
            Grid(
                "All changes",
                heads,
                [_row(one, self._pages) for one in newest],
                "There is no object, or none that you may see.",
            ),
            Grid("Managers", ("Manager", "Objects"), [[name, count] for name, count in managers.most_common(50)]),
        )


def _row(change: ManagedChange, pages: Mapping[str, str]) -> list[Cell]:
    name = f"{change.namespace}/{change.name}" if change.namespace else change.name
    what = f"{change.operation} {change.subresource}" if change.subresource else change.operation
    shown: Cell = f"{change.kind} {name}"
    if page := pages.get(change.kind):
        shown = PageLink(f"{change.kind} {name}", (page, change.kind.lower(), change.namespace or "-", change.name))
    return [shown, change.manager, what, TimeCell(change.at)]


def _changes_of(resource: Resource, obj: Object) -> ObjectChanges:
    key = key_of(obj)
    found = []
    for entry in obj["metadata"].get("managedFields") or ():
        at, manager = str(entry.get("time") or ""), str(entry.get("manager") or "")
        words = (str(entry.get("operation") or ""), str(entry.get("subresource") or ""))
        found.append(ManagedChange(at, resource.kind, key.namespace, key.name, manager, *words))
    return ObjectChanges(tuple(found))
