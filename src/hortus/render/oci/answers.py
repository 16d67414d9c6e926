"""The meaning of a registry's refusals (distribution-spec, "Error Codes")."""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from hortus.render.artifacts import (
    AccessDenied,
    ArtifactError,
    BadAnswer,
    NotFound,
    RateLimited,
    Transfer,
    Unavailable,
)
from hortus.render.artifacts.redirects import authority
from hortus.render.artifacts.transfer import Answer

_SHOWN = 200


def refusal(answer: Answer, what: str, transfer: Transfer) -> ArtifactError:
    """The error for an answer that is no success; `what` names the thing asked for."""
    said = _message(answer.body)
    return refused(
        answer.status, answer.headers, authority(answer.url), what + (f" ({said})" if said else ""), transfer
    )


def refused(status: int, headers: Mapping[str, str], place: str, what: str, transfer: Transfer) -> ArtifactError:
    """The refusal of an answer whose body was not read."""
    wish = transfer.wish(headers)
    if status in (401, 403):
        return AccessDenied(place, f"denies access to {what}", "check the credentials for this registry")
    if status == 404:
        return NotFound(place, f"has no {what}", "check the name, and that the credentials may see it")
    if status == 429:
        return RateLimited(place, f"too many requests, asking for {what}", _later(wish), retry_after=wish)
    if status >= 500:
        return Unavailable(place, f"failed with HTTP status {status}, asking for {what}", retry_after=wish)
    return BadAnswer(place, f"answered with HTTP status {status}, asking for {what}")


def _later(wish: float | None) -> str:
    return f"come again in {wish:.0f} s" if wish is not None else "come again later, or use credentials"


def _message(body: bytes) -> str:
    """Code and message of the first error; only printable text, and not much of it."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    errors = found.get("errors") if isinstance(found, dict) else None
    first = errors[0] if isinstance(errors, list) and errors else None
    if not isinstance(first, dict):
        return ""
    text = ": ".join(part for part in (first.get("code"), first.get("message")) if isinstance(part, str))
    return "".join(char if char.isprintable() else " " for char in text[:_SHOWN])
