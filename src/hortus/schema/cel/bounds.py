"""The most that one evaluation can take, in steps and in memory, given the sizes of its variables.

The library counts rounds of loops alone. A value that is built from itself a few times over (`[a, a, a]`, `a + a`) is
small inside of it and beyond all memory as plain Python; a comparison in a loop passes two large values each round. So
the tree is walked before it runs, with upper bounds in place of values: fields of the variables have the sizes that
they really have, members of a loop together no more than what it loops over. A refusal is thus never needed for work
that is linear in the variables. The counterpart of cel-go's cost limit, which counts while it runs
(cel-go, interpreter/runtimecost.go).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from hortus.schema.cel.operators import COMPARING, READS
from hortus.schema.cel.shapes import MAX_REQUEST, CelShape
from hortus.schema.cel.syntax import Call, Comprehension, Constant, Expression, ListOf, MapOf, Name, Select

_MOST_STEPS = 2_000_000
"""Steps of one evaluation; about a fifth of a second."""
_LARGEST_VALUE = 32 << 20
"""Bytes of one value, as the plain value that a result becomes."""
_MOST_MEMBERS = 1e7
_MOST_ROUNDS = 10_000
"""Rounds of loops after which the library stops."""
_SCALAR = 8.0
_MEMBER = 16.0
"""Bytes of a list for each member, besides the member."""
_A_BYTE_OF_JSON = 8.0
"""Bytes of a decoded list or map for each byte of its JSON; `[1,1]` is the worst case."""
_A_STEP = 16.0
"""Bytes that one step passes."""
_PYTHON = 50.0
"""Steps of a call of a function in Python."""

Bound = Mapping[int, float]
"""An upper bound that may depend on the sizes of members: a factor for each enclosing loop, by its number, and under
`_FIXED` what depends on none."""
_FIXED = 0
_ESCAPE = "__"
"""Part of every name of a field that is escaped (Kubernetes docs, "Validation rules": property names)."""
_UNKNOWN: Any = object()


class TooCostly(Exception):
    """An evaluation could take more steps or memory than are allowed."""


class _Value(NamedTuple):
    """The knowledge about a value."""

    size: Bound
    """Bytes."""
    actual: Any = _UNKNOWN
    """The value, where it is a variable or a part of one, or its shape."""
    number: float = math.inf
    """It is no number beyond this, with either sign, and no list or map of more members."""


def check_bounds(root: Expression, variables: Mapping[str, Any]) -> None:
    """Raises TooCostly when the evaluation with these variables could exceed a limit."""
    _Walk().check(root, {name: _given(value) for name, value in variables.items()})


def is_always_bounded(root: Expression, variables: Mapping[str, str | CelShape]) -> bool:
    """Reports whether no variables of these types, each as large as a request, make the evaluation too costly.

    Raises TooCostly when even the smallest do.
    """
    _Walk(unknown=1.0).check(root, {name: _Value({_FIXED: _SCALAR}, number=1.0) for name in variables})
    try:
        _Walk().check(root, {name: _largest(kind) for name, kind in variables.items()})
    except TooCostly:
        return False
    return True


def _largest(kind: str | CelShape | None) -> _Value:
    word = kind.word if isinstance(kind, CelShape) else kind
    if word in ("int", "double", "bool"):
        return _Value({_FIXED: _SCALAR})
    if word == "string":
        size = min(kind.size, MAX_REQUEST) if isinstance(kind, CelShape) else MAX_REQUEST
        return _Value({_FIXED: _SCALAR + size})
    return _Value({_FIXED: MAX_REQUEST * _A_BYTE_OF_JSON}, kind if isinstance(kind, CelShape) else _UNKNOWN)


def _given(value: Any) -> _Value:
    if isinstance(value, str):
        return _Value({_FIXED: _SCALAR + len(value)}, value)
    if isinstance(value, dict | list):
        return _Value({}, value, len(value))  # measured when it is needed
    return _Value({_FIXED: _SCALAR}, value, _magnitude(value))


def _magnitude(value: Any) -> float:
    return abs(float(value)) if isinstance(value, int | float) else math.inf


def _scalar(number: float = 1.0) -> _Value:
    return _Value({_FIXED: _SCALAR}, number=number)


class _Walk:
    def __init__(self, *, unknown: float = math.inf) -> None:
        """`unknown` is the largest number that a value may be of which nothing is known."""
        self._unknown = unknown
        self._steps: dict[int, float] = {_FIXED: 0.0}
        self._round_steps = 0.0
        """Steps of loops that come with a round, whatever its member is."""
        self._most_rounds = 1.0
        self._largest: dict[int, float] = {}
        """By loop: the size of its largest member."""
        self._loops = 0
        self._measured: dict[int, Bound] = {}
        """By id: the size of a list or map of the variables, which outlive the walk."""

    def check(self, root: Expression, scope: Mapping[str, _Value]) -> None:
        result = self._visit(root, scope)
        self._step(_passed(self._size(result)))
        if self._round_steps + self._most(self._steps) > _MOST_STEPS:
            raise TooCostly("the evaluation could take too many steps")

    def _visit(self, node: Expression, scope: Mapping[str, _Value]) -> _Value:
        self._steps[_FIXED] += 1.0
        match node:
            case Constant():
                if isinstance(node.value, str | bytes):
                    return _Value({_FIXED: _SCALAR + len(node.value)})
                return _scalar(_magnitude(node.value))
            case Name():
                return scope.get(node.name) or _scalar()
            case Select():
                found = self._visit(node.operand, scope)
                return _scalar() if node.test else self._part(found, node.field)
            case Call():
                return self._call(node, scope)
            case Comprehension():
                return self._comprehension(node, scope)
        return self._literal(node, scope)

    def _part(self, of: _Value, key: Any) -> _Value:
        """A field or a member; no larger than the whole where it is not known."""
        if isinstance(of.actual, dict) and isinstance(key, str):
            if key in of.actual:
                return _given(of.actual[key])
            if _ESCAPE not in key:
                return _scalar()  # it is not there: an error ends the evaluation, or a test passes it by
        if isinstance(of.actual, list) and type(key) is int and 0 <= key < len(of.actual):
            return _given(of.actual[key])
        if isinstance(of.actual, CelShape):
            shape = of.actual
            known = {"list": shape.items, "map": shape.values}.get(shape.word)
            return _largest(shape.fields.get(key) if shape.word == "object" else known)
        return _Value(self._size(of), number=self._unknown)

    def _literal(self, node: ListOf | MapOf, scope: Mapping[str, _Value]) -> _Value:
        if isinstance(node, ListOf):
            parts = [self._visit(element, scope) for element in node.elements]
        else:
            keys = [entry.key for entry in node.entries if not isinstance(entry.key, bytes)]
            parts = [self._visit(one, scope) for one in (*keys, *(entry.value for entry in node.entries))]
        return self._made(_sum({_FIXED: _SCALAR + _MEMBER * len(parts)}, *map(self._size, parts)), len(parts))

    def _call(self, node: Call, scope: Mapping[str, _Value]) -> _Value:
        given = (*((node.target,) if node.target is not None else ()), *node.args)
        values = [self._visit(one, scope) for one in given]
        function = node.function
        if function in _CHEAP:
            return _scalar()
        if function in _ARITHMETIC:
            return _scalar(_ARITHMETIC[function](value.number for value in values))
        if function == "_?_:_":
            return _Value(_larger(*map(self._size, values[1:])), number=max(value.number for value in values[1:]))
        if function in READS:
            key = given[1].value if isinstance(given[1], Constant) else _UNKNOWN
            return self._part(values[0], key)
        if function == "size":
            return self._count(values[0])
        if function == "lists.range":
            number = values[0].number
            return self._made({_FIXED: _SCALAR + _MEMBER * 2 * number}, number)
        if function in ("_+_", "cel.@mapInsert"):
            return self._appended(given, values)
        operands = [_Operand(self._size(value), value.number) for value in values]
        steps, made = _PRICES.get(function, _any_call)(operands, self._product)
        self._step(steps)
        return self._made(made.size, self._unknown if made.number is None else made.number)

    def _appended(self, given: tuple[Expression, ...], values: list[_Value]) -> _Value:
        """A sum; what a loop has collected is not copied when a member is appended to it."""
        sizes = [self._size(value) for value in values]
        for one, size in zip(given, sizes, strict=True):
            if not (isinstance(one, Name) and one.name == "@result"):
                self._step(_passed(size))
        return self._made(_sum(*sizes), sum(value.number for value in values))

    def _comprehension(self, node: Comprehension, scope: Mapping[str, _Value]) -> _Value:
        over, start = self._visit(node.range, scope), self._visit(node.start, scope)
        if isinstance(node.range, ListOf) and not node.range.elements:  # cel.bind
            return self._visit(node.result, {**scope, node.accumulator: start})
        size = self._size(over)
        member, collected = self._loop(self._most(size)), self._loop(0.0)
        inner = {
            **scope,
            node.accumulator: _Value({collected: 1.0}, number=self._unknown),
            node.variable: _Value({member: 1.0}, number=self._unknown),
            node.second: _Value({member: 1.0}, number=self._unknown),
        }
        rounds = self._rounds(over, size)
        outside, self._most_rounds = self._most_rounds, min(self._most_rounds * self._most(rounds), _MOST_ROUNDS)
        before, self._steps = self._steps, {_FIXED: 0.0}
        self._visit(node.condition, inner)
        step = self._size(self._visit(node.step, inner))
        if step.get(collected, 0.0) > 1.0:
            raise TooCostly("a loop could multiply what it collects in every round")
        grown = _sum(self._size(start), self._in_all({**step, collected: 0.0}, rounds, member, size))
        self._largest[collected] = self._most(grown)
        self._round_steps += self._steps.pop(_FIXED) * self._most_rounds
        in_all = self._in_all(self._steps, rounds, member, size)
        self._steps = before
        self._step(in_all)
        self._most_rounds = outside
        made = self._made(grown, start.number + self._most(rounds))
        return self._visit(node.result, {**scope, node.accumulator: made})

    def _loop(self, largest: float) -> int:
        self._loops += 1
        self._largest[self._loops] = largest
        return self._loops

    def _rounds(self, over: _Value, size: Bound) -> Bound:
        if isinstance(over.actual, dict | list):
            return {_FIXED: float(min(len(over.actual), _MOST_ROUNDS))}
        rounds = _scaled(size, 1 / _MEMBER)
        return rounds if self._most(rounds) <= _MOST_ROUNDS else {_FIXED: float(_MOST_ROUNDS)}

    def _in_all(self, each: Bound, rounds: Bound, member: int, over: Bound) -> Bound:
        """The sum of `each` over all rounds: members together are no larger than what is looped over."""
        rest = {loop: factor for loop, factor in each.items() if loop != member}
        return _sum(self._product(rest, rounds), _scaled(over, each.get(member, 0.0)))

    def _product(self, one: Bound, other: Bound) -> Bound:
        return _scaled(one, self._most(other)) if other.keys() <= {_FIXED} else _scaled(other, self._most(one))

    def _count(self, of: _Value) -> _Value:
        if isinstance(of.actual, dict | list | str):
            return _scalar(len(of.actual))
        self._step(_passed(self._size(of)))
        return _scalar(min(of.number, self._most(self._size(of))))

    def _size(self, value: _Value) -> Bound:
        if isinstance(value.actual, dict | list):
            found = self._measured.get(id(value.actual))
            if found is None:
                json = orjson.dumps(value.actual, default=str, option=orjson.OPT_NON_STR_KEYS)
                found = self._measured[id(value.actual)] = {_FIXED: _SCALAR + _A_BYTE_OF_JSON * len(json)}
            return found
        return value.size

    def _made(self, size: Bound, number: float = math.inf) -> _Value:
        if self._most(size) > _LARGEST_VALUE:
            raise TooCostly("the evaluation could make too large a value")
        return _Value(size, number=number)

    def _step(self, steps: Bound) -> None:
        for loop, factor in steps.items():
            self._steps[loop] = self._steps.get(loop, 0.0) + factor

    def _most(self, bound: Bound) -> float:
        return sum(factor * self._largest[loop] if loop else factor for loop, factor in bound.items())


def _passed(size: Bound) -> Bound:
    return _scaled(size, 1 / _A_STEP)


def _sum(*bounds: Bound) -> Bound:
    found: dict[int, float] = {}
    for bound in bounds:
        for loop, factor in bound.items():
            found[loop] = found.get(loop, 0.0) + factor
    return found


def _larger(*bounds: Bound) -> Bound:
    found: dict[int, float] = {}
    for bound in bounds:
        for loop, factor in bound.items():
            found[loop] = max(found.get(loop, 0.0), factor)
    return found


def _scaled(bound: Bound, factor: float) -> Bound:
    return {loop: one * factor for loop, one in bound.items() if factor}


class _Operand(NamedTuple):
    size: Bound
    number: float | None = 1.0
    """As that of a value; None: unknown."""


_Product = Callable[[Bound, Bound], Bound]
_Priced = tuple[Bound, _Operand]
"""The steps of a call, and its result."""
_ONE = _Operand({_FIXED: _SCALAR})


def _members(of: _Operand) -> float:
    return _MOST_MEMBERS if of.number is None else min(of.number, _MOST_MEMBERS)


def _all(operands: list[_Operand]) -> Bound:
    return _sum({_FIXED: _SCALAR}, *(one.size for one in operands))


def _any_call(operands: list[_Operand], product: _Product) -> _Priced:
    """A call that is linear in its operands, perhaps of a function in Python."""
    size = _all(operands)
    return _sum({_FIXED: _PYTHON}, _passed(size)), _Operand(_scaled(size, 2.0), None)


def _no_growth(operands: list[_Operand], product: _Product) -> _Priced:
    """A call whose result is a part of its operands, in another order perhaps."""
    numbers = [one.number for one in operands if one.number is not None]
    size = _all(operands)
    return _passed(size), _Operand(size, max(numbers, default=0.0) if len(numbers) == len(operands) else None)


def _comparison(operands: list[_Operand], product: _Product) -> _Priced:
    fixed = [one.size for one in operands if one.size.keys() <= {_FIXED}]
    smaller = min(fixed, key=lambda size: size.get(_FIXED, 0.0)) if fixed else operands[0].size
    return _passed(_scaled(smaller, 2.0)), _ONE


def _text_search(operands: list[_Operand], product: _Product) -> _Priced:
    text, sought = (one.size for one in operands[:2])
    return _sum({_FIXED: _PYTHON}, _passed(_all(operands)), _passed(_passed(product(text, sought)))), _ONE


def _pairwise(operands: list[_Operand], product: _Product) -> _Priced:
    one, other = operands[:2]
    pairs = _members(one)
    return _sum({_FIXED: _PYTHON}, _passed(one.size), _scaled(_passed(other.size), pairs)), _ONE


def _distinct(operands: list[_Operand], product: _Product) -> _Priced:
    (one,) = operands
    return _scaled(_passed(one.size), _members(one)), one


def _find(operands: list[_Operand], product: _Product) -> _Priced:
    steps, _ = _text_search(operands, product)
    return steps, _members_of(operands)


def _split(operands: list[_Operand], product: _Product) -> _Priced:
    return _all(operands), _members_of(operands)


def _members_of(operands: list[_Operand]) -> _Operand:
    """A list with up to one member for each character."""
    return _Operand(_sum({_FIXED: _MEMBER * 4}, _scaled(operands[0].size, _MEMBER * 4)), None)


def _replaced(operands: list[_Operand], product: _Product) -> _Priced:
    text, _, by = (*operands, _ONE, _ONE)[:3]
    size = _sum(text.size, product(text.size, by.size))
    return _passed(size), _Operand(size)


def _joined(operands: list[_Operand], product: _Product) -> _Priced:
    texts, separator = (*operands, _Operand({}))[:2]
    size = _sum(texts.size, _scaled(product(texts.size, separator.size), 1 / _MEMBER))
    return _passed(size), _Operand(size)


def _formatted(operands: list[_Operand], product: _Product) -> _Priced:
    """Two characters of the format make a thousand and a few at most, besides what they show."""
    size = _sum(_scaled(operands[0].size, 512.0), _scaled(_all(operands[1:]), 4.0))
    return _passed(size), _Operand(size)


_CHEAP = frozenset({"_&&_", "_||_", "!_", "@not_strictly_false", "type", "hasValue"})
_ARITHMETIC: Mapping[str, Callable[[Iterable[float]], float]] = {
    "_-_": sum,
    "_*_": math.prod,
    **dict.fromkeys(("-_", "_/_", "_%_"), max),
}
"""The magnitude of a whole number that each makes of those of its operands."""
_PRICES: Mapping[str, Callable[[list[_Operand], _Product], _Priced]] = {
    **dict.fromkeys(COMPARING, _comparison),
    **dict.fromkeys(("contains", "indexOf", "lastIndexOf", "matches"), _text_search),
    **dict.fromkeys(("dyn", "optional.of", "optional.ofNonZeroValue", "optional.none", "or", "orValue"), _no_growth),
    **dict.fromkeys(("value", "trim", "lowerAscii", "upperAscii", "substring", "charAt"), _no_growth),
    **dict.fromkeys(("reverse", "slice", "sort", "@sortByAssociatedKeys"), _no_growth),
    **dict.fromkeys(("sets.contains", "sets.intersects", "sets.equivalent"), _pairwise),
    "distinct": _distinct,
    "find": _find,
    "findAll": _find,
    "split": _split,
    "replace": _replaced,
    "join": _joined,
    "format": _formatted,
}
