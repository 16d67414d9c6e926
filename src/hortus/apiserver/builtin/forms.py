"""Kinds that are served in two forms and stored in one: autoscaling v1 and v2, events of both groups.

Reading and writing return new objects and lose nothing: values without a field in the older form are kept in the
annotations that kube-apiserver uses for them.
"""

from __future__ import annotations

from typing import Any

import orjson

from hortus.apiserver.resources.definition import Stored
from hortus.kube.objects import Object

DEFAULT_CPU_PERCENT = 80
"""The target of an autoscaler without metrics."""

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_CPU = "targetCPUUtilizationPercentage"
_CURRENT_CPU = "currentCPUUtilizationPercentage"

_EVENT_FIELDS = {
    "involvedObject": "regarding",
    "message": "note",
    "reportingComponent": "reportingController",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
}
_EVENT_FIELDS_BACK = {new: old for old, new in _EVENT_FIELDS.items()}


def _is_cpu(metric: dict[str, Any], target: str) -> bool:
    resource = metric.get("resource") or {}
    wanted = resource.get(target) or {}
    return (
        metric.get("type") == "Resource"
        and resource.get("name") == "cpu"
        and wanted.get("averageUtilization") is not None
    )


def _split(metrics: list[dict[str, Any]], target: str) -> tuple[int | None, list[dict[str, Any]]]:
    """The CPU percentage and the other metrics."""
    cpu = next((metric for metric in metrics if _is_cpu(metric, target)), None)
    others = [metric for metric in metrics if metric is not cpu]
    return (cpu["resource"][target]["averageUtilization"] if cpu else None), others


def _cpu_metric(percent: int, target: str, **more: Any) -> dict[str, Any]:
    return {"type": "Resource", "resource": {"name": "cpu", target: {**more, "averageUtilization": percent}}}


def autoscaler_v1(obj: Object) -> Object:
    """autoscaling/v2 as v1."""
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    percent, metrics = _split(spec.pop("metrics", None) or [], "target")
    current, current_metrics = _split(status.pop("currentMetrics", None) or [], "current")
    spec |= {} if percent is None else {_CPU: percent}
    status |= {} if current is None else {_CURRENT_CPU: current}
    status.setdefault("currentReplicas", 0)
    extra = {
        "metrics": metrics,
        "behavior": spec.pop("behavior", None),
        "current-metrics": current_metrics,
        "conditions": status.pop("conditions", None),
    }
    notes = {_PREFIX + name: orjson.dumps(value).decode() for name, value in extra.items() if value}
    metadata = dict(obj["metadata"])
    if notes:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), **notes}
    return {**obj, "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}


def autoscaler_v2(obj: Object) -> Object:
    """autoscaling/v1 as v2."""
    spec, status = dict(obj.get("spec") or {}), dict(obj.get("status") or {})
    notes = dict(obj["metadata"].get("annotations") or {})
    percent, current = spec.pop(_CPU, None), status.pop(_CURRENT_CPU, None)
    metrics = _noted(notes, "metrics") or []
    if percent is not None:
        metrics = [_cpu_metric(percent, "target", type="Utilization"), *metrics]
    if not metrics:
        metrics = [_cpu_metric(DEFAULT_CPU_PERCENT, "target", type="Utilization")]
    seen = _noted(notes, "current-metrics") or []
    if current is not None:
        seen = [_cpu_metric(current, "current"), *seen]
    for place, name, value in ((spec, "behavior", None), (status, "conditions", None), (spec, "metrics", metrics)):
        found = value if value is not None else _noted(notes, name)
        if found:
            place[name] = found
    status["currentMetrics"] = seen or None
    metadata = {key: value for key, value in obj["metadata"].items() if key != "annotations"}
    if notes:
        metadata["annotations"] = notes
    return {**obj, "apiVersion": "autoscaling/v2", "metadata": metadata, "spec": spec, "status": status}


def _noted(notes: dict[str, str], name: str) -> Any:
    """Removes an annotation and returns its value; None when it is missing or no JSON list or object."""
    text = notes.pop(_PREFIX + name, None)
    if text is None:
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict if name == "behavior" else list) else None


def _renamed(obj: Object, names: dict[str, str], api_version: str) -> Object:
    return {**{names.get(key, key): value for key, value in obj.items()}, "apiVersion": api_version}


def _event_in_events(obj: Object) -> Object:
    """Omits fields that are empty only because the core group always writes them."""
    found = _renamed(obj, _EVENT_FIELDS, "events.k8s.io/v1")
    for name in ("reportingController", "reportingInstance"):
        if not found.get(name):
            found.pop(name, None)
    return found


def _event_in_core(obj: Object) -> Object:
    return {"reportingComponent": "", "reportingInstance": "", **_renamed(obj, _EVENT_FIELDS_BACK, "v1")}


FORMS = {
    "autoscaling.HorizontalPodAutoscaler": Stored("autoscaling/v2", read=autoscaler_v1, write=autoscaler_v2),
    "events.Event": Stored("v1", read=_event_in_events, write=_event_in_core),
}
"""By alias.Name, the kinds that are stored as another."""
