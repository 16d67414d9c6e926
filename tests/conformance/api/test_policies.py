"""ValidatingAdmissionPolicies with parameters, bindings and all that a binding may ask for (KEP-3488)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from tests.apiserver.admission.scripted import rule
from tests.apiserver.wire import Answer, configmap
from tests.conformance.api.transcripts import RecordedWire

POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"

Enact = Callable[..., Awaitable[None]]


def _policy(name: str, *validations: dict[str, Any], **more: Any) -> dict[str, Any]:
    constraints = {"resourceRules": [rule(resources=["configmaps"])]}
    return {"metadata": {"name": name}, "spec": {"matchConstraints": constraints, "validations": validations, **more}}


def _binding(name: str, policy: str, namespace: str, *actions: str, **more: Any) -> dict[str, Any]:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    spec = {"policyName": policy, "validationActions": list(actions), "matchResources": {"namespaceSelector": selector}}
    return {"metadata": {"name": name}, "spec": {**spec, **more}}


@pytest.fixture
async def enact(wire: RecordedWire, namespace: str, configmaps: str) -> AsyncIterator[Enact]:
    """Make a policy and its bindings, and wait until they are in force: the config map `known` is refused then."""
    made: list[str] = []

    async def go(policy: dict[str, Any], *bindings: dict[str, Any]) -> None:
        conditions = [*policy["spec"].get("matchConditions", ()), _NOT_KNOWN]
        last = _policy(f"{namespace}-known", {"expression": "object.metadata.name != 'known'"})
        of_last = _binding(f"{namespace}-known", f"{namespace}-known", namespace, "Deny")
        policy["spec"]["matchConditions"] = conditions
        for path, body in ((POLICIES, policy), *((BINDINGS, each) for each in bindings)):
            answer = await wire.post(path, body)
            assert answer.code == 201, answer.body
            made.append(f"{path}/{body['metadata']['name']}")
        with wire.unrecorded():
            for path, body in ((POLICIES, last), (BINDINGS, of_last)):
                assert (await wire.post(path, body)).code == 201
                made.append(f"{path}/{body['metadata']['name']}")
            await wire.until(
                lambda: wire.post(f"{configmaps}?dryRun=All", configmap("known")), lambda answer: answer.code == 422
            )

    yield go
    with wire.unrecorded():
        for path in reversed(made):
            await wire.delete(path)


_NOT_KNOWN = {"name": "not-known", "expression": "object.metadata.name != 'known'"}


def _tried(wire: RecordedWire, configmaps: str, **data: str) -> Awaitable[Answer]:
    return wire.post(f"{configmaps}?dryRun=All", configmap("a", data))


async def test_a_violation_is_denied_warned_of_and_audited(
    wire: RecordedWire, namespace: str, configmaps: str, enact: Enact
) -> None:
    name = f"{namespace}.example.com"
    policy = _policy(
        name,
        {"expression": "object.data.size() < 2", "message": "too many", "reason": "Forbidden"},
        {"expression": "!('x' in object.data)", "messageExpression": "'x is ' + object.data.x"},
        auditAnnotations=[{"key": "size", "valueExpression": "string(object.data.size())"}],
    )
    bindings = [
        _binding(f"{namespace}-warn", name, namespace, "Warn", "Audit"),
        _binding(f"{namespace}-deny", name, namespace, "Deny"),
    ]
    await enact(policy, *bindings)
    with wire.unrecorded():
        # The order of the bindings differs from run to run.
        both = await _tried(wire, configmaps, x="1", y="2")
    assert (both.code, both.body["reason"]) == (403, "Forbidden")
    assert len(both.headers.getall("Warning")) == 2
    assert (await _tried(wire, configmaps, a="1", b="2")).code == 403
    assert (await _tried(wire, configmaps, x="1")).code == 422
    assert (await _tried(wire, configmaps, y="1")).code == 201


async def test_parameters_are_read_from_objects(
    wire: RecordedWire, namespace: str, configmaps: str, enact: Enact
) -> None:
    name = f"{namespace}.example.com"
    policy = _policy(
        name,
        {
            "expression": "object.data.size() <= int(params.data.limit)",
            "messageExpression": "'at most ' + params.data.limit + ' in ' + namespaceObject.metadata.name",
        },
        paramKind={"apiVersion": "v1", "kind": "ConfigMap"},
        matchConditions=[{"name": "no-params", "expression": "!object.metadata.name.startsWith('limit')"}],
    )
    for limit in ("1", "2"):
        with wire.unrecorded():
            await wire.post(configmaps, configmap(f"limit{limit}", {"limit": limit}, labels={"limit": limit}))
    selected = {"selector": {"matchLabels": {"limit": "2"}}, "parameterNotFoundAction": "Deny"}
    missing = {"name": "nothing", "parameterNotFoundAction": "Allow"}
    bindings = [
        _binding(f"{namespace}-selected", name, namespace, "Deny", paramRef=selected),
        _binding(f"{namespace}-missing", name, namespace, "Deny", paramRef=missing),
    ]
    await enact(policy, *bindings)
    allowed = await wire.until(
        lambda: _tried(wire, configmaps, a="1", b="2"),
        lambda answer: answer.code == 201 or "no params" not in answer.message,
    )
    assert allowed.code == 201
    assert (await _tried(wire, configmaps, a="1", b="2", c="3")).code == 422


async def test_parameters_that_are_not_there_deny(
    wire: RecordedWire, namespace: str, configmaps: str, enact: Enact
) -> None:
    name = f"{namespace}.example.com"
    policy = _policy(name, {"expression": "params != null"}, paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
    missing = {"name": "nothing", "namespace": namespace, "parameterNotFoundAction": "Deny"}
    await enact(policy, _binding(name, name, namespace, "Deny", paramRef=missing))
    assert (await _tried(wire, configmaps, a="1")).code == 422


@pytest.mark.parametrize("failure", ["Fail", "Ignore"])
async def test_an_expression_that_fails_is_a_decision(
    wire: RecordedWire, namespace: str, configmaps: str, enact: Enact, failure: str
) -> None:
    name = f"{namespace}.example.com"
    policy = _policy(
        name,
        {"expression": "object.data.must == 'x'", "message": "must be x"},
        {"expression": "variables.length < 3"},
        failurePolicy=failure,
        variables=[{"name": "length", "expression": "object.data.number.size()"}],
    )
    await enact(policy, _binding(name, name, namespace, "Deny"))
    assert (await _tried(wire, configmaps, must="x", number="2")).code == 201
    assert (await _tried(wire, configmaps, must="x")).code == (422 if failure == "Fail" else 201)
    assert (await _tried(wire, configmaps, must="y")).code == 422
    assert (await _tried(wire, configmaps, number="2")).code == (422 if failure == "Fail" else 201)


@pytest.mark.parametrize(
    "change",
    [
        {"validations": []},
        {"validations": [{"expression": "object.("}]},
        {"validations": [{"expression": "1"}]},
        {"validations": [{"expression": "true", "messageExpression": "1"}]},
        {"validations": [{"expression": "true", "reason": "Teapot"}]},
        {"validations": [{"expression": "true", "message": "a\nb"}]},
        {"validations": [{"expression": " "}]},
        {"failurePolicy": "Maybe"},
        {"paramKind": {"apiVersion": "", "kind": ""}},
        {"paramKind": {"apiVersion": "a/b/c", "kind": "a b"}},
        {"variables": [{"name": "a-b", "expression": "true"}]},
        {"matchConditions": [{"name": "a b", "expression": "true"}]},
        {"auditAnnotations": [{"key": "", "valueExpression": "'a'"}]},
        {"auditAnnotations": [{"key": "a b", "valueExpression": "1"}]},
        {"matchConstraints": {}},
        {"matchConstraints": {"resourceRules": [rule(operations=["EAT"], resources=["*/*", "pods"])]}},
    ],
)
async def test_what_is_no_policy(wire: RecordedWire, namespace: str, change: dict[str, Any]) -> None:
    wrong = _policy(namespace, {"expression": "true"})
    wrong["spec"] |= change
    assert (await wire.post(f"{POLICIES}?dryRun=All", wrong)).code == 422


@pytest.mark.parametrize(
    "change",
    [
        {"policyName": ""},
        {"policyName": "A b"},
        {"validationActions": []},
        {"validationActions": ["Deny", "Warn"]},
        {"validationActions": ["Deny", "Deny"]},
        {"validationActions": ["Shout"]},
        {"paramRef": {"name": "a"}},
        {"paramRef": {"parameterNotFoundAction": "Deny"}},
        {"paramRef": {"name": "a", "selector": {"matchLabels": {"a": "b"}}, "parameterNotFoundAction": "Deny"}},
        {"paramRef": {"name": "a", "parameterNotFoundAction": "Maybe"}},
    ],
)
async def test_what_is_no_binding(wire: RecordedWire, namespace: str, change: dict[str, Any]) -> None:
    wrong = _binding(namespace, namespace, namespace, "Deny")
    wrong["spec"] |= change
    assert (await wire.post(f"{BINDINGS}?dryRun=All", wrong)).code == 422
