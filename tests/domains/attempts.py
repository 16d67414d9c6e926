"""Attempts at a piece of work: the first process is killed at one of its answers, the second ends the work.

Each attempt has a world of its own, and kills at the next answer, until the work is done before: every await is
enumerated. The state at the end of each attempt has to be that of work that nobody interrupted.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, Protocol, TypeVar

import pytest
from tests.domains.killing import Killer, Observed, killed_at

from hortus.kube.objects import Object

MOST_ATTEMPTS = 150
PARTS = 4


def one_of(parts: int) -> pytest.MarkDecorator:
    """The first part for `make test`, all of so many for `make soak`, where they take minutes."""
    others = [pytest.param(part, marks=pytest.mark.soak) for part in range(1, parts)]
    return pytest.mark.parametrize("part", [0, *others])


class AttemptWorld(Protocol):
    """A world of tests whose controllers make observed requests."""

    @property
    def requests(self) -> Observed: ...

    def controllers(self) -> AbstractAsyncContextManager[Any]:
        """One process of controllers, killed at the end."""
        ...


W = TypeVar("W", bound=AttemptWorld)


async def is_killed(
    controller: str, here: W, answers: int, work: Callable[[W], Awaitable[object]], *, reads: int = 1
) -> tuple[bool, int]:
    """Run a process that is killed at an answer; False when the work is done before that. Next to it: its answers.

    `reads` is the Killer's.
    """
    killer = Killer(controller, here.requests, reads=reads, remote=True)
    done = asyncio.create_task(_named(work(here)), name="work")
    try:
        killed = await killed_at(killer, answers, here.controllers(), done)
        return killed, killer.calls
    finally:
        killer.rest()
        done.cancel()
        await asyncio.wait((done,))


async def _named(work: Awaitable[object]) -> object:
    return await work


class Attempts(Generic[W]):
    """The attempts of one file of tests."""

    def __init__(self, controller: str, state: Callable[[W], Awaitable[Object]], *, parts: int = PARTS) -> None:
        """`controller` is the one that is killed, `state` what users see in a world, `parts` those of the work."""
        self._controller = controller
        self._state = state
        self._parts = parts

    async def assert_no_kill_shows(
        self,
        world: Callable[[], AbstractAsyncContextManager[W]],
        part: int,
        prepare: Callable[[W], Awaitable[object]],
        work: Callable[[W], Awaitable[object]],
        *,
        least: int,
        reads: int = 1,
        state: Callable[[W], Awaitable[Object]] | None = None,
    ) -> None:
        """Kill the work at each of its answers and compare the ends. The controller gets at least `least` answers.

        `reads` is the Killer's.
        """
        compared = state or self._state
        # A process starts in the task of the test, whose calls are not those of a worker.
        task = asyncio.current_task()
        assert task is not None
        task.set_name("test")

        async def attempt(answers: int | None) -> tuple[Object, bool, int]:
            async with world() as here:
                await prepare(here)
                killed, seen = False, 0
                if answers is not None:
                    killed, seen = await is_killed(self._controller, here, answers, work, reads=reads)
                async with here.controllers():
                    await work(here)
                    return await compared(here), killed, seen

        expected, _, _ = await attempt(None)
        for answers in itertools.count(part, self._parts):
            found, killed, seen = await attempt(answers)
            assert found == expected, f"killed at answer {answers}, the last of {seen}"
            if not killed:
                assert seen >= least, "too few answers: the killer missed the controller"
                return
            assert answers < MOST_ATTEMPTS
