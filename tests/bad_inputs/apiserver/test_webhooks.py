"""Webhooks of admission and conversion that hang, lie, flood or redirect: the writer gets an error, others are
unaffected."""

from __future__ import annotations

import asyncio
import base64
import gzip
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web
from tests.apiserver.admission.scripted import Webhook, configuration, patch, scripted_webhook, webhook
from tests.apiserver.wire import Answer, Wire, configmap
from tests.bad_inputs.apiserver.attacked import Target

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MIB = 1 << 20
_NUMBERS = itertools.count()

pytestmark = pytest.mark.usefixtures("bystander")


@pytest.fixture(autouse=True)
def _memory(target: Target) -> Iterator[None]:
    with target.grows_less_than(128):
        yield


@pytest.fixture
async def hook(tmp_path: Path) -> AsyncIterator[Webhook]:
    async with scripted_webhook(tmp_path) as found:
        yield found


class Judged:
    """A namespace whose config maps a webhook judges: the fixture `hook`, answering as `answers` says."""

    def __init__(self, wire: Wire, hook: Webhook, namespace: str) -> None:
        self.wire = wire
        self.namespace = namespace
        self.configmaps = f"/api/v1/namespaces/{namespace}/configmaps"
        self._hook = hook

    async def by(self, kind: str, answer: Callable[[Any], Any], **more: Any) -> None:
        client = self._hook.client("/judge", answer)
        hooks = webhook("judge.evil.io", client, self.namespace, **more)
        path = f"{ADMISSION}/{kind.lower()}webhookconfigurations"
        made = await self.wire.post(path, configuration(kind, self.namespace, hooks))
        assert made.code == 201, made.body

    async def write(self) -> Answer:
        return await self.wire.post(self.configmaps, configmap("judged"))


@pytest.fixture
async def judged(wire: Wire, hook: Webhook) -> AsyncIterator[Judged]:
    name = f"judged-{next(_NUMBERS)}"
    assert (await wire.post("/api/v1/namespaces", {"metadata": {"name": name}})).code == 201
    yield Judged(wire, hook, name)
    for plural in ("validatingwebhookconfigurations", "mutatingwebhookconfigurations"):
        assert (await wire.delete(f"{ADMISSION}/{plural}/{name}")).code in (200, 404)


def _whole(body: bytes, status: int = 200, **headers: str) -> Callable[[Any], web.Response]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda request: web.Response(body=body, status=status, headers=named)


def _review(request: Any, **response: Any) -> web.Response:
    answer = {"uid": request["uid"], "allowed": True, **response}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}
    return web.Response(body=orjson.dumps(review))


_GARBAGE: dict[str, Callable[[Any], Any]] = {
    "nothing": _whole(b""),
    "bytes": _whole(bytes(range(256)) * 64),
    "a number": _whole(b"1e400"),
    "a hundred thousand lists": _whole(b"[" * 100_000),
    "much that is packed": _whole(b"", Content_Encoding="gzip"),
    "nine megabytes": _whole(b" " * (9 * MIB)),
    "an error of nine megabytes": _whole(b"x" * (9 * MIB), 500),
    "a head without end": _whole(b"{}", X=f"{'x' * 100_000}"),
    "elsewhere": _whole(b"", 307, Location="https://127.0.0.1:1/"),
    "a success without a body": _whole(b"", 204),
    "a null": _whole(b"null"),
    "allowed by a text": lambda request: _review(request, allowed="true"),
    "warnings that are numbers": lambda request: _review(request, warnings=[1, 2]),
    "a status that is a list": lambda request: _review(request, allowed=False, status=[]),
    "a refusal of 7 MiB": lambda request: _review(request, allowed=False, status={"message": "x" * (7 * MIB)}),
    "a reason of 7 MiB": lambda request: _review(request, allowed=False, status={"reason": "x" * (7 * MIB)}),
    "details of 7 MiB": lambda request: _review(request, allowed=False, status={"details": {"name": "x" * (7 * MIB)}}),
    "a uid of 7 MiB": lambda request: _review(request, uid="x" * (7 * MIB)),
    "a refusal that is a success": lambda request: _review(request, allowed=False, status={"code": 200}),
}


@lru_cache
def _bomb() -> bytes:
    """256 MiB as one."""
    return gzip.compress(b" " * (256 * MIB), compresslevel=1)


async def test_garbage_is_no_judgement(judged: Judged) -> None:
    answers = dict(_GARBAGE)
    answers["much that is packed"] = _whole(_bomb(), Content_Encoding="gzip")
    chosen = iter(answers.values())
    await judged.by("Validating", lambda request: next(chosen)(request))
    for name in answers:
        answer = await judged.write()
        assert (answer.code, answer.body["kind"]) in ((500, "Status"), (400, "Status")), name
        assert len(orjson.dumps(answer.body)) < 80_000, name
    assert (await judged.wire.get(f"{judged.configmaps}/judged")).code == 404


_LIES: dict[str, list[dict[str, Any]]] = {
    "another name": [{"op": "replace", "path": "/metadata/name", "value": "x"}],
    "another namespace": [{"op": "replace", "path": "/metadata/namespace", "value": "kube-system"}],
    "another uid": [{"op": "add", "path": "/metadata/uid", "value": "00000000-0000-0000-0000-000000000000"}],
    "another version": [{"op": "replace", "path": "/apiVersion", "value": "v2"}],
    "another kind": [{"op": "replace", "path": "/kind", "value": "Secret"}],
    "no metadata": [{"op": "remove", "path": "/metadata"}],
    "a list": [{"op": "replace", "path": "", "value": []}],
    "data that are numbers": [{"op": "add", "path": "/data", "value": {"a": 1}}],
    "a key that is none": [{"op": "add", "path": "/data/..", "value": "x"}],
    "a copy without end": [{"op": "copy", "from": "", "path": f"/x{number}"} for number in range(40)],
    "too much": [{"op": "add", "path": "/data/b", "value": "x" * (2 * MIB)}],
    "too many": [{"op": "add", "path": "/data/b", "value": "x"}] * 10_001,
    "a place beyond": [
        {"op": "add", "path": "/metadata/finalizers", "value": []},
        {"op": "add", "path": "/metadata/finalizers/1000000000", "value": "a.io/b"},
    ],
}


async def test_what_a_webhook_makes_is_the_same_object_and_a_valid_one(judged: Judged) -> None:
    chosen = iter(_LIES.values())
    await judged.by("Mutating", lambda request: patch(*next(chosen)))
    for name in _LIES:
        answer = await judged.write()
        assert (answer.code, answer.body["kind"]) in (
            (500, "Status"),
            (422, "Status"),
            (413, "Status"),
            (400, "Status"),
        ), name
    for kind in ("configmaps", "secrets"):
        left = await judged.wire.get(f"/api/v1/{kind}?fieldSelector=metadata.name=judged")
        assert left.body["items"] == []


async def test_patches_that_are_none(judged: Judged) -> None:
    texts = ["!", base64.b64encode(b"[").decode(), base64.b64encode(b"{}").decode(), base64.b64encode(b"[1]").decode()]
    chosen = iter([*texts, 1, ["a"]])
    await judged.by("Mutating", lambda request: {"allowed": True, "patchType": "JSONPatch", "patch": next(chosen)})
    for _ in range(6):
        answer = await judged.write()
        if answer.code == 201:  # no operation at all
            await judged.wire.delete(f"{judged.configmaps}/judged")
        else:
            assert (answer.code, answer.body["reason"]) == (500, "InternalError"), answer.body


async def test_a_hundred_writes_wait_for_a_webhook_that_hangs_and_nobody_else_does(
    judged: Judged, hook: Webhook
) -> None:
    await judged.by("Validating", lambda request: hook.hang(), timeoutSeconds=1)
    answers = await asyncio.gather(*[judged.write() for _ in range(100)])
    assert {answer.code for answer in answers} == {500}
    assert "context deadline exceeded" in answers[0].message


async def test_a_webhook_that_drips_is_given_up_at_its_timeout(judged: Judged) -> None:
    async def drip(request: Any) -> web.StreamResponse:
        review = _review(request)
        assert isinstance(review.body, bytes)
        return _Dripping(review.body)

    await judged.by("Validating", drip, timeoutSeconds=1)
    assert "context deadline exceeded" in (await judged.write()).message


class _Dripping(web.StreamResponse):
    """A byte when the last one is there, then a tenth of a second of nothing, up to the end of the connection."""

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self._drops = body

    async def prepare(self, request: web.BaseRequest) -> Any:
        writer = await super().prepare(request)
        gone = asyncio.Event()
        for drop in range(len(self._drops)):
            await self.write(self._drops[drop : drop + 1])
            with_nothing = asyncio.create_task(gone.wait())
            await asyncio.wait([with_nothing], timeout=0.1)
            with_nothing.cancel()
        return writer


def _crd(plural: str, client: dict[str, Any]) -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": v, "served": True, "storage": v == "v1", "schema": schema} for v in ("v1", "v2")]
    conversion = {"strategy": "Webhook", "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]}}
    names = {"plural": plural, "kind": plural.capitalize()}
    spec = {"group": "evil.io", "scope": "Cluster", "names": names, "versions": versions, "conversion": conversion}
    return {"metadata": {"name": f"{plural}.evil.io"}, "spec": spec}


@pytest.fixture
async def converted(wire: Wire, hook: Webhook) -> str:
    """The plural of a kind with one object `a` in v1, whose other version the webhook makes."""
    plural = f"converted{next(_NUMBERS)}"
    made = await wire.post(CRDS, _crd(plural, hook.client("/convert", lambda request: hook.hang())))
    assert made.code == 201, made.body
    one = {"apiVersion": "evil.io/v1", "kind": plural.capitalize(), "metadata": {"name": "a"}, "x": 1}
    assert (await wire.post(f"/apis/evil.io/v1/{plural}", one)).code == 201
    return plural


def _converting(**changes: Any) -> Callable[[Any], Any]:
    """An answer with the metadata, or with `whole` the object, changed."""
    whole = changes.pop("whole", {})

    def answer(request: Any) -> Any:
        objects = [
            {**obj, "apiVersion": request["desiredAPIVersion"], "metadata": {**obj["metadata"], **changes}, **whole}
            for obj in request["objects"]
        ]
        return {"convertedObjects": objects, "result": {"status": "Success"}}

    return answer


_NO_JSON = ("nothing", "bytes", "a number", "a hundred thousand lists", "nine megabytes", "elsewhere", "a null")
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    **{name: _GARBAGE[name] for name in _NO_JSON},
    "another name": _converting(name="b"),
    "another namespace": _converting(namespace="kube-system"),
    "another uid": _converting(uid="x"),
    "another name of 7 MiB": _converting(name="x" * (7 * MIB)),
    "another version": _converting(whole={"apiVersion": "evil.io/v3"}),
    "another group": _converting(whole={"apiVersion": "v1"}),
    "another kind": _converting(whole={"kind": "Secret"}),
    "no metadata": _converting(whole={"metadata": None}),
    "labels that are numbers": _converting(labels={"a": 1}),
    "fewer": lambda request: {"convertedObjects": [], "result": {"status": "Success"}},
    "a million": lambda request: {"convertedObjects": [{}] * 1_000_000, "result": {"status": "Success"}},
    "a refusal of 7 MiB": lambda request: {"result": {"status": "Failure", "message": "x" * (7 * MIB)}},
}


async def test_conversions_that_lie_stop_only_their_version(wire: Wire, hook: Webhook, converted: str) -> None:
    bomb = _whole(_bomb(), Content_Encoding="gzip")
    for name, answer in {**_CONVERSIONS, "much that is packed": bomb}.items():
        hook.answers["/convert"] = answer
        for path in (f"/apis/evil.io/v2/{converted}/a", f"/apis/evil.io/v2/{converted}"):
            refused = await wire.get(path)
            assert (refused.code, refused.body["kind"]) == (500, "Status"), name
            assert len(refused.message) < 20_000, name
    assert (await wire.get(f"/apis/evil.io/v1/{converted}/a")).body["x"] == 1
    hook.answers["/convert"] = _converting()
    assert (await wire.get(f"/apis/evil.io/v2/{converted}/a")).body["x"] == 1


async def test_a_conversion_that_hangs_keeps_nobody_else(
    target: Target, wire: Wire, hook: Webhook, converted: str
) -> None:
    asked = [asyncio.create_task(target.ask(f"GET /apis/evil.io/v2/{converted}/a HTTP/1.1")) for _ in range(50)]
    writes = asyncio.create_task(wire.merge(f"/apis/evil.io/v2/{converted}/a", {"x": 2}))
    for _ in range(20):
        assert (await wire.get(f"/apis/evil.io/v1/{converted}")).code == 200
        assert (await wire.merge(f"/apis/evil.io/v1/{converted}/a", {"x": 1})).code == 200
    assert not any(task.done() for task in [*asked, writes])
    hook.answers["/convert"] = _converting()
    hook.released.set()
    for answer in await asyncio.gather(*asked):
        assert answer.code == 500, "the first answer was none"
    assert (await writes).code == 500


_OURSELVES = ("127.0.0.1", "localhost", "LOCALHOST", "127.1", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "2130706433")


@pytest.mark.parametrize("host", _OURSELVES)
async def test_a_webhook_is_never_this_server_by_whatever_name(target: Target, judged: Judged, host: str) -> None:
    """It would review its own calls, or write without anybody's permissions."""
    client = {
        "url": f"https://{host}:{target.port}/api/v1/namespaces",
        "caBundle": base64.b64encode(target.ca.encode()).decode(),
    }
    hooks = webhook("self.evil.io", client, judged.namespace)
    made = await judged.wire.post(
        f"{ADMISSION}/validatingwebhookconfigurations", configuration("Validating", judged.namespace, hooks)
    )
    if made.code == 201:
        assert (await judged.write()).code == 500
    else:
        assert made.code == 422
