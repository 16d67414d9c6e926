"""The one error of reading modules from a registry, and the meaning of the errors below it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hortus.domains.modules.registry.descriptors import BadDescriptor
from hortus.engine.outcomes import Actor, StepError
from hortus.render.archive import ArchiveError
from hortus.render.artifacts import AccessDenied, ArtifactError, CacheFailed, NotFound
from hortus.render.oci import BadCredentials, BadReference

UNAVAILABLE = "ModuleRegistryUnavailable"
"""The registry cannot be reached, or fails; waiting is enough."""
DENIED = "ModuleRegistryAccessDenied"
MISSING = "ModuleNotPublished"
"""The registry has no such version or blob."""
INVALID = "ModuleSourceInvalid"
"""The registry answers, but not with a module: a wrong digest, a refused archive, a descriptor that cannot be read."""
CACHE = "ModuleCacheFailed"


class ModuleSourceError(StepError):
    """A module cannot be read from its registry; the message names module and version. Retried with back-off."""

    def __init__(self, place: str, problem: str, *, reason: str = INVALID, actor: Actor = Actor.PROVIDER) -> None:
        super().__init__(f"{place}: {problem}", reason=reason, actor=actor)


@contextmanager
def reading(place: str) -> Iterator[None]:
    """Maps the renderers' errors to ModuleSourceError. `place` names the module and version that is read."""
    try:
        yield
    except ArtifactError as error:
        raise _mapped(place, error) from error
    except ArchiveError as error:
        raise ModuleSourceError(place, f"the archive is refused: {error} ({error.rule.value})") from error
    except BadDescriptor as error:
        raise ModuleSourceError(place, str(error)) from error
    except BadReference as error:
        raise ModuleSourceError(place, str(error), actor=Actor.OPERATOR) from error
    except BadCredentials as error:
        raise ModuleSourceError(place, str(error), reason=DENIED, actor=Actor.OPERATOR) from error


def _mapped(place: str, error: ArtifactError) -> ModuleSourceError:
    reason, actor = INVALID, Actor.PROVIDER
    if error.temporary:
        reason = UNAVAILABLE
    elif isinstance(error, AccessDenied):
        reason, actor = DENIED, Actor.OPERATOR
    elif isinstance(error, NotFound):
        reason, actor = MISSING, Actor.OPERATOR
    elif isinstance(error, CacheFailed):
        reason, actor = CACHE, Actor.OPERATOR
    mapped = ModuleSourceError(place, str(error), reason=reason, actor=actor)
    mapped.after = error.retry_after
    return mapped
