"""What judges of a request want said beside its answer: warnings to the client, annotations to the audit log.

Made when somebody has something to say, found again by the server when it answers, errors included. A request is one
task, so a context variable carries it; the server clears it before the next request of the same connection.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from hortus.apiserver.authn.identity import UserInfo


class Remarks:
    __slots__ = ("annotations", "audit_id", "body", "impersonator", "on_start", "warnings")

    def __init__(self) -> None:
        self.audit_id = ""
        self.body = b""
        """Of the request, kept for the audit log."""
        self.impersonator: UserInfo | None = None
        """Who really asks, when acting as somebody else."""
        self.on_start: Callable[[], None] | None = None
        """Called when a stream begins."""
        self.warnings: list[str] = []
        self.annotations: dict[str, str] = {}


REMARKS: ContextVar[Remarks | None] = ContextVar("remarks", default=None)


def remarks() -> Remarks:
    """Those of the request in progress."""
    found = REMARKS.get()
    if found is None:
        found = Remarks()
        REMARKS.set(found)
    return found
