"""Polling in tests, for the state of another process, of a real socket, or of a cache behind one.

Neither an event nor a clock of the test shows such a state. For objects there is `hortus.testing.wait_for`.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
PATIENCE = 60.0
"""Seconds after which whatever was waited for fails the test."""
_PAUSE, _LONGEST_PAUSE = 0.01, 0.1
_LATE = 0.1
"""The part of the time waited so far by which an answer may be found late: many questions take the time of whatever
is waited for."""


async def until(answer: Callable[[], T | Awaitable[T]]) -> T:
    """Returns the first true answer. Raises TimeoutError after `PATIENCE`."""
    time = asyncio.get_running_loop().time
    began = time()
    async with asyncio.timeout(PATIENCE):
        while True:
            found = answer()
            answered = await found if inspect.isawaitable(found) else found
            if answered:
                return answered
            await asyncio.sleep(min(max(_PAUSE, (time() - began) * _LATE), _LONGEST_PAUSE))
