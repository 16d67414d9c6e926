"""An interrupt at any line between the making and the end of a command's coroutine ends the program in silence."""

from __future__ import annotations

import gc
import sys
import warnings
from types import FrameType
from typing import Any

from hortus.terminal import failures


async def _command() -> str:
    return "done"


class _Interrupt:
    """Raises KeyboardInterrupt at one line of `failures.run` or of what it calls there."""

    def __init__(self, line: int) -> None:
        self.struck = False
        self._left = line

    def __call__(self, frame: FrameType, event: str, arg: object) -> Any:
        code = frame.f_code
        if code.co_filename != failures.__file__ or code.co_name not in ("run", "_interruptible"):
            return None
        if event == "line" and not self.struck:
            if not self._left:
                self.struck = True
                raise KeyboardInterrupt
            self._left -= 1
        return self


def _program(line: int) -> tuple[bool, object]:
    """Runs a program that is interrupted; returns whether it was, with its result or exit code."""
    interrupt = _Interrupt(line)
    before = sys.gettrace()
    try:
        with failures.whole_program():
            sys.settrace(interrupt)
            try:
                return interrupt.struck, failures.run(_command())
            finally:
                sys.settrace(before)
    except SystemExit as end:
        return interrupt.struck, end.code


def test_no_interrupt_warns_of_a_coroutine_that_was_never_awaited() -> None:
    ends: list[tuple[bool, object]] = []
    while not ends or ends[-1][0]:
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            ends.append(_program(len(ends)))
            gc.collect()
        assert [str(one.message) for one in warned] == [], f"at line {len(ends)}"
    *interrupted, last = ends
    assert last == (False, "done")
    assert len(interrupted) > 5
    assert set(interrupted) == {(True, failures.EXIT_INTERRUPTED)}
