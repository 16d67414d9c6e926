"""Nodes, leases, runtime and priority classes, limits and quotas."""

from __future__ import annotations

from typing import Any

from hortus.apiserver.builtin.problems import every, forbidden, immutable, invalid, required, unsupported
from hortus.apiserver.builtin.rules.selectors import not_negative, positive
from hortus.apiserver.builtin.strategy import BuiltinStrategy
from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.kube.naming import dns_label, qualified_name
from hortus.kube.objects import Object
from hortus.kube.scalars import quantity

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_HIGHEST_USER_PRIORITY = 1_000_000_000
_SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}


class NodeStrategy(BuiltinStrategy):
    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        found: list[FieldProblem] = []
        seen: set[tuple[str, str]] = set()
        for place, taint in enumerate(obj["spec"].get("taints") or []):
            path, key, effect = f"spec.taints[{place}]", taint.get("key", ""), taint.get("effect", "")
            found += every(f"{path}.key", key, qualified_name(key))
            if effect not in _EFFECTS:
                found.append(unsupported(f"{path}.effect", effect, _EFFECTS))
            if (key, effect) in seen:
                found.append(invalid(path, taint, "taints must be unique by key and effect pair"))
            seen.add((key, effect))
        return found

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        new, before = obj["spec"], old["spec"]
        fields = ("podCIDR", "providerID")
        changed = [field for field in fields if before.get(field) and new.get(field) != before[field]]
        sentence = (
            "node updates may only change labels, taints, or capacity "
            "(or configSource, if the DynamicKubeletConfig feature gate is enabled)"
        )
        return [forbidden(f"spec.{field}", sentence) for field in changed]


class LeaseStrategy(BuiltinStrategy):
    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        spec = obj["spec"]
        return positive(spec, "spec", "leaseDurationSeconds") + not_negative(spec, "spec", "leaseTransitions")


class RuntimeClassStrategy(BuiltinStrategy):
    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        handler = obj.get("handler", "")
        return every("handler", handler, dns_label(handler)) if handler else [required("handler")]

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        return immutable("handler", obj.get("handler"), old.get("handler"))


class PriorityClassStrategy(BuiltinStrategy):
    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        obj.setdefault("preemptionPolicy", "PreemptLowerPriority")

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        name, value = obj["metadata"].get("name", ""), obj.get("value", 0)
        if name.startswith("system-"):
            if _SYSTEM_CLASSES.get(name) == value:
                return []
            sentence = "priority class names with 'system-' prefix are reserved for system use only"
            return [forbidden("metadata.name", sentence)]
        if value > _HIGHEST_USER_PRIORITY:
            sentence = f"maximum allowed value of a user defined priority is {_HIGHEST_USER_PRIORITY}"
            return [forbidden("value", sentence)]
        return []

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        found = immutable("preemptionPolicy", obj.get("preemptionPolicy"), old.get("preemptionPolicy"))
        if obj.get("value", 0) != old.get("value", 0):
            found.append(forbidden("value", "may not be changed in an update."))
        return found


class LimitRangeStrategy(BuiltinStrategy):
    """A container's limits default to the maximum, its requests to its limits, else to the minimum."""

    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        for item in obj["spec"].get("limits") or []:
            if item.get("type") == "Container":
                _fill_limits(item)

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        found: list[FieldProblem] = []
        for place, item in enumerate(obj["spec"].get("limits") or []):
            found += _limit_problems(item, f"spec.limits[{place}]")
        return found


def _fill_limits(item: dict[str, Any]) -> None:
    default = {**(item.get("max") or {}), **(item.get("default") or {})}
    request = {**(item.get("min") or {}), **default, **(item.get("defaultRequest") or {})}
    if default:
        item["default"] = default
    if request:
        item["defaultRequest"] = request


_ORDERED = (
    ("min", "max", "min", "min value {} is greater than max value {}"),
    ("min", "defaultRequest", "defaultRequest", "min value {} is greater than default request value {}"),
    ("defaultRequest", "max", "defaultRequest", "default request value {} is greater than max value {}"),
    ("min", "default", "default", "min value {} is greater than default value {}"),
    ("default", "max", "default", "default value {} is greater than max value {}"),
    ("defaultRequest", "default", "defaultRequest", "default request value {} is greater than default limit value {}"),
)
"""The lower and the upper field, the field of the problem when they are not in order, and the message."""


def _limit_problems(item: dict[str, Any], path: str) -> list[FieldProblem]:
    found = []
    for lower, upper, blamed, why in _ORDERED:
        for name, amount in (item.get(lower) or {}).items():
            most = (item.get(upper) or {}).get(name)
            if most is not None and quantity(amount) > quantity(most):
                value = (item.get(blamed) or {}).get(name)
                found.append(invalid(f"{path}.{blamed}[{name}]", value, why.format(amount, most)))
    return found


class QuotaStrategy(BuiltinStrategy):
    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        found: list[FieldProblem] = []
        for name, amount in (obj["spec"].get("hard") or {}).items():
            found += every(f"spec.hard[{name}]", name, qualified_name(name))
            if amount.startswith("-"):
                found.append(invalid(f"spec.hard[{name}]", amount, "must be greater than or equal to 0"))
        return found


STRATEGIES: dict[str, type[BuiltinStrategy]] = {
    "core.Node": NodeStrategy,
    "coordination.Lease": LeaseStrategy,
    "node.RuntimeClass": RuntimeClassStrategy,
    "scheduling.PriorityClass": PriorityClassStrategy,
    "core.LimitRange": LimitRangeStrategy,
    "core.ResourceQuota": QuotaStrategy,
}
