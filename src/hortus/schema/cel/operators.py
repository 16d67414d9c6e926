"""The operators of CEL: their results by operand types (cel-spec, doc/langdef.md, "Overloads") and their costs.

The library sees fields as untyped and would report an operator that does not fit its operands only when a rule runs.

Costs are in the units of cel-go's estimator (cel-go, checker/cost.go): a call costs 1, walking over a text or a list
a tenth of its size, a regular expression the text's tenth times a quarter of the pattern.
"""

from __future__ import annotations

import math
from typing import NamedTuple

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


_WALK = 0.1
_PATTERN = 0.25
READS = frozenset({"_[_]", "_?._", "_[?_]"})
"""Operators that read a field or a member."""
COMPARING = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"})
_CHEAP = frozenset(
    {"_&&_", "_||_", "!_", "-_", "@not_strictly_false", "size", "hasValue", "type", "_-_", "_*_", "_/_", "_%_", "bool"}
)
_PAIRWISE = frozenset({"contains", "intersects", "equivalent"})
_MULTIPLYING = frozenset({"replace", "join", "format"})


_BEYOND = 1e15
"""A size beyond all memory; larger ones would leave the range of floats."""


class Price(NamedTuple):
    cost: float
    size: float = 1


def price(function: str, sizes: list[float]) -> Price:
    """The worst case of a call of `function` on operands of at most `sizes`."""
    cost, size = _price(function, sizes)
    return Price(cost, min(size, _BEYOND))


def _price(function: str, sizes: list[float]) -> Price:
    if function in _CHEAP:
        return Price(1)
    if function in COMPARING:
        return Price(max(1, math.ceil(min(sizes) * _WALK)))
    if function == "_+_":
        return Price(math.ceil(sum(sizes) * _WALK), sum(sizes))
    if function in ("matches", "find", "findAll"):
        cost = math.ceil((sizes[0] + 1) * _WALK) * math.ceil(sizes[1] * _PATTERN)
        return Price(cost, 1 if function == "matches" else sizes[0])
    if function in ("@in", "_in_", "in"):
        return Price(max(1, sizes[-1]))
    if function in _PAIRWISE:
        return Price(1 + math.prod(sizes[:2]), max(sizes))
    cost = 1 + math.ceil(sum(sizes) * _WALK)
    if function in _MULTIPLYING:
        return Price(cost, math.prod(max(size, 1) for size in sizes))
    return Price(cost, max(sizes, default=1))
