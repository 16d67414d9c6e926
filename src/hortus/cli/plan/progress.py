"""Progress of a plan in the making: one line on standard error while that is a terminal, which goes away at the end.

The plan is made on the main thread, and the line is drawn by another one that only reads counters.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from hortus.simulation.plan.texts import amount, duration

if TYPE_CHECKING:
    from rich.text import Text

_PER_SECOND: Final = 4


class PlanProgress:
    """The phase of a plan, and what it has come to. A plan that nobody watches has one as well."""

    def __init__(self) -> None:
        self.phase = "starting"
        self._began = time.monotonic()
        self.lists: Callable[[], int] = int
        """Lists that were sent to live clusters."""
        self.passed: Callable[[], float] = float
        """Seconds of virtual time since the phase began."""
        self.writes: Callable[[], int] = int
        """Writes in the phase that changed something."""

    def line(self) -> str:
        """Everything in one line."""
        parts = [f"{self.phase}, {duration(time.monotonic() - self._began)}"]
        parts += [f"{amount(lists, 'list')} read"] if (lists := self.lists()) else []
        parts += [f"{duration(passed)} of virtual time"] if (passed := self.passed()) else []
        parts += [amount(writes, "write")] if (writes := self.writes()) else []
        return "; ".join(parts)

    def __rich__(self) -> Text:
        from rich.text import Text

        return Text(self.line(), style="dim", no_wrap=True, overflow="ellipsis")


@contextmanager
def showing(progress: PlanProgress) -> Iterator[None]:
    """Shows it while the body runs, on a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.live import Live

    console = Console(stderr=True)
    with Live(progress, console=console, refresh_per_second=_PER_SECOND, transient=True, redirect_stdout=False):
        yield
