"""Untrusted input: every answer is a Status with the right code, and the server continues to serve."""

from __future__ import annotations

import asyncio
import ssl
from typing import Any

import orjson
import pytest
from tests.apiserver.wire import Wire, configmap

from hortus.testing.apiserver import TestServer

CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


async def _raw(server: TestServer, sent: bytes, *, until: bytes = b"") -> bytes:
    """The server's answer to these bytes, until it closes (or `until` has come)."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.load_verify_locations(cadata=server.ca.decode())
    reader, writer = await asyncio.open_connection("127.0.0.1", server.server.port, ssl=tls)
    try:
        writer.write(sent)
        if until:
            return await asyncio.wait_for(reader.readuntil(until), 60)
        return await asyncio.wait_for(reader.read(), 60)
    finally:
        writer.transport.abort()
        await asyncio.sleep(0)


def _head(server: TestServer, line: str, *headers: str) -> bytes:
    lines = [line, "Host: x", f"Authorization: Bearer {server.token}", *headers, "", ""]
    return "\r\n".join(lines).encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b'{"metadata":{"name":"a"},"data":{"x":NaN}}',
        b'{"metadata":{"name":"a"},"data":{"x":1e999}}',
        b'{"metadata":{"name":"a\xff"}}',
        b'{"metadata":{"name":"\\ud800"}}',
        b'{"metadata":{"name":"a"}} trailing',
        b"[" * 100_000,
        b'{"a":' * 300 + b"1" + b"}" * 300,
        b'{"metadata":5}',
        b'{"metadata":{"name":"a"},"data":[1]}',
        b'{"metadata":{"name":"a"},"data":{"x":5}}',
        b'{"metadata":{"name":"a","labels":{"x":{"y":"z"}}}}',
    ],
)
async def test_bodies_that_hold_no_config_map(wire: Wire, body: bytes) -> None:
    answer = await wire.post(CONFIGMAPS, body)
    assert (answer.code, answer.body["kind"], answer.body["reason"]) == (400, "Status", "BadRequest"), answer.body


@pytest.mark.parametrize(
    "body",
    [
        b"a: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n" * 3,
        b"a: !!python/object/apply:os.system ['true']\n",
        b"a: 1\na: 2\n",
        b"a: 1\n---\nb: 2\n",
        b"{",
        b"\tx: y",
    ],
)
async def test_yaml_that_holds_no_config_map(wire: Wire, body: bytes) -> None:
    answer = await wire.send("POST", CONFIGMAPS, body, content_type="application/yaml")
    assert (answer.code, answer.body["kind"]) == (400, "Status"), answer.body


async def test_a_body_of_ten_megabytes_is_refused_before_it_is_sent(server: TestServer) -> None:
    head = _head(server, f"POST {CONFIGMAPS} HTTP/1.1", f"Content-Length: {10 << 20}")
    answer = await _raw(server, head + b"{" * 1000, until=b'"code":413}')
    assert answer.startswith(b"HTTP/1.1 413")
    assert b'"reason":"RequestEntityTooLarge"' in answer


async def test_a_chunked_body_without_end_is_cut_off(server: TestServer) -> None:
    head = _head(server, f"POST {CONFIGMAPS} HTTP/1.1", "Transfer-Encoding: chunked")
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    answer = await _raw(server, head + chunk * 64, until=b'"code":413}')
    assert answer.startswith(b"HTTP/1.1 413")


async def test_keys_that_mean_something_elsewhere_are_just_keys(wire: Wire) -> None:
    made = await wire.post(CONFIGMAPS, configmap("", {"__proto__": "x", "constructor": "y"}, generateName="k-"))
    assert made.body["data"] == {"__proto__": "x", "constructor": "y"}


@pytest.mark.parametrize(
    "path",
    [
        "//api/v1/namespaces",
        "/api//v1/namespaces",
        "/api/v1/../v1/namespaces",
        "/api/v1/namespaces/./default",
        "/api/v1/namespaces/default/configmaps/..%2f..%2fsecrets",
        "/api/v1/namespaces/%2e%2e/configmaps",
        "/api/v1/namespaces/default/configmaps/a%00b",
        "/api/v1/namespaces/default/configmaps/a%252fb",
        "/api/v1/namespaces/default/configmaps/a%25b",
        "/clusters/../api",
        "/clusters/UPPER/api",
        "/clusters//api",
        "/clusters/a_b/api",
        "/api/v1/namespaces/default/configmaps/" + "x" * 5000,
        "/api/v1/namespaces/%ff%fe/configmaps",
    ],
)
async def test_paths_with_tricks_are_bad_requests(server: TestServer, path: str) -> None:
    answer = await _raw(server, _head(server, f"GET {path} HTTP/1.1", "Connection: close"))
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b" 400 " in head.split(b"\r\n")[0], answer
    assert orjson.loads(body)["reason"] == "BadRequest"


async def test_paths_that_lead_nowhere_are_not_found(wire: Wire) -> None:
    for path in ("/nothing", "/api/v2", "/apis/none", "/apis/none/v1/x", "/api/v1/nothing", "/clusters/missing/api"):
        answer = await wire.get(path)
        assert (answer.code, answer.body["reason"]) in ((404, "NotFound"), (401, "Unauthorized")), path


async def test_methods_that_fit_nothing(wire: Wire) -> None:
    for method, path in (
        ("POST", "/api/v1/configmaps"),
        ("PUT", CONFIGMAPS),
        ("POST", f"{CONFIGMAPS}/a"),
        ("DELETE", "/version"),
        ("PATCH", CONFIGMAPS),
        ("GET", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"),
    ):
        answer = await wire.send(method, path, {} if method != "GET" else None)
        assert (answer.code, answer.body["reason"]) == (405, "MethodNotAllowed"), (method, path, answer.body)


@pytest.mark.parametrize(
    "sent",
    [
        b"garbage\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"x" * 40_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"y" * 40_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"".join(b"X%d: y\r\n" % number for number in range(10_000)) + b"\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n folded: y\r\n\r\n",
    ],
)
async def test_bytes_that_are_no_http_get_a_bad_request_and_no_more(server: TestServer, sent: bytes) -> None:
    answer = await _raw(server, sent)
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.0 400")), answer[:200]
    assert b'"kind":"Status"' in answer


async def test_tokens_that_are_wrong_or_missing(server: TestServer, wire: Wire) -> None:
    for token in ("x", "a.b.c", "x" * 10_000, "ä"):
        lines = ["GET /api/v1/namespaces HTTP/1.1", "Host: x", f"Authorization: Bearer {token}", "Connection: close"]
        answer = await _raw(server, "\r\n".join([*lines, "", ""]).encode())
        assert b" 401 " in answer.split(b"\r\n")[0], answer[:300]
    anonymous = Wire(wire.session, wire.base, "")
    assert (await anonymous.get("/healthz")).code == 200
    refused = await anonymous.get("/api/v1/namespaces/default/secrets")
    assert (refused.code, refused.body["reason"]) == (403, "Forbidden")
    assert refused.message == (
        'secrets is forbidden: User "system:anonymous" cannot list resource "secrets" in API group "" in the '
        'namespace "default"'
    )


async def test_a_token_of_one_cluster_opens_no_other(server: TestServer, wire: Wire) -> None:
    server.create_cluster("another")
    answer = await wire.get("/clusters/another/api/v1/namespaces")
    assert answer.code == 401


async def test_a_silent_reader_of_events_does_not_hold_up_others(server: TestServer, wire: Wire) -> None:
    head = _head(server, f"GET {CONFIGMAPS}?watch=true HTTP/1.1")
    tls = server.tls()
    _, writer = await asyncio.open_connection("127.0.0.1", server.server.port, ssl=tls, limit=1024)
    writer.write(head)
    await writer.drain()
    filling: dict[str, Any] = {"x": "y" * 100_000}
    made = [await wire.post(CONFIGMAPS, configmap("", filling, generateName="big-")) for _ in range(30)]
    assert [answer.code for answer in made] == [201] * 30
    writer.transport.abort()
    await asyncio.sleep(0)
    await wire.delete(CONFIGMAPS)
