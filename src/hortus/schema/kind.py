"""Kinds as frozen msgspec structs: the one source of a CRD, its defaults, its columns and its documentation.

    @kind(group="example.org", version="v1", columns=(Column("State", ".status.state"), AGE), status=True)
    class Garden(Kind, frozen=True):
        \"""A garden.\"""

        spec: GardenSpec
        \"""What is wanted.\"""
        status: GardenStatus = GardenStatus()
        \"""What is observed.\"""

Rules: required fields come before optional ones; snake_case fields are camelCase on the wire; a field without a default
is required; a default other than None and "nothing" (empty text, list, object, zero and False included) is the CRD's
default too; docstrings below fields become descriptions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypeVar

import msgspec

from hortus.schema.markers import Column, Scale, ValidationRule


class Fields(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Base of every object inside a kind."""

    __rules__: ClassVar[tuple[ValidationRule, ...]] = ()
    """CEL rules over the whole object."""
    __schema__: ClassVar[dict[str, Any]] = {}
    """Further schema keywords of the whole object."""


class Facts(msgspec.Struct, frozen=True):
    """The facts of a kind in its CRD, besides its schema."""

    group: str
    version: str
    name: str
    plural: str
    singular: str
    list_name: str
    scope: Literal["Namespaced", "Cluster"]
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    columns: tuple[Column, ...]
    status: bool
    scale: Scale | None
    selectable: tuple[str, ...]
    served: bool
    deprecation: str | None
    former: tuple[type[Kind], ...]

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def crd_name(self) -> str:
        return f"{self.plural}.{self.group}"


class OwnerReference(Fields, frozen=True):
    """An object that this one belongs to; metav1.OwnerReference."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool = False
    block_owner_deletion: bool = False


class ObjectMeta(Fields, frozen=True):
    """The parts of metav1.ObjectMeta that controllers read. Times are RFC 3339."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    finalizers: tuple[str, ...] = ()
    owner_references: tuple[OwnerReference, ...] = ()


class Kind(Fields, frozen=True):
    """Base of a kind: the object itself."""

    FACTS: ClassVar[Facts]

    metadata: ObjectMeta


K = TypeVar("K", bound=Kind)


def kind(
    *,
    group: str,
    version: str,
    name: str = "",
    plural: str = "",
    singular: str = "",
    list_name: str = "",
    scope: Literal["Namespaced", "Cluster"] = "Namespaced",
    short_names: tuple[str, ...] = (),
    categories: tuple[str, ...] = (),
    columns: tuple[Column, ...] = (),
    status: bool = False,
    scale: Scale | None = None,
    selectable: tuple[str, ...] = (),
    served: bool = True,
    deprecation: str | None = None,
    former: tuple[type[Kind], ...] = (),
) -> Callable[[type[K]], type[K]]:
    """Declare a struct as a kind, named like its class unless `name` says otherwise.

    `deprecation` is the warning of a deprecated version. `former` are versions that stay in the CRD of this one.
    """

    def declare(cls: type[K]) -> type[K]:
        called = name or cls.__name__
        lower = called.lower()
        cls.FACTS = Facts(
            group=group,
            version=version,
            name=called,
            plural=plural or f"{lower}s",
            singular=singular or lower,
            list_name=list_name or f"{called}List",
            scope=scope,
            short_names=short_names,
            categories=categories,
            columns=columns,
            status=status,
            scale=scale,
            selectable=selectable,
            served=served,
            deprecation=deprecation,
            former=former,
        )
        return cls

    return declare


def decode(cls: type[K], obj: dict[str, Any]) -> K:
    """The struct of an API object; unknown fields are left out. Raises msgspec.ValidationError."""
    return msgspec.convert(obj, type=cls)


def encode(value: Kind) -> dict[str, Any]:
    """The API object of a struct, without fields that are at their defaults."""
    body = msgspec.json.decode(msgspec.json.encode(value))
    return {"apiVersion": value.FACTS.api_version, "kind": value.FACTS.name, **body}
