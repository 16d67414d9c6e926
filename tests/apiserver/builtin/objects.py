"""Random objects of any built-in type, drawn from the description."""

from __future__ import annotations

import base64
import random
from datetime import UTC, datetime
from typing import Any

from hortus.schema.builtin import FieldDescription, builtin

_DEEPEST = 9
_TEXTS = ("", "a", "web", "kube-system", "ä", "日本", "😀", "a\nb", '"quoted"', "\x00", "0", "null", "x" * 200)
_NUMBERS = (0, 1, -1, 127, 128, 300, 2**31 - 1, -(2**31))
_LONGS = (*_NUMBERS, 2**53, 2**63 - 1, -(2**63))
_QUANTITIES = (
    "0",
    "1",
    "100m",
    "1.5",
    "0.5",
    "1Gi",
    "1536Mi",
    "1e3",
    "12E6",
    "1000",
    "123456789012345678901",
    "0.1n",
    "-1",
    "5k",
)
_DURATIONS = ("0s", "1s", "1h30m0s", "90m", "1.5s", "-2m", "100ns")
_JSON = ({}, [], 0, 1.5, "text", True, {"a": [1, None, {"b": "c"}]})
_SCHEMA = "apiextensions.JSONSchemaProps"


def random_object(dice: random.Random, name: str, depth: int = 0) -> dict[str, Any]:
    """An object of the struct alias.Name as a client might send it: fields missing, null and empty among them."""
    density = 0.9 if depth < 2 else 0.5 if depth < 4 else 0.25
    obj: dict[str, Any] = {}
    for key, field in builtin().json_fields(name).items():
        if field.number and dice.random() < density * (0.3 if name == _SCHEMA else 1):
            value = _field(dice, field, depth)
            if value is not _NOTHING:
                obj[key] = value
    return obj


_NOTHING = object()


def _field(dice: random.Random, field: FieldDescription, depth: int) -> Any:
    if dice.random() < 0.05:
        return None
    if depth > _DEEPEST and field.kind in ("struct", "schemaOrBool", "schemaOrArray"):
        return _NOTHING
    if field.shape == "list":
        return [_value(dice, field, depth) for _ in range(dice.choice((0, 1, 1, 2)))]
    if field.shape == "map":
        return {dice.choice(_TEXTS): _value(dice, field, depth) for _ in range(dice.choice((0, 1, 3)))}
    return _value(dice, field, depth)


def _value(dice: random.Random, field: FieldDescription, depth: int) -> Any:
    kind = field.kind
    if kind == "struct":
        return random_object(dice, field.ref, depth + 1)
    if kind == "enum":
        return dice.choice((*builtin().type(field.ref).values, "", "else"))
    if kind == "raw":
        return {"apiVersion": "v1", "kind": "Any", "value": dice.choice(_JSON)}
    if kind.startswith("schemaOr"):
        return _schema_or(dice, kind, depth)
    return _SCALARS[kind](dice)


def _schema_or(dice: random.Random, kind: str, depth: int) -> Any:
    schema = random_object(dice, _SCHEMA, depth + 2)
    if kind == "schemaOrBool":
        return dice.choice((True, False, schema))
    if kind == "schemaOrArray":
        return dice.choice((schema, [schema, {}]))
    return dice.choice((["a", "b"], schema))


def _time(dice: random.Random) -> str:
    moment = datetime.fromtimestamp(dice.randrange(-(10**9), 4 * 10**9), UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _micro_time(dice: random.Random) -> str:
    return _time(dice)[:-1] + dice.choice((".000000Z", ".000001Z", ".999999Z", ".500000+02:00"))


_SCALARS: dict[str, Any] = {
    "string": lambda dice: dice.choice(_TEXTS),
    "bool": lambda dice: dice.random() < 0.5,
    "int32": lambda dice: dice.choice(_NUMBERS),
    "int64": lambda dice: dice.choice(_LONGS),
    "float64": lambda dice: dice.choice((0.0, 1.5, -2.25, 1e300)),
    "bytes": lambda dice: base64.b64encode(dice.randbytes(dice.choice((1, 2, 3, 200)))).decode(),
    "time": _time,
    "microtime": _micro_time,
    "duration": lambda dice: dice.choice(_DURATIONS),
    "quantity": lambda dice: dice.choice(_QUANTITIES),
    "intstr": lambda dice: dice.choice((0, 80, -1, "http", "50%", "")),
    "json": lambda dice: dice.choice(_JSON),
    "fields": lambda dice: {"f:metadata": {"f:labels": {}}},
    "strings": lambda dice: ["a", "b"][: dice.randrange(3)],
}
