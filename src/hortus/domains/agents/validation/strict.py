"""The CRDs with the rule table in them, in place of the Go operator's, for clusters that want it.

They add rules and the bounds without which an API server refuses the rules as too expensive; every field, default and
version is as in the plain CRD. An object that was stored before keeps its wrong value until that field changes
(KEP-4008).
"""

from __future__ import annotations

from typing import Any, Final

from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote
from hortus.domains.agents.validation.rules import AgentRule, rules_for
from hortus.engine.cache import copy_of
from hortus.kube.objects import Object
from hortus.schema import ValidationRule, crd

_SPEC: Final = "self"
_BOUNDS: Final[dict[tuple[str, ...], dict[str, int]]] = {
    ("zones",): {"maxItems": 64},
    ("zones", "items", "name"): {"maxLength": 63},
    ("zones", "items", "mode"): {"maxLength": 63},
    ("agent", "additionalBackends"): {"maxItems": 32},
    ("agent", "additionalBackends", "items", "endpointPort"): {"maxLength": 16},
    ("agent", "endpointPort"): {"maxLength": 16},
    ("agent", "mode"): {"maxLength": 63},
}
"""Bounds of what rules walk, by the place below the spec."""


def strict_crds() -> list[Object]:
    """Both CRDs with their rules."""
    return [_strict(kind.__name__, crd(kind)) for kind in (InstanaAgent, InstanaAgentRemote)]


def _strict(kind: str, plain: Object) -> Object:
    made = copy_of(plain)
    for version in made["spec"]["versions"]:
        spec = version["schema"]["openAPIV3Schema"]["properties"]["spec"]
        spec["x-kubernetes-validations"] = [_validation(rule) for rule in rules_for(kind)]
        for path, bounds in _BOUNDS.items():
            if (node := _node(spec, path)) is not None:
                node.update(bounds)
    return made


def _validation(rule: AgentRule) -> dict[str, Any]:
    return ValidationRule(
        rule.over(_SPEC), message=rule.message, message_expression=rule.message_over(_SPEC)
    ).keywords()


def _node(schema: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any] | None:
    found: dict[str, Any] | None = schema
    for step in path:
        if found is None:
            return None
        found = found.get("items") if step == "items" else (found.get("properties") or {}).get(step)
    return found
