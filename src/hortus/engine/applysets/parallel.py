"""A step for each of many items, so many at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


async def each(items: Sequence[T], step: Callable[[T], Awaitable[R]], *, limit: int) -> list[R]:
    """The results of `step`, in the order of `items`. When one raises, the others are cancelled and that is raised."""
    if len(items) <= 1:
        return [await step(item) for item in items]
    slots = asyncio.Semaphore(limit)

    async def one(item: T) -> R:
        async with slots:
            return await step(item)

    tasks = [asyncio.ensure_future(one(item)) for item in items]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
