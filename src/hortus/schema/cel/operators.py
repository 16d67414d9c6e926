"""Which operators fit which scalar types, where the schema tells the types (cel-spec, langdef, "Overloads").

The library sees fields as untyped and would find such a mistake only when a rule runs.
"""

from __future__ import annotations

SCALARS = frozenset({"string", "int", "double", "bool"})
_NUMBERS = frozenset({"int", "double"})
_ORDERING = frozenset({"_<_", "_<=_", "_>_", "_>=_"})
_EQUALITY = frozenset({"_==_", "_!=_"})
_ARITHMETIC = {
    "_+_": frozenset({"int", "double", "string"}),
    "_-_": _NUMBERS,
    "_*_": _NUMBERS,
    "_/_": _NUMBERS,
    "_%_": frozenset({"int"}),
}
_QUESTIONS = frozenset({"_&&_", "_||_", "!_", "@in", "_in_", "in", "matches", "startsWith", "endsWith", "contains"})


def result_of(function: str, words: list[str]) -> str | None:
    """The type word of the result, `any` when it is not known, None when there is no such overload."""
    if function in _QUESTIONS:
        return "bool"
    if len(words) != 2:
        return "int" if function == "size" else "any"
    known = SCALARS.issuperset(words)
    left, right = words
    if function in _EQUALITY:
        return None if known and left != right else "bool"
    if function in _ORDERING:
        return "bool" if not known or left == right or _NUMBERS.issuperset(words) else None
    if function in _ARITHMETIC and known:
        return left if left == right and left in _ARITHMETIC[function] else None
    return "any"
