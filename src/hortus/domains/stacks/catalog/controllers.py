"""The base of both controllers of the catalog: their common parts, and the objects that they skip."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

from hortus.domains.stacks.context import StackContext, StackController
from hortus.domains.stacks.releases import Library
from hortus.domains.stacks.selection import Selected
from hortus.engine import Cache, Result, Wiring
from hortus.engine.deputies import Deputies
from hortus.engine.leftovers import LeftoverRecorder

C = TypeVar("C", bound=StackContext[Any])


class CatalogParts(NamedTuple):
    """The parts of both controllers."""

    clusters: Cache
    library: Library
    selected: Selected
    deputies: Deputies
    leftovers: LeftoverRecorder


class CatalogController(StackController[C]):
    """Base of the controllers of ClusterStacks and their releases."""

    def __init__(self, wiring: Wiring[Any], parts: CatalogParts) -> None:
        super().__init__(wiring)
        self._clusters, self._library, self._selected, self._deputies, self._leftovers = parts

    async def _skip(self, context: C) -> Result | None:
        """End the reconcile of an object that another process is to serve."""
        return None if self._selected(context.object.metadata) else Result()
