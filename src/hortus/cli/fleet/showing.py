"""One run of `hortus top` or `hortus problems`: a screen on a terminal, one print elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

import click
import structlog

from hortus.cli.fleet.printing import (
    ScreenLine,
    document,
    problem_lines,
    problems_table,
    screen_table,
    summary,
    top_table,
)
from hortus.cli.fleet.screen import Picture, Screen
from hortus.domains import all_domains
from hortus.engine.fleet import FleetRow, RowStanding
from hortus.engine.fleetreading import FleetReader, NotAFleet, ReadGarden
from hortus.terminal import (
    CommandError,
    Connections,
    OutputFormat,
    Table,
    clean,
    open_garden,
    plain,
    print_line,
    print_table,
)
from hortus.terminal.failures import coloured

Chosen = Callable[[Sequence[FleetRow], float], list[FleetRow]]


async def show_top(connections: Connections, namespace: str, format: OutputFormat, *, once: bool) -> None:
    async with _reader(connections, namespace) as reader:
        if once or not format.tabular or not _on_screen():
            await _read(reader)
            now = time.time()
            _print(reader, reader.rows(now), now, format, top_table)
        else:
            await _watch(reader, _top_body)


async def show_problems(
    connections: Connections, namespace: str, format: OutputFormat, waiting: float, *, once: bool
) -> list[FleetRow]:
    """Returns the problems that were printed; none after a screen."""

    def chosen(rows: Sequence[FleetRow], now: float) -> list[FleetRow]:
        return [row for row in rows if _is_problem(row, now, waiting)]

    async with _reader(connections, namespace) as reader:
        if once or not format.tabular or not _on_screen():
            await _read(reader)
            now = time.time()
            found = chosen(reader.rows(now), now)
            if found or not format.tabular:
                _print(reader, found, now, format, problems_table)
            else:
                _print_notes(reader)
                click.echo("No problems.", err=True)
            return found

        def body(rows: Sequence[FleetRow], now: float, width: int) -> Picture:
            found = list(problem_lines(chosen(rows, now), now, width)) or [ScreenLine("No problems.")]
            return Picture([], len(found), lambda start, end: found[start:end])

        await _watch(reader, body)
        return []


def _top_body(rows: Sequence[FleetRow], now: float, width: int) -> Picture:
    return Picture([], len(rows), lambda start, end: screen_table(rows[start:end], now, width), titled=True)


def _is_problem(row: FleetRow, now: float, waiting: float) -> bool:
    slow = row.standing == RowStanding.WAITING and row.since is not None and now - row.since > waiting
    return row.standing == RowStanding.FAILED or slow


async def _watch(reader: FleetReader, body: Callable[[Sequence[FleetRow], float, int], Picture]) -> None:
    def picture(width: int) -> Picture:
        now = time.time()
        rows = reader.rows(now)
        title = f"Hortus at {reader.host}"
        clock = time.strftime("%H:%M:%S", time.localtime(now))
        first = ScreenLine(
            title.ljust(width - len(clock)) + clock if len(title) + len(clock) < width else title, "bold"
        )
        state = summary(rows) if reader.complete else f"{summary(rows)} (reading)"
        notes = [ScreenLine(clean(note), "yellow") for note in reader.notes]
        return body(rows, now, width)._replace(head=[first, ScreenLine(state), *notes, ScreenLine("")])

    screen = Screen(picture, colours=coloured(sys.stdout))
    reader.watch(screen.refresh)
    try:
        await screen.run()
    finally:
        await reader.close()


def _print(
    reader: FleetReader,
    rows: list[FleetRow],
    now: float,
    format: OutputFormat,
    table: Callable[..., Table],
) -> None:
    if not format.tabular:
        plain(document(rows, reader.notes, now, reader.host), format)
        return
    _print_notes(reader)
    if rows:
        print_table(table(rows, now, wide=format.name == "wide"))
    else:
        click.echo("No clusters.", err=True)


def _print_notes(reader: FleetReader) -> None:
    for note in reader.notes:
        print_line(f"note: {note}", err=True)


async def _read(reader: FleetReader) -> None:
    try:
        await reader.read()
    except NotAFleet as error:
        raise CommandError(f"{error}: is this the management cluster? (--kubeconfig)") from None


def _drop(logger: object, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    raise structlog.DropEvent


def _on_screen() -> bool:
    return sys.stdout.isatty() and sys.stdin.isatty() and os.environ.get("TERM", "dumb") != "dumb"


@asynccontextmanager
async def _reader(connections: Connections, namespace: str) -> AsyncIterator[FleetReader]:
    # Failures of watches are notes on the screen; log lines would destroy it.
    structlog.configure(processors=[_drop])
    async with connections.management() as management, open_garden(connections, management, namespace) as garden:
        views = [view for domain in all_domains() for view in domain.fleet_views()]
        yield FleetReader(management, ReadGarden(garden.client, garden.namespace), namespace, views=views)
