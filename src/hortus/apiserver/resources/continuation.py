"""Continue tokens: the start of the next page and its snapshot.

The token is neither secret nor trusted: it holds a revision and a name relative to the collection that the request may
list anyway, so a forged one can only skip objects. Form as in kube-apiserver (base64url of JSON), version
`meta.k8s.io/v1`.
"""

from __future__ import annotations

import base64
import string
from typing import Any, NamedTuple

import orjson

from hortus.kube.errors import BadRequest, Expired

_VERSION = "meta.k8s.io/v1"
_ALPHABET = string.ascii_letters + string.digits + "-_"


class Position(NamedTuple):
    revision: int
    after: str
    """The last name of the page before; relative to the namespace when one is listed."""


def token_of(position: Position) -> str:
    body = {"v": _VERSION, "rv": position.revision, "start": position.after + "\0"}
    return base64.urlsafe_b64encode(orjson.dumps(body)).decode().rstrip("=")


def position_of(token: str) -> Position:
    """The position in a token. Raises BadRequest for a token that no server issued."""
    body = _body_of(token)
    version, revision, start = body.get("v", ""), body.get("rv", 0), body.get("start", "")
    if version != _VERSION:
        raise _not_valid(f"server does not recognize this encoded version {version}")
    if not isinstance(start, str) or type(revision) is not int or not start or not -1 <= revision < 1 << 63:
        raise _not_valid("incorrect encoded start resourceVersion or key")
    if any(part in (".", "..") for part in start.split("/")):
        raise _not_valid(start)
    return Position(revision, start.removesuffix("\0"))


def _body_of(token: str) -> dict[str, Any]:
    rest = token.lstrip(_ALPHABET)
    if rest or len(token) % 4 == 1:
        raise _not_valid(f"illegal base64 data at input byte {len(token) - (len(rest) or 1)}")
    try:
        body = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except ValueError:
        raise _not_valid("it holds no JSON") from None
    return body if isinstance(body, dict) else {}


def _not_valid(why: str) -> BadRequest:
    return BadRequest(f"invalid continue token: continue key is not valid: {why}")


def expired(after: str) -> Expired:
    """A 410 with a token that continues from the same name in the present state."""
    fresh = token_of(Position(-1, after))
    error = Expired(
        "The provided continue parameter is too old to display a consistent list result. You can start a new list "
        "without the continue parameter, or use the continue token in this response to retrieve the remainder of the "
        "results. Continuing with the provided token results in an inconsistent list - objects that were created, "
        "modified, or deleted between the time the first chunk was returned and now may show up in the list."
    )
    error.metadata = {"continue": fresh}
    return error
