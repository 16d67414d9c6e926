"""Patches made to grow, to loop or to lie about who owns what."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import orjson
import pytest
from tests.apiserver.wire import Wire, configmap
from tests.bad_inputs.apiserver.attacked import Reply, Target

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PATCHED = f"{CONFIGMAPS}/patched"
INVALID, BAD_REQUEST, TOO_LARGE = (422, "Invalid"), (400, "BadRequest"), (413, "RequestEntityTooLarge")

pytestmark = pytest.mark.usefixtures("bystander", "unharmed")


@pytest.fixture(autouse=True)
def _memory(target: Target) -> Iterator[None]:
    with target.grows_less_than(192):
        yield


@pytest.fixture
async def unharmed(wire: Wire) -> AsyncIterator[None]:
    """The config map `patched`, whose data no refused patch changes."""
    made = await wire.post(CONFIGMAPS, configmap("patched"))
    assert made.code in (201, 409)
    yield
    left = (await wire.get(PATCHED)).body
    assert left["data"] == {"a": "b"}
    assert (left["apiVersion"], left["kind"], left["metadata"]["name"]) == ("v1", "ConfigMap", "patched")


async def _patch(target: Target, media: str, patch: Any, path: str = PATCHED) -> Reply:
    body = patch if isinstance(patch, bytes) else orjson.dumps(patch)
    return await target.ask(f"PATCH {path} HTTP/1.1", f"Content-Type: application/{media}-patch+json", body=body)


def _add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


def _copy(source: str, path: str) -> dict[str, Any]:
    return {"op": "copy", "from": source, "path": path}


_GROWING: dict[str, list[Any]] = {
    "a list that doubles 40 times": [_add("/x", ["x" * 64]), *[_copy("/x", "/x/-")] * 40],
    "an object that doubles 40 times": [_add("/x", {"y": "x" * 64}), *[_copy("/x", f"/x/z{n}") for n in range(40)]],
    "the whole in itself": [_copy("", f"/data/b{n}") for n in range(40)],
    "a place far beyond": [_add("/metadata/finalizers", []), _add("/metadata/finalizers/1000000000", "x.io/a")],
    "a place beyond any number": [_add("/metadata/finalizers", []), _add("/metadata/finalizers/" + "9" * 5000, "a")],
    "a place before the first": [_add("/metadata/finalizers", []), _add("/metadata/finalizers/-2", "x.io/a")],
    "10,001 operations": [_add("/data/b", "x")] * 10_001,
    "60,000 operations": [{"op": "test", "path": "", "value": 1}] * 60_000,
    "a path of 20,000 parts": [_add("/a" * 20_000, 1)],
    "a move into itself": [{"op": "move", "from": "/data", "path": "/data/x"}],
    "no operation that exists": [{"op": "exec", "path": "/data", "value": "x"}],
    "no path": [{"op": "add", "value": "x"}],
    "the whole removed": [{"op": "remove", "path": ""}],
}


@pytest.mark.parametrize("patch", _GROWING.values(), ids=_GROWING)
async def test_json_patches_that_grow_or_lead_nowhere(target: Target, patch: list[Any]) -> None:
    assert (await _patch(target, "json", patch)).verdict == INVALID


_NO_PATCH = {"a number": 1, "an object": {}, "a list of lists": [[]]}


@pytest.mark.parametrize("patch", _NO_PATCH.values(), ids=_NO_PATCH)
async def test_json_patches_that_are_none(target: Target, patch: Any) -> None:
    assert (await _patch(target, "json", patch)).verdict in (INVALID, BAD_REQUEST)


async def test_a_scalar_in_place_of_the_whole_changes_nothing(target: Target, wire: Wire) -> None:
    """Go's decoder passes over such a document, so that kube-apiserver answers with the object as it was."""
    before = (await wire.get(f"{CONFIGMAPS}/patched")).body
    for value in (None, "x", 1):
        assert (await _patch(target, "json", [{"op": "replace", "path": "", "value": value}])).code == 200
    assert (await _patch(target, "json", None)).code == 200
    assert (await wire.get(f"{CONFIGMAPS}/patched")).body == before


async def test_the_whole_replaced_by_something_else(target: Target) -> None:
    for value in ([], {}, {"kind": "Secret"}, {"metadata": None}, {"metadata": []}):
        code, reason = (await _patch(target, "json", [{"op": "replace", "path": "", "value": value}])).verdict
        assert (code, reason) in (INVALID, BAD_REQUEST, (409, "Conflict")), value


async def test_a_patch_of_what_fits_is_stored_however_it_was_made(target: Target, wire: Wire) -> None:
    """Copies up to the bound: an object of 1 MiB at the most comes of it."""
    assert (await wire.post(CONFIGMAPS, configmap("copied", {"a0": "x" * 100_000}))).code == 201
    patch = [_copy("/data/a0", f"/data/a{number}") for number in range(1, 10)]
    assert (await _patch(target, "json", patch, f"{CONFIGMAPS}/copied")).code == 200
    more = [_copy("/data/a0", f"/data/b{number}") for number in range(10)]
    assert (await _patch(target, "json", more, f"{CONFIGMAPS}/copied")).verdict in (INVALID, TOO_LARGE)


def _nested(levels: int, inner: bytes) -> bytes:
    return b'{"a":' * levels + inner + b"}" * levels


_NULLS = {
    "the metadata": (b'{"metadata":null}', BAD_REQUEST),
    "the name": (b'{"metadata":{"name":null}}', BAD_REQUEST),
    "what it is": (b'{"apiVersion":null,"kind":null}', BAD_REQUEST),
    "the revision": (b'{"metadata":{"resourceVersion":null}}', (409, "Conflict")),
    "a list": (b"[null]", BAD_REQUEST),
    "the whole": (b"null", BAD_REQUEST),
    "too deep": (_nested(5000, b"null"), BAD_REQUEST),
}


@pytest.mark.parametrize("media", ["merge", "strategic-merge"])
@pytest.mark.parametrize("patch,verdict", _NULLS.values(), ids=_NULLS)
async def test_nulls_take_nothing_that_an_object_needs(
    target: Target, media: str, patch: bytes, verdict: tuple[int, str]
) -> None:
    answer = await _patch(target, media, patch)
    if answer.code == 200:
        assert answer.status["metadata"]["name"] == "patched", "what is taken is filled in again"
    else:
        assert answer.verdict == verdict


async def test_two_hundred_thousand_nulls_for_what_is_not_there(target: Target) -> None:
    patch = b'{"data":{%s}}' % b",".join(b'"x%d":null' % number for number in range(200_000))
    for media in ("merge", "strategic-merge"):
        assert (await _patch(target, media, patch)).code == 200, media


_DIRECTIVES: dict[str, dict[str, Any]] = {
    "an order of what is not there": {"data": {"$setElementOrder/x": [1]}},
    "a deletion from a map": {"data": {"$deleteFromPrimitiveList/x": ["a"]}},
    "a patch of no kind": {"data": {"$patch": "explode"}},
    "a patch that is a list": {"data": {"$patch": []}},
    "keys kept that are none": {"data": {"$retainKeys": "a"}},
    "finalizers deleted by numbers": {"metadata": {"$deleteFromPrimitiveList/finalizers": {"a": 1}}},
}


@pytest.mark.parametrize("patch", _DIRECTIVES.values(), ids=_DIRECTIVES)
async def test_strategic_directives_that_make_no_sense(target: Target, patch: dict[str, Any]) -> None:
    answer = await _patch(target, "strategic-merge", patch)
    if answer.code != 200:
        assert answer.verdict in (INVALID, BAD_REQUEST, (500, ""), (500, "InternalError")), answer.body
        assert "TypeError" not in answer.status["message"] and "KeyError" not in answer.status["message"]


async def test_custom_resources_know_no_strategic_merge(target: Target, wire: Wire) -> None:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "patchables", "kind": "Patchable"}
    spec = {"group": "evil.io", "scope": "Cluster", "names": names, "versions": [version]}
    assert (await wire.post(CRDS, {"metadata": {"name": "patchables.evil.io"}, "spec": spec})).code == 201
    path = "/apis/evil.io/v1/patchables"
    one = {"apiVersion": "evil.io/v1", "kind": "Patchable", "metadata": {"name": "a"}}
    assert (await wire.post(path, one)).code == 201
    answer = await _patch(target, "strategic-merge", {"x": 1}, f"{path}/a")
    assert answer.verdict == (415, "UnsupportedMediaType")


def _entry(**changes: Any) -> dict[str, Any]:
    return {
        "manager": "kubectl",
        "operation": "Apply",
        "apiVersion": "v1",
        "time": "2024-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:data": {"f:a": {}}},
        **changes,
    }


_FORGED: dict[str, list[Any]] = {
    "of other managers": [_entry(manager="kubectl"), _entry(manager="kube-controller-manager", operation="Update")],
    "of no operation": [_entry(operation="Delete")],
    "of a foreign version": [_entry(apiVersion="example.com/v9")],
    "of a version that is none": [_entry(apiVersion="a/b/c/d")],
    "of no type": [_entry(fieldsType="FieldsV9")],
    "of no fields": [{"manager": "x"}],
    "of fields that are none": [_entry(fieldsV1={"data": {"a": 1}})],
    "of fields that are a list": [_entry(fieldsV1=["f:data"])],
    "of text": [_entry(fieldsV1='{"f:data":')],
    "of keys that are no JSON": [_entry(fieldsV1={"f:data": {"k:{": {}, "v:[": {}, "i:x": {}}})],
    "of a time that is none": [_entry(time="yesterday")],
    "of numbers": [1, 2],
    "of a manager that is a map": [_entry(manager={})],
    "of a name of 100,000 letters": [_entry(manager="x" * 100_000)],
    "of 100,000 fields": [_entry(fieldsV1={"f:data": {f"f:a{number}": {} for number in range(100_000)}})],
    "of 150 levels": [_entry(fieldsV1=orjson.loads(_nested(150, b"{}").replace(b'"a"', b'"f:a"')))],
    "of 5,000 entries": [_entry(manager=f"m{number}") for number in range(5000)],
}


@pytest.mark.parametrize("fields", _FORGED.values(), ids=_FORGED)
async def test_an_apply_may_not_say_who_owns_what(target: Target, fields: list[Any]) -> None:
    body = orjson.dumps(configmap("patched", managedFields=fields))
    for query in ("fieldManager=eve", "fieldManager=eve&force=true"):
        answer = await target.ask(
            f"PATCH {PATCHED}?{query} HTTP/1.1", "Content-Type: application/apply-patch+yaml", body=body
        )
        assert answer.verdict == BAD_REQUEST


@pytest.mark.parametrize("fields", _FORGED.values(), ids=_FORGED)
async def test_forged_owners_are_refused_or_dropped_and_the_object_can_be_applied_again(
    target: Target, wire: Wire, fields: list[Any]
) -> None:
    answer = await _patch(target, "merge", {"metadata": {"managedFields": fields}})
    if answer.code != 200:
        assert answer.verdict in (BAD_REQUEST, INVALID, TOO_LARGE), answer.body[:300]
    assert (await wire.apply(PATCHED, configmap("patched"), manager="afterwards", force=True)).code == 200
    assert (await wire.merge(PATCHED, {"metadata": {"managedFields": [{}]}})).code == 200, "the way to forget them all"


@pytest.mark.parametrize("manager", ["x" * 129, "a\nb", "%00", "a%00b", "%ff", "%e2%80%8b"])
async def test_managers_of_no_name(target: Target, manager: str) -> None:
    body = orjson.dumps(configmap("patched"))
    path = f"PATCH {PATCHED}?fieldManager={manager}&force=true HTTP/1.1"
    answer = await target.ask(path, "Content-Type: application/apply-patch+yaml", body=body)
    assert answer.verdict in (BAD_REQUEST, INVALID), answer.body


async def test_an_apply_of_a_large_list_of_keys_leaves_room_for_others(target: Target) -> None:
    ports = [{"containerPort": number + 1, "protocol": "TCP"} for number in range(20_000)]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "ported"},
        "spec": {"containers": [{"name": "a", "image": "b", "ports": ports}]},
    }
    for keys in (ports, ports + ports[:1]):
        pod["spec"]["containers"][0]["ports"] = keys  # type: ignore[index]
        path = "PATCH /api/v1/namespaces/default/pods/ported?fieldManager=eve&force=true HTTP/1.1"
        answer = await target.ask(path, "Content-Type: application/apply-patch+yaml", body=orjson.dumps(pod))
        assert answer.code in (201, 413, 422, 500), answer.body[:300]
    assert answer.code != 201, "a key that stands twice"
