"""What one call costs at worst, and how large its result can be, by the sizes of its operands.

Units are those of cel-go's estimator: a call costs 1, walking over a text or a list a tenth of its size, a regular
expression the text's tenth times a quarter of the pattern.
"""

from __future__ import annotations

import math
from typing import NamedTuple

_WALK = 0.1
_PATTERN = 0.25
_COMPARING = frozenset({"_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_"})
_CHEAP = frozenset(
    {"_&&_", "_||_", "!_", "-_", "@not_strictly_false", "size", "hasValue", "type", "_-_", "_*_", "_/_", "_%_", "bool"}
)
_PAIRWISE = frozenset({"contains", "intersects", "equivalent"})
_MULTIPLYING = frozenset({"replace", "join", "format"})


class Price(NamedTuple):
    cost: float
    size: float = 1


def price(function: str, sizes: list[float]) -> Price:
    """The worst case of a call of `function` on operands of at most `sizes`."""
    if function in _CHEAP:
        return Price(1)
    if function in _COMPARING:
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
