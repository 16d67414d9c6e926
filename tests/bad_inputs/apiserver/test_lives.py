"""Lives of objects led astray: floods of deletions, owners in circles, finalizers of others, namespaces that end."""

from __future__ import annotations

import asyncio
import base64
import itertools
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from tests.apiserver.wire import Answer, Wire, configmap
from tests.bad_inputs.apiserver.attacked import Target

JSON = "Content-Type: application/json"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
_NUMBERS = itertools.count()

pytestmark = pytest.mark.usefixtures("bystander")


@pytest.fixture(autouse=True)
def _memory(target: Target) -> Iterator[None]:
    with target.grows_less_than(96):
        yield


@pytest.fixture
async def namespace(wire: Wire) -> str:
    name = f"lives-{next(_NUMBERS)}"
    assert (await wire.post("/api/v1/namespaces", {"metadata": {"name": name}})).code == 201
    return name


@pytest.fixture
def configmaps(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


async def test_a_flood_of_deletions_of_a_collection_that_is_being_filled(wire: Wire, configmaps: str) -> None:
    async def fill(worker: int) -> set[int]:
        return {(await wire.post(configmaps, configmap(f"c{worker}-{number}"))).code for number in range(50)}

    async def flood() -> set[int]:
        return {(await wire.delete(f"{configmaps}?labelSelector=!kept")).code for _ in range(25)}

    codes = await asyncio.gather(*map(fill, range(4)), *[flood() for _ in range(8)])
    assert codes[:4] == [{201}] * 4
    assert codes[4:] == [{200}] * 8
    assert (await wire.delete(configmaps)).code == 200
    assert (await wire.get(configmaps)).body["items"] == []


async def test_a_collection_is_deleted_by_nobody_without_the_right(target: Target, wire: Wire, configmaps: str) -> None:
    await wire.post(configmaps, configmap("kept"))
    for headers in (("Impersonate-User: eve",), ("Impersonate-User: eve", "Impersonate-Group: devs")):
        for query in ("", "?dryRun=All", "?fieldSelector=metadata.name=kept", "?limit=1", "?timeoutSeconds=1"):
            answer = await target.ask(f"DELETE {configmaps}{query} HTTP/1.1", *headers)
            assert answer.verdict == (403, "Forbidden"), query
    assert (await wire.get(f"{configmaps}/kept")).code == 200


_OPTIONS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "a negative grace period": ({"gracePeriodSeconds": -1}, (200, 422)),
    "a grace period beyond 64 bits": ({"gracePeriodSeconds": 1 << 63}, (400,)),
    "no policy that exists": ({"propagationPolicy": "Explode"}, (422,)),
    "two policies": ({"propagationPolicy": "Orphan", "orphanDependents": True}, (422,)),
    "a precondition of another": ({"preconditions": {"uid": "x"}}, (409,)),
    "a precondition that is none": ({"preconditions": {"uid": 1}}, (400,)),
    "a dry run of nothing": ({"dryRun": ["Some"]}, (422,)),
    "another kind": ({"apiVersion": "v1", "kind": "Pod"}, (400,)),
    "a list": ([], (400,)),
}


@pytest.mark.parametrize("options,codes", _OPTIONS.values(), ids=_OPTIONS)
async def test_options_of_deletion_that_make_no_sense(
    wire: Wire, configmaps: str, options: Any, codes: tuple[int, ...]
) -> None:
    await wire.post(configmaps, configmap("a", finalizers=["x.io/held"]))
    answer = await wire.delete(f"{configmaps}/a", options)
    assert answer.code in codes, answer.body
    if answer.code >= 400:
        assert answer.body["kind"] == "Status"
        assert "deletionTimestamp" not in (await wire.get(f"{configmaps}/a")).body["metadata"]


async def _robot(wire: Wire, namespace: str, rules: list[dict[str, Any]]) -> list[str]:
    """Headers of a user who may do just that in the namespace."""
    rbac = f"{RBAC}/namespaces/{namespace}"
    assert (await wire.post(f"{rbac}/roles", {"metadata": {"name": "robot"}, "rules": rules})).code == 201
    binding = {
        "metadata": {"name": "robot"},
        "subjects": [{"kind": "User", "name": "robot", "apiGroup": "rbac.authorization.k8s.io"}],
        "roleRef": {"kind": "Role", "name": "robot", "apiGroup": "rbac.authorization.k8s.io"},
    }
    assert (await wire.post(f"{rbac}/rolebindings", binding)).code == 201
    return ["Impersonate-User: robot"]


async def test_finalizers_are_taken_by_nobody_without_the_right(
    target: Target, wire: Wire, namespace: str, configmaps: str
) -> None:
    """A user who may only read, create and delete cannot change a marked object through any endpoint."""
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list", "create", "delete"]}]
    robot = await _robot(wire, namespace, rules)
    await wire.post(configmaps, configmap("held", finalizers=["x.io/held"]))
    path = f"{configmaps}/held"
    assert (await target.ask(f"DELETE {path} HTTP/1.1", *robot)).code == 200
    held = (await wire.get(path)).body
    assert held["metadata"]["finalizers"] == ["x.io/held"]
    free = orjson.dumps({**held, "metadata": {**held["metadata"], "finalizers": []}})
    merge, apply = "application/merge-patch+json", "application/apply-patch+yaml"
    for method, media, where in (
        ("PUT", "application/json", path),
        ("PATCH", merge, path),
        ("PATCH", apply, f"{path}?fieldManager=robot&force=true"),
        ("PUT", "application/json", f"/api/v1/namespaces/{namespace}/finalize"),
        ("PATCH", merge, f"/api/v1/namespaces/{namespace}"),
        ("PUT", "application/json", f"/api/v1/namespaces/{namespace}/status"),
    ):
        answer = await target.ask(f"{method} {where} HTTP/1.1", f"Content-Type: {media}", *robot, body=free)
        assert answer.verdict == (403, "Forbidden"), (method, where)
    assert (await target.ask(f"POST {configmaps} HTTP/1.1", JSON, *robot, body=free)).verdict[0] in (409, 500)
    assert (await wire.get(path)).body["metadata"]["finalizers"] == ["x.io/held"]


async def test_the_right_to_the_status_gives_none_to_labels_of_others_or_finalizers(
    target: Target, wire: Wire, namespace: str
) -> None:
    """The status endpoint of custom resources writes the status alone."""
    group = f"lives{next(_NUMBERS)}.evil.io"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    spec = {"group": group, "scope": "Namespaced", "names": {"plural": "lives", "kind": "Life"}, "versions": [version]}
    crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert (await wire.post(crds, {"metadata": {"name": f"lives.{group}"}, "spec": spec})).code == 201
    path = f"/apis/{group}/v1/namespaces/{namespace}/lives"
    metadata = {"name": "a", "finalizers": ["x.io/held"]}
    made = await wire.post(path, {"apiVersion": f"{group}/v1", "kind": "Life", "metadata": metadata, "spec": 1})
    assert made.code == 201, made.body
    rules = [{"apiGroups": [group], "resources": ["lives/status"], "verbs": ["update", "patch"]}]
    robot = await _robot(wire, namespace, rules)
    body = orjson.dumps({"metadata": {"finalizers": None, "labels": {"a": "b"}}, "spec": 2, "status": 3})
    merge = "Content-Type: application/merge-patch+json"
    assert (await target.ask(f"PATCH {path}/a HTTP/1.1", merge, *robot, body=body)).verdict == (403, "Forbidden")
    assert (await target.ask(f"PATCH {path}/a/status HTTP/1.1", merge, *robot, body=body)).code == 200
    left = (await wire.get(f"{path}/a")).body
    assert (left["spec"], left["status"], left["metadata"]["finalizers"]) == (1, 3, ["x.io/held"])
    assert "labels" not in left["metadata"]
    assert (await wire.merge(f"{path}/a", {"metadata": {"finalizers": None}})).code == 200


def _owner(made: Answer, **changes: Any) -> dict[str, Any]:
    metadata = made.body["metadata"]
    reference = {"apiVersion": "v1", "kind": made.body["kind"], "name": metadata["name"], "uid": metadata["uid"]}
    return {**reference, "blockOwnerDeletion": True, **changes}


async def _deleted(wire: Wire, path: str, policy: str, *names: str) -> None:
    """Delete the first and wait until none of the names is left."""
    async with wire.watch(f"{path}?watch=true") as events:
        left = set(names)
        assert (await wire.delete(f"{path}/{names[0]}", {"propagationPolicy": policy})).code == 200
        while left:
            event = await events.next()
            if event["type"] == "DELETED":
                left.discard(event["object"]["metadata"]["name"])


@pytest.mark.parametrize("policy", ["Foreground", "Background"])
async def test_owners_in_a_circle_go_together(wire: Wire, configmaps: str, policy: str) -> None:
    names = ["a", "b", "c"]
    made = [await wire.post(configmaps, configmap(name)) for name in names]
    for place, name in enumerate(names):
        owners = [_owner(made[place - 1])]
        assert (await wire.merge(f"{configmaps}/{name}", {"metadata": {"ownerReferences": owners}})).code == 200
    await _deleted(wire, configmaps, policy, "a", "c", "b")


@pytest.mark.parametrize("policy", ["Foreground", "Background", "Orphan"])
async def test_who_owns_itself_can_go(wire: Wire, configmaps: str, policy: str) -> None:
    made = await wire.post(configmaps, configmap("self"))
    await wire.merge(f"{configmaps}/self", {"metadata": {"ownerReferences": [_owner(made)]}})
    await _deleted(wire, configmaps, policy, "self")
    assert (await wire.get(f"{configmaps}/self")).code == 404


async def test_a_thousand_owners_of_one_object_are_looked_for(wire: Wire, configmaps: str) -> None:
    owner = await wire.post(configmaps, configmap("owner"))
    owners = [_owner(owner), *[_owner(owner, name=f"no-{number}", uid=f"no-{number}") for number in range(1000)]]
    owned = [f"owned-{number}" for number in range(20)]
    for name in owned:
        assert (await wire.post(configmaps, configmap(name, ownerReferences=owners))).code == 201
    await _deleted(wire, configmaps, "Background", "owner", *owned)


async def test_an_owner_in_another_namespace_is_none(wire: Wire, namespace: str, configmaps: str) -> None:
    """An object that names such an owner is deleted at once, because the owner is not there; the other namespace's is
    kept."""
    foreign = await wire.post("/api/v1/namespaces/default/configmaps", configmap(f"foreign-{namespace}"))
    async with wire.watch(f"{configmaps}?watch=true") as events:
        assert (await wire.post(configmaps, configmap("a", ownerReferences=[_owner(foreign)]))).code == 201
        while (await events.next())["type"] != "DELETED":
            pass
    left = await wire.get(f"/api/v1/namespaces/default/configmaps/foreign-{namespace}")
    assert left.body["metadata"]["uid"] == foreign.body["metadata"]["uid"]


_OWNERS: dict[str, dict[str, Any]] = {
    "no uid": {"uid": ""},
    "no name": {"name": ""},
    "no version": {"apiVersion": ""},
    "a version that is none": {"apiVersion": "a/b/c"},
    "an event": {"kind": "Event"},
    "a uid that is a number": {"uid": 1},
    "a block that is a text": {"blockOwnerDeletion": "yes"},
}


@pytest.mark.parametrize("change", _OWNERS.values(), ids=_OWNERS)
async def test_owners_that_are_none(wire: Wire, configmaps: str, change: dict[str, Any]) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"} | change
    answer = await wire.post(configmaps, configmap("owned", ownerReferences=[owner]))
    assert (answer.code, answer.body["kind"]) in ((422, "Status"), (400, "Status")), answer.body


async def test_two_controllers_of_one_object(wire: Wire, configmaps: str) -> None:
    made = await wire.post(configmaps, configmap("controller"))
    owners = [_owner(made, controller=True), _owner(made, controller=True, name="x", uid="x")]
    assert (await wire.post(configmaps, configmap("a", ownerReferences=owners))).code == 422


async def test_owners_of_kinds_that_do_not_exist_leave_the_object(wire: Wire, configmaps: str) -> None:
    owner = {"apiVersion": "nowhere.io/v1", "kind": "Nothing", "name": "x", "uid": "x"}
    assert (await wire.post(configmaps, configmap("owned", ownerReferences=[owner]))).code == 201
    assert (await wire.get(f"{configmaps}/owned")).code == 200


async def test_a_namespace_that_ends_while_it_is_filled_ends(wire: Wire, namespace: str, configmaps: str) -> None:
    begun = asyncio.Event()

    async def fill(worker: int) -> set[tuple[int, str]]:
        found = set()
        for number in itertools.count():
            answer = await wire.post(configmaps, configmap(f"c{worker}-{number}"))
            found.add((answer.code, answer.body.get("reason", "")))
            if number == 5:
                begun.set()
            if answer.code != 201:
                return found
        raise AssertionError

    async with wire.watch(f"/api/v1/namespaces?watch=true&fieldSelector=metadata.name={namespace}") as events:
        filling = [asyncio.create_task(fill(worker)) for worker in range(16)]
        await begun.wait()
        assert (await wire.delete(f"/api/v1/namespaces/{namespace}")).code == 200
        for codes in await asyncio.gather(*filling):
            assert codes <= {(201, ""), (403, "Forbidden"), (404, "NotFound")}
        while (await events.next())["type"] != "DELETED":
            pass
    assert (await wire.get("/api/v1/configmaps?fieldSelector=metadata.namespace=" + namespace)).body["items"] == []


@pytest.mark.parametrize("limit", ["-1", "1.5", "x", "9" * 30, "0x10", "", "%00", "1&limit=x"])
async def test_limits_that_are_none(target: Target, wire: Wire, configmaps: str, limit: str) -> None:
    await wire.post(configmaps, configmap("a"))
    answer = await target.ask(f"GET {configmaps}?limit={limit} HTTP/1.1")
    assert answer.code in (200, 400, 422), answer.body
    if answer.code == 200:
        assert [item["metadata"]["name"] for item in answer.status["items"]] == ["a"]


async def test_a_continuation_of_one_place_leads_to_no_other(target: Target, wire: Wire, configmaps: str) -> None:
    for number in range(4):
        await wire.post(configmaps, configmap(f"c{number}"))
    page = (await wire.get(f"{configmaps}?limit=2")).body
    token = page["metadata"]["continue"]
    for path in ("/api/v1/namespaces/kube-system/secrets", "/api/v1/secrets", "/clusters/a/api/v1/configmaps"):
        answer = await target.ask(f"GET {path}?limit=2&continue={token} HTTP/1.1")
        assert answer.code in (200, 400, 401, 410), path
        assert '"name":"c2"' not in answer.body.decode(), path  # certificates in ConfigMaps may have these letters
    padded = base64.urlsafe_b64decode(token + "==")
    for place in range(len(padded)):
        altered = padded[:place] + bytes([padded[place] ^ 1]) + padded[place + 1 :]
        forged = base64.urlsafe_b64encode(altered).rstrip(b"=").decode()
        answer = await target.ask(f"GET {configmaps}?limit=2&continue={forged} HTTP/1.1")
        assert answer.code in (200, 400, 410, 504), altered
        if answer.code == 200:
            assert {item["metadata"]["namespace"] for item in answer.status["items"]} <= {configmaps.split("/")[4]}
