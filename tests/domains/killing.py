"""Kills of controllers in the middle of their work: the server has answered, and the caller does not know.

All that a controller leaves for the next process it leaves by calls. A kill after each of them, one by one, therefore
stands for a kill at every await.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

import pytest

MOST_CALLS = 60
"""Calls after which an enumeration gives up."""
SAMPLE = 3
"""One read in so many is a point of a sample."""
sampled = pytest.mark.parametrize(
    "reads",
    [pytest.param(SAMPLE, id="sample"), pytest.param(1, id="every-call", marks=pytest.mark.soak)],
)
"""The points of an enumeration: a sample in `make test-all`, every call in `make soak`.

A sample has each write, and one in three of the calls that only read. A read leaves nothing for the next process, so a
kill after it mostly repeats the kill after the call before it.
"""


class Observed(Protocol):
    """The requests of a controller; `on_answer` is called with the method of each, in the task of the caller."""

    on_answer: Callable[..., None]


class Killer:
    """Ends the workers of a controller as soon as they have made so many calls."""

    def __init__(self, controller: str, *requests: Observed, reads: int = 1, remote: bool = False) -> None:
        """Each write counts, and of the calls that only read one in `reads`; none where it is 0.

        With `remote` so do those to other clusters, whose tasks have no name: then no call of the test is observed.
        """
        self.struck = asyncio.Event()
        self._workers = (f"{controller} worker", f"{controller} spare")
        self._reads = reads
        self._remote = remote
        self._left = 0
        self._read = 0
        self.calls = 0
        """The calls since the last aim, those that do not count included."""
        for one in requests:
            one.on_answer = self._answered

    def aim(self, calls: int) -> None:
        """Strike at the call after so many."""
        self.struck.clear()
        self._left = calls
        self._read = self.calls = 0

    def rest(self) -> None:
        """Strike no more."""
        self._left = -1

    def _answered(self, method: str, *_: str) -> None:
        if not self._is_ours(asyncio.current_task()):
            return
        self.calls += 1
        if method == "GET" and not self._is_point():
            return
        if self._left:
            self._left -= 1
            return
        self.struck.set()
        # By somebody else's cancellation alone a worker would not end.
        for task in asyncio.all_tasks():
            if self._is_worker(task):
                task.cancel()
        raise asyncio.CancelledError

    def _is_point(self) -> bool:
        """True for the first call that only reads, and for one in `reads` from there on."""
        self._read += 1
        return bool(self._reads) and (self._read - 1) % self._reads == 0

    def _is_ours(self, task: asyncio.Task[Any] | None) -> bool:
        if task is None:
            return False
        return self._is_worker(task) or (self._remote and task.get_name().startswith("Task-"))

    def _is_worker(self, task: asyncio.Task[Any]) -> bool:
        return any(worker in task.get_name() for worker in self._workers)


async def killed_at(
    killer: Killer, calls: int, process: AbstractAsyncContextManager[Any], done: asyncio.Task[Any]
) -> bool:
    """Run one process until it is killed, or `done` is; returns True when it was killed.

    A call that ends what `done` waits for may be the one that is killed.
    """
    killer.aim(calls)
    async with process:
        struck = asyncio.create_task(killer.struck.wait())
        await asyncio.wait((done, struck), return_when=asyncio.FIRST_COMPLETED)
        struck.cancel()
    return killer.struck.is_set()
