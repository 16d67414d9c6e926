"""The rows of pages, made and ordered once for all viewers that see the same objects."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

from hortus.dashboard.filters import Facet, facets_of
from hortus.dashboard.readers import FleetWatch
from hortus.engine.fleet import FleetRow, FleetView, KeptRows
from hortus.engine.fleetreading import ranked_rows
from hortus.kube.clock import Clock

_KEPT: Final = 32
"""Orders that are kept: those of different sets of objects."""


class Ranking:
    """Rows, worst first, and the numbers of their values."""

    def __init__(self, rows: list[FleetRow], now: float) -> None:
        self.rows = rows
        self.ends = min(
            (row.expires for row in rows if row.expires is not None and row.expires > now), default=math.inf
        )
        """The time at which a row changes although no object does: a credential expires."""

    @cached_property
    def facets(self) -> Sequence[Facet]:
        return facets_of(self.rows)


class RankedRows:
    """The rows of each set of views, for each set of objects that somebody sees."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._kept: dict[FleetView[Any], KeptRows[Any]] = {}
        self._known: dict[tuple[object, ...], Ranking] = {}

    def of(self, views: Sequence[FleetView[Any]], watch: FleetWatch) -> Ranking:
        """The rows of some views as a viewer sees them."""
        kinds, now = list(dict.fromkeys(kind for view in views for kind in view.kinds)), self._clock.now()
        place = *views, watch.seen(kinds).marks
        known = self._known.pop(place, None)
        if known is None or known.ends <= now:
            kept = [self._kept.setdefault(view, KeptRows(view)) for view in views]
            known = Ranking(ranked_rows(kept, watch.objects(kinds), now), now)
        if len(self._known) >= _KEPT:
            del self._known[next(iter(self._known))]
        self._known[place] = known
        return known
