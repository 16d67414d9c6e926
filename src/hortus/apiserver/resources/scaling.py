"""The scale subresource: replicas of any kind that has some, seen as an autoscaling/v1 Scale."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hortus.apiserver.resources.definition import FieldProblem
from hortus.apiserver.resources.failures import conflict, invalid_object
from hortus.apiserver.resources.kind import Kind
from hortus.apiserver.resources.scope import Scope
from hortus.kube.errors import BadRequest
from hortus.kube.objects import Object
from hortus.kube.selectors import LabelSelector

_KEPT = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(kind: Kind, obj: Object) -> Object:
    """The Scale of an object of a kind with a scale subresource."""
    paths = kind.definition.scale or {}
    metadata = {key: obj["metadata"][key] for key in _KEPT if key in obj["metadata"]}
    status: Object = {"replicas": _at(obj, paths.get("statusReplicasPath", "")) or 0}
    selector = _selector_text(_at(obj, paths.get("labelSelectorPath", "")))
    if selector:
        status["selector"] = selector
    replicas = _at(obj, paths.get("specReplicasPath", ""))
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def scaled(scope: Scope, change: Callable[[Object], Object]) -> Callable[[Object], Object]:
    """A change of an object, from a change of its Scale. What it makes raises BadRequest, Conflict or Invalid."""

    def write(obj: Object) -> Object:
        wanted = change(scale_of(scope.kind, obj))
        _check(scope, wanted, obj)
        replicas = (wanted.get("spec") or {}).get("replicas", 0)
        return _with(obj, (scope.kind.definition.scale or {})["specReplicasPath"].strip(".").split("."), replicas)

    return write


def _check(scope: Scope, wanted: Object, obj: Object) -> None:
    metadata, spec = wanted.get("metadata") or {}, wanted.get("spec") or {}
    if not isinstance(metadata, dict) or not isinstance(spec, dict):
        raise BadRequest('Scale in version "v1" cannot be handled as a Scale: metadata and spec are objects')
    name, version = metadata.get("name", scope.name), metadata.get("resourceVersion", "")
    if name != scope.name:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({scope.name})")
    if version and version != obj["metadata"]["resourceVersion"]:
        raise conflict(scope.kind, scope.name)
    replicas = spec.get("replicas", 0)
    if type(replicas) is not int:
        raise BadRequest('Scale in version "v1" cannot be handled as a Scale: spec.replicas is not a whole number')
    if replicas < 0:
        message = f"Invalid value: {replicas}: must be greater than or equal to 0"
        raise invalid_object(
            "Scale.autoscaling", "autoscaling", "Scale", scope.name, [FieldProblem("spec.replicas", message)]
        )


def _at(obj: Any, path: str) -> Any:
    value = obj
    for step in path.strip(".").split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _with(obj: Object, steps: list[str], value: Any) -> Object:
    if len(steps) == 1:
        return {**obj, steps[0]: value}
    inner = obj.get(steps[0])
    return {**obj, steps[0]: _with(inner if isinstance(inner, dict) else {}, steps[1:], value)}


def _selector_text(value: Any) -> str:
    """A selector as text: a CRD keeps it so, workloads as a LabelSelector, replication controllers as a map."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict) or not value:
        return ""
    if "matchLabels" in value or "matchExpressions" in value:
        return str(LabelSelector.from_object(value) or "")
    return str(LabelSelector.of(value))
