"""Regular expressions of schemas: Go's syntax (RE2), in linear time whatever the pattern and the text.

Python's `re` has another dialect and can backtrack for hours on a pattern from a CRD, so patterns run on the RE2 inside
the CEL library. That costs about 15 µs a match for a long pattern, because each match compiles the pattern again;
results for short texts are therefore cached, since a fleet repeats few texts (condition types, reasons, zones).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from hortus.schema.cel.binding import PatternError, search

_REMEMBERED_TEXT = 256
"""Characters; longer texts are matched each time, so that the cache stays below some megabytes."""


@lru_cache(maxsize=1024)
def matcher(pattern: str) -> Callable[[str], bool]:
    """A predicate that searches `pattern` anywhere in a text. Raises PatternError."""
    search(pattern, "")

    def matches(text: str) -> bool:
        return _remembered(pattern, text) if len(text) <= _REMEMBERED_TEXT else search(pattern, text)

    return matches


_remembered = lru_cache(maxsize=16384)(search)

__all__ = ["PatternError", "matcher"]
