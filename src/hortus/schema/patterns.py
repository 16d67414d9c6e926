"""Regular expressions of schemas: Go's syntax (RE2), in linear time whatever the pattern and the text.

Python's `re` speaks another dialect and can be made to backtrack for hours by a pattern somebody puts into a CRD. So
patterns run on the RE2 inside the CEL library. That costs about 15 µs a match for a long pattern, as it compiles the
pattern anew each time; verdicts on short texts are therefore remembered, since a fleet says the same few words over
and over (condition types, reasons, zones).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from cel_expr_python import cel

_REMEMBERED_TEXT = 256
"""Characters; longer texts are matched each time, so that the memory of the cache stays below some megabytes."""

_ENV = cel.NewEnv(variables={"text": cel.Type.STRING, "pattern": cel.Type.STRING})
_MATCH = _ENV.compile("text.matches(pattern)")


class PatternError(ValueError):
    """The pattern is not a regular expression of RE2; the text says why."""


@lru_cache(maxsize=1024)
def matcher(pattern: str) -> Callable[[str], bool]:
    """A predicate that searches `pattern` anywhere in a text. Raises PatternError."""
    _search(pattern, "")

    def search(text: str) -> bool:
        return _remembered(pattern, text) if len(text) <= _REMEMBERED_TEXT else _search(pattern, text)

    return search


def _search(pattern: str, text: str) -> bool:
    result = _MATCH.eval(data={"text": text, "pattern": pattern})
    value = result.value()
    if isinstance(value, bool):
        return value
    raise PatternError(_go_words(str(value)))


_remembered = lru_cache(maxsize=16384)(_search)


def _go_words(text: str) -> str:
    """The library's complaint in the words of Go's regexp package."""
    _, _, why = text.partition("invalid regular expression: ")
    code, _, fragment = why.partition(": ")
    return f"error parsing regexp: {_GO_CODES.get(code, code)}: `{fragment}`"


_GO_CODES = {
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "unexpected )": "unexpected )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid escape sequence": "invalid escape sequence",
    "invalid character class range": "invalid character class range",
    "trailing \\": "trailing backslash at end of expression",
}
