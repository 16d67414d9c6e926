"""Malformed HTTP, and valid but hostile HTTP: smuggling, floods of headers, tricks in paths and names."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.wire import Wire, configmap
from tests.bad_inputs.apiserver.attacked import Target

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"
BAD_REQUEST = (400, "BadRequest")

pytestmark = pytest.mark.usefixtures("bystander")


def _post(*headers: bytes, body: bytes = b"0\r\n\r\n") -> bytes:
    return b"\r\n".join([b"POST /version HTTP/1.1", b"Host: x", *headers, b"", body])


CHUNKED, LENGTH = b"Transfer-Encoding: chunked", b"Content-Length: 5"
_NO_HTTP = {
    "garbage": b"\x16\x03garbage\r\n\r\n",
    "HTTP/2 without being asked": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/9.9": b"GET / HTTP/9.9\r\n\r\n",
    "no version": b"GET /version\r\n\r\n",
    "a method of no RFC": b"BREW /version HTTP/1.1\r\nHost: x\r\n\r\n",
    "no host": b"GET /version HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /version HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "bare line feeds": b"GET /version HTTP/1.1\nHost: x\n\n",
    "a bare line feed in a header": b"GET /version HTTP/1.1\r\nHost: x\r\nA: b\nC: d\r\n\r\n",
    "a bare carriage return": b"GET /version HTTP/1.1\r\nHost: x\r\nA: b\rC: d\r\n\r\n",
    "folded headers": b"GET /version HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
    "NUL in a header": b"GET /version HTTP/1.1\r\nHost: x\r\nA: b\0c\r\n\r\n",
    "a space before the colon": _post(b"Content-Length : 5"),
    "a header without a name": b"GET /version HTTP/1.1\r\nHost: x\r\n: y\r\n\r\n",
    "a space in the path": b"GET /ver sion HTTP/1.1\r\nHost: x\r\n\r\n",
    "length and chunks": _post(LENGTH, CHUNKED),
    "chunks and length": _post(CHUNKED, LENGTH),
    "chunks, but not last": _post(b"Transfer-Encoding: chunked, identity"),
    "chunks twice": _post(CHUNKED, b"Transfer-Encoding: identity"),
    "chunks disguised": _post(b"Transfer-Encoding: \x0bchunked", LENGTH),
    "two lengths": _post(LENGTH, b"Content-Length: 6"),
    "a list of lengths": _post(b"Content-Length: 5, 6"),
    "a length with a sign": _post(b"Content-Length: +5"),
    "a negative length": _post(b"Content-Length: -5"),
    "a hexadecimal length": _post(b"Content-Length: 0x5"),
    "a length beyond 64 bits": _post(b"Content-Length: 99999999999999999999"),
    "a header line of a megabyte": _post(b"A: " + b"b" * (1 << 20)),
    "10,000 headers": _post(*[b"A%d: b" % number for number in range(10_000)]),
    "a request line of a megabyte": b"GET /" + b"x" * (1 << 20) + b" HTTP/1.1\r\nHost: x\r\n\r\n",
}


@pytest.mark.parametrize("sent", _NO_HTTP.values(), ids=_NO_HTTP)
async def test_what_is_no_http_is_a_bad_request_and_the_end(target: Target, sent: bytes) -> None:
    with target.grows_less_than(8):
        async with target.socket() as socket:
            await socket.send(sent)
            assert (await socket.reply()).verdict == BAD_REQUEST
            assert await socket.closed()


async def test_a_request_hidden_behind_another_is_not_answered(target: Target) -> None:
    hidden = target.head("DELETE /api/v1/namespaces/kube-public HTTP/1.1")
    for headers in ((LENGTH, CHUNKED), (b"Transfer-Encoding: xchunked",), (b"Transfer-Encoding: identity, chunked ,",)):
        async with target.socket() as socket:
            await socket.send(_post(*headers) + hidden)
            assert (await socket.reply()).code in (400, 401, 403, 405)
            assert await socket.closed(), headers


_BAD_CHUNKS = {
    "a size beyond 64 bits": b"fffffffffffffffff\r\n",
    "a negative size": b"-1\r\n",
    "no size": b"\r\n",
    "more than its size": b"2\r\n{}}\r\n0\r\n\r\n",
    "trailers of 60 kB": b"2\r\n{}\r\n0\r\nA: " + b"x" * 60_000 + b"\r\n\r\n",
    "10,000 trailers": b"2\r\n{}\r\n0\r\n" + b"".join(b"A%d: b\r\n" % number for number in range(10_000)) + b"\r\n",
}


@pytest.mark.parametrize("sent", _BAD_CHUNKS.values(), ids=_BAD_CHUNKS)
async def test_chunks_that_are_none_are_a_bad_request(target: Target, sent: bytes) -> None:
    with target.grows_less_than(8):
        head = target.head(f"POST {CONFIGMAPS} HTTP/1.1", "Content-Type: application/json", CHUNKED.decode())
        assert (await target.raw(head + sent)).verdict == BAD_REQUEST


async def test_old_clients_are_answered_and_left(target: Target) -> None:
    for sent in (b"GET /version HTTP/1.0\r\n\r\n", b"GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"):
        async with target.socket() as socket:
            await socket.send(sent)
            assert (await socket.reply()).code == 200
            assert await socket.closed()
    async with target.socket() as socket:
        for _ in range(2):
            await socket.send(b"GET /version HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            assert (await socket.reply()).code == 200


@pytest.mark.parametrize("protocol", ["websocket", "SPDY/3.1", "h2c", "TLS/1.2"])
async def test_who_wants_another_protocol_gets_http(target: Target, protocol: str) -> None:
    for path in ("/version", f"{CONFIGMAPS}?watch=1&timeoutSeconds=1&resourceVersion=x", "/api/v1/nodes/a/proxy"):
        async with target.socket() as socket:
            await socket.send(target.head(f"GET {path} HTTP/1.1", "Connection: Upgrade", f"Upgrade: {protocol}"))
            assert (await socket.reply()).code in (200, 400, 404)
            await socket.send(target.head("GET /version HTTP/1.1"))
            assert (await socket.reply()).code == 200, "the connection still speaks HTTP"


@pytest.mark.parametrize("line", ["CONNECT other:443", "OPTIONS *", "GET http://other/version", "TRACE /version"])
async def test_requests_for_proxies_are_refused(target: Target, line: str) -> None:
    assert (await target.ask(f"{line} HTTP/1.1")).verdict in (BAD_REQUEST, (405, "MethodNotAllowed"))


_PATHS = [
    "//api/v1/namespaces",
    "/api//v1/namespaces",
    "/api/v1/namespaces//configmaps",
    "/api/v1/../v1/namespaces",
    "/api/v1/namespaces/./default",
    f"{CONFIGMAPS}/..",
    f"{CONFIGMAPS}/.",
    f"{CONFIGMAPS}/%2e%2e",
    f"{CONFIGMAPS}/%2e%2e%2fsecrets",
    f"{CONFIGMAPS}/%252e%252e%252fsecrets",
    f"{CONFIGMAPS}/a%2fb",
    f"{CONFIGMAPS}/a%5cb",
    f"{CONFIGMAPS}/a%00b",
    f"{CONFIGMAPS}/a%0d%0aX:%20y",
    f"{CONFIGMAPS}/%c0%ae%c0%ae",
    f"{CONFIGMAPS}/%ff",
    f"{CONFIGMAPS}/%d0%b0",
    f"{CONFIGMAPS}/a%2",
    f"{CONFIGMAPS}/a%zz",
    f"{CONFIGMAPS}/" + "x" * 5000,
    "/" + "a/" * 3000,
    "/clusters/..%2fa/api/v1/namespaces",
    "/clusters/a/../b/api/v1/namespaces",
    "/clusters/%61%2f..%2fb/api",
    "/clusters/A/api",
    "/clusters//api",
]


@pytest.mark.parametrize("path", _PATHS, ids=[path[:60] for path in _PATHS])
async def test_paths_with_tricks_are_bad_requests(target: Target, path: str) -> None:
    assert (await target.ask(f"GET {path} HTTP/1.1")).verdict == BAD_REQUEST


async def test_odd_paths_are_judged_by_what_they_name(target: Target) -> None:
    for path, code in (
        (f"{CONFIGMAPS}/", 200),
        (f"{CONFIGMAPS};a=b", 404),
        ("/api;v=1/v1/namespaces", 404),
        (f"{CONFIGMAPS}/%61", 404),
        ("/API/v1/namespaces", 404),
        ("/api/v1/ConfigMaps", 404),
        (f"{CONFIGMAPS}/a/b/c/d", 404),
        ("/apis/../..", 400),
        (f"{CONFIGMAPS}?limit=1#fragment", 400),
    ):
        assert (await target.ask(f"GET {path} HTTP/1.1")).code == code, path


async def test_a_path_that_is_spelled_otherwise_is_still_forbidden(target: Target) -> None:
    """Authorization sees the same path as the operation: no spelling of `secrets` evades it."""
    for path in (
        "/api/v1/secrets",
        "/api/v1/%73ecrets",
        "/api/v1/secrets/",
        "/api/v1/watch/secrets",
        "/api/v1/secrets?x",
    ):
        answer = await target.raw(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        assert answer.verdict == (403, "Forbidden"), path


async def test_queries_with_tricks(target: Target) -> None:
    for query in (
        "limit=x", "limit=1e3", "limit=99999999999999999999", "limit=٣", "timeoutSeconds=x", "%ff=%ff",
        "continue=x", "resourceVersion=-1", "resourceVersion=1.5", "resourceVersion=99999999999999999999",
        "labelSelector=%00", "labelSelector=a+in+(", "fieldSelector=metadata.name%3D%3D%3Dx", "fieldSelector=x",
        "&".join(f"a{number}=b" for number in range(1000)),
    ):  # fmt: skip
        answer = await target.ask(f"GET {CONFIGMAPS}?{query} HTTP/1.1".encode().decode("latin-1"))
        assert answer.code in (400, 422), query
        assert answer.verdict in (BAD_REQUEST, (422, "Invalid"))


_NAMES = {
    "..": "..",
    ".": ".",
    "a slash": "a/b",
    "an encoded slash": "%2e%2e%2f",
    "254 characters": "x" * 254,
    "upper case": "Upper",
    "a dot at the end": "x.",
    "a Cyrillic a": "\u0430",
    "a full-width letter": "\uff41",
    "a soft hyphen": "a\u00adb",
    "from right to left": "a\u202eb",
    "a line end": "a\n",
    "NUL": "a\0",
    "an escape": "\x1b[31m",
    "a space": "a b",
    "half a megabyte": "x" * (1 << 19),
}


@pytest.mark.parametrize("name", _NAMES.values(), ids=_NAMES)
async def test_names_that_are_none(wire: Wire, name: str) -> None:
    for sent in (configmap(name), configmap("", generateName=name)):
        if sent["metadata"].get("generateName") in ("x" * 254, "x" * (1 << 19), "x."):
            continue  # cut to length, and allowed to end in a dot before what is generated
        answer = await wire.post(CONFIGMAPS, sent)
        assert (answer.code, answer.body["reason"]) == (422, "Invalid"), answer.body
    namespace = await wire.post("/api/v1/namespaces", {"metadata": {"name": name}})
    assert (namespace.code, namespace.body["reason"]) == (422, "Invalid")


async def test_a_name_in_the_path_is_the_name(wire: Wire) -> None:
    for body in (configmap("other"), configmap("x", namespace="kube-system"), configmap("x") | {"kind": "Secret"}):
        answer = await wire.put(f"{CONFIGMAPS}/x", body)
        assert (answer.code, answer.body["reason"]) == (400, "BadRequest"), answer.body


def _sized(size: int) -> dict[str, str]:
    return {"a": "x" * (size - 1)}


@pytest.mark.parametrize(
    "metadata,code",
    [
        ({"annotations": _sized(256 << 10)}, 201),
        ({"annotations": _sized((256 << 10) + 1)}, 422),
        ({"annotations": {f"a{number:05}": "x" * 1000 for number in range(261)}}, 422),
        ({"annotations": {"a b": "x"}}, 422),
        ({"annotations": {"": "x"}}, 422),
        ({"annotations": {"a": "\ud7ff\0"}}, 201),
        ({"labels": {"a": "x" * 63}}, 201),
        ({"labels": {"a": "x" * 64}}, 422),
        ({"labels": {"a": "x" * ((256 << 10) + 1)}}, 422),
        ({"labels": {"x" * 64: "a"}}, 422),
        ({"labels": {"d" * 254 + "/a": "a"}}, 422),
        ({"labels": {"a": "\u0430"}}, 422),
        ({"labels": {"__proto__": "x"}}, 422),
        ({"labels": {f"a{number}": "x" for number in range(20_000)}}, 201),
        ({"finalizers": ["a/b/c"]}, 422),
        ({"finalizers": ["../a/b"]}, 422),
        ({"generateName": "x" * 300}, 201),
    ],
    ids=str,
)
async def test_metadata_up_to_its_limits(wire: Wire, metadata: dict[str, Any], code: int) -> None:
    made = await wire.post(CONFIGMAPS, configmap("", **({"generateName": "sized-"} | metadata)))
    assert made.code == code, str(made.body)[:500]


async def test_revisions_that_are_none(wire: Wire) -> None:
    made = await wire.post(CONFIGMAPS, configmap("revised"))
    path, revision = f"{CONFIGMAPS}/revised", made.body["metadata"]["resourceVersion"]
    for believed, verdict in (
        ("-1", (422, "Invalid")),
        ("x", (422, "Invalid")),
        ("1.5", (422, "Invalid")),
        ("99999999999999999999", (422, "Invalid")),
        ("9" * 5000, (422, "Invalid")),
        ("1", (409, "Conflict")),
        ("99999999", (409, "Conflict")),
    ):
        answer = await wire.put(path, configmap("revised", {"a": believed[:9]}, resourceVersion=believed))
        assert (answer.code, answer.body["reason"]) == verdict, believed
    stale = configmap("revised", uid="00000000-0000-0000-0000-000000000000")
    assert (await wire.put(path, stale)).code == 409
    body = {"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}}
    assert (await wire.delete(path, body)).code == 409
    assert (await wire.get(path)).body["metadata"]["resourceVersion"] == revision
    both = [await wire.put(path, configmap("revised", {"n": n}, resourceVersion=revision)) for n in "12"]
    assert [answer.code for answer in both] == [200, 409]
