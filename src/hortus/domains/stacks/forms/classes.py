"""The parts of a ClusterClass that the owner of a Cluster fills in, read in either version of Cluster API."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from hortus.domains.stacks.capi import CAPI_GROUP, CAPI_VERSIONS
from hortus.engine.typed import NotReadable
from hortus.kube.objects import Object, Resource, key_of
from hortus.schema import ObjectMeta

CLASSES: Final = {version: Resource(CAPI_GROUP, version, "clusterclasses", "ClusterClass") for version in CAPI_VERSIONS}


class VariableSchema(msgspec.Struct, frozen=True, rename="camel"):
    """The parts of a structural schema that a form reads."""

    type: str = ""
    format: str = ""
    description: str = ""
    default: Any = msgspec.UNSET
    example: Any = msgspec.UNSET
    enum: list[Any] | None = None
    pattern: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    min_length: int | None = None
    max_length: int | None = None
    min_items: int | None = None
    max_items: int | None = None
    properties: dict[str, VariableSchema] = {}
    required: list[str] = []

    @property
    def has_default(self) -> bool:
        return self.default is not msgspec.UNSET

    @property
    def given(self) -> Any:
        """The default, else the example of the author, else the first or least value that the schema allows."""
        for found in (self.default, self.example):
            if found is not msgspec.UNSET:
                return found
        if self.enum:
            return self.enum[0]
        parts = {name: one.given for name, one in self.properties.items() if name in self.required}
        blank: dict[str, Any] = {"boolean": False, "array": [], "object": parts, "string": ""}
        return blank.get(self.type, plain(self.minimum) if self.minimum is not None else 0)

    @property
    def facts(self) -> list[str]:
        """The limits of a value, in words."""
        found = [self.type or "any value", *([self.format] if self.format else [])]
        if self.enum:
            found.append("one of " + ", ".join(str(one) for one in self.enum))
        limits = {
            "at least": plain(self.minimum),
            "at most": plain(self.maximum),
            "characters at least": self.min_length,
            "characters at most": self.max_length,
            "items at least": self.min_items,
            "items at most": self.max_items,
            "as": self.pattern,
        }
        return found + [f"{word} {limit}" for word, limit in limits.items() if limit is not None]


def plain(number: float | None) -> float | int | None:
    """A limit of an integer without its decimals."""
    return int(number) if isinstance(number, float) and number.is_integer() else number


class ClassVariable(NamedTuple):
    """A variable of a ClusterClass."""

    name: str
    required: bool
    schema: VariableSchema


class ClusterForm(NamedTuple):
    """A Cluster to be filled in."""

    api_version: str
    class_name: str
    class_namespace: str
    kubernetes: str
    """The version of the release."""
    workers: tuple[str, ...]
    """The classes of machines for workers."""
    variables: tuple[ClassVariable, ...]

    def topology(self, namespace: str) -> dict[str, Any]:
        """The class and the version, in the form of the Cluster's API version."""
        version = {"version": self.kubernetes}
        if self.api_version.endswith("v1beta2"):
            elsewhere = {} if namespace == self.class_namespace else {"namespace": self.class_namespace}
            return {"classRef": {"name": self.class_name, **elsewhere}, **version}
        elsewhere = {} if namespace == self.class_namespace else {"classNamespace": self.class_namespace}
        return {"class": self.class_name, **elsewhere, **version}


class _Schema(msgspec.Struct, frozen=True):
    found: VariableSchema = msgspec.field(default_factory=VariableSchema, name="openAPIV3Schema")


class _Variable(msgspec.Struct, frozen=True):
    name: str
    required: bool = False
    schema: _Schema = _Schema()


class _Machines(msgspec.Struct, frozen=True):
    class_name: str = msgspec.field(default="", name="class")


class _Workers(msgspec.Struct, frozen=True, rename="camel"):
    machine_deployments: list[_Machines] | None = None


class _Spec(msgspec.Struct, frozen=True):
    variables: list[_Variable] | None = None
    workers: _Workers | None = None


class _Class(msgspec.Struct, frozen=True, rename="camel"):
    metadata: ObjectMeta
    api_version: str = ""
    spec: _Spec = _Spec()


def read_form(obj: Object, *, kubernetes: str) -> ClusterForm:
    """The form of a ClusterClass. Raises NotReadable."""
    try:
        found = msgspec.convert(obj, _Class)
    except msgspec.ValidationError as error:
        raise NotReadable(f"ClusterClass {key_of(obj)}: {error}") from error
    machines = found.spec.workers.machine_deployments if found.spec.workers is not None else None
    return ClusterForm(
        found.api_version,
        found.metadata.name,
        found.metadata.namespace,
        kubernetes,
        tuple(one.class_name for one in machines or () if one.class_name),
        tuple(ClassVariable(one.name, one.required, one.schema.found) for one in found.spec.variables or ()),
    )
