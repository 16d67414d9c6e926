"""Approval is a verb: who may approve or resume a Rollout, give it terms, or write a policy that asks for approval.

The API server itself judges, by ValidatingAdmissionPolicies (kubernetes.io/docs, "Validating Admission Policy"): a
request that changes these fields needs the verb `approve` on the Rollout or on the RolloutPolicy, next to the verb of
the request. A Rollout without terms gets those of the policy that governs its change, which is no choice of its author.
"""

from __future__ import annotations

from typing import Final

from hortus.engine.rollouts.types import ROLLOUT_POLICIES, ROLLOUTS
from hortus.kube.objects import Object, Resource

VERB: Final = "approve"

_API: Final = "admissionregistration.k8s.io/v1"
_ORDERS: Final = (
    "oldObject == null"
    " ? has(object.spec.policy) || object.spec.?approved.orValue([]).size() > 0 || object.spec.?resumes.orValue(0) > 0"
    " : object.spec.?policy != oldObject.spec.?policy"
    " || object.spec.?approved.orValue([]) != oldObject.spec.?approved.orValue([])"
    " || object.spec.?resumes.orValue(0) != oldObject.spec.?resumes.orValue(0)"
)
_ASKS: Final = (
    "[object, oldObject].exists(one, one != null"
    " && one.spec.stages.exists(stage, stage.?approval.orValue('None') != 'None'))"
)
_ENDING: Final = "request.operation == 'DELETE' && has(namespaceObject.metadata.deletionTimestamp)"
"""A namespace ends with its policies, and Kubernetes deletes them, which approves nothing."""


def name_of(resource: Resource) -> str:
    """The name of the policy that guards this kind, and of its binding."""
    return f"{VERB}.{resource.plural}.{resource.group}"


def _guard(
    resource: Resource, operations: tuple[str, ...], condition: str, refused: str, *, unless: str = "false"
) -> tuple[Object, Object]:
    """A policy and its binding: requests that meet the condition need the verb. `refused` follows "may not"."""
    name = name_of(resource)
    allowed = (
        f"authorizer.group('{resource.group}').resource('{resource.plural}').namespace(request.namespace)"
        f".name(request.name).check('{VERB}').allowed()"
    )
    message = (
        f"'user ' + request.userInfo.username + ' may not {refused}: this needs the verb {VERB} on "
        f"{resource.plural}.{resource.group} in namespace ' + request.namespace + ', as the ClusterRole "
        "hortus-approver gives it'"
    )
    rule = {
        "apiGroups": [resource.group],
        "apiVersions": ["*"],
        "operations": list(operations),
        "resources": [resource.plural],
    }
    policy: Object = {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [rule]},
            "matchConditions": [{"name": "approves", "expression": condition}],
            "validations": [
                {"expression": f"({unless}) || {allowed}", "messageExpression": message, "reason": "Forbidden"}
            ],
        },
    }
    binding: Object = {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name, "validationActions": ["Deny"]},
    }
    return policy, binding


POLICIES: Final[tuple[Object, ...]] = (
    *_guard(
        ROLLOUTS,
        ("CREATE", "UPDATE"),
        _ORDERS,
        "approve or resume rollout ' + request.name + ', or set its terms (spec.policy)",
    ),
    *_guard(
        ROLLOUT_POLICIES,
        ("CREATE", "UPDATE", "DELETE"),
        _ASKS,
        "write rollout policy ' + request.name + ', which asks for approval",
        unless=_ENDING,
    ),
)
