"""API objects are plain dicts; this file names their parts.

Hot paths hand decoded JSON (`Object`) or bytes around; typed structs appear at the edges only.
"""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, NamedTuple, TypeVar

import msgspec

_T = TypeVar("_T")

Object = dict[str, Any]
"""One API object as decoded JSON."""


class ObjectKey(NamedTuple):
    """Namespace (empty for cluster-scoped kinds) and name: what a work queue holds."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class GroupVersionKind(NamedTuple):
    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


class Resource(msgspec.Struct, frozen=True):
    """The REST mapping of a kind. `group` is empty for core/v1."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def gvk(self) -> GroupVersionKind:
        return GroupVersionKind(self.group, self.version, self.kind)

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The REST path below the server's base URL; an empty namespace means all namespaces or cluster scope.

        Shapes: docs "Kubernetes API Concepts", resource URIs.
        """
        parts = ["/apis/" + self.group if self.group else "/api", self.version]
        if namespace and self.namespaced:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        if name:
            parts.append(name)
        if subresource:
            parts.append(subresource)
        return "/".join(parts)


class _Metadata(msgspec.Struct, rename="camel"):
    """The metadata that every reader relies on, with ObjectMeta's types."""

    name: str
    namespace: str = ""
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    finalizers: list[str] | None = None
    owner_references: list[dict[str, Any]] | None = None
    managed_fields: list[dict[str, Any]] | None = None


class _Shape(msgspec.Struct):
    metadata: _Metadata


def is_object(value: object) -> bool:
    """Reports whether `value`, as a server sent it, has the metadata of an API object: a name, no field of another
    type."""
    return shaped(value, _Shape) is not None


def shaped(value: object, shape: type[_T]) -> _T | None:
    """`value`, as a server sent it, read as the struct `shape`; None where a field is missing or of another type."""
    try:
        return msgspec.convert(value, shape)
    except msgspec.ValidationError:
        return None


def key_of(obj: Object) -> ObjectKey:
    metadata = obj["metadata"]
    return ObjectKey(metadata.get("namespace", ""), metadata["name"])


def format_time(seconds: float) -> str:
    """metav1.Time: RFC 3339, UTC, whole seconds, as `2023-01-01T12:00:00Z`."""
    return _whole_seconds(int(seconds))


@lru_cache(maxsize=64)
def _whole_seconds(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro_time(seconds: float) -> str:
    """metav1.MicroTime: RFC 3339, UTC, six decimals."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_time(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 time with a zone; raises ValueError otherwise."""
    parsed = datetime.fromisoformat(text)
    if parsed.tzinfo is None:
        raise ValueError(f"time {text!r} has no zone")
    return parsed.timestamp()
