"""Disruption budgets and autoscalers."""

from __future__ import annotations

from typing import Any

from hortus.apiserver.builtin.forms import DEFAULT_CPU_PERCENT
from hortus.apiserver.builtin.problems import invalid, required
from hortus.apiserver.builtin.rules.selectors import label_selector, not_negative, percent_or_number
from hortus.apiserver.builtin.strategy import BuiltinStrategy
from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.kube.objects import Object

_UP_POLICIES = (
    {"type": "Pods", "value": 4, "periodSeconds": 15},
    {"type": "Percent", "value": 100, "periodSeconds": 15},
)
_DOWN_POLICIES = ({"type": "Percent", "value": 100, "periodSeconds": 15},)


class DisruptionBudgetStrategy(BuiltinStrategy):
    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        spec = obj["spec"]
        found: list[FieldProblem] = []
        if "minAvailable" in spec and "maxUnavailable" in spec:
            found.append(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
        for field in ("minAvailable", "maxUnavailable"):
            if field in spec:
                found += percent_or_number(spec[field], f"spec.{field}")
        return found + label_selector(spec.get("selector"), "spec.selector")


class AutoscalerStrategy(BuiltinStrategy):
    """autoscaling v2, and v1 for the fields that both have."""

    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        spec = obj["spec"]
        if self.type_name.startswith("autoscaling."):
            return  # Version 1 has no defaults of its own; the stored version has been defaulted.
        if not spec.get("metrics"):
            target = {"type": "Utilization", "averageUtilization": DEFAULT_CPU_PERCENT}
            spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
        behavior = spec.get("behavior")
        if behavior is not None:
            _default_rules(behavior.setdefault("scaleUp", {}), _UP_POLICIES, window=0)
            _default_rules(behavior.setdefault("scaleDown", {}), _DOWN_POLICIES, window=None)

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        spec = obj["spec"]
        most, least, target = spec.get("maxReplicas", 0), spec.get("minReplicas", 1), spec["scaleTargetRef"]
        found = not_negative(spec, "spec", "minReplicas")
        if most < 1:
            found.append(invalid("spec.maxReplicas", most, "must be greater than 0"))
        if most < least:
            found.append(invalid("spec.maxReplicas", most, "must be greater than or equal to `minReplicas`"))
        found += [required(f"spec.scaleTargetRef.{key}") for key in ("kind", "name") if not target.get(key)]
        if not target.get("apiVersion") and target.get("kind") not in (None, "", "ReplicationController"):
            found.append(invalid("spec.scaleTargetRef.apiVersion", "", "apiVersion must specify API group"))
        return found


def _default_rules(rules: dict[str, Any], policies: tuple[dict[str, Any], ...], *, window: int | None) -> None:
    if window is not None:
        rules.setdefault("stabilizationWindowSeconds", window)
    rules.setdefault("selectPolicy", "Max")
    if not rules.get("policies"):
        rules["policies"] = [dict(policy) for policy in policies]


STRATEGIES: dict[str, type[BuiltinStrategy]] = {
    "policy.PodDisruptionBudget": DisruptionBudgetStrategy,
    "autoscaling.HorizontalPodAutoscaler": AutoscalerStrategy,
    "autoscaling2.HorizontalPodAutoscaler": AutoscalerStrategy,
}
