"""ValidatingAdmissionPolicies of the rule table, for clusters whose CRDs are to stay as the Go operator's.

The API server evaluates them itself: nothing of Hortus need run. They fail open, and pass over objects that are being
deleted, whose finalizers must go whatever the spec says. Credentials in an object are a warning.
"""

from __future__ import annotations

from typing import Any, Final

from hortus.domains.agents.names import GROUP, VERSION
from hortus.domains.agents.types import INSTANA_AGENTS, INSTANA_AGENTS_REMOTE
from hortus.domains.agents.validation.rules import AgentRule, rules_for
from hortus.kube.objects import Object, Resource

_API: Final = "admissionregistration.k8s.io/v1"
_SPEC: Final = "object.spec"
_LIVING: Final = {"name": "not-deleted", "expression": "!has(object.metadata.deletionTimestamp)"}
_GIVEN: Final = {"name": "has-spec", "expression": "has(object.spec)"}


def policies() -> list[Object]:
    """The policies and their bindings, for each kind one that refuses and one that warns."""
    found: list[Object] = []
    for resource in (INSTANA_AGENTS, INSTANA_AGENTS_REMOTE):
        name = f"{resource.plural}.{GROUP}"
        found += _pair(f"rules.{name}", resource, rules_for(resource.kind), action="Deny")
        found += _pair(f"advice.{name}", resource, rules_for(resource.kind, advice=True), action="Warn")
    return found


def _pair(name: str, resource: Resource, rules: tuple[AgentRule, ...], *, action: str) -> list[Object]:
    matched = {
        "apiGroups": [GROUP],
        "apiVersions": [VERSION],
        "operations": ["CREATE", "UPDATE"],
        "resources": [resource.plural],
    }
    return [
        {
            "apiVersion": _API,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "spec": {
                "failurePolicy": "Ignore",
                "matchConstraints": {"resourceRules": [matched]},
                "matchConditions": [_LIVING, _GIVEN],
                "validations": [_validation(rule) for rule in rules],
            },
        },
        {
            "apiVersion": _API,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": [action]},
        },
    ]


def _validation(rule: AgentRule) -> dict[str, Any]:
    shown = rule.message_over(_SPEC)
    return {
        "expression": rule.over(_SPEC),
        "message": rule.message,
        **({"messageExpression": shown} if shown else {}),
        "reason": "Invalid",
    }
