"""Which reconcile is running here: for log lines, without anybody handing a logger around."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from contextvars import ContextVar

from hortus.kube.objects import ObjectKey


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
    """For the controller's workers: what follows in this task belongs to `scope`."""
    _CURRENT.set(scope)
