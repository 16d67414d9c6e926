"""What judges of a request want said beside its answer: warnings to the client, annotations to the audit log.

Made when somebody has something to say, found again by the server when it answers, errors included. A request is one
task, so a context variable carries it; the server clears it before the next request of the same connection.
"""

from __future__ import annotations

from contextvars import ContextVar


class Remarks:
    __slots__ = ("annotations", "warnings")

    def __init__(self) -> None:
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
