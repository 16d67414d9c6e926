"""Regular expressions with Go's syntax (RE2), safe with untrusted expressions.

An expression is parsed by us, so that only what RE2 knows is taken, and then runs in one of two ways: through
Python's `re` where it cannot backtrack without end, on a small machine of our own, linear in the text, where it could.
"""

from __future__ import annotations

from hortus.render.gotemplate.regexes.pattern import Pattern, compile_pattern
from hortus.render.gotemplate.regexes.syntax import RegexError

__all__ = ["Pattern", "RegexError", "compile_pattern"]
