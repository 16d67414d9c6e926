"""A kind with every sort of list and map, and short words for writing objects of it."""

from __future__ import annotations

from typing import Any

from hortus.schema.merge import MergeSchema, apply, update

Object = dict[str, Any]
NOW = 1_700_000_000.0
LATER = NOW + 60
GIZMO: Object = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "replicas": {"type": "integer"},
                "args": {"type": "array", "items": {"type": "string"}},
                "zones": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "selector": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "x-kubernetes-map-type": "atomic",
                },
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {
                        "type": "object",
                        "properties": {
                            "port": {"type": "integer"},
                            "protocol": {"type": "string", "default": "TCP"},
                            "name": {"type": "string"},
                        },
                    },
                },
            },
        },
        "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
SCHEMA = MergeSchema.compile(GIZMO)


def gizmo(spec: Object | None = None, **metadata: Any) -> Object:
    obj: Object = {"apiVersion": "hortus.io/v1", "kind": "Gizmo", "metadata": {"name": "x", **metadata}}
    return obj if spec is None else {**obj, "spec": spec}


def applied(
    live: Object | None, config: Object, manager: str = "me", *, force: bool = False, now: float = NOW
) -> Object:
    return apply(live, config, manager=manager, api_version="hortus.io/v1", now=now, schema=SCHEMA, force=force)


def updated(old: Object | None, new: Object, manager: str = "kubectl-edit", now: float = NOW, **options: Any) -> Object:
    entries = update(old, new, manager=manager, api_version="hortus.io/v1", now=now, schema=SCHEMA, **options)
    metadata = {key: value for key, value in new["metadata"].items() if key != "managedFields"}
    return {**new, "metadata": {**metadata, "managedFields": entries} if entries else metadata}


def owners(obj: Object) -> dict[str, Object]:
    return {f"{e['manager']} {e['operation']}": e["fieldsV1"] for e in obj["metadata"].get("managedFields", [])}
