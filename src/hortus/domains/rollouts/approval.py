"""Approval is a verb: who may approve or resume a Rollout, or change the terms that it began under.

The API server itself judges, by a ValidatingAdmissionPolicy (kubernetes.io/docs, "Validating Admission Policy"): a
request that changes these fields needs the verb `approve` on the Rollout, next to the verb of the request.
"""

from __future__ import annotations

from typing import Final

from hortus.engine.rollouts.types import ROLLOUTS
from hortus.kube.objects import Object

VERB: Final = "approve"
NAME: Final = f"{VERB}.{ROLLOUTS.plural}.{ROLLOUTS.group}"
"""Name of the policy and of its binding."""

_API: Final = "admissionregistration.k8s.io/v1"
_CREATED = "object.spec.?approved.orValue([]).size() > 0 || object.spec.?resumes.orValue(0) > 0"
_CHANGED = " || ".join(
    (
        "object.spec.?approved.orValue([]) != oldObject.spec.?approved.orValue([])",
        "object.spec.?resumes.orValue(0) != oldObject.spec.?resumes.orValue(0)",
        # The terms are copied once; somebody who could edit the copy could do without the approval.
        "(has(oldObject.spec.policy) && object.spec.?policy != oldObject.spec.?policy)",
    )
)
_ASKED = (
    f"authorizer.group('{ROLLOUTS.group}').resource('{ROLLOUTS.plural}').namespace(request.namespace)"
    f".name(request.name).check('{VERB}').allowed()"
)
_MESSAGE = (
    f"'user ' + request.userInfo.username + ' may not approve rollout ' + request.name + ': this needs the verb "
    f"{VERB} on {ROLLOUTS.plural}.{ROLLOUTS.group} in namespace ' + request.namespace + ', as the ClusterRole "
    "hortus-approver gives it'"
)

POLICIES: Final[tuple[Object, ...]] = (
    {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": NAME},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [ROLLOUTS.group],
                        "apiVersions": ["*"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": [ROLLOUTS.plural],
                    }
                ]
            },
            "matchConditions": [
                {"name": "approves", "expression": f"oldObject == null ? {_CREATED} : {_CHANGED}"},
            ],
            "validations": [{"expression": _ASKED, "messageExpression": _MESSAGE, "reason": "Forbidden"}],
        },
    },
    {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": NAME},
        "spec": {"policyName": NAME, "validationActions": ["Deny"]},
    },
)
