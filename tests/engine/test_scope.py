"""Work inherits from the reconcile that begins it only what belongs to that one."""

from __future__ import annotations

import asyncio

import pytest

from hortus.engine.scope import Scope, call_shared_later, current_scope, enter_scope, start_shared
from hortus.kube import SystemClock
from hortus.kube.clock import Clock
from hortus.kube.fencing import Fenced, check_fence, set_fence
from hortus.kube.objects import ObjectKey
from hortus.testing import FakeClock


def _closed() -> None:
    raise Fenced("not yours any more")


def _inherited() -> list[str]:
    found = ["scope"] if current_scope() is not None else []
    try:
        check_fence()
    except Fenced:
        found.append("fence")
    return found


async def _inherits() -> list[str]:
    return _inherited()


async def test_a_task_of_a_reconcile_belongs_to_it_and_shared_work_does_not() -> None:
    enter_scope(Scope("clusters", ObjectKey("default", "a")))
    set_fence(_closed)
    own, shared = asyncio.create_task(_inherits()), start_shared(_inherits(), name="shared")
    assert [await own, await shared] == [["scope", "fence"], []]
    assert _inherited() == ["scope", "fence"], "the reconcile keeps its own"


@pytest.mark.parametrize("clock", [SystemClock(), FakeClock()], ids=["system", "fake"])
async def test_a_timer_of_a_reconcile_belongs_to_it_and_a_shared_one_does_not(clock: Clock) -> None:
    enter_scope(Scope("clusters", ObjectKey("default", "a")))
    set_fence(_closed)
    rung: asyncio.Queue[list[str]] = asyncio.Queue()
    clock.call_later(0.001, lambda: rung.put_nowait(_inherited()))
    call_shared_later(clock, 0.002, lambda: rung.put_nowait(_inherited()))
    set_fence(None)
    enter_scope(None)
    if isinstance(clock, FakeClock):
        await clock.advance(1)
    assert [await rung.get(), await rung.get()] == [["scope", "fence"], []]
