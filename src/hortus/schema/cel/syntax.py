"""Expressions as trees: read from and written to the library's serialized form (cel-spec, cel/expr/syntax.proto).

The library exposes no tree. The wire form is protocol buffers, of which only the few messages of the syntax are needed,
so that reading them takes a hundred lines and no dependency.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, NamedTuple


class Unsigned(int):
    """An unsigned constant such as `1u`, distinct from an int."""


class Constant(NamedTuple):
    id: int
    value: Any
    raw: bytes


class Name(NamedTuple):
    id: int
    name: str


class Select(NamedTuple):
    """`operand.field`, or `has(operand.field)` when `test`."""

    id: int
    operand: Expression
    field: str
    test: bool = False


class Call(NamedTuple):
    id: int
    target: Expression | None
    function: str
    args: tuple[Expression, ...]


class ListOf(NamedTuple):
    id: int
    elements: tuple[Expression, ...]
    raw: tuple[tuple[int, int | bytes], ...]


class MapEntry(NamedTuple):
    id: int
    key: Expression | bytes
    value: Expression
    optional: bool


class MapOf(NamedTuple):
    id: int
    name: bytes
    entries: tuple[MapEntry, ...]


class Comprehension(NamedTuple):
    id: int
    variable: str
    second: str
    range: Expression
    accumulator: str
    start: Expression
    condition: Expression
    step: Expression
    result: Expression


Expression = Constant | Name | Select | Call | ListOf | MapOf | Comprehension

_EXPR = 4
"""Field of the tree in CheckedExpr."""


class ExpressionTree:
    """One checked expression; `root` may be replaced and the whole written back."""

    def __init__(self, data: bytes) -> None:
        envelope = dict(_fields(data))
        self._url = _bytes(envelope[1])
        self._rest = [(number, value) for number, value in _fields(_bytes(envelope[2])) if number != _EXPR]
        body = dict(_fields(_bytes(envelope[2])))
        self.root = _expression(_bytes(body[_EXPR]))
        self.positions = dict(_positions(_bytes(body.get(5, b""))))
        """Offsets, in characters, of the nodes in the source."""

    def replaced(self, root: Expression) -> bytes:
        """The serialized form with another tree."""
        body = b"".join(_field(number, value) for number, value in self._rest) + _field(_EXPR, _written(root))
        return _field(1, self._url) + _field(2, body)


def _positions(info: bytes) -> Iterator[tuple[int, int]]:
    for number, value in _fields(info):
        if number == 4:
            entry = dict(_fields(_bytes(value)))
            yield _int(entry.get(1, 0)), _int(entry.get(2, 0))


def _expression(data: bytes) -> Expression:
    fields = dict(_fields(data))
    number = _int(fields.get(2, 0))
    for tag, build in _BUILDERS.items():
        if tag in fields:
            return build(number, _bytes(fields[tag]))
    raise ValueError("an expression of no known kind")


def _constant(number: int, data: bytes) -> Expression:
    value: Any
    tag, value = next(_fields(data))
    if tag == 2:
        value = bool(value)
    elif tag == 3:
        value = _signed(_int(value))
    elif tag == 4:
        value = Unsigned(_int(value))
    elif tag == 5:
        value = struct.unpack("<d", _bytes(value))[0]
    elif tag == 6:
        value = _bytes(value).decode()
    return Constant(number, None if tag == 1 else value, data)


def _name(number: int, data: bytes) -> Expression:
    return Name(number, _text(dict(_fields(data)), 1))


def _select(number: int, data: bytes) -> Expression:
    fields = dict(_fields(data))
    return Select(number, _expression(_bytes(fields[1])), _text(fields, 2), bool(fields.get(3)))


def _call(number: int, data: bytes) -> Expression:
    fields = list(_fields(data))
    single = dict(fields)
    target = _expression(_bytes(single[1])) if 1 in single else None
    args = tuple(_expression(_bytes(value)) for tag, value in fields if tag == 3)
    return Call(number, target, _text(single, 2), args)


def _list(number: int, data: bytes) -> Expression:
    fields = list(_fields(data))
    elements = tuple(_expression(_bytes(value)) for tag, value in fields if tag == 1)
    return ListOf(number, elements, tuple(field for field in fields if field[0] != 1))


def _map(number: int, data: bytes) -> Expression:
    fields = list(_fields(data))
    entries = tuple(_entry(_bytes(value)) for tag, value in fields if tag == 2)
    return MapOf(number, _bytes(dict(fields).get(1, b"")), entries)


def _entry(data: bytes) -> MapEntry:
    fields = dict(_fields(data))
    key = _expression(_bytes(fields[3])) if 3 in fields else _bytes(fields.get(2, b""))
    return MapEntry(_int(fields.get(1, 0)), key, _expression(_bytes(fields[4])), bool(fields.get(5)))


def _comprehension(number: int, data: bytes) -> Expression:
    fields = dict(_fields(data))
    start, condition, step, result = (_expression(_bytes(fields[tag])) for tag in (4, 5, 6, 7))
    source = _expression(_bytes(fields[2]))
    return Comprehension(
        number, _text(fields, 1), _text(fields, 8), source, _text(fields, 3), start, condition, step, result
    )


_BUILDERS = {3: _constant, 4: _name, 5: _select, 6: _call, 7: _list, 8: _map, 9: _comprehension}


def _written(node: Expression) -> bytes:
    head = _field(2, node.id) if node.id else b""
    if isinstance(node, Constant):
        return head + _field(3, node.raw)
    if isinstance(node, Name):
        return head + _field(4, _field(1, node.name.encode()))
    if isinstance(node, Select):
        test = _field(3, 1) if node.test else b""
        return head + _field(5, _field(1, _written(node.operand)) + _field(2, node.field.encode()) + test)
    if isinstance(node, Call):
        target = _field(1, _written(node.target)) if node.target is not None else b""
        args = b"".join(_field(3, _written(arg)) for arg in node.args)
        return head + _field(6, target + _field(2, node.function.encode()) + args)
    if isinstance(node, ListOf):
        elements = b"".join(_field(1, _written(element)) for element in node.elements)
        return head + _field(7, elements + b"".join(_field(tag, value) for tag, value in node.raw))
    if isinstance(node, MapOf):
        name = _field(1, node.name) if node.name else b""
        return head + _field(8, name + b"".join(_field(2, _written_entry(entry)) for entry in node.entries))
    return head + _field(9, _written_comprehension(node))


def _written_entry(entry: MapEntry) -> bytes:
    key = _field(2, entry.key) if isinstance(entry.key, bytes) else _field(3, _written(entry.key))
    optional = _field(5, 1) if entry.optional else b""
    return _field(1, entry.id) + key + _field(4, _written(entry.value)) + optional


def _written_comprehension(node: Comprehension) -> bytes:
    parts = [(1, node.variable.encode()), (2, _written(node.range)), (3, node.accumulator.encode())]
    trees = zip((4, 5, 6, 7), (node.start, node.condition, node.step, node.result), strict=True)
    parts += [(tag, _written(tree)) for tag, tree in trees]
    if node.second:
        parts.append((8, node.second.encode()))
    return b"".join(_field(tag, value) for tag, value in parts)


def text_constant(number: int, text: str) -> Constant:
    return Constant(number, text, _field(6, text.encode()))


# Protocol buffers' wire format: https://protobuf.dev/programming-guides/encoding


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    pos = 0
    while pos < len(data):
        key, pos = _varint(data, pos)
        kind = key & 7
        if kind == 0:
            value, pos = _varint(data, pos)
            yield key >> 3, value
            continue
        if kind == 2:
            size, pos = _varint(data, pos)
        else:
            size = {1: 8, 5: 4}[kind]
        yield key >> 3, data[pos : pos + size]
        pos += size


def _varint(data: bytes, pos: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, pos
        shift += 7


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return _number(number << 3) + _number(value)
    return _number(number << 3 | 2) + _number(len(value)) + value


def _number(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return value
    raise ValueError("a message was expected")


def _int(value: int | bytes) -> int:
    if isinstance(value, int):
        return value
    raise ValueError("a number was expected")


def _text(fields: dict[int, int | bytes], number: int) -> str:
    return _bytes(fields.get(number, b"")).decode()
