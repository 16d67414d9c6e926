"""Lists in pages: to the end, never in a circle, never to another host (RFC 8288 `Link` headers)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from yarl import URL

from hortus.render.artifacts.redirects import Destinations

_LINK = re.compile(r'<([^<>]*)>((?:\s*;\s*[A-Za-z0-9*!#$&+.^_`|~-]+\s*(?:=\s*(?:"[^"]*"|[^\s";,]*))?)*)')
_NEXT = re.compile(r';\s*rel\s*=\s*(?:"(?:[^"]*\s)?next(?:\s[^"]*)?"|next(?=\s*(?:;|$)))', re.IGNORECASE)
_LONGEST = 16_384


def next_page(headers: Iterable[str], current: URL, destinations: Destinations) -> URL | None:
    """The page after `current`, at the same host. Raises PolicyRefused."""
    for text in headers:
        for target, parameters in _LINK.findall(text[:_LONGEST]):
            if _NEXT.search(parameters):
                return destinations.same_origin(current, target, "next page")
    return None
