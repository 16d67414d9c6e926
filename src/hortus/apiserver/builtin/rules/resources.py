"""Resource requests and limits, and the quality of service that follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hortus.apiserver.builtin.problems import every, invalid
from hortus.apiserver.resources.definition import FieldProblem
from hortus.kube.naming import qualified_name
from hortus.kube.scalars import quantity

_COUNTED = ("cpu", "memory")


def requirements(resources: Mapping[str, Any], path: str) -> list[FieldProblem]:
    """The problems of a container's `resources`."""
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    found: list[FieldProblem] = []
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in amounts.items():
            where = f"{path}.{field}[{name}]"
            found += every(where, name, qualified_name(name))
            if quantity(amount).amount < 0:
                found.append(invalid(where, amount, "must be greater than or equal to 0"))
    for name, amount in requests.items():
        if name in limits and quantity(amount) > quantity(limits[name]):
            sentence = f"must be less than or equal to {name} limit of {limits[name]}"
            found.append(invalid(f"{path}.requests", amount, sentence))
    return found


def request_what_is_limited(spec: Mapping[str, Any]) -> None:
    """Sets the request of a container to its limit, for each resource with a limit and no request."""
    for key in ("containers", "initContainers"):
        for container in spec.get(key) or []:
            resources = container.get("resources") or {}
            limits = resources.get("limits")
            if limits:
                resources["requests"] = {**limits, **(resources.get("requests") or {})}


def quality_of_service(spec: Mapping[str, Any]) -> str:
    """Guaranteed, Burstable or BestEffort (docs "Pod Quality of Service Classes")."""
    found = [c.get("resources") or {} for key in ("containers", "initContainers") for c in spec.get(key) or []]
    if not any(r.get(kind, {}).get(name) for r in found for kind in ("requests", "limits") for name in _COUNTED):
        return "BestEffort"
    for resources in found:
        limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
        if any(name not in limits or requests.get(name, limits[name]) != limits[name] for name in _COUNTED):
            return "Burstable"
    return "Guaranteed"
