"""Continue tokens: where the next page begins and in which snapshot.

The token is not a secret and not trusted: it holds a revision and a name relative to what the request may list anyway,
so a forged one can at most skip. Form as in kube-apiserver (base64url of JSON), version `meta.k8s.io/v1`.
"""

from __future__ import annotations

import base64
from typing import NamedTuple

import orjson

from hortus.kube.errors import BadRequest, Expired

_VERSION = "meta.k8s.io/v1"


class Position(NamedTuple):
    revision: int
    after: str
    """Names that sort after this one follow; relative to the namespace when one is listed."""


def token_of(position: Position) -> str:
    body = {"v": _VERSION, "rv": position.revision, "start": position.after + "\0"}
    return base64.urlsafe_b64encode(orjson.dumps(body)).decode().rstrip("=")


def position_of(token: str) -> Position:
    """Raises BadRequest for what no server gave out."""
    try:
        padded = token + "=" * (-len(token) % 4)
        body = orjson.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        version, revision, start = body["v"], body["rv"], body["start"]
    except (ValueError, KeyError, TypeError):
        raise BadRequest("continue key is not valid: it was not given out by this server") from None
    if version != _VERSION or not isinstance(start, str) or type(revision) is not int or not start:
        raise BadRequest("continue key is not valid: incorrect encoded start resourceVersion or key")
    if revision < -1 or revision >= 1 << 63 or any(part in (".", "..") for part in start.split("/")):
        raise BadRequest(f"continue key is not valid: {start!r} at {revision} is not a position in a list")
    return Position(revision, start.removesuffix("\0"))


def expired(after: str) -> Expired:
    """410 with a token that goes on from the same name in the present state."""
    fresh = token_of(Position(-1, after))
    error = Expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
    error.metadata = {"continue": fresh}
    return error
