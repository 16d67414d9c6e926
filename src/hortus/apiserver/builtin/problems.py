"""The messages of field.Error, as kube-apiserver prints them after the path of a field."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from hortus.apiserver.resources.definition import FieldProblem


def show(value: object) -> str:
    """A value as field.Error shows it: text quoted, numbers and booleans bare, the rest as JSON."""
    return orjson.dumps(value).decode()


def invalid(path: str, value: object, detail: str) -> FieldProblem:
    return FieldProblem(path, f"Invalid value: {show(value)}: {detail}", "FieldValueInvalid")


def required(path: str, detail: str = "") -> FieldProblem:
    return FieldProblem(path, f"Required value: {detail}" if detail else "Required value", "FieldValueRequired")


def forbidden(path: str, detail: str) -> FieldProblem:
    return FieldProblem(path, f"Forbidden: {detail}", "FieldValueForbidden")


def duplicate(path: str, value: object) -> FieldProblem:
    return FieldProblem(path, f"Duplicate value: {show(value)}", "FieldValueDuplicate")


def not_found(path: str, value: object) -> FieldProblem:
    return FieldProblem(path, f"Not found: {show(value)}", "FieldValueNotFound")


def too_long(path: str, limit: int) -> FieldProblem:
    return FieldProblem(path, f"Too long: may not be more than {limit} bytes", "FieldValueTooLong")


def unsupported(path: str, value: object, allowed: Iterable[str]) -> FieldProblem:
    supported = ", ".join(f'"{word}"' for word in sorted(allowed))
    return FieldProblem(
        path, f"Unsupported value: {show(value)}: supported values: {supported}", "FieldValueNotSupported"
    )


IMMUTABLE = "field is immutable"


def immutable(path: str, new: object, old: object) -> list[FieldProblem]:
    """The problem of an immutable field that changed; none when it did not."""
    return [] if new == old else [invalid(path, new, IMMUTABLE)]


def every(path: str, value: Any, details: Iterable[str]) -> list[FieldProblem]:
    """One Invalid problem for each detail."""
    return [invalid(path, value, detail) for detail in details]
