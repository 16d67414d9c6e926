"""Reads settings that a person wrote: from YAML values to structs, with errors that say what would have been right.

msgspec decodes faster, but its messages neither list the settings there are nor the values that are allowed, and a
scenario is read once. A struct's annotations are the whole description: `Annotated[float, SECONDS]` takes `1m30s` or
90, `Bounds` limits numbers, `Literal` lists words, a union of structs tagged by `tag_field` is chosen by that field.
"""

from __future__ import annotations

import difflib
import types
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec

from hortus.kube import durations

S = TypeVar("S", bound=msgspec.Struct)


class ScenarioError(Exception):
    """A value of a scenario cannot be used; the message names the path, the value and the allowed ones."""


class Bounds(msgspec.Struct, frozen=True):
    """The allowed numbers, both ends included."""

    least: float
    most: float

    def __str__(self) -> str:
        return f"from {self.least:g} to {self.most:g}"


class Unit(msgspec.Struct, frozen=True):
    """The unit of a number that is written as text."""

    name: str
    example: str


SECONDS = Unit("a duration", "30s or 1m30s; a bare number is seconds")
SHARE = Unit("a share", "0.25 or 25%")
DAY = 86400.0

Seconds = Annotated[float, SECONDS, Bounds(0, 7 * DAY)]
Share = Annotated[float, SHARE, Bounds(0, 1)]


def read(cls: type[S], value: object, path: str = "") -> S:
    """A `cls` from decoded YAML. Raises ScenarioError."""
    return _struct(cls, value, path)


def _struct(cls: type[S], value: object, path: str) -> S:
    if not isinstance(value, Mapping):
        raise ScenarioError(f"{_at(path)}{_shown(value)} must be a mapping with the settings {_names(cls)}")
    hints = get_type_hints(cls, include_extras=True)
    fields = {field.name: field for field in msgspec.structs.fields(cls)}
    tag = cls.__struct_config__.tag_field
    given: dict[str, Any] = {}
    for key, inner in value.items():
        if key == tag:
            continue
        if key not in fields:
            raise ScenarioError(f"{_at(_join(path, key))}there is no such setting{_close(key, fields)}; {_there(cls)}")
        given[key] = _value(hints[key], inner, _join(path, key))
    missing = [name for name, field in fields.items() if field.required and name not in given]
    if missing:
        raise ScenarioError(f"{_at(_join(path, missing[0]))}is missing; {_there(cls)}")
    return cls(**given)


def _value(hint: Any, value: object, path: str) -> Any:
    metadata: tuple[Any, ...] = ()
    if get_origin(hint) is Annotated:
        hint, *rest = get_args(hint)
        metadata = tuple(rest)
    origin = get_origin(hint)
    if origin is Literal:
        return _word(get_args(hint), value, path)
    if origin in (Union, types.UnionType):
        return _one_of(hint, value, path, metadata)
    if origin is tuple:
        return _items(get_args(hint)[0], value, path)
    if origin is dict:
        return _mapping(get_args(hint)[1], value, path)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _struct(hint, value, path)
    if hint in (int, float):
        return _number(hint, value, path, metadata)
    if hint is bool:
        if not isinstance(value, bool):
            raise ScenarioError(f"{_at(path)}{_shown(value)} must be true or false")
        return value
    if not isinstance(value, str):
        raise ScenarioError(f"{_at(path)}{_shown(value)} must be a text")
    return value


def _word(words: tuple[Any, ...], value: object, path: str) -> Any:
    if value not in words:
        allowed = ", ".join(map(str, words))
        raise ScenarioError(f"{_at(path)}{_shown(value)} is not known{_close(value, words)}; there are: {allowed}")
    return value


def _one_of(hint: Any, value: object, path: str, metadata: tuple[Any, ...]) -> Any:
    choices = [choice for choice in get_args(hint) if choice is not type(None)]
    if value is None and len(choices) < len(get_args(hint)):
        return None
    if len(choices) == 1:
        return _value(Annotated[choices[0], *metadata] if metadata else choices[0], value, path)
    by_tag = {choice.__struct_config__.tag: choice for choice in choices}
    field = choices[0].__struct_config__.tag_field
    if not isinstance(value, Mapping) or field not in value:
        raise ScenarioError(f"{_at(path)}{_shown(value)} must name a {field}; there are: {', '.join(by_tag)}")
    return _struct(by_tag[_word(tuple(by_tag), value[field], _join(path, field))], value, path)


def _items(hint: Any, value: object, path: str) -> tuple[Any, ...]:
    if isinstance(value, str) and (hint is str or get_origin(hint) is Literal):
        return (_value(hint, value, path),)
    if not isinstance(value, list | tuple):
        raise ScenarioError(f"{_at(path)}{_shown(value)} must be a list")
    return tuple(_value(hint, inner, f"{path}[{index}]") for index, inner in enumerate(value))


def _mapping(hint: Any, value: object, path: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ScenarioError(f"{_at(path)}{_shown(value)} must be a mapping")
    return {str(key): _value(hint, inner, _join(path, key)) for key, inner in value.items()}


def _number(hint: type, value: object, path: str, metadata: tuple[Any, ...]) -> Any:
    unit = next((one for one in metadata if isinstance(one, Unit)), None)
    bounds = next((one for one in metadata if isinstance(one, Bounds)), None)
    expected = f"{unit.name} such as {unit.example}" if unit else "a whole number" if hint is int else "a number"
    if bounds is not None:
        expected += f", {bounds}"
    number = _parsed(value, unit) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int | float) or (hint is int and number != int(number)):
        raise ScenarioError(f"{_at(path)}{_shown(value)} must be {expected}")
    if bounds is not None and not bounds.least <= number <= bounds.most:
        raise ScenarioError(f"{_at(path)}{_shown(value)} must be {expected}")
    return hint(number)


def _parsed(text: str, unit: Unit | None) -> float | None:
    try:
        if unit is SHARE and text.endswith("%"):
            return float(text[:-1]) / 100
        if unit is SECONDS and not text.replace(".", "", 1).isdigit():
            return durations.seconds(text)
        return float(text)
    except ValueError:
        return None


def _there(cls: type[msgspec.Struct]) -> str:
    return f"there are: {_names(cls)}"


def _names(cls: type[msgspec.Struct]) -> str:
    return ", ".join(field.name for field in msgspec.structs.fields(cls))


def _close(value: object, known: Any) -> str:
    found = difflib.get_close_matches(str(value), [str(one) for one in known], n=1)
    return f", did you mean {found[0]}?" if found else ""


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def _at(path: str) -> str:
    return f"{path}: " if path else ""


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
