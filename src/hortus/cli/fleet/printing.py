"""Rows of the fleet as text: tables for pipes, lines for a screen of any width, documents."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from hortus.engine.fleet import OWNERS, FleetRow, RowStanding, document_of, length, until
from hortus.kube.objects import format_time
from hortus.terminal import Table, clean

MARKS = {RowStanding.FAILED: ("✗", "red"), RowStanding.WAITING: ("·", "yellow"), RowStanding.WELL: ("✓", "green")}
_GAP = 2
_MESSAGE_LINES = 3


class ScreenLine(NamedTuple):
    """One line of a screen."""

    text: str
    colour: str = ""


class _Column(NamedTuple):
    head: str
    text: Callable[[FleetRow, float], str]
    most: float = 1.0
    """Share of the screen's width that it may take."""


_SCREEN = (
    _Column("  STATE", lambda row, now: f"{MARKS[row.standing][0]} {row.state}", 0.2),
    _Column("NAME", lambda row, now: f"{row.kind.lower()}/{row.name}", 0.4),
    _Column("REASON", lambda row, now: "" if row.standing == RowStanding.WELL else row.reason, 0.28),
    _Column("NEXT STEP", lambda row, now: OWNERS[row.owner]),
    _Column("EXPIRES", lambda row, now: until(row.expires, now)),
    _Column("SINCE", lambda row, now: _ago(row.since, now)),
    _Column("REGION", lambda row, now: row.region),
    _Column("VERSION", lambda row, now: row.version),
    _Column("NAMESPACE", lambda row, now: row.namespace),
    _Column("MESSAGE", lambda row, now: row.message),
)
"""In the order in which a narrow screen keeps them."""


_ALWAYS = 4
"""The first columns are there also when they are empty, so that scrolling does not move the others."""


def summary(rows: Iterable[FleetRow]) -> str:
    """`7 Runtimes: 1 Failed, 6 Ready; 1 ClusterAccess: 1 Ready`."""
    kinds: dict[str, Counter[tuple[RowStanding, str]]] = {}
    for row in rows:
        kinds.setdefault(row.kind, Counter())[row.standing, row.state] += 1
    parts = []
    for kind, states in sorted(kinds.items(), key=lambda item: -item[1].total()):
        named = ", ".join(f"{count:,} {state}" for (_, state), count in sorted(states.items()))
        plural = "" if states.total() == 1 else "es" if kind.endswith("s") else "s"
        parts.append(f"{states.total():,} {kind}{plural}: {named}")
    return "; ".join(parts) or "no clusters"


def screen_table(rows: Sequence[FleetRow], now: float, width: int) -> list[ScreenLine]:
    """The head, and one line for each row, with as many columns as the width has room for."""
    heads: list[str] = []
    columns: list[list[str]] = []
    left = width
    for column in _SCREEN:
        cells = [clean(column.text(row, now)) if column.text(row, now) else "" for row in rows]
        if not any(cells) and column not in _SCREEN[:_ALWAYS]:
            continue
        room = min(max(map(len, [column.head, *cells])), max(int(width * column.most), len(column.head)))
        if room > left and (column is not _SCREEN[-1] or left < 2 * len(column.head)):
            break
        room = min(room, left)
        heads.append(column.head.ljust(room))
        columns.append([_cut(cell, room).ljust(room) for cell in cells])
        left -= room + _GAP
    gap = " " * _GAP
    lines = [gap.join(cells).rstrip() for cells in zip(*columns, strict=True)] if columns else []
    colours = [MARKS[row.standing][1] if row.standing != RowStanding.WELL else "" for row in rows]
    return [ScreenLine(gap.join(heads).rstrip(), "bold"), *map(ScreenLine, lines, colours)]


def problem_lines(rows: Iterable[FleetRow], now: float, width: int) -> Iterator[ScreenLine]:
    """Each problem in a few lines: what, since when, why, and the next step."""
    for row in rows:
        mark, colour = MARKS[row.standing]
        since = f" for {_ago(row.since, now)}" if row.since is not None else ""
        title = f"{mark} {row.kind.lower()}/{row.name}  {row.state}{since}  {row.reason}"
        yield ScreenLine(_cut(clean(title.rstrip()), width), colour)
        if row.message:
            message = textwrap.wrap(clean(row.message), max(width - 4, 20), max_lines=_MESSAGE_LINES, placeholder=" …")
            yield from (ScreenLine(f"    {text}") for text in message)
        step = f"next step, {OWNERS[row.owner]}: {row.step or 'see the message'}"
        yield from (ScreenLine(f"    {text}") for text in textwrap.wrap(clean(step), max(width - 4, 20)))


def top_table(rows: Iterable[FleetRow], now: float, *, wide: bool) -> Table:
    """The table of all rows for pipes, with every cell in full."""
    heads = ["KIND", "NAMESPACE", "NAME", "STATE", "REASON", "EXPIRES", "NEXT STEP", "SINCE"]
    heads += ["PROVIDER", "REGION", "VERSION", "MESSAGE"] if wide else []
    return Table(heads, [_cells(row, now)[: len(heads)] for row in rows])


def problems_table(rows: Iterable[FleetRow], now: float, *, wide: bool) -> Table:
    """The table of problems for pipes: a line for each, with its message."""
    heads = ["KIND", "NAMESPACE", "NAME", "STATE", "REASON", "SINCE", "NEXT STEP", "MESSAGE"]
    found = [
        (row.kind, row.namespace, row.name, row.state, row.reason, _ago(row.since, now), OWNERS[row.owner], row.message)
        for row in rows
    ]
    if not wide:
        return Table(heads, found)
    return Table([*heads, "ADVICE"], [(*cells, row.step) for cells, row in zip(found, rows, strict=True)])


def document(rows: Iterable[FleetRow], notes: Sequence[str], now: float, server: str) -> dict[str, Any]:
    """The rows for programs; times are RFC 3339."""
    return {
        "server": server,
        "time": format_time(now),
        "notes": list(notes),
        "items": [document_of(row) for row in rows],
    }


def _cells(row: FleetRow, now: float) -> tuple[str, ...]:
    owner, since, left = OWNERS[row.owner], _ago(row.since, now), until(row.expires, now)
    first = (row.kind, row.namespace, row.name, row.state, row.reason, left, owner, since)
    return (*first, row.provider, row.region, row.version, row.message)


def _ago(time: float | None, now: float) -> str:
    return "" if time is None else length(now - time)


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 1, 0)]}…"
