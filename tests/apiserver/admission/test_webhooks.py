"""Admission webhooks over real sockets: what they are asked, what they may do, and what happens when they fail."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web
from tests.apiserver.admission.scripted import Webhook, configuration, patch, rule, webhook
from tests.apiserver.store.etcdserver import free_port
from tests.apiserver.wire import Answer, Wire, configmap, connected

from hortus.apiserver import ApiServerSettings
from hortus.testing.apiserver import TestServer, running_apiserver

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"


async def _configure(wire: Wire, kind: str, name: str, *hooks: dict[str, Any]) -> None:
    made = await wire.post(f"{CONFIGURATIONS}/{kind.lower()}webhookconfigurations", configuration(kind, name, *hooks))
    assert made.code == 201, made.body


async def _remove(wire: Wire, kind: str, name: str) -> None:
    path = f"{CONFIGURATIONS}/{kind.lower()}webhookconfigurations/{name}"
    assert (await wire.delete(path)).code == 200


def _path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


def _set(key: str, value: str) -> dict[str, Any]:
    return {"op": "add", "path": f"/data/{key}", "value": value}


async def test_a_review_holds_user_operation_and_object(wire: Wire, namespace: str, hook: Webhook) -> None:
    client = hook.client("/review", lambda request: {"allowed": True})
    await _configure(wire, "Validating", f"{namespace}-a", webhook("all.example.com", client, namespace))
    made = (await wire.post(f"{_path(namespace)}?fieldManager=me", configmap("a"))).body
    [created] = hook.requests("/review")
    kind, resource = {"group": "", "version": "v1", "kind": "ConfigMap"}, {"group": "", "version": "v1"}
    resource["resource"] = "configmaps"
    uid = created.pop("uid")
    assert len(uid) == 36
    created["object"]["metadata"]["resourceVersion"] = made["metadata"]["resourceVersion"]
    assert created == {
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": "a",
        "namespace": namespace,
        "operation": "CREATE",
        "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
        "object": made,
        "oldObject": None,
        "dryRun": False,
        "options": {
            "kind": "CreateOptions",
            "apiVersion": "meta.k8s.io/v1",
            "fieldManager": "me",
            "fieldValidation": "Warn",
        },
    }
    assert hook.asked[0][1]["apiVersion"] == "admission.k8s.io/v1"
    assert hook.queries == ["timeout=5s"]
    await wire.merge(f"{_path(namespace)}/a?dryRun=All", {"data": {"x": "y"}})
    updated = hook.requests("/review")[1]
    assert (updated["operation"], updated["dryRun"], updated["oldObject"]) == ("UPDATE", True, made)
    assert updated["options"]["kind"] == "PatchOptions"


async def test_mutations_are_made_in_order_of_names_and_seen_by_the_next(
    wire: Wire, namespace: str, hook: Webhook
) -> None:
    first = hook.client("/first", lambda request: patch(_set("by", "first")))
    second = hook.client("/second", lambda request: patch(_set("by", request["object"]["data"]["by"] + "+second")))
    await _configure(wire, "Mutating", f"{namespace}-b", webhook("second.example.com", second, namespace))
    await _configure(wire, "Mutating", f"{namespace}-a", webhook("first.example.com", first, namespace))
    assert (await wire.post(_path(namespace), configmap("a"))).body["data"]["by"] == "first+second"
    applied = await wire.apply(f"{_path(namespace)}/b", configmap("b"))
    assert applied.body["data"]["by"] == "first+second"


async def test_an_object_changed_by_a_webhook_is_pruned_defaulted_and_validated(
    wire: Wire, namespace: str, hook: Webhook
) -> None:
    unknown = {"op": "add", "path": "/colour", "value": "green"}
    client = hook.client("/m", lambda request: patch(unknown, {"op": "add", "path": "/data/BAD KEY", "value": "x"}))
    await _configure(wire, "Mutating", f"{namespace}-a", webhook("m.example.com", client, namespace))
    answer = await wire.post(_path(namespace), configmap("a"))
    assert (answer.code, "data[BAD KEY]" in answer.message) == (422, True)
    hook.client("/m", lambda request: patch(unknown))
    assert "colour" not in (await wire.post(_path(namespace), configmap("a"))).body


async def test_a_webhook_can_fill_in_required_fields(wire: Wire, namespace: str, hook: Webhook) -> None:
    image = {"op": "add", "path": "/spec/containers/0/image", "value": "registry.example/app"}
    client = hook.client("/m", lambda request: patch(image))
    hooks = webhook("m.example.com", client, namespace, rules=[rule(resources=["pods"])])
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "app"}]}}
    assert (await wire.post(f"/api/v1/namespaces/{namespace}/pods", pod)).code == 422
    await _configure(wire, "Mutating", f"{namespace}-a", hooks)
    made = await wire.post(f"/api/v1/namespaces/{namespace}/pods", pod)
    assert made.body["spec"]["containers"][0]["image"] == "registry.example/app"


async def test_a_webhook_is_asked_again_when_a_later_one_changed_the_object(
    wire: Wire, namespace: str, hook: Webhook
) -> None:
    first = hook.client("/first", lambda request: patch(_set("seen", str(sorted(request["object"]["data"])))))
    never = hook.client("/never", lambda request: {"allowed": True})
    last = hook.client("/last", lambda request: patch(_set("late", "yes")))
    await _configure(
        wire,
        "Mutating",
        f"{namespace}-a",
        webhook("first.example.com", first, namespace, reinvocationPolicy="IfNeeded"),
        webhook("never.example.com", never, namespace),
        webhook("last.example.com", last, namespace),
    )
    made = await wire.post(_path(namespace), configmap("a"))
    assert made.body["data"]["seen"] == "['a', 'late', 'seen']"
    assert [path for path, _ in hook.asked] == ["/first", "/never", "/last", "/first"]


@pytest.mark.parametrize(
    ("status", "code", "reason", "message"),
    [
        (None, 400, None, 'admission webhook "v.example.com" denied the request without explanation'),
        ({"message": "no"}, 400, None, 'admission webhook "v.example.com" denied the request: no'),
        ({"reason": "Forbidden"}, 400, "Forbidden", 'admission webhook "v.example.com" denied the request: Forbidden'),
        (
            {"code": 403, "message": "stop", "reason": "Forbidden"},
            403,
            "Forbidden",
            'admission webhook "v.example.com" denied the request: stop',
        ),
        ({"code": 200, "message": "ok"}, 400, None, 'admission webhook "v.example.com" denied the request: ok'),
    ],
)
async def test_a_refusal_has_the_webhooks_message(
    wire: Wire, namespace: str, hook: Webhook, status: Any, code: int, reason: str | None, message: str
) -> None:
    client = hook.client("/v", lambda request: {"allowed": False, "status": status, "warnings": ["mind the gap"]})
    await _configure(wire, "Validating", f"{namespace}-a", webhook("v.example.com", client, namespace))
    answer = await wire.post(_path(namespace), configmap("a"))
    assert (answer.code, answer.body.get("reason"), answer.message) == (code, reason, message)
    assert answer.body["status"] == "Failure"
    assert answer.headers.getall("Warning") == ['299 - "mind the gap"']
    assert (await wire.get(f"{_path(namespace)}/a")).code == 404


async def test_a_deletion_is_judged_with_the_old_object_alone(wire: Wire, namespace: str, hook: Webhook) -> None:
    client = hook.client("/v", lambda request: {"allowed": False, "status": {"message": "keep it"}})
    made = (await wire.post(_path(namespace), configmap("a"))).body
    hooks = webhook("v.example.com", client, namespace, rules=[rule(operations=["DELETE"])])
    await _configure(wire, "Validating", f"{namespace}-a", hooks)
    answer = await wire.delete(f"{_path(namespace)}/a", {"propagationPolicy": "Background"})
    assert answer.message == 'admission webhook "v.example.com" denied the request: keep it'
    [asked] = hook.requests("/v")
    assert (asked["object"], asked["oldObject"]) == (None, made)
    assert (asked["options"]["kind"], asked["options"]["propagationPolicy"]) == ("DeleteOptions", "Background")
    assert (await wire.get(f"{_path(namespace)}/a")).code == 200


def _whole(text: str, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="application/json")


_LIES: dict[str, tuple[Any, str]] = {
    "not-json": (_whole("<html>"), "received invalid webhook response: it is no AdmissionReview"),
    "no-response": (
        _whole('{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}'),
        "received invalid webhook response: webhook response was absent",
    ),
    "other-uid": ({"uid": "x", "allowed": True}, "received invalid webhook response: expected response.uid="),
    "other-kind": (
        _whole('{"apiVersion":"v1","kind":"Pod","response":{"allowed":true}}'),
        "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got v1, Kind=Pod",
    ),
    "patch-when-validating": (patch(_set("a", "b")), "validating webhook may not return response.patch"),
    "not-found": (_whole("", 404), "failed to call webhook: the server could not find the requested resource"),
    "broken": (
        web.Response(text="oops", status=500),
        'failed to call webhook: an error on the server ("oops") has prevented the request',
    ),
    "redirect": (web.Response(status=302, headers={"Location": "https://127.0.0.1:1/"}), "(HTTP status 302)"),
    "endless": (web.Response(body=b" " * (9 << 20)), "the answer is longer than"),
}


@pytest.mark.parametrize("lie", _LIES)
async def test_a_lying_webhook_fails_by_its_policy(wire: Wire, namespace: str, hook: Webhook, lie: str) -> None:
    response, words = _LIES[lie]
    client = hook.client("/v", lambda request: response)
    await _configure(wire, "Validating", f"{namespace}-a", webhook("v.example.com", client, namespace))
    answer = await wire.post(_path(namespace), configmap("a"))
    assert (answer.code, answer.body["reason"]) == (500, "InternalError")
    assert answer.message.startswith('Internal error occurred: failed calling webhook "v.example.com": ')
    assert words in answer.message
    await _remove(wire, "Validating", f"{namespace}-a")
    ignored = webhook("v.example.com", client, namespace, failurePolicy="Ignore")
    await _configure(wire, "Validating", f"{namespace}-a", ignored)
    if not isinstance(response, web.Response):  # a response object can be sent once
        assert (await wire.post(_path(namespace), configmap("a"))).code == 201


async def test_a_hanging_webhook_is_given_up_at_its_timeout(wire: Wire, namespace: str, hook: Webhook) -> None:
    client = hook.client("/v", lambda request: hook.hang())
    hooks = webhook("v.example.com", client, namespace, timeoutSeconds=1)
    await _configure(wire, "Validating", f"{namespace}-a", hooks)
    answer = await wire.post(_path(namespace), configmap("a"))
    url = f"https://127.0.0.1:{hook.port}/v?timeout=1s"
    assert answer.message == (
        'Internal error occurred: failed calling webhook "v.example.com": failed to call webhook: '
        f'Post "{url}": context deadline exceeded'
    )


async def _refused(wire: Wire, namespace: str, client: dict[str, Any], **more: Any) -> Answer:
    await _configure(wire, "Validating", f"{namespace}-a", webhook("v.example.com", client, namespace, **more))
    answer = await wire.post(_path(namespace), configmap("a"))
    assert answer.code == 500, answer.body
    return answer


async def test_an_unreachable_webhook_is_named_in_the_error(wire: Wire, namespace: str, unused_port: int) -> None:
    answer = await _refused(wire, namespace, {"url": f"https://127.0.0.1:{unused_port}/"})
    assert f"dial tcp 127.0.0.1:{unused_port}: connect: connection refused" in answer.message


@pytest.fixture
def unused_port() -> int:
    return free_port()


async def test_an_invalid_ca_bundle_is_named_in_the_error(wire: Wire, namespace: str) -> None:
    client = {"url": "https://127.0.0.1:1/", "caBundle": "bm90aGluZw=="}
    assert "unable to load root certificates" in (await _refused(wire, namespace, client)).message


async def test_warnings_are_bounded_and_sent_once(wire: Wire, namespace: str, hook: Webhook) -> None:
    texts = ["a" * 3000, "a" * 3000, "b" * 3000, "c"]
    client = hook.client("/v", lambda request: {"allowed": True, "warnings": texts})
    await _configure(wire, "Validating", f"{namespace}-a", webhook("v.example.com", client, namespace))
    answer = await wire.post(_path(namespace), configmap("a"))
    assert [len(text) for text in answer.headers.getall("Warning")] == [3008, 9]


async def test_a_webhook_sees_the_object_that_would_be_stored(wire: Wire, namespace: str, hook: Webhook) -> None:
    client = hook.client(
        "/m", lambda request: patch({"op": "add", "path": "/spec/containers/0/resources/x", "value": 1})
    )
    hooks = webhook("m.example.com", client, namespace, rules=[rule(resources=["pods"])])
    await _configure(wire, "Mutating", f"{namespace}-a", hooks)
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "app", "image": "i"}]}}
    made = await wire.post(f"/api/v1/namespaces/{namespace}/pods", pod)
    [asked] = hook.requests("/m")
    assert (made.code, asked["object"]["spec"]) == (201, made.body["spec"])


async def test_a_webhook_of_another_authority_is_not_believed(wire: Wire, namespace: str, hook: Webhook) -> None:
    client = hook.client("/v", lambda request: {"allowed": True})
    del client["caBundle"]
    assert "tls: failed to verify certificate" in (await _refused(wire, namespace, client)).message
    assert hook.asked == []


async def test_a_webhook_may_not_be_this_server(wire: Wire, server: TestServer, namespace: str) -> None:
    answer = await _refused(wire, namespace, {"url": f"{server.url}/api"})
    assert "is this API server itself" in answer.message


async def test_a_service_cannot_be_reached_without_a_cluster_network(wire: Wire, namespace: str) -> None:
    answer = await _refused(wire, namespace, {"service": {"name": "judge", "namespace": "x"}})
    assert 'service "judge" in namespace "x" cannot be reached' in answer.message


@pytest.mark.parametrize("path", ["/metadata/name", "/metadata/namespace", "/metadata/uid", "/kind"])
async def test_a_webhook_may_not_make_the_object_another(wire: Wire, namespace: str, hook: Webhook, path: str) -> None:
    client = hook.client("/m", lambda request: patch({"op": "replace", "path": path, "value": "other"}))
    await _configure(wire, "Mutating", f"{namespace}-a", webhook("m.example.com", client, namespace))
    answer = await wire.post(_path(namespace), configmap("a"))
    assert (answer.code, "which identifies the object" in answer.message) == (500, True)


async def test_a_dry_run_reaches_only_webhooks_without_side_effects(wire: Wire, namespace: str, hook: Webhook) -> None:
    client = hook.client("/v", lambda request: {"allowed": True})
    await wire.post(_path(namespace), configmap("a"))
    body = configuration("Validating", f"{namespace}-a", webhook("v.example.com", client, namespace))
    body["webhooks"][0]["sideEffects"] = "NoneOnDryRun"
    await wire.post(f"{CONFIGURATIONS}/validatingwebhookconfigurations", body)
    assert (await wire.post(f"{_path(namespace)}?dryRun=All", configmap("b"))).code == 201
    assert [request["dryRun"] for request in hook.requests("/v")] == [True]


async def test_configurations_are_beyond_the_reach_of_webhooks(wire: Wire, namespace: str, hook: Webhook) -> None:
    client = hook.client("/v", lambda request: {"allowed": False})
    everything = webhook("v.example.com", client, namespace)
    everything["rules"] = [rule(operations=["*"], apiGroups=["*"], apiVersions=["*"], resources=["*/*"])]
    del everything["namespaceSelector"]
    everything["objectSelector"] = {"matchExpressions": [{"key": "a", "operator": "DoesNotExist"}]}
    await _configure(wire, "Validating", f"{namespace}-a", everything)
    try:
        assert (await wire.post("/api/v1/namespaces", {"metadata": {"name": f"{namespace}-x"}})).code == 400
    finally:
        await _remove(wire, "Validating", f"{namespace}-a")


async def test_selectors_and_conditions_choose(wire: Wire, namespace: str, hook: Webhook) -> None:
    client = hook.client("/v", lambda request: {"allowed": False})
    conditions = [{"name": "named", "expression": "object.metadata.name.startsWith('judged')"}]
    labelled = {"matchLabels": {"judged": "yes"}}
    await _configure(
        wire,
        "Validating",
        f"{namespace}-a",
        webhook("v.example.com", client, namespace, objectSelector=labelled, matchConditions=conditions),
    )
    assert (await wire.post(_path(namespace), configmap("judged-a"))).code == 201
    assert (await wire.post(_path(namespace), configmap("free", labels={"judged": "yes"}))).code == 201
    assert (await wire.post(_path(namespace), configmap("judged-b", labels={"judged": "yes"}))).code == 400
    assert (await wire.post("/api/v1/namespaces/default/configmaps", configmap(f"judged-{namespace}"))).code == 201


async def test_a_condition_may_ask_the_authorizer(wire: Wire, namespace: str, hook: Webhook) -> None:
    client = hook.client("/v", lambda request: {"allowed": False})
    may = "authorizer.group('').resource('configmaps').namespace('x').check('breakglass').allowed()"
    conditions = [{"name": "not-trusted", "expression": f"!{may}"}]
    await _configure(
        wire, "Validating", f"{namespace}-a", webhook("v.example.com", client, namespace, matchConditions=conditions)
    )
    assert (await wire.post(_path(namespace), configmap("a"))).code == 201
    headers = {"Impersonate-User": "jane", "Impersonate-Group": "writers"}
    binding = {
        "metadata": {"name": "w"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"},
        "subjects": [{"kind": "Group", "apiGroup": "rbac.authorization.k8s.io", "name": "writers"}],
    }
    await wire.post(f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings", binding)
    assert (await wire.post(_path(namespace), configmap("b"), headers=headers)).code == 400


async def test_subresources_are_judged_only_when_named(wire: Wire, namespace: str, hook: Webhook) -> None:
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments"
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    await wire.post(path, {"metadata": {"name": "d"}, "spec": spec})
    client = hook.client("/v", lambda request: {"allowed": False})
    scale = rule(apiGroups=["apps"], resources=["deployments/scale"])
    await _configure(wire, "Validating", f"{namespace}-a", webhook("v.example.com", client, namespace, rules=[scale]))
    assert (await wire.merge(f"{path}/d", {"spec": {"replicas": 2}})).code == 200
    assert (await wire.merge(f"{path}/d/scale", {"spec": {"replicas": 3}})).code == 400
    [asked] = hook.requests("/v")
    assert (asked["subResource"], asked["kind"]["kind"]) == ("scale", "Scale")
    assert (asked["object"]["spec"], asked["oldObject"]["spec"]) == ({"replicas": 3}, {"replicas": 2})


async def test_judges_of_one_cluster_do_not_judge_another(
    wire: Wire, other: Wire, namespace: str, hook: Webhook
) -> None:
    client = hook.client("/v", lambda request: {"allowed": False})
    await _configure(other, "Validating", f"{namespace}-a", webhook("v.example.com", client, "default"))
    path = "/api/v1/namespaces/default/configmaps"
    assert (await wire.post(path, configmap(f"{namespace}-c"))).code == 201
    assert (await other.post(path, configmap("c"))).code == 400
    await _remove(other, "Validating", f"{namespace}-a")
    assert (await other.post(path, configmap("c"))).code == 201


_HERE = ("127.0.0.1", "localhost", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]")
"""Spellings of this machine."""


async def _failing(wire: Wire, hook: Webhook, url: str) -> str:
    """The error of a write that a webhook at this URL judges."""
    client = {"url": url, "caBundle": hook.ca}
    await _configure(wire, "Validating", "local", webhook("v.example.com", client, "default"))
    answer = await wire.post("/api/v1/namespaces/default/configmaps?dryRun=All", configmap("a"))
    await _remove(wire, "Validating", "local")
    return "" if answer.code == 201 else str(answer.body["message"])


async def test_a_webhook_of_a_logical_cluster_is_not_on_this_machine(hook: Webhook) -> None:
    """The address is checked that is connected to: no spelling and no name evades it."""
    hook.client("/v", lambda request: {"allowed": True})
    async with running_apiserver(settings=ApiServerSettings(), clusters=["tenant"]) as server:
        async with connected(server.cluster_url("tenant"), server.token, server.tls()) as wire:
            for host in _HERE:
                said = await _failing(wire, hook, f"https://{host}:{hook.port}/v")
                assert said.endswith("webhooks of logical clusters may not be on this machine or its link"), host
            assert "or its link" in await _failing(wire, hook, "https://169.254.169.254/latest/meta-data")
            assert hook.asked == []
        async with connected(server.url, server.token, server.tls()) as wire:
            assert await _failing(wire, hook, f"https://127.0.0.1:{hook.port}/v") == ""


async def test_a_setting_allows_this_machine_and_no_metadata_service(hook: Webhook) -> None:
    hook.client("/v", lambda request: {"allowed": True})
    async with (
        running_apiserver(
            settings=ApiServerSettings(local_webhooks=frozenset({"tenant"})), clusters=["tenant"]
        ) as server,
        connected(server.cluster_url("tenant"), server.token, server.tls()) as wire,
    ):
        assert await _failing(wire, hook, f"https://127.0.0.1:{hook.port}/v") == ""
        assert "or its link" in await _failing(wire, hook, "https://169.254.169.254/latest/meta-data")


async def test_little_of_an_answer_that_is_no_review_is_shown(wire: Wire, namespace: str, hook: Webhook) -> None:
    """client-go shows text alone, and 2,048 bytes of it."""
    secret = "c4n4ry"
    answers = {
        "/json": web.Response(status=500, text=secret, content_type="application/json"),
        "/text": web.Response(status=500, text="x" * 2048 + secret),
        "/kind": web.json_response({"apiVersion": "v1", "kind": "x" * 4096 + secret, "response": {"uid": ""}}),
    }
    for path, answer in answers.items():
        client = hook.client(path, lambda request, answer=answer: answer)
        await _configure(wire, "Validating", namespace, webhook("v.example.com", client, namespace))
        refused = await wire.post(_path(namespace), configmap("a"))
        assert refused.code == 500, path
        assert secret not in str(refused.body), path
        assert len(refused.message) < 2500, path
        await _remove(wire, "Validating", namespace)
