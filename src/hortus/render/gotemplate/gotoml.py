"""TOML as the Go library that Helm uses writes and reads it."""

from __future__ import annotations

import datetime
import re
import tomllib
from typing import Any

from hortus.render.gotemplate import numbers
from hortus.render.gotemplate.values import NIL_TYPES, Int64, Struct, Uint8

_MOST_PIECES = 1_000_000
_DEEPEST = 20
"""Inline tables and lists; each level may double what is written."""
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r", '"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f"}
_CONTROL = re.compile(r'[\x00-\x1f"\\\x7f]')


class TomlError(ValueError):
    """A value that has no TOML, or a text that is none."""


def dumps(value: Any) -> str:
    """The value as TOML; tables are indented below their parent. Raises TomlError in the library's words."""
    out: list[str] = []
    if isinstance(value, Struct) and value.text is None:
        value = value.fields
    if isinstance(value, dict) and type(value) not in NIL_TYPES:
        _table((), value, out)
        return "".join(out)
    out.append(_element(value))
    return "".join(out)


def _is_nil(value: Any) -> bool:
    return value is None or type(value) in NIL_TYPES


def _is_tables(value: Any) -> bool:
    if not isinstance(value, list) or not value:
        return False
    if any(_is_nil(part) for part in value):
        raise TomlError("toml: cannot encode array with nil element")
    return all(_is_table(part) for part in value)


def _is_table(value: Any) -> bool:
    return (isinstance(value, dict) and not _is_nil(value)) or (isinstance(value, Struct) and value.text is None)


def _table(path: tuple[str, ...], value: Any, out: list[str]) -> None:
    pairs = value.fields if isinstance(value, Struct) else value
    if len(out) > _MOST_PIECES:
        raise TomlError(f"toml: a value of more than {_MOST_PIECES} parts is not written")
    names = list(pairs) if isinstance(value, Struct) else sorted(pairs)
    nested = [name for name in names if _is_table(pairs[name]) or _is_tables(pairs[name])]
    for name in names:
        if name not in nested and not _is_nil(pairs[name]):
            margin = "  " * len(path)
            out.append(f"{margin}{_key(name)} = {_element(pairs[name])}\n")
    for name in nested:
        _nested((*path, name), pairs[name], out)


def _nested(path: tuple[str, ...], value: Any, out: list[str]) -> None:
    margin = "  " * (len(path) - 1)
    shown = ".".join(map(_key, path))
    if isinstance(value, list):
        for part in value:
            out.append(("\n" if out else "") + f"{margin}[[{shown}]]\n")
            _table(path, part, out)
        return
    if len(path) == 1 and out:
        out.append("\n")
    out.append(f"{margin}[{shown}]\n")
    _table(path, value, out)


def _key(name: str) -> str:
    if not name:
        return '""'
    return name if _BARE.fullmatch(name) else _quoted(name)


def _quoted(text: str) -> str:
    return '"' + _CONTROL.sub(lambda found: _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04x}", text) + '"'


def _element(value: Any, depth: int = 0) -> str:
    if depth > _DEEPEST:
        raise TomlError(f"toml: nested deeper than {_DEEPEST} levels")
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, bytes):
        return "[" + ", ".join(str(int(Uint8(part))) for part in value) + "]"
    if isinstance(value, list):
        if any(_is_nil(part) for part in value):
            raise TomlError("toml: cannot encode array with nil element")
        return "[" + ", ".join(_element(part, depth + 1) for part in value) + "]"
    if isinstance(value, dict):
        return _inline(value, depth)
    return _quoted(value.text()) if value.text is not None else _inline(value.fields, depth)


def _inline(value: dict[str, Any], depth: int) -> str:
    """A table in braces: simple values, then tables. The library leaves a comma where a nil was last."""
    names = sorted(value)
    nested = [
        name for name in names if not _is_nil(value[name]) and (_is_table(value[name]) or _is_tables(value[name]))
    ]
    out: list[str] = []
    for group, trails in (([name for name in names if name not in nested], bool(nested)), (nested, False)):
        for number, name in enumerate(group, start=1):
            if not _is_nil(value[name]):
                end = ", " if trails or number < len(group) else ""
                out.append(f"{_key(name)} = {_element(value[name], depth + 1)}{end}")
    return "{" + "".join(out) + "}"


def _float(value: float) -> str:
    special = numbers.special(value)
    if special:
        return {"NaN": "nan", "+Inf": "inf", "-Inf": "-inf"}[special]
    text = numbers.general(value)
    return text if "." in text or "e" in text else text + ".0"


def loads(text: str) -> dict[str, Any]:
    """A document as Go values: integers are int64. Raises TomlError."""
    try:
        return {key: _revived(value) for key, value in tomllib.loads(text).items()}
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise TomlError(f"toml: {error}") from None


def _revived(value: Any) -> Any:
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return Int64(value)
    if isinstance(value, list):
        return [_revived(part) for part in value]
    if isinstance(value, dict):
        return {key: _revived(part) for key, part in value.items()}
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    return value
