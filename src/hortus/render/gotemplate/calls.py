"""Functions as templates call them: typed parameters, checked the way Go's evaluator checks them.

A function is declared once by its Go signature, `function("trunc", "int, string", _trunc)`; the evaluator converts
or refuses arguments by it, so that the functions themselves see nothing but what they ask for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hortus.render.gotemplate.nodes import Literal
from hortus.render.gotemplate.values import (
    ABSENT,
    Int64,
    NilList,
    NilMap,
    Struct,
    ValuesMap,
    VersionSet,
    declared_type,
)


class Refused(Exception):
    """A value does not fit a parameter; the message is Go's."""


class Parameter:
    """One type of Go's as a parameter. `plain` is the Python type that passes as it is, None where all do."""

    __slots__ = ("accepted", "name", "nil", "plain")

    def __init__(
        self, name: str, plain: type | None, accepted: tuple[type, ...] = (), nil: Callable[[], Any] | None = None
    ) -> None:
        self.name = name
        self.plain = plain
        self.accepted = accepted
        self.nil = nil

    def convert(self, value: Any) -> Any:
        """The value as this type. Raises Refused."""
        if self.plain is None:
            return None if value is ABSENT and self.nil is None else value
        if type(value) is self.plain or type(value) in self.accepted:
            return value
        if value is ABSENT:
            if self.nil is not None:
                return self.nil()
            raise Refused(f"invalid value; expected {self.name}")
        return self._other(value)

    def _other(self, value: Any) -> Any:
        if isinstance(value, Struct) and value.type_name == self.name.lstrip("*"):
            return value
        raise Refused(f"wrong type for value; expected {self.name}; got {declared_type(value)}")

    def literal(self, node: Literal) -> Any:
        """The constant as this type. Raises Refused."""
        if self.plain is None:
            return self._any(node)
        if self.plain is str:
            if node.kind != "string":
                raise Refused(f"expected string; found {node}")
            return node.value
        if self.plain is bool:
            if node.kind != "bool":
                raise Refused(f"expected bool; found {node}")
            return node.value
        return self._number(node)

    def _any(self, node: Literal) -> Any:
        if node.value is None and node.kind == "number":
            raise Refused(f"{node} overflows int")
        return node.value

    def _number(self, node: Literal) -> Any:
        words = {"int": "integer", "int64": "integer", "float64": "float", "uint32": "unsigned integer"}
        word = words.get(self.name)
        if word is None:
            raise Refused(f"can't handle {node} for arg of type {self.name}")
        if word == "float":
            found: Any = node.floating
        else:
            found = node.integer if word == "integer" else node.unsigned
        if found is None:
            raise Refused(f"expected {word}; found {node}")
        return Int64(found) if self.name == "int64" else found

    def null(self) -> Any:
        """The value of the word nil. Raises Refused."""
        if self.plain is None:
            return self.nil() if self.nil else None
        if self.nil is None:
            raise Refused(f"cannot assign nil to {self.name}")
        return self.nil()


ANY: Final = Parameter("interface {}", None)
PARAMETERS: Final = {
    "any": ANY,
    "value": Parameter("reflect.Value", None),
    "nothing": Parameter("reflect.Value", None, nil=lambda: ABSENT),
    "string": Parameter("string", str),
    "int": Parameter("int", int),
    "int64": Parameter("int64", Int64),
    "uint32": Parameter("uint32", Int64),
    "float64": Parameter("float64", float),
    "bool": Parameter("bool", bool),
    "map": Parameter("map[string]interface {}", dict, (ValuesMap, NilMap), NilMap),
    "list": Parameter("[]interface {}", list, (NilList,), NilList),
    "time": Parameter("time.Time", Struct),
    "certificate": Parameter("sprig.certificate", Struct),
    "files": Parameter("engine.files", dict),
    "versions": Parameter("chartutil.VersionSet", VersionSet),
}
# A struct passes by its name, not by its Python type.
for _struct in ("time", "certificate"):
    PARAMETERS[_struct].plain = Parameter


class Function:
    """A function that templates may call."""

    __slots__ = ("call", "fixed", "name", "special", "variadic")

    def __init__(self, name: str, signature: str, call: Callable[..., Any], *, special: str = "") -> None:
        names = [part.strip() for part in signature.split(",") if part.strip()]
        variadic = names.pop()[3:] if names and names[-1].startswith("...") else None
        self.name = name
        self.fixed = tuple(PARAMETERS[part] for part in names)
        self.variadic = PARAMETERS[variadic] if variadic else None
        self.call = call
        self.special = special
        """`and` or `or`, which do not evaluate what they need not; `run` for one that is given the run first."""

    def parameter(self, index: int) -> Parameter:
        """The type of the argument at `index`."""
        if index < len(self.fixed):
            return self.fixed[index]
        assert self.variadic is not None
        return self.variadic

    def count_problem(self, given: int, written: int) -> str | None:
        """The error about a wrong number of arguments, in Go's words."""
        if self.variadic is not None:
            if given < len(self.fixed):
                return f"wrong number of args for {self.name}: want at least {len(self.fixed)} got {written}"
        elif given != len(self.fixed):
            return f"wrong number of args for {self.name}: want {len(self.fixed)} got {given}"
        return None


Functions = dict[str, Function]


def table(*rows: tuple[str, str, Callable[..., Any]]) -> Functions:
    """Functions by name from (name, signature, implementation)."""
    return {name: Function(name, signature, call) for name, signature, call in rows}


METHODS: dict[type, Functions] = {}
"""Methods of maps and lists that have a Go type of their own; the receiver is the first argument of `call`."""
