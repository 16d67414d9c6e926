"""One page at one moment, as values: what is drawn as HTML, and sent as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hortus.dashboard.filters import Filters, RowWindow
from hortus.engine.fleet import document_of
from hortus.engine.pages import Action, Block, FleetPage, Item, ItemKey
from hortus.kube.objects import format_time


class Content(msgspec.Struct):
    """One page at one moment."""

    page: FleetPage
    key: ItemKey | None
    title: str
    namespace: str
    notes: Sequence[str]
    """Kinds that are not shown, or not current, each with the reason."""
    filters: Filters
    window: RowWindow | None = None
    blocks: Sequence[Block] = ()
    item: Item | None = None
    actions: Sequence[Action] = ()
    """The actions that the viewer may do."""
    upload: str = ""
    """The label of a file that may be opened there."""
    gone: bool = False
    """True for an object that does not exist, or that this viewer cannot see."""


def document(content: Content, now: float) -> Mapping[str, Any]:
    """The content for programs; rows are those of `hortus top -o json`."""
    found: dict[str, Any] = {
        "page": content.page.name,
        "title": content.title,
        "time": format_time(now),
        "namespace": content.namespace,
        "notes": list(content.notes),
    }
    if (window := content.window) is not None:
        found["rows"] = {
            "total": window.total,
            "matching": window.matching,
            "start": window.start,
            "items": [document_of(row) for row in window.rows],
            "facets": {facet.name: dict(facet.values) for facet in window.facets},
        }
    if (item := content.item) is not None:
        named = ("title", "standing", "state", "note", "owner", "step")
        found["item"] = {name: getattr(item, name) for name in named}
        found["actions"] = [action.name for action in content.actions]
    found["blocks"] = msgspec.to_builtins(list(content.blocks))
    return found
