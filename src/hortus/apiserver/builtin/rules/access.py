"""RBAC roles and bindings.

Privilege escalation (`escalate`, `bind`) is checked by authorization; this module only checks validity.
"""

from __future__ import annotations

from typing import Any

from hortus.apiserver.builtin.problems import every, invalid, required, unsupported
from hortus.apiserver.builtin.rules.selectors import label_selector
from hortus.apiserver.builtin.strategy import BuiltinStrategy
from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.kube.naming import dns_subdomain, path_segment
from hortus.kube.objects import Object

_GROUP = "rbac.authorization.k8s.io"
_SUBJECT_GROUPS = {"ServiceAccount": "", "User": _GROUP, "Group": _GROUP}


def _rule(rule: dict[str, Any], path: str, *, namespaced: bool) -> list[FieldProblem]:
    if not rule.get("verbs"):
        return [required(f"{path}.verbs", "verbs must contain at least one value")]
    urls = rule.get("nonResourceURLs")
    if urls:
        if namespaced:
            sentence = "namespaced rules cannot apply to non-resource URLs"
            return [invalid(f"{path}.nonResourceURLs", urls, sentence)]
        if any(rule.get(key) for key in ("apiGroups", "resources", "resourceNames")):
            sentence = "rules cannot apply to both regular resources and non-resource URLs"
            return [invalid(f"{path}.nonResourceURLs", urls, sentence)]
        return []
    found = []
    if not rule.get("apiGroups"):
        found.append(required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        found.append(required(f"{path}.resources", "resource rules must supply at least one resource"))
    return found


_REFERENCE = (("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name"))


class RoleStrategy(BuiltinStrategy):
    """Role and ClusterRole."""

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        found: list[FieldProblem] = []
        for place, rule in enumerate(obj.get("rules") or []):
            found += _rule(rule, f"rules[{place}]", namespaced=self.resource.namespaced)
        aggregation = obj.get("aggregationRule")
        if aggregation is not None:
            path = "aggregationRule.clusterRoleSelectors"
            if not aggregation.get("clusterRoleSelectors"):
                found.append(required(path, "at least one clusterRoleSelector required if aggregationRule is non-nil"))
            for place, selector in enumerate(aggregation.get("clusterRoleSelectors") or []):
                found += label_selector(selector, f"{path}[{place}]")
        return found


class BindingStrategy(BuiltinStrategy):
    """RoleBinding and ClusterRoleBinding."""

    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        if not obj["roleRef"].get("apiGroup"):
            obj["roleRef"]["apiGroup"] = _GROUP
        for subject in obj.get("subjects") or []:
            if not subject.get("apiGroup") and _SUBJECT_GROUPS.get(subject.get("kind")):
                subject["apiGroup"] = _SUBJECT_GROUPS[subject["kind"]]

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        reference = obj["roleRef"]
        found: list[FieldProblem] = []
        if reference.get("apiGroup") != _GROUP:
            found.append(unsupported("roleRef.apiGroup", reference.get("apiGroup"), [_GROUP]))
        kinds = ["Role", "ClusterRole"] if self.resource.namespaced else ["ClusterRole"]
        if reference.get("kind") not in kinds:
            found.append(unsupported("roleRef.kind", reference.get("kind", ""), kinds))
        if not reference.get("name"):
            found.append(required("roleRef.name"))
        else:
            found += every("roleRef.name", reference["name"], path_segment(reference["name"]))
        for place, subject in enumerate(obj.get("subjects") or []):
            found += self._subject(subject, f"subjects[{place}]")
        return found

    def _subject(self, subject: dict[str, Any], path: str) -> list[FieldProblem]:
        found = [] if subject.get("name") else [required(f"{path}.name")]
        kind = subject.get("kind", "")
        if kind not in _SUBJECT_GROUPS:
            return [*found, unsupported(f"{path}.kind", kind, _SUBJECT_GROUPS)]
        if (subject.get("apiGroup") or "") != _SUBJECT_GROUPS[kind]:
            found.append(unsupported(f"{path}.apiGroup", subject.get("apiGroup"), [_SUBJECT_GROUPS[kind]]))
        if kind == "ServiceAccount" and subject.get("name"):
            found += every(f"{path}.name", subject["name"], dns_subdomain(subject["name"]))
        if kind == "ServiceAccount" and not self.resource.namespaced and not subject.get("namespace"):
            found.append(required(f"{path}.namespace"))
        return found

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        if obj["roleRef"] == old["roleRef"]:
            return []
        shown = {name: obj["roleRef"].get(key, "") for name, key in _REFERENCE}  # by Go's names, unlike other values
        return [invalid("roleRef", shown, "cannot change roleRef")]


STRATEGIES: dict[str, type[BuiltinStrategy]] = {
    "rbac.Role": RoleStrategy,
    "rbac.ClusterRole": RoleStrategy,
    "rbac.RoleBinding": BindingStrategy,
    "rbac.ClusterRoleBinding": BindingStrategy,
}
