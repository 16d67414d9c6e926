"""Documents read into the shape of Go's structs, and refused in the words of encoding/json.

Helm reads Chart.yaml, values.yaml and the head of each manifest so: keys in any case, numbers and booleans where text
is wanted, and of several things that do not fit the first in the order of keys.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from hortus.render.gotemplate.numbers import general

_KINDS: dict[type, str] = {list: "array", dict: "object", str: "string", bool: "bool", int: "number", float: "number"}


class DecodingError(ValueError):
    """A value that does not fit its field; worded as by sigs.k8s.io/yaml."""


class Place(NamedTuple):
    """A field: the struct it belongs to, and the path to it from the top."""

    struct: str
    path: str

    def below(self, struct: str, name: str) -> Place:
        return Place(struct, f"{self.path}.{name}" if self.path else name)


Reader = Callable[[Any, Place], Any]


def _refused(value: Any, place: Place, wanted: str) -> DecodingError:
    kind = _KINDS[type(value)]
    at = f"struct field {place.struct}.{place.path}" if place.path else "value"
    return DecodingError(
        f"error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {kind} into Go {at} of type {wanted}"
    )


def text(value: Any, place: Place) -> str:
    """A string; numbers and booleans are written as one, null is an empty one. Raises DecodingError."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value) if isinstance(value, int) else general(value, single=True, high=21)
    raise _refused(value, place, "string")


def boolean(value: Any, place: Place) -> bool:
    if not isinstance(value, bool):
        raise _refused(value, place, "bool")
    return value


def texts(value: Any, place: Place) -> list[str]:
    if not isinstance(value, list):
        raise _refused(value, place, "[]string")
    return [text(part, place) for part in value]


def anything(value: Any, place: Place) -> list[Any]:
    """A list of whatever there is."""
    if not isinstance(value, list):
        raise _refused(value, place, "[]interface {}")
    return value


def text_map(value: Any, place: Place) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _refused(value, place, "map[string]string")
    return {key: text(value[key], place) for key in sorted(value)}


def table(value: Any) -> dict[str, Any]:
    """A document that must be a mapping, an empty one where there is nothing. Raises DecodingError."""
    if value is not None and not isinstance(value, dict):
        raise _refused(value, Place("", ""), "map[string]interface {}")
    return value or {}


def struct(readers: Mapping[str, Reader], *, name: str, shown: str) -> Reader:
    """Reads a mapping field by field, null left out. `name` is the type that goes before fields, `shown` the whole."""
    folded = {field.lower(): field for field in readers}

    def read(value: Any, place: Place) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _refused(value, place, shown)
        found: dict[str, Any] = {}
        for key in sorted(value):
            field = key if key in readers else folded.get(key.lower())
            if field is not None and value[key] is not None:
                found[field] = readers[field](value[key], place.below(name, field))
        return found

    return read


def structs(reader: Reader, *, shown: str) -> Reader:
    """Reads a list of pointers to structs, which may be nil."""

    def read(value: Any, place: Place) -> list[Any]:
        if not isinstance(value, list):
            raise _refused(value, place, f"[]*{shown}")
        return [None if part is None else reader(part, place) for part in value]

    return read


TOP = Place("", "")
