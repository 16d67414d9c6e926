"""The rows of Leftovers in `hortus top` and `hortus problems`: those that are not settled."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from typing import Final, NamedTuple

from hortus.domains.leftovers.views import since, source
from hortus.engine import Actor
from hortus.engine.fleet import FleetKind, FleetObjects, FleetRow, FleetView, RowStanding, reading, seconds_of
from hortus.engine.leftovers import open_items, summary_of
from hortus.engine.leftovers.types import LEFTOVERS, Leftover, LeftoverPhase

_LEFTOVERS: Final = FleetKind(LEFTOVERS, reading(Leftover))
_ACTORS: Final = {"ClusterOwner": Actor.USER, "Operator": Actor.OPERATOR}


class LeftoverSubject(NamedTuple):
    leftover: Leftover


class LeftoverRows(FleetView[LeftoverSubject]):
    """One row for each Leftover with an item that was not seen to be gone; well once a person has acknowledged it."""

    kinds = (_LEFTOVERS,)
    page = "leftovers"
    order = 3

    def subjects(self, objects: FleetObjects) -> Iterable[LeftoverSubject]:
        return (LeftoverSubject(one) for one in objects.all(_LEFTOVERS, Leftover) if open_items(one))

    def row(self, subject: LeftoverSubject) -> FleetRow:
        leftover = subject.leftover
        metadata, known = leftover.metadata, leftover.spec.acknowledgement is not None
        return FleetRow(
            kind=LEFTOVERS.kind,
            namespace=metadata.namespace,
            name=metadata.name,
            standing=RowStanding.WELL if known else RowStanding.FAILED,
            state=LeftoverPhase.ACKNOWLEDGED if known else LeftoverPhase.OPEN,
            reason=leftover.spec.reason,
            message=f"{summary_of(leftover)} of {source(leftover)}",
            owner=Actor.NOBODY if known else _ACTORS[open_items(leftover)[0].actor],
            step=f"`{shlex.join(('hortus', 'leftovers', 'show', metadata.name))}`",
            since=seconds_of(since(leftover)),
        )
