"""Confidential text: tokens, private keys, passwords.

It prints as dots wherever an object is formatted (repr, str, f-string, log, traceback); only `reveal()` shows it. It
does not protect against core dumps.
"""

from __future__ import annotations

import base64
import hmac
from typing import NoReturn


class Secret:
    """Holds one confidential text; compares in constant time, does not print, does not pickle."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """The text itself. The caller is responsible for its further use."""
        return self._text

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._text.encode(), other._text.encode())

    def __hash__(self) -> int:
        return hash((Secret, self._text))

    def __repr__(self) -> str:
        return "Secret(…)"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return repr(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Secret is not pickled: pass the text to the other process on purpose")


_SHORTEST = 8
"""The least length, in characters, of a credential that is searched for; a shorter one would be found in any text."""


def without_credential(content: bytes, authorization: str | None) -> bytes:
    """`content` without the credential of an Authorization header; JSON is returned without escapes that need not be.

    Servers and proxies repeat requests in their errors, and these become conditions and events that more people can
    read than the Secret. JSON may write any character as an escape, and some encoders write "=" and "/" so, which stand
    in most credentials: so it is written again before the search. Nothing is left of JSON that is nested too deeply.
    """
    sought = [part for part in _parts(authorization or "") if len(part) >= _SHORTEST]
    if not sought:
        return content
    import orjson  # here: commands that call no server load this module too

    try:
        content = orjson.dumps(orjson.loads(content))
    except orjson.JSONDecodeError:
        pass
    except orjson.JSONEncodeError:
        return b""
    for part in sought:
        for written in (part.encode(), orjson.dumps(part)[1:-1]):
            content = content.replace(written, b"[redacted]")
    return content


def _parts(authorization: str) -> list[str]:
    """The texts in an Authorization header that give access."""
    scheme, _, value = authorization.partition(" ")
    if scheme != "Basic":
        return [value]
    return [value, base64.b64decode(value).decode(errors="replace").partition(":")[2]]
