"""Cells of pods and of workloads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hortus.apiserver.builtin.cells.parts import (
    NONE,
    UNKNOWN,
    Cell,
    Printer,
    age,
    items,
    joined,
    label_pairs,
    look,
    selector_text,
    short_duration,
    since,
)
from hortus.apiserver.builtin.forms import autoscaler_v2
from hortus.kube.objects import Object, parse_time


def _pod_spec(obj: Object) -> Mapping[str, Any]:
    spec = look(obj, "spec", "template", "spec") or look(obj, "spec", "jobTemplate", "spec", "template", "spec")
    return spec or look(obj, "template", "spec") or {}


def containers(obj: Object, now: float) -> Cell:
    return joined(container["name"] for container in items(_pod_spec(obj), "containers"))


def images(obj: Object, now: float) -> Cell:
    return joined(container.get("image", "") for container in items(_pod_spec(obj), "containers"))


def selector(obj: Object, now: float) -> Cell:
    """The selector of a workload, or the plain map of a Service or ReplicationController."""
    found = look(obj, "spec", "selector")
    if found and not ("matchLabels" in found or "matchExpressions" in found):
        return label_pairs(found)
    return selector_text(found)


def cron_selector(obj: Object, now: float) -> Cell:
    return selector_text(look(obj, "spec", "jobTemplate", "spec", "selector"))


def template_labels(obj: Object, now: float) -> Cell:
    return label_pairs(look(obj, "template", "metadata", "labels"))


def node_selector(obj: Object, now: float) -> Cell:
    return label_pairs(look(obj, "spec", "template", "spec", "nodeSelector"))


def replicas_ready(obj: Object, now: float) -> Cell:
    return f"{look(obj, 'status', 'readyReplicas') or 0}/{look(obj, 'spec', 'replicas') or 0}"


def _restartable_init(pod: Object) -> set[str]:
    return {c["name"] for c in items(pod, "spec", "initContainers") if c.get("restartPolicy") == "Always"}


def pod_ready(pod: Object, now: float) -> Cell:
    sidecars = _restartable_init(pod)
    total = len(items(pod, "spec", "containers")) + len(sidecars)
    ready = sum(1 for s in items(pod, "status", "initContainerStatuses") if s["name"] in sidecars and s.get("ready"))
    running = (s for s in items(pod, "status", "containerStatuses") if s.get("ready") and look(s, "state", "running"))
    return f"{ready + sum(1 for _ in running)}/{total}"


def pod_status(pod: Object, now: float) -> Cell:
    """The status in one word: the reason of the container that blocks the pod, else its phase."""
    reason = look(pod, "status", "reason") or look(pod, "status", "phase") or ""
    if any(c.get("type") == "PodScheduled" and c.get("reason") == "SchedulingGated" for c in _conditions(pod)):
        reason = "SchedulingGated"
    waiting = _init_reason(pod)
    if waiting:
        reason = waiting
    else:
        reason = _container_reason(pod, reason)
    if "deletionTimestamp" not in pod.get("metadata", {}):
        return reason
    if look(pod, "status", "reason") == "NodeLost":
        return "Unknown"
    return reason if look(pod, "status", "phase") in ("Succeeded", "Failed") else "Terminating"


def _conditions(obj: Object) -> list[Any]:
    return items(obj, "status", "conditions")


def _init_reason(pod: Object) -> str:
    sidecars = _restartable_init(pod)
    total = len(items(pod, "spec", "initContainers"))
    for place, status in enumerate(items(pod, "status", "initContainerStatuses")):
        state = status.get("state") or {}
        ended, waits = state.get("terminated"), state.get("waiting")
        if ended and not ended.get("exitCode"):
            continue
        if status["name"] in sidecars and status.get("started"):
            continue
        if ended:
            return "Init:" + (ended.get("reason") or _exit_text(ended))
        if waits and waits.get("reason") and waits["reason"] != "PodInitializing":
            return "Init:" + str(waits["reason"])
        return f"Init:{place}/{total}"
    return ""


def _exit_text(ended: Mapping[str, Any]) -> str:
    return f"Signal:{ended['signal']}" if ended.get("signal") else f"ExitCode:{ended.get('exitCode', 0)}"


def _container_reason(pod: Object, reason: str) -> str:
    running = False
    for status in reversed(items(pod, "status", "containerStatuses")):
        state = status.get("state") or {}
        ended, waits = state.get("terminated"), state.get("waiting")
        if waits and waits.get("reason"):
            reason = waits["reason"]
        elif ended:
            reason = ended.get("reason") or _exit_text(ended)
        elif status.get("ready") and state.get("running"):
            running = True
    if reason == "Completed" and running:
        ready = any(c.get("type") == "Ready" and c.get("status") == "True" for c in _conditions(pod))
        return "Running" if ready else "NotReady"
    return reason


def pod_restarts(pod: Object, now: float) -> Cell:
    sidecars = _restartable_init(pod)
    statuses = list(items(pod, "status", "containerStatuses"))
    inits = items(pod, "status", "initContainerStatuses")
    statuses += [s for s in inits if s["name"] in sidecars] if not _init_reason(pod) else inits
    total = sum(s.get("restartCount") or 0 for s in statuses)
    ends = [look(s, "lastState", "terminated", "finishedAt") for s in statuses]
    latest = max((stamp for stamp in ends if stamp), default=None)
    return f"{total} ({since(latest, now)} ago)" if total and latest else str(total)


def pod_ip(pod: Object, now: float) -> Cell:
    addresses = items(pod, "status", "podIPs")
    return (addresses[0].get("ip") if addresses else look(pod, "status", "podIP")) or NONE


def pod_gates(pod: Object, now: float) -> Cell:
    gates = items(pod, "spec", "readinessGates")
    true = {c.get("type") for c in _conditions(pod) if c.get("status") == "True"}
    return f"{sum(1 for gate in gates if gate['conditionType'] in true)}/{len(gates)}" if gates else NONE


def job_status(job: Object, now: float) -> Cell:
    words = {"Complete": "Complete", "Failed": "Failed", "FailureTarget": "FailureTarget", "Suspended": "Suspended"}
    true = {c.get("type") for c in _conditions(job) if c.get("status") == "True"}
    for word in ("Complete", "Failed"):
        if word in true:
            return word
    if "deletionTimestamp" in job["metadata"]:
        return "Terminating"
    for word in ("Suspended", "FailureTarget", "SuccessCriteriaMet"):
        if word in true:
            return words.get(word, word)
    return "Running"


def job_completions(job: Object, now: float) -> Cell:
    done = look(job, "status", "succeeded") or 0
    wanted = look(job, "spec", "completions")
    if wanted is not None:
        return f"{done}/{wanted}"
    parallel = look(job, "spec", "parallelism") or 0
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def job_duration(job: Object, now: float) -> Cell:
    start = look(job, "status", "startTime")
    if not start:
        return ""
    end = look(job, "status", "completionTime")
    return short_duration((parse_time(end) if end else now) - parse_time(start))


def active_jobs(job: Object, now: float) -> Cell:
    return len(items(job, "status", "active"))


def last_schedule(job: Object, now: float) -> Cell:
    stamp = look(job, "status", "lastScheduleTime")
    return since(stamp, now) if stamp else NONE


def owner(obj: Object, now: float) -> Cell:
    """The controller of a ControllerRevision, as `statefulset.apps/web`."""
    for reference in items(obj, "metadata", "ownerReferences"):
        if reference.get("controller"):
            group = reference["apiVersion"].rpartition("/")[0]
            kind = reference["kind"].lower()
            return f"{kind}.{group}/{reference['name']}" if group else f"{kind}/{reference['name']}"
    return NONE


def hpa_reference(obj: Object, now: float) -> Cell:
    target = look(obj, "spec", "scaleTargetRef") or {}
    return f"{target.get('kind', '')}/{target.get('name', '')}"


def hpa_min(obj: Object, now: float) -> Cell:
    least = look(obj, "spec", "minReplicas")
    return UNSET_MINIMUM if least is None else str(least)


UNSET_MINIMUM = "<unset>"
_SHOWN_METRICS = 2


def hpa_targets(obj: Object, now: float) -> Cell:
    if obj.get("apiVersion") == "autoscaling/v1":
        obj = autoscaler_v2(obj)
    wanted = items(obj, "spec", "metrics")
    current = items(obj, "status", "currentMetrics")
    shown = [_metric(metric, current[place] if place < len(current) else {}) for place, metric in enumerate(wanted)]
    if not shown:
        return NONE
    text = ", ".join(shown[:_SHOWN_METRICS])
    return text if len(shown) <= _SHOWN_METRICS else f"{text} + {len(shown) - _SHOWN_METRICS} more..."


_METRIC_KEYS = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}


def _metric(wanted: Mapping[str, Any], current: Mapping[str, Any]) -> str:
    key = _METRIC_KEYS.get(wanted.get("type", ""), "")
    target = look(wanted, key, "target") or {}
    now = look(current, key, "current") or {}
    if target.get("averageUtilization") is not None:
        used = now.get("averageUtilization")
        text = f"{UNKNOWN if used is None else f'{used}%'}/{target['averageUtilization']}%"
    elif target.get("averageValue") is not None:
        average = " (avg)" if key in ("object", "external") else ""
        text = f"{now.get('averageValue') or UNKNOWN}/{target['averageValue']}{average}"
    else:
        text = f"{now.get('value') or UNKNOWN}/{target.get('value', '0')}"
    return f"{look(wanted, key, 'name')}: {text}" if key in ("resource", "containerResource") else text


PRINTERS: dict[str, Printer] = {
    "age": age,
    "containers": containers,
    "images": images,
    "selector": selector,
    "cron_selector": cron_selector,
    "template_containers": containers,
    "template_images": images,
    "template_labels": template_labels,
    "node_selector": node_selector,
    "replicas_ready": replicas_ready,
    "pod_ready": pod_ready,
    "pod_status": pod_status,
    "pod_restarts": pod_restarts,
    "pod_ip": pod_ip,
    "pod_gates": pod_gates,
    "job_status": job_status,
    "job_completions": job_completions,
    "job_duration": job_duration,
    "active_jobs": active_jobs,
    "last_schedule": last_schedule,
    "owner": owner,
    "hpa_reference": hpa_reference,
    "hpa_min": hpa_min,
    "hpa_targets": hpa_targets,
}
