"""The one thread that writes to the disk, and the handover of work to it.

A thread pool costs two futures, a lock and a copy of the context for each batch of writes, which is more than SQLite
needs for the batch. Here a batch costs an item in a queue and one callback of the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue

_PATIENCE = 0.001
_GIVE_WAY = 0.0001
"""Seconds after which the loop yields the interpreter to the thread, and seconds for which it sleeps to do so."""

_Work = tuple[Callable[[], None], asyncio.AbstractEventLoop, "asyncio.Future[None]"]


class WriterThread:
    """Runs one piece of work at a time, in order. The thread starts with the first; `end` waits for the last."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: SimpleQueue[_Work | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def run(self, work: Callable[..., None], *arguments: object) -> None:
        """Runs `work` on the thread, and prevents a busy loop from keeping the interpreter lock.

        A loop on uvloop releases and takes the lock many times a millisecond. Each release wakes the waiting thread too
        late to get the lock, and too early for a forced switch: with the loop at 100 % it was observed to starve for
        seconds. A loop that really sleeps for a moment lets the thread run.
        """
        if self._thread is None:
            # As a daemon: work without a waiting caller has not been acknowledged.
            self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        done = loop.create_future()
        self._waiting.put((partial(work, *arguments), loop, done))
        patience = _Patience(loop)
        try:
            await done
        finally:
            patience.timer.cancel()

    def end(self) -> None:
        """Waits until all work is done; no work may follow."""
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()
            self._thread = None

    def _serve(self) -> None:
        while True:
            item = self._waiting.get()
            if item is None:
                return
            work, loop, done = item
            error: BaseException | None = None
            try:
                work()
            except BaseException as raised:  # the caller gets it, and the thread continues
                error = raised
            with contextlib.suppress(RuntimeError):  # the loop has been closed, so no caller waits
                loop.call_soon_threadsafe(_settle, done, error)
            del item, work, loop, done, error


class _Patience:
    """Yields the interpreter to other threads each time that the loop has had it for that long."""

    __slots__ = ("_loop", "timer")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.timer = loop.call_later(_PATIENCE, self._give_way)

    def _give_way(self) -> None:
        time.sleep(_GIVE_WAY)
        self.timer = self._loop.call_later(_PATIENCE, self._give_way)


def _settle(done: asyncio.Future[None], error: BaseException | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)
