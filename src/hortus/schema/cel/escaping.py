"""Property names as identifiers of expressions (docs "Custom Resources", Validation expression, escaping)."""

from __future__ import annotations

import re
from functools import lru_cache

_RESERVED = frozenset(
    [
        "true",
        "false",
        "null",
        "in",
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
_SPECIAL = re.compile(r"__|[-./]")
_WORDS = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_ALLOWED = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*", re.ASCII)


@lru_cache(maxsize=4096)
def escaped(name: str) -> str | None:
    """The identifier for a property, or None when expressions cannot name it."""
    if name in _RESERVED:
        return f"__{name}__"
    if not _ALLOWED.fullmatch(name):
        return None
    return _SPECIAL.sub(lambda found: _WORDS[found.group()], name)
