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
_AGENT: Final = ("properties", "agent", "properties")
_BOUNDS: Final[dict[tuple[str, ...], dict[str, int]]] = {
    ("properties", "zones"): {"maxItems": 64},
    ("properties", "zones", "items", "properties", "name"): {"maxLength": 63},
    ("properties", "zones", "items", "properties", "mode"): {"maxLength": 63},
    (*_AGENT, "additionalBackends"): {"maxItems": 32},
    (*_AGENT, "additionalBackends", "items", "properties", "endpointPort"): {"maxLength": 16},
    (*_AGENT, "endpointPort"): {"maxLength": 16},
    (*_AGENT, "mode"): {"maxLength": 63},
}
"""Bounds of what rules walk, by the place below the spec."""


def strict_crds() -> list[Object]:
    """Both CRDs with their rules."""
    return [_strict(kind.__name__, crd(kind)) for kind in (InstanaAgent, InstanaAgentRemote)]


def _strict(kind: str, plain: Object) -> Object:
    made = copy_of(plain)
    for version in _at(made, ("spec", "versions")):
        spec = _at(version, ("schema", "openAPIV3Schema", "properties", "spec"))
        spec["x-kubernetes-validations"] = [_validation(rule) for rule in rules_for(kind)]
        for path, bounds in _BOUNDS.items():
            node = _at(spec, path)
            if node is not None:
                node.update(bounds)
    return made


def _validation(rule: AgentRule) -> dict[str, Any]:
    return ValidationRule(
        rule.over(_SPEC), message=rule.message, message_expression=rule.message_over(_SPEC)
    ).keywords()


def _at(node: Any, path: tuple[str, ...]) -> Any:
    """The part of a schema at a path; None where there is none."""
    for step in path:
        if node is None:
            return None
        node = node.get(step)
    return node
