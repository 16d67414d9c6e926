"""Progress of a run on standard error: a live block on a terminal, plain lines at intervals elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from hortus.simulation.load.amounts import number, seconds, size

if TYPE_CHECKING:
    from rich.console import Group

    from hortus.simulation.load import RunProgress
    from hortus.simulation.load.running import Listener

_PLAIN_EVERY = 5.0
"""Seconds between two plain lines."""


def line(progress: RunProgress) -> str:
    """Everything in one line."""
    parts = [
        f"{progress.seconds:6.1f} s",
        f"phase {progress.phase}/{progress.phases} {progress.doing}",
        f"created {number(progress.created)}/{number(progress.planned)}",
        f"ready {number(progress.ready)}/{number(progress.living)}",
    ]
    parts += [
        f"{verb} {progress.operations[verb]}" for verb in ("rotate", "fail", "delete") if progress.operations.get(verb)
    ]
    parts += [f"faults {progress.faults}"] if progress.faults else []
    parts += [f"FAILED {number(progress.failed)}"] if progress.failed else []
    return "  ".join(parts)


@contextmanager
def showing(*, quiet: bool = False) -> Iterator[Listener]:
    """A listener that shows; what it shows on a terminal goes away at the end."""
    if quiet:
        yield lambda progress: None
    elif sys.stderr.isatty():
        yield from _live()
    else:
        yield _plain()


def _plain() -> Listener:
    last = -_PLAIN_EVERY
    shown = ""

    def listen(progress: RunProgress) -> None:
        nonlocal last, shown
        if progress.seconds - last >= _PLAIN_EVERY or progress.doing != shown:
            last, shown = progress.seconds, progress.doing
            print(line(progress), file=sys.stderr, flush=True)

    return listen


def _live() -> Iterator[Listener]:
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), refresh_per_second=4, transient=True) as live:
        yield lambda progress: live.update(_block(progress))


def _block(progress: RunProgress) -> Group:
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    head = Text(f"{progress.doing}  ", style="bold")
    head.append(f"phase {progress.phase} of {progress.phases}, {seconds(progress.seconds)}", style="dim")
    bars = Table.grid(padding=(0, 2))
    for name, done, of in (
        ("created", progress.created, progress.planned),
        ("ready", progress.ready, progress.living),
    ):
        bars.add_row(name, ProgressBar(total=max(of, 1), completed=done, width=40), f"{number(done)} of {number(of)}")
    others = {verb: progress.operations.get(verb, 0) for verb in ("rotate", "fail", "delete")}
    said = [f"{verb} {count}" for verb, count in others.items() if count]
    said += [f"{progress.faults} faults"] if progress.faults else []
    said += [f"[red]{progress.failed} failures[/]"] if progress.failed else []
    use = [f"{name} {cores:.2f} cores {size(memory)}" for name, (cores, memory) in progress.usage.items()]
    return Group(head, bars, Text.from_markup("  ".join(said)), Text("  ".join(use), style="dim"))
