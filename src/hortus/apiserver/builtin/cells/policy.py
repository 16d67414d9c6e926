"""Cells of roles, admission, certificates and the API's own kinds."""

from __future__ import annotations

from hortus.apiserver.builtin.cells.parts import NONE, UNSET, Cell, Printer, items, look, short_duration
from hortus.kube.objects import Object


def created_at(obj: Object, now: float) -> Cell:
    return look(obj, "metadata", "creationTimestamp") or ""


def role_ref(obj: Object, now: float) -> Cell:
    reference = obj.get("roleRef") or {}
    return f"{reference.get('kind', '')}/{reference.get('name', '')}"


def _subjects(obj: Object, kind: str) -> list[str]:
    found = [subject for subject in obj.get("subjects") or [] if subject.get("kind") == kind]
    if kind == "ServiceAccount":
        return [f"{subject.get('namespace', '')}/{subject['name']}" for subject in found]
    return [subject["name"] for subject in found]


def subject_users(obj: Object, now: float) -> Cell:
    return ", ".join(_subjects(obj, "User"))


def subject_groups(obj: Object, now: float) -> Cell:
    return ", ".join(_subjects(obj, "Group"))


def subject_accounts(obj: Object, now: float) -> Cell:
    return ", ".join(_subjects(obj, "ServiceAccount"))


def webhook_count(obj: Object, now: float) -> Cell:
    return len(obj.get("webhooks") or [])


def validation_count(obj: Object, now: float) -> Cell:
    return len(items(obj, "spec", "validations"))


def policy_param_kind(obj: Object, now: float) -> Cell:
    kind = look(obj, "spec", "paramKind")
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}" if kind else UNSET


def policy_param_ref(obj: Object, now: float) -> Cell:
    reference = look(obj, "spec", "paramRef")
    if not reference:
        return UNSET
    namespace = reference.get("namespace") or "*"
    return f"{namespace}/{reference['name']}" if reference.get("name") else f"{namespace}/*"


def csr_duration(obj: Object, now: float) -> Cell:
    seconds = look(obj, "spec", "expirationSeconds")
    return NONE if seconds is None else short_duration(seconds)


def csr_condition(obj: Object, now: float) -> Cell:
    types = [condition.get("type") for condition in items(obj, "status", "conditions")]
    words = [word for word in ("Approved", "Denied", "Failed") if word in types][:1] or ["Pending"]
    if "Failed" in types and "Failed" not in words:
        words.append("Failed")
    if look(obj, "status", "certificate"):
        words.append("Issued")
    return ",".join(words)


def missing_level(obj: Object, now: float) -> Cell:
    for condition in items(obj, "status", "conditions"):
        if condition.get("type") == "Dangling":
            return str(condition.get("status"))
    return "?"


def api_service(obj: Object, now: float) -> Cell:
    service = look(obj, "spec", "service")
    return f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"


def api_available(obj: Object, now: float) -> Cell:
    for condition in items(obj, "status", "conditions"):
        if condition.get("type") == "Available":
            status = str(condition.get("status"))
            return status if status == "True" else f"{status} ({condition.get('reason', '')})"
    return "Unknown"


PRINTERS: dict[str, Printer] = {
    "created_at": created_at,
    "role_ref": role_ref,
    "subject_users": subject_users,
    "subject_groups": subject_groups,
    "subject_accounts": subject_accounts,
    "webhook_count": webhook_count,
    "validation_count": validation_count,
    "policy_param_kind": policy_param_kind,
    "policy_param_ref": policy_param_ref,
    "csr_duration": csr_duration,
    "csr_condition": csr_condition,
    "missing_level": missing_level,
    "api_service": api_service,
    "api_available": api_available,
}
