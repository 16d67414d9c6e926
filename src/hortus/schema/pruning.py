"""Removal of fields that a schema does not declare (API docs "Custom Resources", Field pruning)."""

from __future__ import annotations

from typing import Any

from hortus.schema.nodes import SchemaNode

_META = frozenset({"apiVersion", "kind", "metadata"})
_OBJECT_META = frozenset(
    {
        "annotations",
        "creationTimestamp",
        "deletionGracePeriodSeconds",
        "deletionTimestamp",
        "finalizers",
        "generateName",
        "generation",
        "labels",
        "managedFields",
        "name",
        "namespace",
        "ownerReferences",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
_OWNER_REFERENCE = frozenset({"apiVersion", "blockOwnerDeletion", "controller", "kind", "name", "uid"})


def prune(obj: dict[str, Any], node: SchemaNode) -> list[str]:
    """Drop unknown fields of a whole object in place; their paths, sorted, as in `spec.list[0].name`."""
    dropped: list[str] = []
    _resource(obj, node, "", dropped)
    dropped.sort()
    return dropped


def prune_value(value: Any, node: SchemaNode) -> list[str]:
    """Drop unknown fields of a value below an object, in place; their paths below it."""
    dropped: list[str] = []
    _value(value, node, "", dropped)
    return dropped


def _resource(obj: dict[str, Any], node: SchemaNode, path: str, dropped: list[str]) -> None:
    """The root or an embedded resource: apiVersion, kind and metadata are always known."""
    _object(obj, node, path, dropped, keep=_META)
    metadata = obj.get("metadata")
    if isinstance(metadata, dict):
        where = f"{path}.metadata" if path else "metadata"
        _drop(metadata, _OBJECT_META, where, dropped)
        for index, owner in enumerate(metadata.get("ownerReferences") or ()):
            if isinstance(owner, dict):
                _drop(owner, _OWNER_REFERENCE, f"{where}.ownerReferences[{index}]", dropped)


def _drop(obj: dict[str, Any], known: frozenset[str], path: str, dropped: list[str]) -> None:
    for name in obj.keys() - known:
        dropped.append(f"{path}.{name}")
        del obj[name]


def _value(value: Any, node: SchemaNode | None, path: str, dropped: list[str]) -> None:
    kind = type(value)
    if kind is dict:
        if node is None:
            _drop(value, frozenset(), path, dropped)
        elif node.embedded:
            _resource(value, node, path, dropped)
        else:
            _object(value, node, path, dropped, keep=frozenset())
    elif kind is list:
        _list(value, node, path, dropped)


def _list(value: list[Any], node: SchemaNode | None, path: str, dropped: list[str]) -> None:
    items = node.items if node is not None else None
    if items is None and node is not None and node.preserve:
        return
    for index, item in enumerate(value):
        if item and (type(item) is dict or type(item) is list):
            _value(item, items, f"{path}[{index}]", dropped)


def _object(obj: dict[str, Any], node: SchemaNode, path: str, dropped: list[str], *, keep: frozenset[str]) -> None:
    properties, additional = node.properties, node.additional
    unknown: list[str] = []
    for name, item in obj.items():
        if name in keep:
            continue
        child = properties.get(name, additional)
        if child is None:
            if not node.preserve:
                unknown.append(name)
        elif type(item) is dict or type(item) is list:
            _value(item, child, f"{path}.{name}" if path else name, dropped)
    for name in unknown:
        dropped.append(f"{path}.{name}" if path else name)
        del obj[name]
