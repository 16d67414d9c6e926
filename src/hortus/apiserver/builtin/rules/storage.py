"""Volumes, claims and storage classes."""

from __future__ import annotations

from typing import Any

from hortus.apiserver.builtin.problems import forbidden, immutable, required
from hortus.apiserver.builtin.strategy import BuiltinStrategy
from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.kube.objects import Object

_CLAIM_FORBIDDEN = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims"
)


class ClaimStrategy(BuiltinStrategy):
    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        spec = obj["spec"]
        source = spec.get("dataSource")
        if source and "dataSourceRef" not in spec:
            spec["dataSourceRef"] = dict(source)
        if old is None:
            obj["status"] = {"phase": "Pending"}

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        spec = obj["spec"]
        found = []
        if not spec.get("accessModes"):
            found.append(required("spec.accessModes", "at least 1 access mode is required"))
        if "storage" not in (spec["resources"].get("requests") or {}):
            found.append(required("spec.resources[storage]"))
        return found

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        spec, before = obj["spec"], old["spec"]
        may_change = {"volumeName"} if not before.get("volumeName") else set()
        if (old.get("status") or {}).get("phase") == "Bound":
            may_change |= {"resources", "volumeAttributesClassName"}
        changed = [key for key in spec.keys() | before.keys() if spec.get(key) != before.get(key)]
        return [] if set(changed) <= may_change else [forbidden("spec", _CLAIM_FORBIDDEN)]


_NOT_A_SOURCE = frozenset(
    {
        "capacity", "accessModes", "claimRef", "persistentVolumeReclaimPolicy", "storageClassName", "mountOptions",
        "volumeMode", "nodeAffinity", "volumeAttributesClassName",
    }
)  # fmt: skip


class VolumeStrategy(BuiltinStrategy):
    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        if old is None:
            obj["status"] = {"phase": "Pending"}

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        spec = obj["spec"]
        found = []
        if not spec.get("accessModes"):
            found.append(required("spec.accessModes"))
        if not spec.get("capacity"):
            found.append(required("spec.capacity"))
        sources = [key for key in spec if key not in _NOT_A_SOURCE]
        if not sources:
            found.append(required("spec", "must specify a volume type"))
        found += [forbidden(f"spec.{key}", "may not specify more than 1 volume type") for key in sources[1:]]
        return found

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        new, before = _source(obj["spec"]), _source(old["spec"])
        sentence = "spec.persistentvolumesource is immutable after creation"
        return [] if new == before else [forbidden("spec.persistentvolumesource", sentence)]


def _source(spec: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key not in _NOT_A_SOURCE}


class StorageClassStrategy(BuiltinStrategy):
    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        return [] if obj.get("provisioner") else [required("provisioner")]

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        found = [
            forbidden(field, f"updates to {field} are forbidden.")
            for field in ("parameters", "provisioner", "reclaimPolicy")
            if (obj.get(field) or {}) != (old.get(field) or {})
        ]
        return found + immutable("volumeBindingMode", obj.get("volumeBindingMode"), old.get("volumeBindingMode"))


STRATEGIES: dict[str, type[BuiltinStrategy]] = {
    "core.PersistentVolumeClaim": ClaimStrategy,
    "core.PersistentVolume": VolumeStrategy,
    "storage.StorageClass": StorageClassStrategy,
}
