"""ValidatingAdmissionPolicy over the wire."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from tests.apiserver.wire import Answer, Wire, configmap

from hortus.kube.objects import Object

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["configmaps"],
}

Install = Callable[..., Awaitable[str]]


@pytest.fixture
async def install(wire: Wire, namespace: str) -> AsyncIterator[Install]:
    """Make a policy and a binding for the test's namespace; the policy's name."""
    made: list[str] = []

    async def go(*validations: Object, binding: Object | None = None, **spec: Any) -> str:
        name = f"{namespace}-{len(made)}.example.com"
        constraints = {"resourceRules": [RULE]}
        spec = {"matchConstraints": constraints, "validations": list(validations), **spec}
        answer = await wire.post(
            f"{CONFIGURATIONS}/validatingadmissionpolicies", {"metadata": {"name": name}, "spec": spec}
        )
        assert answer.code == 201, answer.body
        here = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}}}
        bound = {"policyName": name, "validationActions": ["Deny"], "matchResources": here, **(binding or {})}
        answer = await wire.post(
            f"{CONFIGURATIONS}/validatingadmissionpolicybindings", {"metadata": {"name": f"b-{name}"}, "spec": bound}
        )
        assert answer.code == 201, answer.body
        made.append(name)
        return name

    yield go
    for name in made:
        await wire.delete(f"{CONFIGURATIONS}/validatingadmissionpolicybindings/b-{name}")
        await wire.delete(f"{CONFIGURATIONS}/validatingadmissionpolicies/{name}")


def _path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


async def _create(wire: Wire, namespace: str, name: str, data: dict[str, str] | None = None) -> Answer:
    return await wire.post(_path(namespace), configmap(name, data))


async def test_a_policy_denies_in_kubernetes_words(wire: Wire, namespace: str, install: Install) -> None:
    name = await install({"expression": "object.data.a == 'good'"})
    assert (await _create(wire, namespace, "x", {"a": "good"})).code == 201
    answer = await _create(wire, namespace, "y", {"a": "bad"})
    sentence = (
        f"ValidatingAdmissionPolicy '{name}' with binding 'b-{name}' denied request: "
        "failed expression: object.data.a == 'good'"
    )
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": f'configmaps "y" is forbidden: {sentence}',
        "reason": "Invalid",
        "details": {"name": "y", "kind": "configmaps", "causes": [{"message": sentence}]},
        "code": 422,
    }
    assert (await wire.merge(f"{_path(namespace)}/x", {"data": {"a": "bad"}})).code == 422


async def test_messages_and_reasons(wire: Wire, namespace: str, install: Install) -> None:
    await install(
        {"expression": "object.data.a != 'one'", "message": "not one", "reason": "Forbidden"},
        {"expression": "object.data.a != 'two'", "messageExpression": "'never ' + object.data.a"},
        {"expression": "object.data.a != 'three'", "messageExpression": "object.none", "message": "fixed"},
    )
    answers = [await _create(wire, namespace, "x", {"a": value}) for value in ("one", "two", "three")]
    assert [(answer.code, answer.message.rpartition("request: ")[2]) for answer in answers] == [
        (403, "not one"),
        (422, "never two"),
        (422, "fixed"),
    ]


async def test_variables_are_evaluated_when_read(wire: Wire, namespace: str, install: Install) -> None:
    await install(
        {"expression": "variables.total < 10", "messageExpression": "'total ' + string(variables.total)"},
        {"expression": "!has(object.data.boom) || variables.broken == 1"},
        variables=[
            {"name": "one", "expression": "int(object.data.a)"},
            {"name": "total", "expression": "variables.one + 5"},
            {"name": "broken", "expression": "object.nothing.here"},
        ],
    )
    assert (await _create(wire, namespace, "x", {"a": "1"})).code == 201
    assert (await _create(wire, namespace, "y", {"a": "6"})).message.endswith("denied request: total 11")
    answer = await _create(wire, namespace, "z", {"a": "1", "boom": ""})
    assert 'composited variable "broken" fails to evaluate: no such key: nothing' in answer.message


async def test_a_failing_expression_is_judged_by_the_failure_policy(
    wire: Wire, namespace: str, install: Install
) -> None:
    name = await install({"expression": "object.spec.none == 1"})
    answer = await _create(wire, namespace, "x")
    assert answer.message.endswith(
        "denied request: expression 'object.spec.none == 1' resulted in error: no such key: spec"
    )
    await wire.merge(f"{CONFIGURATIONS}/validatingadmissionpolicies/{name}", {"spec": {"failurePolicy": "Ignore"}})
    assert (await _create(wire, namespace, "x")).code == 201


async def test_a_binding_may_warn_instead(wire: Wire, namespace: str, install: Install) -> None:
    name = await install(
        {"expression": "false", "message": "think again"}, binding={"validationActions": ["Warn", "Audit"]}
    )
    answer = await _create(wire, namespace, "x")
    text = f"Validation failed for ValidatingAdmissionPolicy '{name}' with binding 'b-{name}': think again"
    assert (answer.code, answer.headers.getall("Warning")) == (201, [f'299 - "{text}"'])


async def test_params_by_name_and_by_selector(wire: Wire, namespace: str, install: Install) -> None:
    await wire.post(_path(namespace), configmap("limits", {"most": "3"}, labels={"role": "limits"}))
    rule = {"expression": "!has(object.data.n) || int(object.data.n) <= int(params.data.most)"}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    for reference in ({"name": "limits"}, {"selector": {"matchLabels": {"role": "limits"}}}):
        await install(rule, paramKind=kind, binding={"paramRef": {**reference, "parameterNotFoundAction": "Deny"}})
        assert (
            await _create(wire, namespace, f"ok-{len(reference)}-{'name' in reference}".lower(), {"n": "3"})
        ).code == 201
        assert (await _create(wire, namespace, "no", {"n": "4"})).code == 422


async def test_missing_params_deny_or_allow(wire: Wire, namespace: str, install: Install) -> None:
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    allow = {"paramRef": {"name": "none", "parameterNotFoundAction": "Allow"}}
    await install({"expression": "false"}, paramKind=kind, binding=allow)
    assert (await _create(wire, namespace, "x")).code == 201
    deny = {"paramRef": {"name": "none", "parameterNotFoundAction": "Deny"}}
    await install({"expression": "true"}, paramKind=kind, binding=deny)
    words = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
    assert (await _create(wire, namespace, "y")).message.endswith(words)
    await install({"expression": "true"}, paramKind={"apiVersion": "x.io/v1", "kind": "None"}, binding=deny)


async def test_expressions_see_the_request_and_the_namespace(wire: Wire, namespace: str, install: Install) -> None:
    await install(
        {"expression": "request.userInfo.username == 'kubernetes-admin' && request.operation in ['CREATE', 'UPDATE']"},
        {"expression": f"namespaceObject.metadata.name == '{namespace}' && request.namespace == '{namespace}'"},
        {"expression": "oldObject == null || oldObject.data.a == object.data.a", "message": "a is immutable"},
        {"expression": "authorizer.requestResource.check('create').allowed()"},
    )
    assert (await _create(wire, namespace, "x", {"a": "1"})).code == 201
    assert (await wire.merge(f"{_path(namespace)}/x", {"data": {"b": "1"}})).code == 200
    assert (await wire.merge(f"{_path(namespace)}/x", {"data": {"a": "2"}})).message.endswith("a is immutable")


async def test_match_conditions_and_excluded_resources(wire: Wire, namespace: str, install: Install) -> None:
    await install(
        {"expression": "false"},
        matchConditions=[{"name": "named", "expression": "object.metadata.name != 'free'"}],
        matchConstraints={"resourceRules": [RULE], "excludeResourceRules": [{**RULE, "resourceNames": ["out"]}]},
    )
    codes = [(await _create(wire, namespace, name)).code for name in ("free", "out", "held")]
    assert codes == [201, 201, 422]


async def test_a_costly_expression_ends(wire: Wire, namespace: str, install: Install) -> None:
    many = "[1,2,3,4,5,6,7,8,9,10]"
    nested = f"{many}.all(a, {many}.all(b, {many}.all(c, {many}.all(d, {many}.all(e, true)))))"
    await install({"expression": nested})
    answer = await _create(wire, namespace, "x")
    assert (answer.code, "cost limit exceeded" in answer.message) == (422, True)


async def test_a_policy_without_binding_does_nothing(wire: Wire, namespace: str) -> None:
    spec = {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": "false"}]}
    path = f"{CONFIGURATIONS}/validatingadmissionpolicies"
    await wire.post(path, {"metadata": {"name": f"alone-{namespace}"}, "spec": spec})
    assert (await _create(wire, namespace, "x")).code == 201


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"validations": [{"expression": "object.a =="}]}, "spec.validations[0].expression"),
        ({"validations": [{"expression": "1 + 1"}]}, "spec.validations[0].expression"),
        (
            {"validations": [{"expression": "true", "messageExpression": "1"}]},
            "spec.validations[0].messageExpression",
        ),
        (
            {"validations": [{"expression": "true"}], "matchConditions": [{"name": "a", "expression": "nothing"}]},
            "spec.matchConditions[0].expression",
        ),
        (
            {"validations": [{"expression": "true"}], "variables": [{"name": "a", "expression": "("}]},
            "spec.variables[0].expression",
        ),
    ],
)
async def test_expressions_that_cannot_be_compiled_are_not_stored(wire: Wire, spec: Object, field: str) -> None:
    body = {"metadata": {"name": "bad"}, "spec": {"matchConstraints": {"resourceRules": [RULE]}, **spec}}
    answer = await wire.post(f"{CONFIGURATIONS}/validatingadmissionpolicies", body)
    assert answer.code == 422
    assert [cause["field"] for cause in answer.body["details"]["causes"]] == [field]
