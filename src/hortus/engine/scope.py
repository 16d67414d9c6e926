"""The reconcile that is running here: for log lines, without a logger that is handed around.

A task and a timer inherit the context of their maker: the scope, the fence, the span. That is right for what a
reconcile does in parallel, and wrong for what it is only the first to ask for, a cache or a probe: that would carry the
fence of one reconcile for ever. Whatever outlives a reconcile is begun by `start_shared` and `call_shared_later`.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar
from typing import Any, TypeVar

from hortus.kube.clock import Clock, Timer
from hortus.kube.objects import ObjectKey

T = TypeVar("T")


class Scope:
    """One reconcile of one object by one controller. Its id is drawn when somebody asks for it, which is seldom."""

    __slots__ = ("_id", "controller", "key", "step_aside")

    def __init__(self, controller: str, key: ObjectKey, step_aside: Callable[[], None] | None = None) -> None:
        self.controller = controller
        self.key = key
        self.step_aside = step_aside
        """Lets another worker take this one's place: for who is about to wait long, as for a remote cluster."""
        self._id = ""

    @property
    def id(self) -> str:
        if not self._id:
            self._id = str(uuid.uuid4())
        return self._id


_CURRENT: ContextVar[Scope | None] = ContextVar("hortus_reconcile", default=None)


def current_scope() -> Scope | None:
    """The reconcile in whose context the caller runs, or None."""
    return _CURRENT.get()


def enter_scope(scope: Scope | None) -> None:
    """Set the scope of what follows in this task; called by the workers of a controller."""
    _CURRENT.set(scope)


def start_shared(step: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
    """Start background work that serves many reconciles; it inherits nothing of the one that runs here."""
    return asyncio.get_running_loop().create_task(step, name=name, context=Context())


def call_shared_later(clock: Clock, seconds: float, callback: Callable[[], object]) -> Timer:
    """`clock.call_later` for a timer that serves many reconciles; it inherits nothing of the one that runs here."""
    return Context().run(clock.call_later, seconds, callback)
