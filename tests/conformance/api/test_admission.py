"""Admission as a cluster's own objects set it up: webhooks and policies, with the words that clients match on.

A real API server takes a moment to see a new configuration, so each scenario asks until it is in force.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.apiserver.admission.scripted import Webhook, configuration, patch, rule, scripted_webhook, webhook
from tests.apiserver.wire import Answer, configmap
from tests.conformance.api.transcripts import RecordedWire

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"

Configure = Callable[..., Awaitable[None]]


@pytest.fixture
async def hook(tmp_path: Path) -> AsyncIterator[Webhook]:
    async with scripted_webhook(tmp_path) as found:
        yield found


@pytest.fixture
async def configure(wire: RecordedWire, namespace: str) -> AsyncIterator[Configure]:
    """Make one configuration of webhooks for the scenario; it is gone afterwards."""
    paths: list[str] = []

    async def go(kind: str, *hooks: dict[str, Any]) -> None:
        collection = f"{CONFIGURATIONS}/{kind.lower()}webhookconfigurations"
        made = await wire.post(collection, configuration(kind, namespace, *hooks))
        assert made.code == 201, made.body
        paths.append(f"{collection}/{namespace}")

    yield go
    for path in paths:
        await wire.delete(path)


async def _created(wire: RecordedWire, configmaps: str, holds: Callable[[Answer], bool], **data: str) -> Answer:
    """Try creating, without leaving anything behind, until the answer is as wanted."""
    return await wire.until(lambda: wire.post(f"{configmaps}?dryRun=All", configmap("a", data)), holds)


async def test_a_validating_webhook_refuses(
    wire: RecordedWire, namespace: str, configmaps: str, hook: Webhook, configure: Configure
) -> None:
    status = {"code": 403, "message": "not today", "reason": "Forbidden"}
    client = hook.client("/v", lambda request: {"allowed": False, "status": status, "warnings": ["mind the gap"]})
    await configure("Validating", webhook("v.example.com", client, namespace))
    answer = await _created(wire, configmaps, lambda answer: answer.code != 201)
    assert answer.body == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'admission webhook "v.example.com" denied the request: not today',
        "reason": "Forbidden",
        "code": 403,
    }
    assert answer.headers["Warning"] == '299 - "mind the gap"'
    asked = hook.requests("/v")[-1]
    assert (asked["operation"], asked["namespace"], asked["name"]) == ("CREATE", namespace, "a")
    assert (asked["dryRun"], asked["oldObject"]) == (True, None)


async def test_mutating_webhooks_change_and_are_asked_again(
    wire: RecordedWire, namespace: str, configmaps: str, hook: Webhook, configure: Configure
) -> None:
    def seen(request: dict[str, Any]) -> dict[str, Any]:
        found = ".".join(sorted(request["object"]["data"]))
        return patch({"op": "add", "path": "/data/seen", "value": found})

    first = hook.client("/first", seen)
    last = hook.client("/last", lambda request: patch({"op": "add", "path": "/data/late", "value": "yes"}))
    await configure(
        "Mutating",
        webhook("first.example.com", first, namespace, reinvocationPolicy="IfNeeded"),
        webhook("last.example.com", last, namespace),
    )
    answer = await _created(wire, configmaps, lambda answer: "late" in answer.body["data"], a="b")
    assert answer.body["data"] == {"a": "b", "late": "yes", "seen": "a.late.seen"}


async def test_a_webhook_that_fails_refuses_unless_its_failures_are_ignored(
    wire: RecordedWire, namespace: str, configmaps: str, hook: Webhook, configure: Configure
) -> None:
    client = hook.client("/v", lambda request: {"uid": "wrong", "allowed": True})
    ignored = webhook("ignored.example.com", client, namespace, failurePolicy="Ignore")
    await configure("Validating", ignored, webhook("v.example.com", client, namespace))
    answer = await _created(wire, configmaps, lambda answer: answer.code != 201)
    assert (answer.code, answer.body["reason"]) == (500, "InternalError")
    start = 'Internal error occurred: failed calling webhook "v.example.com": received invalid webhook response: '
    assert answer.message.startswith(start + 'expected response.uid="')


async def test_a_webhook_of_a_deletion_sees_the_old_object(
    wire: RecordedWire, namespace: str, configmaps: str, hook: Webhook, configure: Configure
) -> None:
    made = (await wire.post(configmaps, configmap("kept"))).body
    client = hook.client("/v", lambda request: {"allowed": False})
    await configure("Validating", webhook("v.example.com", client, namespace, rules=[rule(operations=["DELETE"])]))
    answer = await wire.until(lambda: wire.delete(f"{configmaps}/kept?dryRun=All"), lambda answer: answer.code != 200)
    assert answer.message == 'admission webhook "v.example.com" denied the request without explanation'
    asked = hook.requests("/v")[-1]
    assert (asked["object"], asked["oldObject"]["metadata"]["uid"]) == (None, made["metadata"]["uid"])


@pytest.mark.parametrize("actions", [["Deny"], ["Warn"]])
async def test_a_policy_denies_or_warns(
    wire: RecordedWire, namespace: str, configmaps: str, actions: list[str]
) -> None:
    name = f"{namespace}.example.com"
    constraints = {"resourceRules": [rule(resources=["configmaps"])]}
    variables = [{"name": "size", "expression": "object.data.size()"}]
    validation = {"expression": "variables.size < 2", "messageExpression": "'has ' + string(variables.size)"}
    spec = {"matchConstraints": constraints, "variables": variables, "validations": [validation]}
    policies, bindings = (f"{CONFIGURATIONS}/validatingadmissionpolic{rest}" for rest in ("ies", "ybindings"))
    assert (await wire.post(policies, {"metadata": {"name": name}, "spec": spec})).code == 201
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    bound = {"policyName": name, "validationActions": actions, "matchResources": {"namespaceSelector": selector}}
    assert (await wire.post(bindings, {"metadata": {"name": name}, "spec": bound})).code == 201
    try:
        judged = lambda answer: answer.code == 422 or "Warning" in answer.headers  # noqa: E731
        answer = await _created(wire, configmaps, judged, a="1", b="2")
        if actions == ["Warn"]:
            text = f"Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}': has 2"
            assert (answer.code, answer.headers["Warning"]) == (201, f'299 - "{text}"')
        else:
            sentence = f"ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: has 2"
            assert answer.message == f'configmaps "a" is forbidden: {sentence}'
            assert (answer.body["reason"], answer.body["details"]["causes"]) == ("Invalid", [{"message": sentence}])
        assert (await wire.post(configmaps, configmap("small", {"a": "1"}))).code == 201
    finally:
        await wire.delete(f"{bindings}/{name}")
        await wire.delete(f"{policies}/{name}")
