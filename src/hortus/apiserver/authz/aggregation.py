"""ClusterRoles that are the sum of others (`aggregationRule`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hortus.apiserver.authz.rules import PolicyRule, rules_of
from hortus.kube.objects import Object


def aggregated_rules(role: Object, others: Iterable[Object]) -> tuple[PolicyRule, ...]:
    """The rules of every ClusterRole in `others` that one of the role's selectors picks, in name order, none twice."""
    return tuple(dict.fromkeys(rule for other in picked_by(role, others) for rule in rules_of(other)))


def picked_by(role: Object, others: Iterable[Object]) -> list[Object]:
    """The ClusterRoles in `others` that one of the role's selectors picks, in name order; never the role itself."""
    selectors = (role.get("aggregationRule") or {}).get("clusterRoleSelectors") or ()
    name = role["metadata"]["name"]
    return sorted(
        (other for other in others if other["metadata"]["name"] != name and _picked(other, selectors)),
        key=lambda other: str(other["metadata"]["name"]),
    )


def _picked(role: Object, selectors: Iterable[Object]) -> bool:
    labels = role["metadata"].get("labels") or {}
    return any(_selects(selector, labels) for selector in selectors)


def _selects(selector: Object, labels: Mapping[str, str]) -> bool:
    """Reports whether a metav1.LabelSelector picks these labels; an unknown operator picks nothing."""
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_meets(requirement, labels) for requirement in selector.get("matchExpressions") or ())


def _meets(requirement: Object, labels: Mapping[str, str]) -> bool:
    key, values = str(requirement.get("key")), requirement.get("values") or ()
    match requirement.get("operator"):
        case "In":
            return key in labels and labels[key] in values
        case "NotIn":
            return key not in labels or labels[key] not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
    return False
