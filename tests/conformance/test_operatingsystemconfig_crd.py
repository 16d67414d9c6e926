"""The fields that the node agent reads, against Gardener's own CustomResourceDefinition of OperatingSystemConfigs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import inspect

from hortus.kube import yaml
from hortus.nodeagent.osc import OperatingSystemConfig

Schema = dict[str, Any]
NOT_READ = {
    "spec.class",
    "spec.providerConfig",
    "status.cloudConfig",
    "status.conditions",
    "status.lastError",
    "status.lastOperation",
    "status.observedGeneration",
    "status.providerStatus",
    "status.resources",
    "status.state",
}
"""Fields that are for the controllers of a seed; a node does nothing with them."""


class _Kubelet(msgspec.Struct):
    version: str


class _Update(msgspec.Struct, rename="camel"):
    operating_system_version: str
    kubelet: _Kubelet


@pytest.fixture(scope="module")
def schema(upstream: Path) -> Schema:
    path = upstream / "gardener" / "crds" / "extensions.gardener.cloud_operatingsystemconfigs.yaml"
    crd = yaml.load(path.read_bytes())
    (version,) = [each for each in crd["spec"]["versions"] if each["name"] == "v1alpha1"]
    found: Schema = version["schema"]["openAPIV3Schema"]
    return found


def differences(schema: Schema, read: inspect.Type, at: str) -> Iterator[str]:
    """The places at which the type that is read is not that of the schema."""
    match read:
        case inspect.UnionType(types=types):
            (read,) = [each for each in types if not isinstance(each, inspect.NoneType)]
            yield from differences(schema, read, at)
        case inspect.StructType(fields=fields):
            if schema.get("type") != "object":
                yield f"{at} is {schema.get('type')}, and an object is read"
                return
            yield from _fields(schema, {field.encode_name: field for field in fields}, at)
        case inspect.VarTupleType(item_type=item):
            if schema.get("type") != "array":
                yield f"{at} is {schema.get('type')}, and an array is read"
                return
            yield from differences(schema["items"], item, f"{at}[]")
        case inspect.AnyType():
            if not schema.get("x-kubernetes-preserve-unknown-fields"):
                yield f"{at} is {schema.get('type')}, and anything is read"
        case _:
            if (found := _scalar(read)) != (schema.get("type"), schema.get("format") == "date-time"):
                yield f"{at} is {schema.get('type')} {schema.get('format', '')}, and {found} is read"


def _fields(schema: Schema, fields: dict[str, inspect.Field], at: str) -> Iterator[str]:
    known = schema.get("properties", {})
    for name, field in fields.items():
        place = f"{at}.{name}".lstrip(".")
        if name not in known:
            yield f"{place} is read, and no field of the schema"
        elif place != "metadata":
            yield from differences(known[name], field.type, place)
        if name in schema.get("required", ()) and isinstance(field.type, inspect.UnionType):
            yield f"{place} is required, and may be absent where it is read"
    for name in known.keys() - fields.keys():
        place = f"{at}.{name}".lstrip(".")
        if place not in NOT_READ:
            yield f"{place} is not read"


def _scalar(read: inspect.Type) -> tuple[str, bool]:
    """The type in a schema, and True for a time."""
    match read:
        case inspect.StrType() | inspect.LiteralType():
            return "string", False
        case inspect.DateTimeType():
            return "string", True
        case inspect.BoolType():
            return "boolean", False
        case inspect.IntType():
            return "integer", False
    return type(read).__name__, False


def test_each_field_that_the_agent_reads_is_one_of_the_schema_with_its_type(schema: Schema) -> None:
    assert list(differences(schema, inspect.type_info(OperatingSystemConfig), "")) == []


def test_a_field_of_another_type_is_found(schema: Schema) -> None:
    update = schema["properties"]["spec"]["properties"]["inPlaceUpdates"]
    assert list(differences(update, inspect.type_info(_Update), "inPlaceUpdates")) == [
        "inPlaceUpdates.kubelet is string, and an object is read",
        "inPlaceUpdates.credentialsRotation is not read",
    ]
