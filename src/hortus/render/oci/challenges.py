"""WWW-Authenticate headers taken apart (RFC 9110, 11.6.1)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 - a grammar
_SCHEME = re.compile(rf"\s*,?\s*({_TOKEN})(?:\s+|$)(?!\s*=)")
_PARAMETER = re.compile(rf'\s*,?\s*({_TOKEN})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|({_TOKEN}))')
_LONGEST = 8_192


class Challenge(NamedTuple):
    """One way in that a server offers; names in lower case."""

    scheme: str
    parameters: dict[str, str]


def challenges(headers: Iterable[str]) -> list[Challenge]:
    """All challenges in the headers' order; what cannot be read ends a header's list."""
    found = []
    for text in headers:
        place = 0
        while place < len(text[:_LONGEST]) and (scheme := _SCHEME.match(text, place)):
            place = scheme.end()
            parameters: dict[str, str] = {}
            while parameter := _PARAMETER.match(text, place):
                place = parameter.end()
                quoted, plain = parameter[2], parameter[3]
                parameters[parameter[1].lower()] = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            found.append(Challenge(scheme[1].lower(), parameters))
    return found
