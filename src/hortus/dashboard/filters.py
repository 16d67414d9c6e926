"""Filters, order and window of the rows of a page, from the query of its address.

Everything happens on the server: a browser gets one window of the rows, and the numbers of all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import urlencode

from hortus.engine.fleet import FleetRow
from hortus.engine.pages import STANDINGS
from hortus.kube.selectors import LabelSelector, SelectorError

WINDOW: Final = 100
"""Rows of a window."""
_LARGEST: Final = 500
_FACETS: Final = ("standing", "state", "kind", "version", "region")
_LONGEST: Final = 1000
"""Characters of one value of a query."""

SORTS: Final[Mapping[str, Callable[[FleetRow], object]]] = {
    "name": lambda row: (row.name, row.namespace),
    "state": lambda row: (row.standing, row.state, row.name),
    "since": lambda row: row.since if row.since is not None else float("inf"),
    "expires": lambda row: row.expires if row.expires is not None else float("inf"),
    "version": lambda row: (_numbers(row.version), row.name),
    "region": lambda row: (row.region, row.name),
}
"""Orders by name; without one the worst come first, and among these the oldest."""


class BadQuery(Exception):
    """A value of the query cannot be used; the message names it and the fix."""


class Filters(NamedTuple):
    """The query of a page with rows."""

    q: str = ""
    """Words, all of which a row has in its name, namespace, reason or message."""
    standing: str = ""
    state: str = ""
    kind: str = ""
    version: str = ""
    region: str = ""
    labels: str = ""
    """A label selector, as of `kubectl get -l`."""
    sort: str = ""
    start: int = 0
    size: int = WINDOW
    """Rows of the window."""

    def address(self, **changes: object) -> str:
        """The query with some values changed, in the form of an address; empty for no query."""
        values = {**self._asdict(), **changes}
        if "start" not in changes:
            values["start"] = 0
        defaults = Filters()._asdict()
        query = urlencode({name: value for name, value in values.items() if value != defaults[name]})
        return f"?{query}" if query else "?"


class Facet(NamedTuple):
    """The values of one field, with the number of rows that have each."""

    name: str
    values: Sequence[tuple[str, int]]


class RowWindow(NamedTuple):
    """The rows of one window, and the numbers of all."""

    rows: Sequence[FleetRow]
    total: int
    matching: int
    start: int
    size: int
    facets: Sequence[Facet]

    @property
    def end(self) -> int:
        return self.start + len(self.rows)


def filters_of(query: Mapping[str, str]) -> Filters:
    """The filters of a query. Raises BadQuery."""
    given = {name: value.strip() for name, value in query.items() if name in Filters._fields and value.strip()}
    for name, value in given.items():
        if len(value) > _LONGEST:
            raise BadQuery(f"{name} is longer than {_LONGEST} characters")
    numbers = {name: _number(name, given.pop(name)) for name in ("start", "size") if name in given}
    if given.get("sort", "name").removeprefix("-") not in SORTS:
        raise BadQuery(f"sort={given['sort']}: one of {', '.join(SORTS)}, with - before it for the other order")
    if given.get("standing", "well") not in STANDINGS.values():
        raise BadQuery(f"standing={given['standing']}: one of {', '.join(STANDINGS.values())}")
    found = Filters(**given, **numbers)  # type: ignore[arg-type]
    _selector(found.labels)
    return found._replace(size=max(1, min(found.size, _LARGEST)))


def chosen(rows: Sequence[FleetRow], filters: Filters, facets: Sequence[Facet] | None = None) -> RowWindow:
    """The window that the filters choose; `facets` are those of all rows, where they are known."""
    matching = list(filter(_matches(filters), rows)) if _is_filtering(filters) else list(rows)
    if filters.sort:
        matching.sort(key=SORTS[filters.sort.removeprefix("-")], reverse=filters.sort.startswith("-"))  # type: ignore[arg-type]
    start = min(filters.start, max(0, (len(matching) - 1) // filters.size * filters.size))
    window = matching[start : start + filters.size]
    return RowWindow(
        window, len(rows), len(matching), start, filters.size, facets_of(rows) if facets is None else facets
    )


def _is_filtering(filters: Filters) -> bool:
    return any((filters.q, filters.labels, *(getattr(filters, name) for name in _FACETS)))


def _matches(filters: Filters) -> Callable[[FleetRow], bool]:
    words = filters.q.lower().split()
    selector = _selector(filters.labels)
    fields = [(name, value) for name in _FACETS if (value := getattr(filters, name))]

    def matches(row: FleetRow) -> bool:
        if any(value_of(row, name) != value for name, value in fields):
            return False
        if selector is not None and not selector.matches(row.labels):
            return False
        if not words:
            return True
        text = f"{row.namespace}/{row.name} {row.reason} {row.message[:_LONGEST]} {row.region}".lower()
        return all(word in text for word in words)

    return matches


def value_of(row: FleetRow, name: str) -> str:
    """The value of a field that facets count."""
    return STANDINGS[row.standing] if name == "standing" else str(getattr(row, name))


def facets_of(rows: Sequence[FleetRow]) -> list[Facet]:
    """The values of each field that rows are filtered by, with their numbers."""
    found = []
    for name in _FACETS:
        counts = Counter(value_of(row, name) for row in rows)
        counts.pop("", None)
        if name == "standing":
            values = [(one, counts[one]) for one in STANDINGS.values() if counts[one]]
        else:
            values = counts.most_common(40)
        if len(values) > 1 or name == "standing":
            found.append(Facet(name, values))
    return found


def _selector(text: str) -> LabelSelector | None:
    try:
        return LabelSelector.parse(text) if text else None
    except SelectorError as error:
        raise BadQuery(f"labels={text}: {error}") from None


def _number(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 7:
        raise BadQuery(f"{name}={text}: a number from 0")
    return int(text)


def _numbers(version: str) -> tuple[int, ...]:
    """A version in an order that people expect: 1.9 before 1.10."""
    return tuple(int(part) for part in version.lstrip("v").split("-")[0].split(".") if part.isdigit() and len(part) < 9)
