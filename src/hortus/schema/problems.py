"""Problems of fields, in the words of Kubernetes' field.Error.

Each validation of this package returns a list of `FieldError`; the API server turns it into the causes and the message
of a 422. The texts are wire contract: clients match on them (k8s.io/apimachinery, pkg/util/validation/field).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import orjson

from hortus.schema.quoting import quote

NO_PATH = "<nil>"
"""The place of an error that belongs to no single field."""


class FieldError(NamedTuple):
    """One broken rule: `path` of the field, `message` after the path, `reason` the cause code of a Status."""

    path: str
    message: str
    reason: str = "FieldValueInvalid"

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


BLOCKING = frozenset(
    {"FieldValueNotSupported", "FieldValueRequired", "FieldValueTooLong", "FieldValueTooMany", "FieldValueTypeInvalid"}
)
"""Reasons after which CEL rules are not run, because they may assume a well-typed object."""


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(path, _with_detail("Required value", detail), "FieldValueRequired")


def forbidden(path: str, detail: str = "") -> FieldError:
    return FieldError(path, _with_detail("Forbidden", detail), "FieldValueForbidden")


def invalid(path: str, value: object, detail: str) -> FieldError:
    return FieldError(path, _with_detail(f"Invalid value: {shown(value)}", detail))


def type_invalid(path: str, value: object, detail: str) -> FieldError:
    return FieldError(path, _with_detail(f"Invalid value: {shown(value)}", detail), "FieldValueTypeInvalid")


def duplicate(path: str, value: object) -> FieldError:
    return FieldError(path, f"Duplicate value: {shown(value)}", "FieldValueDuplicate")


def not_supported(path: str, value: object, supported: Iterable[object]) -> FieldError:
    words = ", ".join(quote(item if isinstance(item, str) else json_text(item)) for item in supported)
    detail = f"supported values: {words}" if words else ""
    return FieldError(path, _with_detail(f"Unsupported value: {shown(value)}", detail), "FieldValueNotSupported")


def too_long(path: str, limit: int) -> FieldError:
    unit = "byte" if limit == 1 else "bytes"
    return FieldError(path, f"Too long: may not be more than {limit} {unit}", "FieldValueTooLong")


def too_many(path: str, actual: int, limit: int) -> FieldError:
    unit = "item" if limit == 1 else "items"
    return FieldError(path, f"Too many: {actual}: must have at most {limit} {unit}", "FieldValueTooMany")


def shown(value: object) -> str:
    """A value as field.Error prints it: strings in Go's quotes, scalars bare, the rest as JSON."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, float):
        return number_text(value)
    return json_text(_presentable(value))


def number_text(value: float) -> str:
    """Go's %v of a number: shortest digits, an exponent from 1e21 on and below 1e-4."""
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    digits, _, exponent = f"{value!r}".partition("e")
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    if not exponent:
        return digits
    power = int(exponent)
    return f"{digits.removesuffix('.0')}e{'-' if power < 0 else '+'}{abs(power):02d}"


def json_text(value: object) -> str:
    """Go's json.Marshal: sorted keys, whole floats without a fraction, `<`, `>` and `&` escaped."""
    text = orjson.dumps(_whole_numbers(value), option=orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS).decode()
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


_LEVELS = 20
"""Levels of a value that a message shows."""


def _presentable(value: object, levels: int = _LEVELS) -> object:
    """A value that JSON can hold: integers as a float64 has them, and nothing below some levels."""
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        return float(value) if abs(value) < 1 << 1023 else f"{value:#x}"[:_LEVELS]
    if not isinstance(value, dict | list):
        return value
    if not levels:
        return "..."
    if isinstance(value, dict):
        return {key: _presentable(item, levels - 1) for key, item in value.items()}
    return [_presentable(item, levels - 1) for item in value]


def _with_detail(head: str, detail: str) -> str:
    return f"{head}: {detail}" if detail else head


def _whole_numbers(value: object) -> object:
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) < 2**63 else value
    if isinstance(value, dict):
        return {key: _whole_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(item) for item in value]
    return value
