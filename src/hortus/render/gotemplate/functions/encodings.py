"""JSON, reflection and paths."""

from __future__ import annotations

import posixpath
from typing import Any

from hortus.render.gotemplate import gojson
from hortus.render.gotemplate.calls import Functions, table
from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.values import kind_name, type_name


def _to_json(value: Any) -> str:
    try:
        return gojson.dumps(value)
    except gojson.JsonError:
        return ""


def _to_pretty_json(value: Any) -> str:
    try:
        return gojson.dumps(value, indent="  ")
    except gojson.JsonError:
        return ""


def _must_json(value: Any, **options: Any) -> str:
    try:
        return gojson.dumps(value, **options)
    except gojson.JsonError as error:
        raise FunctionError(str(error)) from None


def _from_json(text: str) -> Any:
    try:
        return gojson.loads(text)
    except gojson.JsonError:
        return None


def _must_from_json(text: str) -> Any:
    try:
        return gojson.loads(text)
    except gojson.JsonError as error:
        raise FunctionError(str(error)) from None


def _type_is_like(name: str, value: Any) -> bool:
    found = type_name(value)
    return found in (name, "*" + name)


def base(path: str) -> str:
    """path.Base."""
    if not path:
        return "."
    stripped = path.rstrip("/")
    return stripped.rpartition("/")[2] if stripped else "/"


def clean(path: str) -> str:
    """path.Clean."""
    if not path:
        return "."
    found = posixpath.normpath(path)
    return found[1:] if found.startswith("//") else found


def directory(path: str) -> str:
    """path.Dir."""
    return clean(path[: path.rfind("/") + 1])


def extension(path: str) -> str:
    """path.Ext."""
    name = path.rpartition("/")[2]
    return name[name.rfind(".") :] if "." in name else ""


def _is_absolute(path: str) -> bool:
    return path.startswith("/")


ENCODINGS: Functions = table(
    ("fromJson", "string", _from_json),
    ("mustFromJson", "string", _must_from_json),
    ("toJson", "any", _to_json),
    ("mustToJson", "any", _must_json),
    ("toPrettyJson", "any", _to_pretty_json),
    ("mustToPrettyJson", "any", lambda value: _must_json(value, indent="  ")),
    ("toRawJson", "any", lambda value: _must_json(value, html=False)),
    ("mustToRawJson", "any", lambda value: _must_json(value, html=False)),
    ("typeOf", "any", type_name),
    ("typeIs", "string, any", lambda name, value: type_name(value) == name),
    ("typeIsLike", "string, any", _type_is_like),
    ("kindOf", "any", kind_name),
    ("kindIs", "string, any", lambda name, value: kind_name(value) == name),
    ("base", "string", base),
    ("dir", "string", directory),
    ("clean", "string", clean),
    ("ext", "string", extension),
    ("isAbs", "string", _is_absolute),
    ("osBase", "string", base),
    ("osDir", "string", directory),
    ("osClean", "string", clean),
    ("osExt", "string", extension),
    ("osIsAbs", "string", _is_absolute),
)
