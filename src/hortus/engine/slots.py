"""The workers of a controller as its watchdog sees them: what runs in each, until when, and why that was cut off.

One timer serves all of them: it looks at when each began, so that a reconcile which ends in time never touched a timer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from hortus.engine.outcomes import DeadlineExceeded, HandedOver
from hortus.kube.clock import Clock, Timer

CLEANUP_SECONDS = 10.0
"""After its deadline a reconcile has so long for its `finally`; then what it waits for there is cancelled as well."""

_NEVER = float("inf")


class Slot:
    """One worker: the end of its present reconcile's time, and why that has been cut off, if it has."""

    __slots__ = ("aside", "cut", "cuts", "ends", "idle", "step_aside", "task")

    def __init__(self, step_aside: Callable[[Slot], None]) -> None:
        self.task: asyncio.Task[None] | None = None
        self.ends = _NEVER
        self.cut: Exception | None = None
        self.cuts = 0
        """Cancellations for that."""
        self.idle = False
        self.aside = False
        """True when a spare worker stands in for it."""
        self.step_aside = partial(step_aside, self)

    def cut_off(self, reason: Exception) -> None:
        """Cancel the reconcile that runs here, for `reason`; the first one counts."""
        if self.cut is None and self.task is not None:
            self.cut = reason
            self._cancel(self.task)

    def cut_off_again(self) -> None:
        """Cancel what it waits for in a `finally`; until that ends another worker stands in."""
        if self.task is not None:
            self.step_aside()
            self._cancel(self.task)

    def interrupt(self) -> None:
        """End the reconcile: its object is another process's."""
        self.cut_off(HandedOver("the object is another process's now"))

    def outlived(self, cause: Exception | None) -> Exception:
        """The reason why it was cut off. Takes our own cancellations back, so that the worker lives on.

        Raises CancelledError for one that is somebody else's.
        """
        error, self.cut = self.cut, None
        assert self.task is not None and error is not None, "a worker that was cut off has a task and a reason"
        for _ in range(self.cuts):
            self.task.uncancel()
        if self.task.cancelling():
            raise asyncio.CancelledError
        error.__cause__ = cause
        return error

    def end(self) -> None:
        """The reconcile is over."""
        self.ends, self.cuts = _NEVER, 0

    def _cancel(self, task: asyncio.Task[None]) -> None:
        self.cuts += 1
        task.cancel()


class Deadlines:
    """Cuts reconciles off that take longer than `seconds`."""

    def __init__(self, seconds: float | None, clock: Clock, slots: Callable[[], Iterable[Slot]]) -> None:
        """`slots` are all workers there are; without `seconds` nothing is ever cut off."""
        self._seconds = seconds
        self._clock = clock
        self._slots = slots
        self._timer: Timer | None = None

    def begin(self, slot: Slot) -> None:
        """A reconcile begins in `slot`."""
        if self._seconds is None:
            return
        slot.ends = self._clock.monotonic() + self._seconds
        if self._timer is None:
            self._timer = self._clock.call_later(self._seconds, self._cut_off)

    def stop(self) -> None:
        """Cut nothing off any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _cut_off(self) -> None:
        """Cancel every reconcile whose time is over; look again when the next one's will be."""
        now = self._clock.monotonic() + 0.0005
        next_end = _NEVER
        for slot in self._slots():
            if slot.ends <= now:
                slot.ends = now + CLEANUP_SECONDS
                if slot.cut is None:
                    slot.cut_off(DeadlineExceeded(self._seconds or 0.0))
                else:
                    slot.cut_off_again()
            next_end = min(next_end, slot.ends)
        self._timer = self._clock.call_later(next_end - now, self._cut_off) if next_end < _NEVER else None


__all__ = ["CLEANUP_SECONDS", "Deadlines", "Slot"]
