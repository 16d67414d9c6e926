"""The kinds of the simulated garden: Shoots with their rules, and what surrounds them.

Specs are open: a Shoot's provider parts belong to extensions, and clients must be able to send whatever the real garden
would take. What the simulation reads is typed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hortus.apiserver.resources.definition import (
    FieldProblem,
    ResourceDefinition,
    SubresourceHandler,
    TableColumn,
    WriteContext,
)
from hortus.kube.objects import Object, Resource
from hortus.simulation.garden.kinds import (
    CLOUD_PROFILES,
    CREDENTIALS_BINDINGS,
    EXPOSURE_CLASSES,
    PROJECTS,
    QUOTAS,
    SECRET_BINDINGS,
    SEEDS,
    SHOOTS,
)
from hortus.simulation.garden.shoots import ShootStrategy

Schema = Mapping[str, Any]

_ANY: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_STRING: Schema = {"type": "string"}
_TIME: Schema = {"type": "string", "format": "date-time"}
_META: Schema = {"apiVersion": _STRING, "kind": _STRING, "metadata": {"type": "object"}}


def _open(properties: Schema, *required: str) -> Schema:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": properties,
        "x-kubernetes-preserve-unknown-fields": True,
    }
    if required:
        schema["required"] = list(required)
    return schema


def _list(items: Schema, *keys: str) -> Schema:
    schema: dict[str, Any] = {"type": "array", "items": items}
    if keys:
        schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return schema


_WORKER = _open(
    {
        "name": {"type": "string", "minLength": 1, "maxLength": 15},
        "machine": _open({"type": _STRING}, "type"),
        "minimum": {"type": "integer", "format": "int32", "minimum": 0},
        "maximum": {"type": "integer", "format": "int32", "minimum": 0},
        "zones": _list(_STRING),
    },
    "name",
    "machine",
    "minimum",
    "maximum",
)
_CONDITION = _open({"type": _STRING, "status": _STRING, "reason": _STRING, "message": _STRING}, "type", "status")
_SHOOT: Schema = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        **_META,
        "spec": _open(
            {
                "purpose": {
                    "type": "string",
                    "enum": ["evaluation", "testing", "development", "production", "infrastructure"],
                },
                "region": {"type": "string", "minLength": 1},
                "seedName": _STRING,
                "kubernetes": _open({"version": _STRING}),
                "networking": _open({"type": _STRING, "pods": _STRING, "nodes": _STRING, "services": _STRING}),
                "provider": _open(
                    {"type": {"type": "string", "minLength": 1}, "workers": _list(_WORKER, "name")}, "type"
                ),
                "hibernation": _open({"enabled": {"type": "boolean"}}),
            },
            "region",
            "provider",
        ),
        "status": _open(
            {
                "conditions": _list(_CONDITION, "type"),
                "constraints": _list(_CONDITION, "type"),
                "lastOperation": _open(
                    {
                        "type": _STRING,
                        "state": _STRING,
                        "progress": {"type": "integer", "format": "int32"},
                        "description": _STRING,
                        "lastUpdateTime": _TIME,
                    }
                ),
                "lastErrors": _list(_open({"description": _STRING, "codes": _list(_STRING)})),
                "observedGeneration": {"type": "integer", "format": "int64"},
                "advertisedAddresses": _list(_open({"name": _STRING, "url": _STRING}, "name", "url")),
            }
        ),
    },
}
_OPEN_KIND: Schema = {"type": "object", "properties": _META, "x-kubernetes-preserve-unknown-fields": True}


class OpenStrategy:
    """No rules beyond the schema."""

    def prepare_create(self, obj: Object, context: WriteContext) -> None: ...

    def prepare_update(self, obj: Object, old: Object, context: WriteContext) -> None: ...

    def validate(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        return []

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        return []

    def check_delete(self, obj: Object, context: WriteContext) -> None: ...

    def generation_changed(self, obj: Object, old: Object) -> bool:
        return bool(obj.get("spec") != old.get("spec"))

    def cells(self, obj: Object, now: float) -> Mapping[str, Any]:
        return {}


_AGE = TableColumn("Age", ".metadata.creationTimestamp", "date")
_SHOOT_COLUMNS = (
    TableColumn("CloudProfile", "profile"),
    TableColumn("Provider", ".spec.provider.type"),
    TableColumn("Region", ".spec.region"),
    TableColumn("K8S Version", ".spec.kubernetes.version"),
    TableColumn("Hibernation", "hibernation"),
    TableColumn("Last Operation", "operation"),
    TableColumn("Status", r".metadata.labels.shoot\.gardener\.cloud/status"),
    _AGE,
    TableColumn("Seed", ".spec.seedName", priority=1),
    TableColumn("Technical ID", ".status.technicalID", priority=1),
)


def definitions(kubeconfigs: Mapping[str, SubresourceHandler]) -> tuple[ResourceDefinition, ...]:
    """All kinds of the garden. `kubeconfigs` are the handlers of the Shoot's kubeconfig subresources by name."""
    shoot = ResourceDefinition(
        resource=SHOOTS,
        singular="shoot",
        list_kind="ShootList",
        schema=_SHOOT,
        strategy=ShootStrategy(),
        columns=_SHOOT_COLUMNS,
        status=True,
        subresources=kubeconfigs,
        field_selectors=("spec.seedName", "status.seedName", "spec.cloudProfileName"),
    )
    provider = TableColumn("Provider", ".spec.provider.type")
    return (
        shoot,
        _kind(SEEDS, provider, TableColumn("Region", ".spec.provider.region")),
        _kind(PROJECTS, TableColumn("Namespace", ".spec.namespace"), TableColumn("Status", ".status.phase")),
        _kind(CLOUD_PROFILES, TableColumn("Provider", ".spec.type")),
        _kind(SECRET_BINDINGS, TableColumn("Provider", ".provider.type"), TableColumn("Secret", ".secretRef.name")),
        _kind(CREDENTIALS_BINDINGS, TableColumn("Provider", ".provider.type")),
        _kind(QUOTAS),
        _kind(EXPOSURE_CLASSES, TableColumn("Handler", ".handler")),
    )


def _kind(resource: Resource, *columns: TableColumn, status: bool = False) -> ResourceDefinition:
    return ResourceDefinition(
        resource=resource,
        singular=resource.kind.lower(),
        list_kind=f"{resource.kind}List",
        schema=_OPEN_KIND,
        strategy=OpenStrategy(),
        columns=(*columns, _AGE),
        status=status,
    )
