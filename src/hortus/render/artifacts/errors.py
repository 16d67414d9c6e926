"""The errors of fetching an artifact."""

from __future__ import annotations

from typing import ClassVar


class ArtifactError(Exception):
    """`place` (a host, repository, release or file), what is wrong with it, and what to do. Safe to show."""

    temporary: ClassVar[bool] = False
    """Trying again later may help, with nothing changed here."""

    def __init__(self, place: str, problem: str, advice: str = "", *, retry_after: float | None = None) -> None:
        super().__init__(f"{place}: {problem}; {advice}" if advice else f"{place}: {problem}")
        self.place = place
        self.problem = problem
        self.advice = advice
        self.retry_after = retry_after
        """Seconds after which the server asks to be tried again, or None."""


class NotFound(ArtifactError):
    """A repository, tag, release or blob that does not exist, or that these credentials may not see."""


class AccessDenied(ArtifactError):
    """The server does not accept the credentials, or they do not reach that far."""


class PolicyRefused(ArtifactError):
    """Our own rules forbid the next step: a redirect, a token realm, plain http, a local address."""


class DigestMismatch(ArtifactError):
    """The content does not have the digest that was asked for."""


class TooLarge(ArtifactError):
    """An answer is larger than it says or than is allowed."""


class BadAnswer(ArtifactError):
    """The server's answer does not follow its protocol."""


class RateLimited(ArtifactError):
    """The server wants fewer calls; `retry_after` is the wait that it asks for, if any."""

    temporary = True


class Unavailable(ArtifactError):
    """The server cannot be reached, breaks off, or fails."""

    temporary = True


class CacheFailed(ArtifactError):
    """The cache on disk cannot be used: its folder is not ours alone, or the disk is full."""
