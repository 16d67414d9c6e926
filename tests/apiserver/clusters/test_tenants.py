"""Tenants: events in one logical cluster have no effect on another."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.apiserver.admission.scripted import Webhook, configuration, patch, rule, scripted_webhook, webhook
from tests.apiserver.wire import Wire, configmap, connected

from hortus.testing.apiserver import TestServer, started_apiserver

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
ROLES = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
VALIDATING = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
SECONDS = 25.0
"""For what takes milliseconds unless somebody is in the way: a webhook that hangs is in the way for 30 s."""


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    with started_apiserver(clusters=["mallory", "alice"]) as running:
        yield running


@pytest.fixture
async def mallory(server: TestServer) -> AsyncIterator[Wire]:
    async with connected(server.cluster_url("mallory"), server.token, server.tls()) as found:
        yield found


@pytest.fixture
async def alice(server: TestServer) -> AsyncIterator[Wire]:
    async with connected(server.cluster_url("alice"), server.token, server.tls()) as found:
        yield found


@pytest.fixture
async def hook(tmp_path: Path) -> AsyncIterator[Webhook]:
    async with scripted_webhook(tmp_path) as found:
        yield found


def reference(owner: dict[str, Any], **more: Any) -> dict[str, Any]:
    metadata = owner["metadata"]
    found = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return found | more


async def gone(wire: Wire, path: str) -> None:
    await _until(wire, path, lambda code, body: code == 404)


async def _until(wire: Wire, path: str, holds: Callable[[int, Any], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not holds(*(await wire.get(path))[:2]):
            pass


BORN = [
    "/api/v1/namespaces/kube-system",
    "/api/v1/namespaces/default/serviceaccounts/default",
    f"{ROLES}/view",
    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/cluster-admin",
]


async def test_born_objects_have_uids_of_their_own(wire_of: Callable[[str], Awaitable[Wire]]) -> None:
    uids = set()
    for cluster in ("root", "mallory", "alice"):
        wire = await wire_of(cluster)
        for path in BORN:
            first, again = await wire.get(path), await wire.get(path)
            assert first.body == again.body
            uids.add(first.body["metadata"]["uid"])
    assert len(uids) == 3 * len(BORN)


@pytest.fixture
async def wire_of(server: TestServer) -> AsyncIterator[Callable[[str], Awaitable[Wire]]]:
    async with contextlib.AsyncExitStack() as stack:

        async def make(cluster: str) -> Wire:
            return await stack.enter_async_context(connected(server.cluster_url(cluster), server.token, server.tls()))

        yield make


async def test_a_deletion_frees_no_dependents_elsewhere(mallory: Wire, alice: Wire) -> None:
    """Anybody who learns a uid may write it into his own objects."""
    owner = (await alice.post(CONFIGMAPS, configmap("owner"))).body
    await alice.post(CONFIGMAPS, configmap("kept", ownerReferences=[reference(owner)]))
    await mallory.post(CONFIGMAPS, configmap("taken", ownerReferences=[reference(owner)]))
    await gone(mallory, f"{CONFIGMAPS}/taken")
    assert (await alice.delete(f"{CONFIGMAPS}/owner", {"propagationPolicy": "Orphan"})).code == 200
    await gone(alice, f"{CONFIGMAPS}/owner")
    assert "ownerReferences" not in (await alice.get(f"{CONFIGMAPS}/kept")).body["metadata"]


@pytest.mark.parametrize("propagation", ["Orphan", "Foreground"])
async def test_a_deletion_touches_no_namesakes_dependents(mallory: Wire, alice: Wire, propagation: str) -> None:
    """`view` is in all clusters; its dependents here are not those there."""
    for wire in (alice, mallory):
        role = (await wire.get(f"{ROLES}/view")).body
        owned = {"apiVersion": "v1", "kind": "ConfigMap"} | configmap(
            f"of-view-{propagation.lower()}", ownerReferences=[reference(role, blockOwnerDeletion=True)]
        )
        made = await wire.post(CONFIGMAPS, owned)
        assert made.code == 201, made.body
    path = f"{CONFIGMAPS}/of-view-{propagation.lower()}"
    await mallory.merge(path, {"metadata": {"finalizers": ["example.org/stay"]}})
    saved = (await alice.get(f"{ROLES}/view")).body
    assert (await alice.delete(f"{ROLES}/view", {"propagationPolicy": propagation})).code == 200
    await gone(alice, f"{ROLES}/view")
    theirs = (await mallory.get(path)).body["metadata"]
    assert theirs["ownerReferences"] and "deletionTimestamp" not in theirs
    del saved["metadata"]["resourceVersion"], saved["metadata"]["uid"]
    assert (await alice.post(ROLES, saved)).code == 201
    await alice.delete(path)


async def test_dependents_elsewhere_do_not_block_a_deletion(mallory: Wire, alice: Wire) -> None:
    owner = (await alice.post(CONFIGMAPS, configmap("blocked"))).body
    held = configmap(
        "holding", ownerReferences=[reference(owner, blockOwnerDeletion=True)], finalizers=["example.org/stay"]
    )
    for wire, namespace in ((mallory, "default"), (alice, "kube-public")):
        made = await wire.post(f"/api/v1/namespaces/{namespace}/configmaps", held)
        assert made.code == 201, made.body
    assert (await alice.delete(f"{CONFIGMAPS}/blocked", {"propagationPolicy": "Foreground"})).code == 200
    await gone(alice, f"{CONFIGMAPS}/blocked")


# Webhooks that hang.


async def asked(hook: Webhook) -> None:
    async with asyncio.timeout(SECONDS):
        while not hook.asked:
            await asyncio.sleep(0)


async def test_garbage_is_collected_while_a_webhook_hangs(mallory: Wire, alice: Wire, hook: Webhook) -> None:
    client = hook.client("/hang", lambda request: hook.hang())
    rules = [rule(operations=["DELETE"], resources=["configmaps"])]
    slow = webhook("hang.example.org", client, "default", rules=rules, timeoutSeconds=30)
    await mallory.post(VALIDATING, configuration("Validating", "hang", slow))
    for wire in (mallory, alice):
        dead = {"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody", "uid": "none"}
        await wire.post(CONFIGMAPS, configmap("orphan", ownerReferences=[dead]))
        if wire is mallory:
            await asked(hook)
    await gone(alice, f"{CONFIGMAPS}/orphan")
    assert (await mallory.get(f"{CONFIGMAPS}/orphan")).code == 200
    await mallory.delete(f"{VALIDATING}/hang")


async def test_namespaces_of_others_end_while_a_webhook_hangs(mallory: Wire, alice: Wire, hook: Webhook) -> None:
    client = hook.client("/hang", lambda request: hook.hang())
    rules = [rule(operations=["DELETE"], resources=["configmaps"])]
    slow = webhook("hang.example.org", client, "ending", rules=rules, timeoutSeconds=30)
    await mallory.post(VALIDATING, configuration("Validating", "ending", slow))
    for wire in (mallory, alice):
        await wire.post("/api/v1/namespaces", {"metadata": {"name": "ending"}})
        await wire.post("/api/v1/namespaces/ending/configmaps", configmap("a"))
    assert (await mallory.delete("/api/v1/namespaces/ending")).code == 200
    await asked(hook)
    assert (await alice.delete("/api/v1/namespaces/ending")).code == 200
    await gone(alice, "/api/v1/namespaces/ending")
    assert (await mallory.get("/api/v1/namespaces/ending/configmaps/a")).code == 200
    await mallory.delete(f"{VALIDATING}/ending")


def bed(group: str) -> dict[str, Any]:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]
    names = {"plural": "beds", "kind": "Bed"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"beds.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": versions},
    }


async def test_definitions_of_others_end_while_a_webhook_hangs(mallory: Wire, alice: Wire, hook: Webhook) -> None:
    crds, beds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/a.example/v1/namespaces/default/beds"
    client = hook.client("/beds", lambda request: hook.hang())
    rules = [rule(operations=["DELETE"], apiGroups=["a.example"], resources=["beds"])]
    slow = webhook("beds.example.org", client, "default", rules=rules, timeoutSeconds=30)
    for wire in (mallory, alice):
        assert (await wire.post(crds, bed("a.example"))).code == 201
        made = await wire.post(beds, {"apiVersion": "a.example/v1", "kind": "Bed", "metadata": {"name": "a"}})
        assert made.code == 201, made.body
    await mallory.post(VALIDATING, configuration("Validating", "beds", slow))
    assert (await mallory.delete(f"{crds}/beds.a.example")).code == 200
    await asked(hook)
    assert (await alice.delete(f"{crds}/beds.a.example")).code == 200
    await gone(alice, f"{crds}/beds.a.example")
    assert (await mallory.get(f"{crds}/beds.a.example")).code == 200
    await mallory.delete(f"{VALIDATING}/beds")


async def test_a_definition_that_serves_nothing_ends_with_its_objects(alice: Wire) -> None:
    crds, beds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/u.example/v1/namespaces/default/beds"
    assert (await alice.post(crds, bed("u.example"))).code == 201
    made = await alice.post(beds, {"apiVersion": "u.example/v1", "kind": "Bed", "metadata": {"name": "a"}})
    assert made.code == 201, made.body
    hidden = await alice.json_patch(
        f"{crds}/beds.u.example", [{"op": "replace", "path": "/spec/versions/0/served", "value": False}]
    )
    assert hidden.code == 200, hidden.body
    assert (await alice.get(beds)).code == 404
    assert (await alice.delete(f"{crds}/beds.u.example")).code == 200
    await gone(alice, f"{crds}/beds.u.example")
    assert (await alice.post(crds, bed("u.example"))).code == 201
    assert (await alice.get(beds)).body["items"] == []


async def test_the_namespace_controller_skips_refused_deletions(mallory: Wire, hook: Webhook) -> None:
    await mallory.post("/api/v1/namespaces", {"metadata": {"name": "mixed"}})
    client = hook.client("/no", lambda request: {"allowed": False, "status": {"message": "no"}})
    rules = [rule(operations=["DELETE"], resources=["configmaps"])]
    await mallory.post(
        VALIDATING, configuration("Validating", "no", webhook("no.example.org", client, "mixed", rules=rules))
    )
    await mallory.post("/api/v1/namespaces/mixed/configmaps", configmap("refused"))
    await mallory.post("/api/v1/namespaces/mixed/secrets", {"metadata": {"name": "let-go"}})
    await mallory.delete("/api/v1/namespaces/mixed")
    await gone(mallory, "/api/v1/namespaces/mixed/secrets/let-go")
    assert (await mallory.get("/api/v1/namespaces/mixed/configmaps/refused")).code == 200
    await mallory.delete(f"{VALIDATING}/no")
    await gone(mallory, "/api/v1/namespaces/mixed")


async def test_calls_of_one_cluster_leave_room_for_those_of_others(
    server: TestServer, mallory: Wire, wire_of: Callable[[str], Awaitable[Wire]], alice: Wire, hook: Webhook
) -> None:
    """More calls hang than aiohttp would have open in all (100)."""
    hang = hook.client("/hang", lambda request: hook.hang())
    allow = hook.client("/allow", lambda request: patch())
    mutating = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    for wire, client, seconds in ((mallory, hang, 30), (alice, allow, 5)):
        calling = webhook("m.example.org", client, "default", timeoutSeconds=seconds)
        made = await wire.post(mutating, configuration("Mutating", "m", calling))
        assert made.code == 201, made.body
    clients = [mallory, await wire_of("mallory")]
    calls = [
        asyncio.create_task(clients[number % 2].post(CONFIGMAPS, configmap(f"held-{number}"))) for number in range(110)
    ]
    theirs = server.server.clusters.get("mallory")
    assert theirs is not None
    async with asyncio.timeout(SECONDS):
        while theirs.requests < len(calls):
            await alice.get("/version")
    for number in range(5):
        answer = await asyncio.wait_for(alice.post(CONFIGMAPS, configmap(f"quick-{number}")), SECONDS)
        assert answer.code == 201, answer.body
    hook.released.set()
    for call in calls:
        call.cancel()
    await asyncio.gather(*calls, return_exceptions=True)
    for wire in (mallory, alice):
        await wire.delete(f"{mutating}/m")


async def test_names_that_are_not_answered_hold_no_threads_of_others(
    mallory: Wire, alice: Wire, hook: Webhook, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop's own threads read large YAML, among other things; there are as few as four."""
    released, really = threading.Event(), socket.getaddrinfo

    def lookup(host: Any, *arguments: Any, **named: Any) -> Any:
        if host == "never.example.org":
            released.wait(30)
            raise socket.gaierror(socket.EAI_AGAIN, "no answer")
        return really("127.0.0.1" if host == "quick.example.org" else host, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    never = {"url": "https://never.example.org/"}
    slow = webhook("never.example.org", never, "default", timeoutSeconds=1)
    await mallory.post(VALIDATING, configuration("Validating", "never", slow))
    try:
        calls = [mallory.post(CONFIGMAPS, configmap(f"lost-{number}")) for number in range(80)]
        assert {answer.code for answer in await asyncio.gather(*calls)} == {500}
        body = b'metadata: {name: large}\ndata:\n  text: "%s"\n' % (b"x" * 400_000)
        yaml = await asyncio.wait_for(alice.post(CONFIGMAPS, body, content_type="application/yaml"), SECONDS)
        assert yaml.code == 201, yaml.body
        named = {**hook.client("/named", lambda request: {"allowed": True})}
        named["url"] = named["url"].replace("127.0.0.1", "quick.example.org")
        calling = webhook("quick.example.org", named, "default", timeoutSeconds=5)
        await alice.post(VALIDATING, configuration("Validating", "quick", calling))
        refused = await asyncio.wait_for(alice.post(CONFIGMAPS, configmap("b")), SECONDS)
        assert "failed to verify certificate" in refused.message, "the name was looked up, its certificate is another's"
    finally:
        released.set()
        await mallory.delete(f"{VALIDATING}/never")
        await alice.delete(f"{VALIDATING}/quick")


async def test_a_sum_of_roles_that_is_too_large_stops_nobody(mallory: Wire, alice: Wire) -> None:
    """Each part may be stored, the sum may not."""
    for number in range(2):
        rules = [
            {
                "apiGroups": [""],
                "resources": ["pods"],
                "verbs": ["get"],
                "resourceNames": [f"{number}-{i}-" + "x" * 1000],
            }
            for i in range(900)
        ]
        labels = {"sum": "yes"}
        made = await mallory.post(ROLES, {"metadata": {"name": f"part-{number}", "labels": labels}, "rules": rules})
        assert made.code == 201, made.body
    summed = {"clusterRoleSelectors": [{"matchLabels": {"sum": "yes"}}]}
    made = await mallory.post(ROLES, {"metadata": {"name": "all"}, "aggregationRule": summed})
    assert made.code == 201, made.body
    small = {"clusterRoleSelectors": [{"matchLabels": {"sum": "small"}}]}
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    for wire in (mallory, alice):
        await wire.post(ROLES, {"metadata": {"name": "small-part", "labels": {"sum": "small"}}, "rules": rules})
        await wire.post(ROLES, {"metadata": {"name": "small"}, "aggregationRule": small})
        await _until(wire, f"{ROLES}/small", lambda code, body: body.get("rules") == rules)
