"""The scale subresource: the replicas of any kind, as an autoscaling/v1 Scale."""

from __future__ import annotations

from typing import Any

from hortus.apiserver.resources.definition import FieldProblem
from hortus.apiserver.resources.failures import bad_value
from hortus.apiserver.resources.kind import Kind
from hortus.kube.objects import Object
from hortus.kube.selectors import LabelSelector

_MOST = (1 << 31) - 1
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


def scale_problems(kind: Kind, obj: Object, subresource: str) -> list[FieldProblem]:
    """The problems of a custom resource whose values at the paths of its Scale do not fit a Scale."""
    paths = kind.definition.scale or {}
    if not kind.custom or not paths:
        return []
    if subresource != "status":
        return _replicas_problems(obj, paths["specReplicasPath"])
    found = _replicas_problems(obj, paths["statusReplicasPath"])
    selector = paths.get("labelSelectorPath", "")
    wrong = _wrong(obj, selector, str, "string") if selector else ""
    return [*found, bad_value(selector, "", wrong)] if wrong else found


def _replicas_problems(obj: Object, path: str) -> list[FieldProblem]:
    wrong = _wrong(obj, path, int, "int64")
    if wrong:
        return [bad_value(path, 0, wrong)]
    replicas = _at(obj, path) or 0
    if replicas < 0:
        return [bad_value(path, replicas, "should be a non-negative integer")]
    if replicas > _MOST:
        return [bad_value(path, replicas, f"should be less than or equal to {_MOST}")]
    return []


def _wrong(obj: Object, path: str, wanted: type, go_type: str) -> str:
    """The reason why the value at `path` has the wrong type, in Go's words; empty when it fits or is absent."""
    value: Any = obj
    for step in path.strip(".").split("."):
        if not isinstance(value, dict):
            return f"{path} accessor error: {_go(value)}, expected map[string]interface{{}}"
        value = value.get(step)
        if value is None:
            return ""
    return "" if type(value) is wanted else f"{path} accessor error: {_go(value)}, expected {go_type}"


def _go(value: Any) -> str:
    names = {dict: "map[string]interface {}", list: "[]interface {}", str: "string", bool: "bool", float: "float64"}
    return f"{_printed(value)} is of the type {names.get(type(value), 'int64')}"


def _printed(value: Any) -> str:
    """The value as Go's %v prints it."""
    if isinstance(value, dict):
        return f"map[{' '.join(f'{key}:{_printed(value[key])}' for key in sorted(value))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_printed, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def has_replicas(kind: Kind, obj: Object) -> bool:
    """Reports whether the object has a number of replicas."""
    return _at(obj, (kind.definition.scale or {})["specReplicasPath"]) is not None


def _at(obj: Any, path: str) -> Any:
    value = obj
    for step in path.strip(".").split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _selector_text(value: Any) -> str:
    """A selector as text: a CRD keeps it so, workloads as a LabelSelector, replication controllers as a map."""
    if isinstance(value, str):
        return value
    if not isinstance(value, dict) or not value:
        return ""
    if "matchLabels" in value or "matchExpressions" in value:
        return str(LabelSelector.from_object(value) or "")
    return str(LabelSelector.of(value))
