"""The additions of gardener-apiserver to a Shoot: generation rules, operation annotations, deletion checks, limits.

Contract: gardener, pkg/apiserver/registry/core/shoot/strategy.go and docs/usage/shoot-operations/shoot_operations.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.kube.errors import Forbidden
from hortus.kube.objects import Object
from hortus.simulation.garden import immutable
from hortus.simulation.garden.kinds import project_of
from hortus.simulation.garden.operations import FAILED, FORCE_DELETION, OPERATION_ANNOTATION, last_operation

DELETION_CONFIRMATION = "confirmation.gardener.cloud/deletion"
CONFIRMED_BY = "deletion.gardener.cloud/confirmed-by"
DEFAULT_DOMAIN = "shoot.example.org"
"""Domain of shoots that bring none: <shoot>.<project>.<this>."""
NAME_LIMIT = 21
"""Longest sum of project name and shoot name; the technical ID goes into DNS names and infrastructure names."""

_FORCE_DELETION_CODES = frozenset(
    {
        "ERR_CLEANUP_CLUSTER_RESOURCES",
        "ERR_CONFIGURATION_PROBLEM",
        "ERR_INFRA_DEPENDENCIES",
        "ERR_INFRA_UNAUTHENTICATED",
        "ERR_INFRA_UNAUTHORIZED",
    }
)
_TRUE = frozenset({"1", "t", "T", "true", "TRUE", "True"})
_IMMUTABLE = ("region", "schedulerName")


class ShootStrategy:
    """The rules of `core.gardener.cloud/v1beta1` Shoots."""

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        spec = obj["spec"]
        spec.setdefault("schedulerName", "default-scheduler")
        _default(spec)
        spec.setdefault("purpose", "evaluation")
        project = project_of(context.namespace)
        spec.setdefault("dns", {}).setdefault("domain", f"{obj['metadata'].get('name', '')}.{project}.{DEFAULT_DOMAIN}")
        self._confirmed_by(obj, {}, context)

    def prepare_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        if context.subresource:
            return
        _default(obj["spec"])
        self._confirmed_by(obj, old, context)
        if self._take_operation(obj, old) or _newly(obj, old, FORCE_DELETION):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1

    def validate(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        project = project_of(context.namespace)
        name = obj["metadata"].get("name", "")
        problems = []
        if "--" in name:  # it would make shoot b--c of project a, and shoot c of project a--b, one cluster
            text = f'Invalid value: "{name}": name may not contain two consecutive hyphens'
            problems.append(FieldProblem("metadata.name", text))
        if len(project) + len(name) > NAME_LIMIT:
            problems.append(
                FieldProblem(
                    "metadata.name",
                    f'Invalid value: "{name}": the length of the shoot name and the project name must not exceed '
                    f"{NAME_LIMIT} characters (project: {project}; shoot: {name})",
                )
            )
        if FORCE_DELETION in _annotations(obj):
            problems.append(
                FieldProblem(
                    f"metadata.annotations[{FORCE_DELETION}]",
                    "Forbidden: force-deletion annotation cannot be set on creation",
                    "FieldValueForbidden",
                )
            )
        return problems + immutable.own_problems(obj)

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        if context.subresource:
            return _status_problems(obj, old)
        problems = [
            FieldProblem(f"spec.{field}", f'Invalid value: "{obj["spec"].get(field, "")}": field is immutable')
            for field in _IMMUTABLE
            if obj["spec"].get(field) != old["spec"].get(field)
        ]
        if old["spec"].get("secretBindingName") and obj["spec"].get("secretBindingName") not in (
            old["spec"]["secretBindingName"],
            None,
        ):
            problems.append(
                FieldProblem(
                    "spec.secretBindingName",
                    f'Invalid value: "{obj["spec"]["secretBindingName"]}": field is immutable',
                )
            )
        if obj["spec"] != old["spec"]:
            problems += immutable.own_problems(obj) + immutable.change_problems(obj, old)
        if _newly(obj, old, FORCE_DELETION):
            problems += _force_deletion_problems(obj)
        elif FORCE_DELETION in _annotations(old) and FORCE_DELETION not in _annotations(obj):
            problems.append(
                FieldProblem(
                    f"metadata.annotations[{FORCE_DELETION}]",
                    "Forbidden: force-deletion annotation cannot be removed once set",
                    "FieldValueForbidden",
                )
            )
        return problems

    def check_delete(self, obj: Object, context: WriteContext) -> None:
        if _annotations(obj).get(DELETION_CONFIRMATION) not in _TRUE:
            name = obj["metadata"]["name"]
            raise Forbidden(
                f'shoots.core.gardener.cloud "{name}" is forbidden: must have a "{DELETION_CONFIRMATION}" annotation '
                "to delete",
                details={"name": name, "group": "core.gardener.cloud", "kind": "shoots"},
            )

    def generation_changed(self, obj: Object, old: Object) -> bool:
        if not old or obj["metadata"].get("generation") != old["metadata"].get("generation"):
            return True
        if ((obj["spec"].get("maintenance") or {}).get("confineSpecUpdateRollout")) is True:
            return _hibernation(obj) != _hibernation(old)
        return bool(obj["spec"] != old["spec"])

    def cells(self, obj: Object, now: float) -> Mapping[str, Any]:
        last = last_operation(obj)
        return {
            "profile": _cloud_profile(obj["spec"]),
            "operation": f"{last['type']} {last['state']} ({last['progress']}%)" if last else "",
            "hibernation": "Hibernated" if (obj.get("status") or {}).get("hibernated") else "Awake",
        }

    def _take_operation(self, obj: Object, old: Object) -> bool:
        """Act on the operation annotation as the server does; returns whether the generation is raised.

        Values are joined with `;`. The server takes off those that it has acted upon, gardenlet the rotations. A
        `retry` that came before the failure waits for the next write after it.
        """
        annotations = obj["metadata"].get("annotations") or {}
        wanted = annotations.get(OPERATION_ANNOTATION, "")
        last = last_operation(old)
        if not wanted or last is None:
            return False
        words = [word.strip() for word in wanted.split(";")]
        new = wanted != _annotations(old).get(OPERATION_ANNOTATION)
        done = {"reconcile"} | ({"retry"} if last["state"] == FAILED else set())
        if rest := ";".join(word for word in words if word not in done):
            annotations[OPERATION_ANNOTATION] = rest
        else:
            del annotations[OPERATION_ANNOTATION]
        return any(word in done or (new and word.startswith("rotate-")) for word in words)

    def _confirmed_by(self, obj: Object, old: Object, context: WriteContext) -> None:
        annotations = obj["metadata"].get("annotations")
        if not annotations:
            return
        confirmed = annotations.get(DELETION_CONFIRMATION) in _TRUE
        before = _annotations(old)
        if not confirmed:
            annotations.pop(CONFIRMED_BY, None)
        elif before.get(DELETION_CONFIRMATION) in _TRUE and CONFIRMED_BY in before:
            annotations[CONFIRMED_BY] = before[CONFIRMED_BY]
        else:
            annotations[CONFIRMED_BY] = context.user.username


def _default(spec: Object) -> None:
    """Fill in the defaults of every write."""
    workers = (spec.get("provider") or {}).get("workers") or ()
    networking = spec.setdefault("networking", {})
    if workers:
        networking.setdefault("pods", "100.96.0.0/11")
        networking.setdefault("services", "100.64.0.0/13")
    for worker in workers:
        worker.setdefault("maxSurge", 1)
        worker.setdefault("maxUnavailable", 0)
        worker.setdefault("cri", {"name": "containerd"})


def _cloud_profile(spec: Mapping[str, Any]) -> str:
    """The name by either field: `cloudProfileName` is empty from Kubernetes 1.34 on (gardener,
    docs/usage/shoot/shoot_kubernetes_versions.md).
    """
    return str((spec.get("cloudProfile") or {}).get("name") or spec.get("cloudProfileName") or "")


def _annotations(obj: Object) -> Mapping[str, str]:
    return (obj.get("metadata") or {}).get("annotations") or {}


def _status_problems(obj: Object, old: Object) -> list[FieldProblem]:
    """The identity of a cluster is set once (gardener, ValidateShootStatusUpdate)."""
    said, before = obj.get("status") or {}, old.get("status") or {}
    return [
        FieldProblem(f"status.{field}", f'Invalid value: "{said.get(field, "")}": field is immutable')
        for field in ("uid", "technicalID", "clusterIdentity")
        if before.get(field) and said.get(field) != before[field]
    ]


def _newly(obj: Object, old: Object, annotation: str) -> bool:
    return _annotations(obj).get(annotation) in _TRUE and _annotations(old).get(annotation) not in _TRUE


def _hibernation(obj: Object) -> bool:
    return bool((obj["spec"].get("hibernation") or {}).get("enabled"))


def _force_deletion_problems(obj: Object) -> list[FieldProblem]:
    path = f"metadata.annotations[{FORCE_DELETION}]"
    if not obj["metadata"].get("deletionTimestamp"):
        text = "Forbidden: force-deletion annotation cannot be set when Shoot deletionTimestamp is nil"
        return [FieldProblem(path, text, "FieldValueForbidden")]
    errors = (obj.get("status") or {}).get("lastErrors") or ()
    if not any(_FORCE_DELETION_CODES & set(error.get("codes") or ()) for error in errors):
        codes = ", ".join(sorted(_FORCE_DELETION_CODES))
        text = f"Forbidden: force-deletion is only allowed while the Shoot's last errors hold one of {codes}"
        return [FieldProblem(path, text, "FieldValueForbidden")]
    return []
