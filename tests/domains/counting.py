"""The requests of one piece of work, apart from those that controllers make at the same time.

A reconcile that a test starts runs next to workers, watches and event recorders. Their requests come when they come: a
count of all requests would hold by chance.
"""

from __future__ import annotations

from collections.abc import Awaitable
from contextvars import ContextVar

Answer = tuple[str, str, str]
"""Method, host and code."""

_work: ContextVar[list[Answer] | None] = ContextVar("work", default=None)


def note(answer: Answer) -> None:
    """Notes an answered request; tasks that the work has begun count as its own."""
    if (made := _work.get()) is not None:
        made.append(answer)


async def requests_of(work: Awaitable[object]) -> list[Answer]:
    """The requests of the work, in the order of their answers."""
    made: list[Answer] = []
    token = _work.set(made)
    try:
        await work
    finally:
        _work.reset(token)
    return made
