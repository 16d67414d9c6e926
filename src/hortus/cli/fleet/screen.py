"""A full screen of lines: drawn again when something changed, scrolled with the keyboard.

The control sequences are those of ECMA-48 and xterm's alternate screen. Only lines that differ are written.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import click

from hortus.cli.fleet.printing import ScreenLine

_ENTER = "\x1b[?1049h\x1b[?25l\x1b[?7l"
"""The alternate screen, without a cursor, and lines that are cut and not wrapped."""
_LEAVE = "\x1b[?7h\x1b[?25h\x1b[?1049l"
_LEAST = 0.2
"""Seconds between two drawings."""
_SHARE = 5.0
"""A drawing that took a second is followed by as many seconds of rest: a bound for the share of a CPU."""
_TICK = 10.0
"""Seconds until ages and expiries are drawn again although nothing changed."""
_UP, _DOWN, _PAGE_UP, _PAGE_DOWN, _HOME, _END = "\x1b[A", "\x1b[B", "\x1b[5~", "\x1b[6~", "\x1b[H", "\x1b[F"


class Picture(NamedTuple):
    """The content of a screen: lines that stay at the top, and lines that scroll below."""

    head: Sequence[ScreenLine]
    total: int
    """The number of lines that scroll."""
    part: Callable[[int, int], Sequence[ScreenLine]]
    """Returns the lines from one number to another, and before them the head of their table, if they have one."""
    titled: bool = False
    """True if they have one."""


class Screen:
    """Shows what `picture` returns for a width, until the user quits."""

    def __init__(self, picture: Callable[[int], Picture], *, colours: bool) -> None:
        self._picture = picture
        self._colours = colours
        self._changed = asyncio.Event()
        self._quit = False
        self._top = 0
        """The first line of the body that is shown."""
        self._lines = 0
        self._room = 1
        self._shown: list[str] = []
        self._size = (0, 0)

    def refresh(self) -> None:
        """Draw again soon."""
        self._changed.set()

    async def run(self) -> None:
        """Returns when the user quits; the terminal is as it was before."""
        loop, keyboard = asyncio.get_running_loop(), sys.stdin.fileno()
        before = termios.tcgetattr(keyboard)
        for number in (signal.SIGWINCH, signal.SIGCONT):
            loop.add_signal_handler(number, self._resized)
        try:
            tty.setcbreak(keyboard)
            loop.add_reader(keyboard, self._typed, keyboard)
            self._write(_ENTER)
            await self._draw_until_quit(loop)
        finally:
            loop.remove_reader(keyboard)
            for number in (signal.SIGWINCH, signal.SIGCONT):
                loop.remove_signal_handler(number)
            termios.tcsetattr(keyboard, termios.TCSADRAIN, before)
            self._write(_LEAVE)

    async def _draw_until_quit(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._quit:
            self._changed.clear()
            began = loop.time()
            self._draw()
            await asyncio.sleep(max(_LEAST, _SHARE * (loop.time() - began)))
            try:
                async with asyncio.timeout(_TICK):
                    await self._changed.wait()
            except TimeoutError:
                pass

    def _draw(self) -> None:
        width, height = size = shutil.get_terminal_size()
        picture = self._picture(width)
        self._room, self._lines = max(1, height - len(picture.head) - picture.titled - 1), picture.total
        self._top = max(0, min(self._top, self._lines - self._room))
        visible = [*picture.head, *picture.part(self._top, self._top + self._room)]
        empty = [ScreenLine("")] * (height - 1 - len(visible))
        lines = [self._styled(line, width) for line in (*visible, *empty, ScreenLine(self._foot(), "dim"))][:height]
        if size != self._size:
            self._shown, self._size = [], size
            self._write("\x1b[2J")
        old = self._shown + [""] * (len(lines) - len(self._shown))
        changed = [(row, new) for row, (was, new) in enumerate(zip(old, lines, strict=False), 1) if was != new]
        self._write("".join(f"\x1b[{row};1H{text}\x1b[K" for row, text in changed))
        self._shown = lines

    def _foot(self) -> str:
        if self._lines <= self._room:
            return "q quits"
        last = min(self._top + self._room, self._lines)
        return f"lines {self._top + 1:,}-{last:,} of {self._lines:,}; arrows and pages scroll, q quits"

    def _styled(self, line: ScreenLine, width: int) -> str:
        text = line.text[:width]
        if not self._colours or not line.colour:
            return text
        look: dict[str, Any] = {line.colour: True} if line.colour in ("dim", "bold") else {"fg": line.colour}
        return click.style(text, **look)

    def _typed(self, keyboard: int) -> None:
        keys = os.read(keyboard, 64).decode("ascii", "replace")
        moves = {
            _UP: -1, "k": -1, _DOWN: 1, "j": 1, _PAGE_UP: -self._room, _PAGE_DOWN: self._room, " ": self._room,
            _HOME: -self._lines, "g": -self._lines, _END: self._lines, "G": self._lines,
        }  # fmt: skip
        if not keys or "q" in keys or "\x04" in keys:
            self._quit = True
        self._top = max(0, self._top + moves.get(keys, 0))
        self.refresh()

    def _resized(self) -> None:
        self._size = (0, 0)
        self.refresh()

    def _write(self, text: str) -> None:
        if text:
            sys.stdout.write(text)
            sys.stdout.flush()
