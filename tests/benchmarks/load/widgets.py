"""The custom resource of the comparison with the peer: defaults, a set list, a map list and two CEL rules."""

from __future__ import annotations

import json
from typing import Any

GROUP, VERSION, KIND, PLURAL = "bench.hortus.dev", "v1", "Widget", "widgets"

_CONDITION = {
    "type": "object",
    "required": ["type", "status"],
    "properties": {name: {"type": "string"} for name in ("type", "status", "reason", "message")}
    | {"lastTransitionTime": {"type": "string", "format": "date-time"}},
}
_SPEC: dict[str, Any] = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 20},
        "mode": {"type": "string", "enum": ["fast", "careful"], "default": "careful"},
        "replicas": {"type": "integer", "minimum": 0, "maximum": 100, "default": 1},
        "maximum": {"type": "integer", "default": 10},
        "zones": {"type": "array", "maxItems": 10, "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "strategy": {
            "type": "object",
            "default": {},
            "properties": {
                "type": {"type": "string", "default": "Rolling"},
                "surge": {"type": "integer", "default": 1},
            },
        },
    },
    "x-kubernetes-validations": [
        {"rule": "self.replicas <= self.maximum", "message": "replicas must not be above maximum"},
        {"rule": "!has(self.zones) || self.mode != 'fast' || self.zones.size() > 0", "message": "fast needs a zone"},
    ],
}
_STATUS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "state": {"type": "string"},
        "conditions": {
            "type": "array",
            "items": _CONDITION,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    },
}


def definition() -> dict[str, Any]:
    """The CustomResourceDefinition."""
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _SPEC, "status": _STATUS}}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"kind": KIND, "plural": PLURAL, "singular": "widget", "listKind": "WidgetList"},
            "versions": [version],
        },
    }


def widget(name: str, namespace: str, *, replicas: int = 2) -> bytes:
    """One object as it is sent; its defaults are the server's to fill in."""
    metadata = {"name": name, "namespace": namespace, "labels": {"app": "bench", "part": "load"}}
    spec = {"size": "large", "mode": "fast", "replicas": replicas, "zones": ["a", "b", "c"]}
    return json.dumps({"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND, "metadata": metadata, "spec": spec}).encode()
