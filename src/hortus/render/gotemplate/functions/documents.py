"""The functions on YAML, JSON and TOML that Helm adds. An error of reading is part of the result."""

from __future__ import annotations

from typing import Any

from hortus.render.gotemplate import gojson, gotoml, goyaml
from hortus.render.gotemplate.calls import Functions, table
from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.goyaml.writing import Unwritable
from hortus.render.gotemplate.values import ABSENT, NilList, NilMap, type_name


def to_yaml(value: Any) -> str:
    try:
        return goyaml.write(value).removesuffix("\n")
    except Unwritable:
        return ""


def to_yaml_pretty(value: Any) -> str:
    try:
        return goyaml.write_pretty(value).removesuffix("\n")
    except Unwritable:
        return ""


def _go_kind(value: Any) -> str:
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "number" if type_name(value) == "float64" else type_name(value)


def from_yaml(text: str) -> dict[str, Any]:
    try:
        found = goyaml.read_json(text)
    except goyaml.GoYamlError as error:
        return {"Error": str(error)}
    # Unlike JSON's, YAML's null leaves the empty map it is read into.
    return {} if found is None else _map(found, "error unmarshaling JSON: while decoding JSON: ")


def _map(found: Any, prefix: str) -> dict[str, Any]:
    if found is None:
        return NilMap()
    if isinstance(found, dict):
        return found
    return {
        "Error": f"{prefix}json: cannot unmarshal {_go_kind(found)} into Go value of type map[string]interface {{}}"
    }


def from_yaml_array(text: str) -> list[Any]:
    try:
        found = goyaml.read_json(text)
    except goyaml.GoYamlError as error:
        return [str(error)]
    return [] if found is None else _array(found, "error unmarshaling JSON: while decoding JSON: ")


def _array(found: Any, prefix: str) -> list[Any]:
    if found is None:
        return NilList()
    if isinstance(found, list):
        return found
    return [f"{prefix}json: cannot unmarshal {_go_kind(found)} into Go value of type []interface {{}}"]


def to_json(value: Any) -> str:
    try:
        return gojson.dumps(value)
    except gojson.JsonError:
        return ""


def from_json(text: str) -> dict[str, Any]:
    try:
        return _map(gojson.loads(text), "")
    except gojson.JsonError as error:
        return {"Error": str(error)}


def from_json_array(text: str) -> list[Any]:
    try:
        return _array(gojson.loads(text), "")
    except gojson.JsonError as error:
        return [str(error)]


def to_toml(value: Any) -> str:
    if value is None or value is ABSENT:
        # The library asks nil for its type before it looks whether it can be written.
        raise FunctionError("reflect: call of reflect.Value.Type on zero Value")
    try:
        return gotoml.dumps(value)
    except gotoml.TomlError as error:
        return str(error)


def from_toml(text: str) -> dict[str, Any]:
    try:
        return gotoml.loads(text)
    except gotoml.TomlError as error:
        return {"Error": str(error)}


DOCUMENTS: Functions = table(
    ("toYaml", "any", to_yaml),
    ("toYamlPretty", "any", to_yaml_pretty),
    ("fromYaml", "string", from_yaml),
    ("fromYamlArray", "string", from_yaml_array),
    ("toJson", "any", to_json),
    ("fromJson", "string", from_json),
    ("fromJsonArray", "string", from_json_array),
    ("toToml", "any", to_toml),
    ("fromToml", "string", from_toml),
)
