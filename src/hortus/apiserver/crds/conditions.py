"""The store's bucket of CRDs, and the conditions of CRDs."""

from __future__ import annotations

from hortus.kube.objects import Object

CRD_GROUP, PLURAL = "apiextensions.k8s.io", "customresourcedefinitions"
SUFFIX = f"{CRD_GROUP}/{PLURAL}"
FINALIZER = "customresourcecleanup.apiextensions.k8s.io"


def has_condition(crd: Object, type_: str) -> bool:
    conditions = crd.get("status", {}).get("conditions") or ()
    return any(each["type"] == type_ and each["status"] == "True" for each in conditions)


def set_condition(status: Object, type_: str, said: tuple[str, str, str], now: str) -> None:
    value, reason, message = said
    conditions = [dict(each) for each in status.get("conditions") or ()]
    status["conditions"] = conditions
    for each in conditions:
        if each["type"] == type_:
            if each["status"] != value:
                each["lastTransitionTime"] = now
            each.update(status=value, reason=reason, message=message)
            return
    conditions.append({"type": type_, "status": value, "lastTransitionTime": now, "reason": reason, "message": message})
