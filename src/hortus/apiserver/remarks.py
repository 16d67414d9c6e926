"""Remarks of webhooks and policies on a request: warnings to the client, annotations to the audit log.

They are made on first use and read by the server when it answers, errors included. A request is one task, so a context
variable holds them; the server clears it before the next request of the same connection. Both are bounded: they come
from untrusted code, and tasks that are no requests are never cleared.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

from hortus.apiserver.authn.identity import UserInfo

_MOST_WARNINGS = 4096
"""Characters of all warnings of an answer together (k8s.io/apiserver, warning recorder)."""
_MOST_ANNOTATIONS = 128
_LONGEST_ANNOTATION = 16 * 1024


class Remarks:
    __slots__ = ("annotations", "audit_id", "body", "impersonator", "on_start", "warnings")

    def __init__(self) -> None:
        self.audit_id = ""
        self.body = b""
        """The body of the request, kept for the audit log."""
        self.impersonator: UserInfo | None = None
        """The authenticated user of a request that impersonates another one."""
        self.on_start: Callable[[], None] | None = None
        """Called when a stream begins."""
        self.warnings: list[str] = []
        self.annotations: dict[str, str] = {}

    def warn(self, text: str) -> None:
        """Adds a warning, each text once, up to the limit."""
        length = sum(map(len, self.warnings))
        if text and text not in self.warnings and length + len(text) <= _MOST_WARNINGS:
            self.warnings.append(text)

    def annotate(self, key: str, value: str) -> None:
        if len(self.annotations) < _MOST_ANNOTATIONS:
            self.annotations.setdefault(key, value[:_LONGEST_ANNOTATION])


REMARKS: ContextVar[Remarks | None] = ContextVar("remarks", default=None)


def remarks() -> Remarks:
    """The remarks of the request in progress."""
    found = REMARKS.get()
    if found is None:
        found = Remarks()
        REMARKS.set(found)
    return found
