"""The errors of reading releases. Their messages are shown to people, so they hold no credential."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hortus.render.artifacts import AccessDenied, ArtifactError, NotFound, PolicyRefused
from hortus.render.github import BadRepository
from hortus.render.oci import BadCredentials, BadReference


class ReleaseError(Exception):
    """A release cannot be had; the message names the release or the source, the file, and the fix."""


class SourceUnusable(ReleaseError):
    """The source is not configured, or refuses us: an operator has to act."""


class SourceFailed(ReleaseError):
    """The source does not answer as it should; a later attempt may succeed."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds after which the source asks to be tried again."""


class ReleaseMissing(ReleaseError):
    """The release is not there: not downloaded, or unknown to the source."""


class BadRelease(ReleaseError):
    """A file of the release is missing or wrong: its publisher has to act."""


@contextmanager
def reading(what: str, *, listing: bool = False) -> Iterator[None]:
    """Maps errors of the source's client. Without `listing`, a thing that is not found is a release."""
    try:
        yield
    except (AccessDenied, PolicyRefused, BadCredentials, BadReference, BadRepository) as error:
        raise SourceUnusable(f"{what}: {error}") from error
    except NotFound as error:
        raise (SourceUnusable if listing else ReleaseMissing)(f"{what}: {error}") from error
    except ArtifactError as error:
        raise SourceFailed(f"{what}: {error}", retry_after=error.retry_after) from error
