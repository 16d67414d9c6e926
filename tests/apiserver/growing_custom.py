"""A custom resource with each rule that a schema can hold, to grow."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

_TEXT: dict[str, Any] = {"type": "string"}
_ITEM: dict[str, Any] = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": _TEXT | {"pattern": "^[a-z0-9]+$"},
        "size": {"type": "integer", "default": 3},
        "inner": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
    },
}
_PARTS: dict[str, Any] = {
    "keyed": {
        "type": "array",
        "items": _ITEM,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["name"],
        "maxItems": 100_000,
    },
    "distinct": {"type": "array", "items": _TEXT, "x-kubernetes-list-type": "set"},
    "whole": {"type": "array", "items": _ITEM, "x-kubernetes-list-type": "atomic"},
    "plain": {"type": "array", "items": _ITEM},
    "mapped": {"type": "object", "additionalProperties": _ITEM},
    "atomic": {"type": "object", "additionalProperties": _TEXT, "x-kubernetes-map-type": "atomic"},
    "checked": {
        "type": "array",
        "maxItems": 2000,
        "items": _TEXT | {"maxLength": 10},
        "x-kubernetes-validations": [{"rule": "self.all(x, x.startsWith('a'))"}],
    },
    "kept": {
        "type": "array",
        "maxItems": 2000,
        "items": _TEXT | {"maxLength": 10},
        "x-kubernetes-validations": [{"rule": "self.size() >= oldSelf.size() || self.size() < 5000"}],
    },
    "either": {
        "type": "array",
        "items": {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
        },
    },
    "quantities": {"type": "array", "items": _TEXT | {"format": "quantity"}},
    "times": {"type": "array", "items": _TEXT | {"format": "date-time"}},
    "names": {"type": "array", "items": _TEXT | {"pattern": r"^([a-z0-9]+([-.][a-z0-9]+)*)+$", "maxLength": 200_000}},
    "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {"type": "object", "properties": _PARTS},
        "status": {"type": "object", "properties": {"found": {"type": "array", "items": _ITEM}}},
    },
}


def definition(plural: str, columns: tuple[str, ...] = ()) -> dict[str, Any]:
    """A CustomResourceDefinition with `SCHEMA` and a printer column for each path."""
    kind = plural.title()
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": deepcopy(SCHEMA)},
        "subresources": {"status": {}},
        "selectableFields": [],
        "additionalPrinterColumns": [
            {"name": f"c{number}", "type": "string", "jsonPath": path} for number, path in enumerate(columns)
        ],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.growing.example.com"},
        "spec": {
            "group": "growing.example.com",
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": plural[:-1], "kind": kind, "listKind": f"{kind}List"},
            "versions": [version],
        },
    }
