"""The one thread that writes to the disk, and the hand-over of work to it.

A pool's executor costs two futures, a lock and a copy of the context for each batch of writes, which is more than the
batch costs SQLite. Here a batch is an item in a queue on the way out and one call of the loop on the way back.
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
"""Seconds after which the loop lets the thread have the interpreter, and for how long it sleeps to do so."""

_Work = tuple[Callable[[], None], asyncio.AbstractEventLoop, "asyncio.Future[None]"]


class WriterThread:
    """Runs one piece of work at a time, in order. The thread starts with the first; `end` waits for the last."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._waiting: SimpleQueue[_Work | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    async def run(self, work: Callable[..., None], *arguments: object) -> None:
        """Run `work` on the thread, making sure that a busy loop does not keep it from the interpreter lock.

        A loop on uvloop gives the lock up and takes it back many times a millisecond. Each time wakes the waiting
        thread, too late to get the lock and too early for its wait to count as one that earns a forced switch: with
        the loop at 100 % it has been seen to starve for seconds. A loop that really sleeps for a moment lets it in.
        """
        if self._thread is None:
            # As a daemon: what nobody waits for any more has been acknowledged to nobody.
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
        """Wait until all work is done; there is to be none after it."""
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
            except BaseException as raised:  # it is its caller's, and the thread goes on
                error = raised
            with contextlib.suppress(RuntimeError):  # the loop has been closed, so nobody waits
                loop.call_soon_threadsafe(_settle, done, error)
            del item, work, loop, done, error


class _Patience:
    """Lets other threads have the interpreter each time that the loop has had it for so long."""

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
