"""A terminal of a given size with a program in it; its screen is what a person would see.

`streams` has the standard streams of this process be other files, for what a command writes and how it ends.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import pyte
from tests.scenarios.running import PATIENCE, environment

from hortus.cli.shell import app


def program(*words: str, name: str = "hortus") -> list[str]:
    return [str(Path(sys.executable).parent / name), *words]


class Terminal:
    def __init__(self, command: list[str], *, width: int, height: int, env: dict[str, str]) -> None:
        self._screen = pyte.Screen(width, height)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        """Everything that was written, with its control sequences."""
        self._ours, theirs = pty.openpty()
        self.resize(width, height)
        self.process = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=env, start_new_session=True, preexec_fn=_owned
        )
        os.close(theirs)

    @property
    def lines(self) -> list[str]:
        """The lines of the screen, without those that are empty at its end."""
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip().split("\n")

    @property
    def cursor_hidden(self) -> bool:
        return bool(self._screen.cursor.hidden)

    def resize(self, width: int, height: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self._screen.resize(height, width)

    def type(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def until(self, shown: Callable[[list[str]], bool], what: str) -> list[str]:
        """The screen once it is as expected."""
        end = time.monotonic() + PATIENCE
        while not shown(self.lines):
            assert time.monotonic() < end, f"waited in vain for {what}; the screen:\n" + "\n".join(self.lines)
            if not self._read(0.5) and self.process.poll() is not None:
                self.drain()
                assert shown(self.lines), f"ended before {what}; the screen:\n" + "\n".join(self.lines)
        return self.lines

    def shows(self, text: str) -> list[str]:
        return self.until(lambda lines: any(text in line for line in lines), repr(text))

    def ended(self) -> int:
        """The exit code, after all output was read."""
        end = time.monotonic() + PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < end, "does not end; the screen:\n" + "\n".join(self.lines)
            self._read(0.05)
        self.drain()
        return self.process.returncode

    def drain(self) -> None:
        while self._read(0):
            pass

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self._ours)

    def _read(self, patience: float) -> bool:
        if not select.select([self._ours], [], [], patience)[0]:
            return False
        try:
            found = os.read(self._ours, 65536)
        except OSError:
            return False
        self.raw += found
        self._stream.feed(found)
        return bool(found)


def _owned() -> None:
    """Makes the terminal that of the new session, so that Ctrl-C typed into it is a signal."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@contextmanager
def terminal(*words: str, width: int = 80, height: int = 24, **more: str) -> Iterator[Terminal]:
    """`hortus WORDS` in a terminal; `more` are variables of its environment."""
    env = environment(**{"TERM": "xterm", **more})
    env.pop("COLUMNS", None)
    env.pop("LINES", None)
    if not more.get("NO_COLOR"):
        env.pop("NO_COLOR", None)
    found = Terminal(program(*words), width=width, height=height, env=env)
    try:
        yield found
    finally:
        found.close()


def written_to(output: int, *words: str) -> tuple[int, str]:
    """Types `hortus WORDS` in this process, with a standard output of this descriptor. Returns exit code and errors."""
    with tempfile.TemporaryFile("w+") as errors:
        with redirect_stderr(errors):
            code = _run(output, *words)
        errors.seek(0)
        return code, errors.read()


def shown_in_terminal(*words: str) -> tuple[int, bytes]:
    """Types `hortus WORDS` in this process, with a terminal for both outputs. Returns exit code and all output."""
    ours, theirs = pty.openpty()
    try:
        with os.fdopen(os.dup(theirs), "w") as errors, redirect_stderr(errors):
            code = _run(theirs, *words)
        return code, os.read(ours, 65536)
    finally:
        os.close(ours)


def _run(output: int, *words: str) -> int:
    """Takes over the descriptor."""
    with ExitStack() as stack:
        stream = os.fdopen(output, "w")
        stack.callback(stream.close)
        stack.enter_context(redirect_stdout(stream))
        try:
            app.main(words, prog_name="hortus")
        except SystemExit as end:
            return int(end.code or 0)
    return 0
