"""Static analysis of expressions: their worst cost, the fields they read, mistakes in names and types.

The library sees objects as untyped; this walk over the checked tree knows the schema. It bounds the cost in the units
of cel-go's estimator (a name 1, traversing a text 0.1 a character, a comprehension its range times its body), so that
rules without limits on what they iterate over are refused as kube-apiserver refuses them. The numbers have the same
magnitude, not the same digits. Text in a temporal format reaches expressions as a timestamp or duration: the walk wraps
such reads in the conversion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from hortus.schema.cel.binding import CompileError
from hortus.schema.cel.operators import READS, SCALARS, price, result_of
from hortus.schema.cel.shapes import CelShape
from hortus.schema.cel.syntax import (
    Call,
    Comprehension,
    Constant,
    Expression,
    ExpressionTree,
    ListOf,
    MapEntry,
    MapOf,
    Name,
    Select,
    text_constant,
)

_UNBOUNDED = 3 * 1024 * 1024
_CONSTANTS = {str: "string", bool: "bool", int: "int", float: "double"}


class Known(NamedTuple):
    """The static knowledge about the value of a sub-expression."""

    cost: float
    size: float = 1
    shape: CelShape | None = None
    optional: bool = False
    variable: bool = False
    """True if the value is one of the expression's own variables."""
    word: str = "any"
    """The type of a value that no schema describes."""

    @property
    def scalar(self) -> str:
        """The scalar type of the value, or `any`."""
        if self.optional or self.shape is None:
            return "any" if self.optional else self.word
        return self.shape.word if self.shape.word in SCALARS and not self.shape.temporal else "any"


class Analysis(NamedTuple):
    cost: float
    reads: Mapping[str, frozenset[str] | None]
    """Variables that the expression reads: the fields read of each, or None when it needs all of them."""
    returns: str
    """The type word that follows from the schema, `any` without one."""
    root: Expression
    rewritten: bool


def analyse(tree: ExpressionTree, source: str, variables: Mapping[str, Known]) -> Analysis:
    """Walks a checked expression. Raises CompileError for a field that the schema does not have."""
    walk = _Walk(tree.positions, source)
    root, known = walk.visit(tree.root, dict(variables))
    word = known.scalar if known.shape is None or known.optional else known.shape.word
    reads = {name: None if None in fields else frozenset(map(str, fields)) for name, fields in walk.reads.items()}
    return Analysis(known.cost, reads, word, root, walk.rewritten)


class _Walk:
    def __init__(self, positions: Mapping[int, int], source: str) -> None:
        self._positions = positions
        self._source = source
        self._next_id = max(positions, default=0) + 1000
        self.reads: dict[str, set[str | None]] = {}
        self.rewritten = False

    def visit(self, node: Expression, scope: dict[str, Known]) -> tuple[Expression, Known]:
        if isinstance(node, Constant):
            size = len(node.value) if isinstance(node.value, (str, bytes)) else 1
            return node, Known(0, size, word=_CONSTANTS.get(type(node.value), "any"))
        if isinstance(node, Name):
            return self._name(node, scope)
        if isinstance(node, Select):
            return self._select(node, scope)
        if isinstance(node, Call):
            return self._call(node, scope)
        if isinstance(node, Comprehension):
            return self._comprehension(node, scope)
        return self._literal(node, scope)

    def _name(self, node: Name, scope: dict[str, Known], field: str | None = None) -> tuple[Expression, Known]:
        known = scope.get(node.name, Known(1, _UNBOUNDED))
        if known.variable:
            self.reads.setdefault(node.name, set()).add(field)
        return self._converted(node, known._replace(cost=1))

    def _select(self, node: Select, scope: dict[str, Known]) -> tuple[Expression, Known]:
        if isinstance(node.operand, Name):
            operand, of = self._name(node.operand, scope, node.field)
        else:
            operand, of = self.visit(node.operand, scope)
        shape = self._field(of, node)
        cost = of.cost + (0 if node.test else 1)
        found: Expression = node._replace(operand=operand)
        if node.test:
            return found, Known(cost)
        known = Known(cost, shape.size if shape is not None else of.size, shape, of.optional)
        return self._converted(found, known)

    def _field(self, of: Known, node: Select) -> CelShape | None:
        if of.shape is None:
            return None
        return self._member(of.shape, node.field, node.id)

    def _member(self, shape: CelShape, field: str, node_id: int) -> CelShape | None:
        if shape.word == "object":
            if field not in shape.fields:
                raise CompileError(self._complaint(node_id, f"undefined field '{field}'"))
            return shape.fields[field]
        return shape.values if shape.word == "map" else None

    def _complaint(self, node_id: int, text: str) -> str:
        offset = self._positions.get(node_id, 0)
        before = self._source[:offset]
        line = before.count("\n") + 1
        column = offset - (before.rfind("\n") + 1)
        shown = self._source.splitlines()[line - 1] if self._source else ""
        return f"ERROR: <input>:{line}:{column + 1}: {text}\n | {shown}\n | {'.' * column}^"

    def _converted(self, node: Expression, known: Known) -> tuple[Expression, Known]:
        """Wraps a read of temporal text in its conversion."""
        temporal = known.shape.temporal if known.shape is not None and not known.optional else ""
        if not temporal:
            return node, known
        self.rewritten = True
        plain = Known(known.cost, 1)
        if temporal == "duration":
            return self._made("duration", node), plain
        if temporal == "byte":
            return self._made("base64.decode", node), plain._replace(size=known.size)
        if temporal == "date":
            node = self._made("_+_", node, text_constant(self._fresh(), "T00:00:00Z"))
        return self._made("timestamp", node), plain

    def _made(self, function: str, *args: Expression) -> Call:
        return Call(self._fresh(), None, function, args)

    def _fresh(self) -> int:
        self._next_id += 1
        return self._next_id

    def _literal(self, node: ListOf | MapOf, scope: dict[str, Known]) -> tuple[Expression, Known]:
        if isinstance(node, ListOf):
            parts = [self.visit(element, scope) for element in node.elements]
            cost = 10 + sum(known.cost for _, known in parts)
            return node._replace(elements=tuple(part for part, _ in parts)), Known(cost, len(parts))
        entries: list[MapEntry] = []
        cost = 30.0
        for entry in node.entries:
            key = entry.key
            if not isinstance(key, bytes):
                key, known = self.visit(key, scope)
                cost += known.cost
            value, known = self.visit(entry.value, scope)
            cost += known.cost
            entries.append(entry._replace(key=key, value=value))
        return node._replace(entries=tuple(entries)), Known(cost, len(entries))

    def _comprehension(self, node: Comprehension, scope: dict[str, Known]) -> tuple[Expression, Known]:
        source, over = self.visit(node.range, scope)
        start, accumulated = self.visit(node.start, scope)
        rounds = over.size if over.shape is None or over.shape.word in ("list", "map") else 0
        inner = scope | {node.accumulator: self._accumulated(node, accumulated, rounds)} | _loop(node, over)
        condition, checked = self.visit(node.condition, inner)
        step, stepped = self.visit(node.step, inner)
        result, known = self.visit(node.result, inner)
        cost = over.cost + accumulated.cost + rounds * (checked.cost + stepped.cost) + known.cost
        made = node._replace(range=source, start=start, condition=condition, step=step, result=result)
        return made, known._replace(cost=cost)

    @staticmethod
    def _accumulated(node: Comprehension, start: Known, rounds: float) -> Known:
        """Bound variables keep their value; collected lists grow with the rounds of the loop."""
        if isinstance(node.start, ListOf | MapOf):
            return Known(1, max(rounds, start.size))
        return start._replace(cost=1, variable=False)

    def _call(self, node: Call, scope: dict[str, Known]) -> tuple[Expression, Known]:
        target, on = self.visit(node.target, scope) if node.target is not None else (None, None)
        parts = [self.visit(arg, scope) for arg in node.args]
        knowns = [known for _, known in parts]
        operands = [on, *knowns] if on is not None else knowns
        called = node._replace(target=target, args=tuple(part for part, _ in parts))
        known = self._result(node, operands)
        known = known._replace(cost=known.cost + self._arguments(node.function, operands))
        return self._converted(called, known) if node.function in READS else (called, known)

    @staticmethod
    def _arguments(function: str, operands: list[Known]) -> float:
        if function == "_?_:_":
            return operands[0].cost + max(operands[1].cost, operands[2].cost)
        return sum(known.cost for known in operands)

    def _result(self, node: Call, operands: list[Known]) -> Known:
        function = node.function
        if function in READS:
            return self._read(node, operands)
        if function == "_?_:_":
            same = operands[1].shape is operands[2].shape
            return Known(1, max(known.size for known in operands[1:]), operands[1].shape if same else None)
        if function in _PASSING and operands:
            return operands[0]._replace(cost=1, optional=function in _WRAPPING, variable=False)
        words = [known.scalar for known in operands]
        word = result_of(function, words)
        if word is None:
            text = f"found no matching overload for '{function}' applied to '({', '.join(words)})'"
            raise CompileError(self._complaint(node.id, text))
        found = price(function, [known.size for known in operands])
        return Known(found.cost, found.size, word=word)

    def _read(self, node: Call, operands: list[Known]) -> Known:
        """An index, or an optional field or index."""
        of = operands[0]
        optional = of.optional or node.function != "_[_]"
        shape = of.shape
        if shape is None:
            return Known(1, of.size, None, optional)
        name = node.args[1].value if len(node.args) > 1 and isinstance(node.args[1], Constant) else None
        if shape.word == "list":
            inner = shape.items
        elif shape.word == "map":
            inner = shape.values
        elif isinstance(name, str):
            inner = self._member(shape, name, node.id)
        else:
            inner = None
        return Known(1, inner.size if inner is not None else 1, inner, optional)


def _loop(node: Comprehension, over: Known) -> dict[str, Known]:
    """The variables of a loop and the knowledge about each."""
    shape = over.shape
    member = Known(1, _UNBOUNDED if shape is None else 1)
    index = Known(1)
    if shape is not None and shape.word == "list" and shape.items is not None:
        member = Known(1, shape.items.size, shape.items)
    elif shape is not None and shape.word == "map" and shape.values is not None:
        index = Known(1, _UNBOUNDED)
        if not node.second:
            return {node.variable: index}
        member = Known(1, shape.values.size, shape.values)
    if node.second:
        return {node.variable: index, node.second: member}
    return {node.variable: member}


_PASSING = frozenset(
    {"optional.of", "optional.ofNonZeroValue", "dyn", "orValue", "or", "value", "of", "ofNonZeroValue"}
)
_WRAPPING = frozenset({"optional.of", "optional.ofNonZeroValue", "of", "ofNonZeroValue", "or"})
