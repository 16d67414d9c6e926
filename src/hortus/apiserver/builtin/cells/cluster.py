"""Cells of nodes, volumes, configuration and events."""

from __future__ import annotations

from collections.abc import Iterable

from hortus.apiserver.builtin.cells.parts import NONE, UNKNOWN, UNSET, Cell, Printer, items, joined, look, since
from hortus.kube.objects import Object

_ROLE_PREFIX = "node-role.kubernetes.io/"
_MODES = {"ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP"}


def data_count(obj: Object, now: float) -> Cell:
    return len(obj.get("data") or {}) + len(obj.get("binaryData") or {})


def secret_count(obj: Object, now: float) -> Cell:
    return len(obj.get("secrets") or [])


def node_status(node: Object, now: float) -> Cell:
    found = [c for c in items(node, "status", "conditions") if c.get("type") == "Ready"]
    words = [("Ready" if c.get("status") == "True" else "NotReady") for c in found] or ["Unknown"]
    if look(node, "spec", "unschedulable"):
        words.append("SchedulingDisabled")
    return ",".join(words)


def node_roles(node: Object, now: float) -> Cell:
    labels = look(node, "metadata", "labels") or {}
    roles = {label.removeprefix(_ROLE_PREFIX) for label in labels if label.startswith(_ROLE_PREFIX)}
    if labels.get("kubernetes.io/role"):
        roles.add(labels["kubernetes.io/role"])
    return joined(sorted(role for role in roles if role), NONE)


def _address(node: Object, kind: str) -> str:
    found = (a["address"] for a in items(node, "status", "addresses") if a.get("type") == kind)
    return next(found, NONE)


def node_internal_ip(node: Object, now: float) -> Cell:
    return _address(node, "InternalIP")


def node_external_ip(node: Object, now: float) -> Cell:
    return _address(node, "ExternalIP")


def _short_modes(modes: Iterable[str]) -> str:
    present = set(modes)
    return ",".join(short for mode, short in _MODES.items() if mode in present)


def _phase(obj: Object) -> str:
    if look(obj, "metadata", "deletionTimestamp"):
        return "Terminating"
    return str(look(obj, "status", "phase") or "")


def claim_phase(obj: Object, now: float) -> Cell:
    return _phase(obj)


def claim_capacity(obj: Object, now: float) -> Cell:
    return (look(obj, "status", "capacity", "storage") or "0") if look(obj, "spec", "volumeName") else ""


def claim_modes(obj: Object, now: float) -> Cell:
    return _short_modes(items(obj, "status", "accessModes")) if look(obj, "spec", "volumeName") else ""


def volume_modes(obj: Object, now: float) -> Cell:
    return _short_modes(items(obj, "spec", "accessModes"))


def volume_claim(obj: Object, now: float) -> Cell:
    claim = look(obj, "spec", "claimRef")
    return f"{claim.get('namespace', '')}/{claim.get('name', '')}" if claim else ""


def event_source(event: Object, now: float) -> Cell:
    source = event.get("source") or event.get("deprecatedSource") or {}
    parts = [source.get("component"), source.get("host")]
    named = [event.get("reportingComponent") or event.get("reportingController"), event.get("reportingInstance")]
    return ", ".join(part for part in (parts if any(parts) else named) if part)


def event_object(event: Object, now: float) -> Cell:
    target = event.get("involvedObject") or event.get("regarding") or {}
    return f"{(target.get('kind') or '').lower()}/{target.get('name') or ''}"


def event_message(event: Object, now: float) -> Cell:
    return (event.get("message") or event.get("note") or "").strip()


def event_first_seen(event: Object, now: float) -> Cell:
    first = event.get("firstTimestamp") or event.get("deprecatedFirstTimestamp")
    return since(first or event.get("eventTime"), now)


def event_last_seen(event: Object, now: float) -> Cell:
    last = look(event, "series", "lastObservedTime") or event.get("lastTimestamp")
    last = last or event.get("deprecatedLastTimestamp")
    return since(last, now) if last else event_first_seen(event, now)


def event_count(event: Object, now: float) -> Cell:
    count = look(event, "series", "count") or event.get("count") or event.get("deprecatedCount")
    return str(count or 1)


def quota_requests(obj: Object, now: float) -> Cell:
    return _quota(obj, limits=False)


def quota_limits(obj: Object, now: float) -> Cell:
    return _quota(obj, limits=True)


def _quota(obj: Object, *, limits: bool) -> str:
    hard, used = look(obj, "status", "hard") or {}, look(obj, "status", "used") or {}
    names = [name for name in sorted(hard) if name.startswith("limits") is limits]
    return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)


def csi_drivers(obj: Object, now: float) -> Cell:
    return len(items(obj, "spec", "drivers"))


def csi_audiences(obj: Object, now: float) -> Cell:
    return joined((request.get("audience", "") for request in items(obj, "spec", "tokenRequests")), UNSET)


def csi_modes(obj: Object, now: float) -> Cell:
    return joined(items(obj, "spec", "volumeLifecycleModes"), NONE)


def _component(obj: Object) -> tuple[str, str, str]:
    for condition in obj.get("conditions") or []:
        if condition.get("type") == "Healthy":
            status = "Healthy" if condition.get("status") == "True" else "Unhealthy"
            return status, condition.get("message", ""), condition.get("error", "")
    return UNKNOWN, "", ""


def component_status(obj: Object, now: float) -> Cell:
    return _component(obj)[0]


def component_message(obj: Object, now: float) -> Cell:
    return _component(obj)[1]


def component_error(obj: Object, now: float) -> Cell:
    return _component(obj)[2]


PRINTERS: dict[str, Printer] = {
    "data_count": data_count,
    "secret_count": secret_count,
    "node_status": node_status,
    "node_roles": node_roles,
    "node_internal_ip": node_internal_ip,
    "node_external_ip": node_external_ip,
    "claim_phase": claim_phase,
    "claim_capacity": claim_capacity,
    "claim_modes": claim_modes,
    "volume_phase": claim_phase,
    "volume_modes": volume_modes,
    "volume_claim": volume_claim,
    "event_source": event_source,
    "event_object": event_object,
    "event_message": event_message,
    "event_first_seen": event_first_seen,
    "event_last_seen": event_last_seen,
    "event_count": event_count,
    "quota_requests": quota_requests,
    "quota_limits": quota_limits,
    "csi_drivers": csi_drivers,
    "csi_audiences": csi_audiences,
    "csi_modes": csi_modes,
    "component_status": component_status,
    "component_message": component_message,
    "component_error": component_error,
}
