"""Webhooks that fail, dawdle or are not asked, and conversion by one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from tests.apiserver.admission.scripted import Webhook, configuration, patch, rule, scripted_webhook, webhook
from tests.apiserver.store.etcdserver import free_port
from tests.apiserver.wire import Answer, configmap
from tests.conformance.api.test_custom_resources import CRDS, bed, crd, until
from tests.conformance.api.transcripts import RecordedWire

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"

Configure = Callable[..., Awaitable[Answer]]


@pytest.fixture
async def hook(tmp_path: Path) -> AsyncIterator[Webhook]:
    async with scripted_webhook(tmp_path) as found:
        yield found


@pytest.fixture
async def configure(wire: RecordedWire, namespace: str, configmaps: str, hook: Webhook) -> AsyncIterator[Configure]:
    """Bring validating webhooks into force behind one that is called last and reports that they are.

    With them comes `known.example.com`, which refuses the config map `known`.
    """
    paths: list[str] = []
    known = hook.client("/known", lambda request: {"allowed": request["name"] != "known"})

    async def go(*hooks: dict[str, Any], kind: str = "Validating") -> Answer:
        collection = f"{CONFIGURATIONS}/{kind.lower()}webhookconfigurations"
        last = webhook("known.example.com", known, namespace)
        last["objectSelector"] = {"matchLabels": {"known": "yes"}}
        made = await wire.post(collection, configuration(kind, namespace, *hooks, last))
        assert made.code == 201, made.body
        paths.append(f"{collection}/{namespace}")
        with wire.unrecorded():
            body = configmap("known", labels={"known": "yes"})
            await wire.until(lambda: wire.post(f"{configmaps}?dryRun=All", body), lambda answer: answer.code != 201)
        return made

    yield go
    for path in paths:
        await wire.delete(path)


def _tried(
    wire: RecordedWire, configmaps: str, name: str = "a", data: dict[str, str] | None = None, **metadata: Any
) -> Awaitable[Answer]:
    return wire.post(f"{configmaps}?dryRun=All", configmap(name, data, **metadata))


_OTHERS = {"matchExpressions": [{"key": "known", "operator": "DoesNotExist"}]}
_STRICTLY = {"matchLabels": {"strictly": "yes"}}


def _leniently_and_strictly(client: dict[str, Any], namespace: str, **more: Any) -> list[dict[str, Any]]:
    """One webhook that may fail, and one, for those labelled so, that may not."""
    return [
        webhook("ignored.example.com", client, namespace, objectSelector=_OTHERS, failurePolicy="Ignore", **more),
        webhook("strict.example.com", client, namespace, objectSelector=_STRICTLY, failurePolicy="Fail", **more),
    ]


@pytest.mark.parametrize("kind", ["Validating", "Mutating"])
async def test_nobody_listens(
    wire: RecordedWire, namespace: str, configmaps: str, configure: Configure, hook: Webhook, kind: str
) -> None:
    client = {"url": f"https://127.0.0.1:{free_port()}/x", "caBundle": hook.ca}
    await configure(*_leniently_and_strictly(client, namespace), kind=kind)
    assert (await _tried(wire, configmaps)).code == 201
    assert (await _tried(wire, configmaps, labels={"strictly": "yes"})).code == 500


async def test_one_takes_too_long(
    wire: RecordedWire, namespace: str, configmaps: str, configure: Configure, hook: Webhook
) -> None:
    client = hook.client("/slow", lambda request: hook.hang())
    await configure(*_leniently_and_strictly(client, namespace, timeoutSeconds=1))
    answers = await wire.at_once(
        lambda each: _tried(each, configmaps),
        lambda each: _tried(each, configmaps, labels={"strictly": "yes"}),
    )
    assert [answer.code for answer in answers] == [201, 500]


_RESPONSES: dict[str, Any] = {
    "no json": lambda: web.Response(text="hello"),
    "not found": lambda: web.Response(status=404, text="no"),
    "broken": lambda: web.Response(status=500, text="down"),
    "forbidden": lambda: web.Response(status=403, text="no"),
    "redirect": lambda: web.Response(status=302, headers={"Location": "/elsewhere"}),
    "no response": lambda: web.json_response({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"}),
    "another kind": lambda: web.json_response({"apiVersion": "v1", "kind": "Status", "response": {"allowed": True}}),
    "another version": lambda: web.json_response(
        {"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "response": {"allowed": True}}
    ),
}


@pytest.mark.allows("Answers of webhooks are never unpacked", "/5/body/*message")
@pytest.mark.allows("What is wrong with the answer of a webhook", "/[178]/body/*message")
async def test_an_answer_that_is_none_is_a_failure(
    wire: RecordedWire, namespace: str, configmaps: str, configure: Configure, hook: Webhook
) -> None:
    client = hook.client("/odd", lambda request: _RESPONSES[request["name"].replace("-", " ")]())
    await configure(webhook("odd.example.com", client, namespace, objectSelector=_OTHERS))
    for case in _RESPONSES:
        assert (await _tried(wire, configmaps, case.replace(" ", "-"))).code == 500, case


_PATCHES: dict[str, Any] = {
    "type": {"patchType": "Other"},
    "no type": {"patchType": None},
    "no base64 of a patch": {"patch": "bm8="},
    "step that fails": patch({"op": "remove", "path": "/nothing"}),
    "unknown step": patch({"op": "jump", "path": "/data"}),
    "unknown field": patch({"op": "add", "path": "/colour", "value": "red"}),
    "no object": patch({"op": "replace", "path": "", "value": []}),
    "invalid object": patch({"op": "add", "path": "/data/no~1slash", "value": "x"}),
}


@pytest.mark.allows("What is wrong with the answer of a webhook", "/[13457]/body/*message")
async def test_a_patch_that_is_none_is_a_failure(
    wire: RecordedWire, namespace: str, configmaps: str, configure: Configure, hook: Webhook
) -> None:
    def reply(request: dict[str, Any]) -> dict[str, Any]:
        answer = {
            **patch({"op": "add", "path": "/data/x", "value": "y"}),
            **_PATCHES[request["name"].replace("-", " ")],
        }
        return {key: value for key, value in answer.items() if value is not None}

    await configure(
        webhook("odd.example.com", hook.client("/odd", reply), namespace, objectSelector=_OTHERS), kind="Mutating"
    )
    for case in _PATCHES:
        tried = await _tried(wire, configmaps, case.replace(" ", "-"))
        assert tried.code in (201, 422, 500), case


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_conditions_say_which_requests_are_sent(
    wire: RecordedWire, namespace: str, configmaps: str, configure: Configure, hook: Webhook, policy: str
) -> None:
    client = hook.client("/asked", lambda request: {"allowed": False})
    conditions = [
        {"name": "not-known", "expression": "request.name != 'known'"},
        {"name": "asked", "expression": "object.data.ask == 'yes'"},
    ]
    asked = webhook("asked.example.com", client, namespace, matchConditions=conditions, failurePolicy=policy)
    await configure(asked)
    assert (await _tried(wire, configmaps, data={"ask": "yes"})).code == 400
    assert (await _tried(wire, configmaps, data={"ask": "no"})).code == 201
    assert (await _tried(wire, configmaps, data={"other": "x"})).code == (403 if policy == "Fail" else 201)


@pytest.mark.parametrize(
    "change",
    [
        {"matchConditions": [{"name": "a", "expression": "1 + 1"}]},
        {"matchConditions": [{"name": "a", "expression": "object.("}]},
        {"matchConditions": [{"name": "a b", "expression": "true"}, {"name": "", "expression": ""}]},
        {"matchConditions": [{"name": "a", "expression": "true"}, {"name": "a", "expression": "true"}]},
        {"matchConditions": [{"name": "a", "expression": "params == null"}]},
        {"failurePolicy": "Maybe"},
        {"timeoutSeconds": 31},
        {"timeoutSeconds": 0},
        {"sideEffects": "Some"},
        {"admissionReviewVersions": []},
        {"admissionReviewVersions": ["v7"]},
        {"clientConfig": {"url": "http://insecure.example"}},
        {"clientConfig": {"url": "https://user:password@x.example/#fragment?query"}},
        {"clientConfig": {}},
        {"clientConfig": {"url": "https://x.example", "service": {"name": "a", "namespace": "b"}}},
        {"clientConfig": {"service": {"name": "", "namespace": "", "port": 70000, "path": "x//y"}}},
        {"rules": [rule(operations=["EAT"])]},
        {"rules": [rule(operations=["*", "CREATE"], apiGroups=["*", "a"], apiVersions=[])]},
        {"rules": [rule(resources=["*/*", "pods"])]},
        {"rules": [rule(scope="Everywhere")]},
        {"name": "short"},
        {"namespaceSelector": {"matchLabels": {"a b": "c"}}},
        {"matchPolicy": "Roughly"},
    ],
)
async def test_what_is_no_webhook(wire: RecordedWire, namespace: str, change: dict[str, Any]) -> None:
    wrong = webhook("v.example.com", {"url": "https://x.example"}, namespace) | change
    body = configuration("Validating", namespace, wrong)
    answer = await wire.post(f"{CONFIGURATIONS}/validatingwebhookconfigurations?dryRun=All", body)
    assert answer.code in (201, 422)


async def _converting(wire: RecordedWire, domain: str, client: dict[str, Any]) -> str:
    definition = crd(domain)
    old = definition["spec"]["versions"][0]
    definition["spec"]["versions"] = [{**old, "name": "v1alpha1", "storage": False}, old]
    definition["spec"]["conversion"] = {
        "strategy": "Webhook",
        "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
    }
    with wire.unrecorded():
        assert (await wire.post(CRDS, definition)).code == 201
        for version in ("v1", "v1alpha1"):
            await until(wire, f"/apis/{domain}/{version}/beds", 200)
            # The kind is served before its schema is published.
            await wire.until(
                lambda version=version: wire.get(f"/openapi/v3/apis/{domain}/{version}"),  # type: ignore[misc]
                lambda answer: answer.code == 200,
            )
    return domain


def _converted(request: dict[str, Any], **changes: Any) -> dict[str, Any]:
    objects = [{**each, "apiVersion": request["desiredAPIVersion"]} for each in request["objects"]]
    for each in objects:
        each["spec"] = {**each["spec"], "colour": request["desiredAPIVersion"].rpartition("/")[2]}
    return {"result": {"status": "Success"}, "convertedObjects": objects, **changes}


@pytest.mark.allows("What is written by way of a version", "*/body/spec/colour")
async def test_a_webhook_converts(wire: RecordedWire, namespace: str, hook: Webhook, slug: str) -> None:
    domain = await _converting(wire, f"g{slug}.garden.example", hook.client("/convert", _converted))
    new, old = (f"/apis/{domain}/{version}/namespaces/{namespace}/beds" for version in ("v1", "v1alpha1"))
    made = await wire.post(old, {**bed(domain, "a"), "apiVersion": f"{domain}/v1alpha1"})
    assert made.code == 201
    assert (await wire.get(f"{new}/a")).body["spec"]["colour"] == "v1"
    assert (await wire.get(old)).body["items"][0]["spec"]["colour"] == "v1alpha1"
    assert (await wire.merge(f"{old}/a", {"spec": {"size": 5}})).code == 200
    assert (await wire.get(f"{new}/a")).body["spec"]["size"] == 5


_CONVERSIONS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "failure": lambda request: {"result": {"status": "Failure", "message": "not today"}},
    "failure without a word": lambda request: {"result": {"status": "Failure"}},
    "no object": lambda request: _converted(request, convertedObjects=[]),
    "another version": lambda request: _converted(request, convertedObjects=request["objects"]),
    "another name": lambda request: _converted(
        request,
        convertedObjects=[
            {**each, "apiVersion": request["desiredAPIVersion"], "metadata": {**each["metadata"], "name": "b"}}
            for each in request["objects"]
        ],
    ),
    "another label": lambda request: _converted(
        request,
        convertedObjects=[
            {**each, "apiVersion": request["desiredAPIVersion"], "metadata": {**each["metadata"], "labels": {"a": "b"}}}
            for each in request["objects"]
        ],
    ),
    "another kind": lambda request: _converted(
        request,
        convertedObjects=[
            {**each, "apiVersion": request["desiredAPIVersion"], "kind": "Cot"} for each in request["objects"]
        ],
    ),
    "no json": lambda request: web.Response(text="hello"),
    "another uid": lambda request: _converted(request, uid="other"),
}


@pytest.mark.allows("What is wrong with the answer of a webhook", "*/body/message")
async def test_a_conversion_fails(wire: RecordedWire, namespace: str, hook: Webhook, slug: str) -> None:
    def reply(request: dict[str, Any]) -> Any:
        names = [each["metadata"]["name"] for each in request["objects"]]
        return _CONVERSIONS[names[0].replace("-", " ")](request)

    domain = await _converting(wire, f"g{slug}.garden.example", hook.client("/convert", reply))
    new, old = (f"/apis/{domain}/{version}/namespaces/{namespace}/beds" for version in ("v1", "v1alpha1"))
    for case in _CONVERSIONS:
        name = case.replace(" ", "-")
        assert (await wire.post(new, bed(domain, name))).code == 201
        assert (await wire.get(f"{old}/{name}")).code == (200 if case == "another label" else 500), case
        await wire.post(f"{old}?dryRun=All", {**bed(domain, name), "apiVersion": f"{domain}/v1alpha1"})
        assert (await wire.delete(f"{new}/{name}")).code == 200
    with wire.unrecorded():
        await wire.delete(f"{CRDS}/beds.{domain}")
