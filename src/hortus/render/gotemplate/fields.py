"""Fields: `.a.b`, `$x.a`, `(pipeline).a`, and the methods that a last field may be."""

from __future__ import annotations

from typing import Any, Final

from hortus.render.gotemplate.calls import METHODS, Function
from hortus.render.gotemplate.values import ABSENT, Struct, declared_type, zero_element
from hortus.schema.quoting import quote

NOT_THERE: Final = object()


class FieldError(Exception):
    """A field cannot be read; the evaluator adds where."""


def method_of(receiver: Any, name: str) -> Function | None:
    """The method `name` of a receiver. Nothing else of a Python object can be reached."""
    if isinstance(receiver, Struct):
        found: Function | None = receiver.methods.get(name)
        return found
    methods = METHODS.get(type(receiver))
    if methods is None:
        return None
    function = methods.get(name)
    if function is None:
        return None
    call = function.call
    bound = Function.__new__(Function)
    bound.name, bound.fixed, bound.variadic, bound.special = name, function.fixed, function.variadic, ""
    bound.call = lambda *arguments: call(receiver, *arguments)
    return bound


def read(receiver: Any, name: str, missing: str, *, has_arguments: bool = False, opaque: bool = False) -> Any:
    """The field of a map or struct that has no method of that name. Raises FieldError.

    `opaque` says that Go knows the receiver as interface {} alone, which shows in the error.
    """
    if isinstance(receiver, dict):
        if has_arguments:
            raise FieldError(f"{name} is not a method but has arguments")
        value = receiver.get(name, NOT_THERE)
        return value if value is not NOT_THERE else _missing(receiver, name, missing)
    if receiver is ABSENT:
        if missing == "error":
            raise FieldError(f"nil data; no entry for key {quote(name)}")
        return ABSENT
    if receiver is None:
        raise FieldError(f"nil pointer evaluating interface {{}}.{name}")
    if isinstance(receiver, Struct) and name in receiver.fields:
        if has_arguments:
            raise FieldError(f"{name} has arguments but cannot be invoked as function")
        return receiver.fields[name]
    raise FieldError(f"can't evaluate field {name} in type {'interface {}' if opaque else declared_type(receiver)}")


def _missing(receiver: Any, name: str, missing: str) -> Any:
    if missing == "error":
        raise FieldError(f"map has no entry for key {quote(name)}")
    return ABSENT if missing == "default" else zero_element(receiver)
