""".Files and .Values: maps with methods."""

from __future__ import annotations

import base64
import re
from typing import Any

from hortus.render.gotemplate import goyaml
from hortus.render.gotemplate.calls import Function
from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.functions.documents import to_yaml
from hortus.render.gotemplate.goyaml.writing import Unwritable
from hortus.render.gotemplate.values import FilesMap, Strings, ValuesMap, wire_text
from hortus.render.helm.coalescing import NoValue, table_at, value_at


def _get_bytes(files: FilesMap, name: str) -> bytes:
    found: bytes = files.get(name, b"")
    return found


def _get(files: FilesMap, name: str) -> str:
    return wire_text(_get_bytes(files, name))


def _glob(files: FilesMap, pattern: str) -> FilesMap:
    try:
        compiled = re.compile(_translated(pattern), re.DOTALL)
    except (ValueError, re.error):
        return FilesMap(files)
    return FilesMap((name, data) for name, data in files.items() if compiled.fullmatch(name))


def _translated(pattern: str) -> str:
    """A glob: `*` and `?` stop at `/`, `**` does not, `[...]` and `{a,b}`. Raises ValueError."""
    out: list[str] = []
    at, braces = 0, 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "*":
            double = pattern.startswith("*", at)
            at += double
            out.append(".*" if double else "[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif char == "[":
            end = pattern.find("]", at + 1)
            if end < 0:
                raise ValueError
            body = pattern[at:end]
            negate = body.startswith("!")
            out.append("[" + ("^" if negate else "") + re.sub(r"([\\\[&~|^])", r"\\\1", body.removeprefix("!")) + "]")
            at = end + 1
        elif char == "{":
            out.append("(?:")
            braces += 1
        elif char == "}" and braces:
            out.append(")")
            braces -= 1
        elif char == "," and braces:
            out.append("|")
        else:
            if char == "\\" and at < len(pattern):
                char, at = pattern[at], at + 1
            out.append(re.escape(char))
    if braces:
        raise ValueError
    return "".join(out)


def _lines(files: FilesMap, name: str) -> Strings:
    text = _get(files, name)
    return Strings(text.removesuffix("\n").split("\n") if text else ())


def _as_config(files: FilesMap) -> str:
    return to_yaml({name.rpartition("/")[2]: wire_text(data) for name, data in files.items()})


def _as_secrets(files: FilesMap) -> str:
    return to_yaml({name.rpartition("/")[2]: base64.b64encode(data).decode() for name, data in files.items()})


def _yaml(values: ValuesMap) -> str:
    try:
        return goyaml.write(dict(values))
    except Unwritable as error:
        raise FunctionError(str(error)) from None


def _table(values: ValuesMap, path: str) -> ValuesMap:
    try:
        return ValuesMap(table_at(values, path))
    except NoValue as error:
        raise FunctionError(str(error)) from None


def _path_value(values: ValuesMap, path: str) -> Any:
    if not path:
        raise FunctionError("YAML path cannot be empty")
    try:
        return value_at(values, path)
    except NoValue as error:
        raise FunctionError(str(error)) from None


METHODS_OF_FILES = {
    "Get": Function("Get", "string", _get),
    "GetBytes": Function("GetBytes", "string", _get_bytes),
    "Glob": Function("Glob", "string", _glob),
    "Lines": Function("Lines", "string", _lines),
    "AsConfig": Function("AsConfig", "", _as_config),
    "AsSecrets": Function("AsSecrets", "", _as_secrets),
}
METHODS_OF_VALUES = {
    "YAML": Function("YAML", "", _yaml),
    "AsMap": Function("AsMap", "", dict),
    "Table": Function("Table", "string", _table),
    "PathValue": Function("PathValue", "string", _path_value),
}
