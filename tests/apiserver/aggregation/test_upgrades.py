"""Connections that switch to a protocol which aiohttp does not know, as kubectl's exec over SPDY."""

from __future__ import annotations

import asyncio
import base64
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding
from tests.apiserver.wire import Wire, connected
from tests.conformance.api.behind import SERVICES, TRUST
from tests.waiting import until

from hortus.apiserver.authn.certificates import key_pem, new_key
from hortus.apiserver.authn.subjects import name_of
from hortus.engine.serving import self_signed
from hortus.kube.tls import server_context
from hortus.testing.apiserver import TestServer, running_apiserver

GROUP = "raw.example.com"
PATH = f"/apis/{GROUP}/v1/namespaces/default/things/a/exec"
_DISCOVERY = b'{"kind":"APIResourceList","groupVersion":"raw.example.com/v1","resources":[]}'


@pytest.fixture
async def server() -> AsyncIterator[TestServer]:
    async with running_apiserver() as running:
        yield running


@asynccontextmanager
async def raw_server(wire: Wire, answer: bytes, heads: list[bytes]) -> AsyncIterator[None]:
    """Answers an upgrade with `answer` and returns each byte; registered as `GROUP`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                if b"upgrade: spdy/3.1" not in head.lower():
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(_DISCOVERY) + _DISCOVERY)
                    continue
                heads.append(head)
                writer.write(answer)
                while piece := await reader.read(65536):
                    writer.write(piece)
                    await writer.drain()
                return
        except (asyncio.IncompleteReadError, ConnectionError):
            return
        finally:
            writer.close()

    pair = self_signed(["raw.default.svc"], now=time.time())
    trust = (await wire.get(TRUST)).body["data"]["requestheader-client-ca-file"]
    tls = server_context(certificate=pair.certificate, key=pair.key, client_ca=trust.encode())
    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls) as listening:
        port = listening.sockets[0].getsockname()[1]
        service = {"metadata": {"name": "raw"}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
        await wire.post("/api/v1/namespaces/default/services", service)
        spec = {
            "group": GROUP,
            "version": "v1",
            "service": {"namespace": "default", "name": "raw", "port": port},
            "caBundle": base64.b64encode(pair.bundle).decode(),
            "groupPriorityMinimum": 2000,
            "versionPriority": 10,
        }
        await wire.post(SERVICES, {"metadata": {"name": f"v1.{GROUP}"}, "spec": spec})
        async with asyncio.timeout(60):
            while (await wire.get(f"/apis/{GROUP}/v1")).code != 200:
                await asyncio.sleep(0.02)
        yield


@asynccontextmanager
async def upgraded(
    server: TestServer, tls: ssl.SSLContext | None = None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]]:
    """A connection on which the client has asked to switch, with the head of the answer; with `tls`, as the user of its
    certificate."""
    host, _, port = server.url.removeprefix("https://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=tls or server.tls())
    token = "" if tls else f"Authorization: Bearer {server.token}\r\n"
    asked = (
        f"POST {PATH}?command=sh HTTP/1.1\r\nHost: {host}\r\n{token}"
        "Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n"
        "Content-Length: 0\r\n\r\n"
    )
    writer.write(asked.encode())
    async with asyncio.timeout(60):
        head = await reader.readuntil(b"\r\n\r\n")
        try:
            yield reader, writer, head
        finally:
            writer.close()


async def test_bytes_pass_both_ways_until_one_end_closes(server: TestServer) -> None:
    heads: list[bytes] = []
    answer = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"
    async with connected(server.url, server.token, server.tls()) as wire, raw_server(wire, answer, heads):
        async with upgraded(server) as (reader, writer, head):
            assert head == answer
            large = bytes(range(256)) * 8192
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"hello"
            writer.write(large)
            assert await reader.readexactly(len(large)) == large
        [seen] = heads
        lines = seen.decode().split("\r\n")
        assert lines[0] == f"POST {PATH}?command=sh HTTP/1.1"
        assert "X-Remote-User: kubernetes-admin" in lines
        assert "X-Stream-Protocol-Version: v4.channel.k8s.io" in lines
        assert "authorization" not in seen.decode().lower()


async def test_an_answer_that_is_no_switch_is_handed_on_only_as_an_error(server: TestServer) -> None:
    refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno"
    odd = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    async with connected(server.url, server.token, server.tls()) as wire:
        async with raw_server(wire, refusal, []), upgraded(server) as (reader, _, head):
            assert head + await reader.read() == refusal
        await wire.delete(f"{SERVICES}/v1.{GROUP}")
        async with raw_server(wire, odd, []), upgraded(server) as (reader, _, head):
            assert head.startswith(b"HTTP/1.1 503 ")
            body = await reader.readuntil(b"\n")
            assert body == b"error trying to reach service: invalid upgrade response: status code 200\n"


async def test_a_server_that_refuses_connections_is_unreachable_in_the_words_of_go(server: TestServer) -> None:
    async with connected(server.url, server.token, server.tls()) as wire:
        async with raw_server(wire, b"", []):
            spec = (await wire.get(f"{SERVICES}/v1.{GROUP}")).body["spec"]
        async with upgraded(server) as (reader, _, head):
            assert head.startswith(b"HTTP/1.1 503 ")
            problem = f"dial tcp localhost:{spec['service']['port']}: connect: connection refused"
            body = await reader.readuntil(b"\n")
            assert body == f"error trying to reach service: {problem}\n".encode()


async def certified(wire: Wire, server: TestServer, folder: Path, user: str) -> ssl.SSLContext:
    """The client of a user whose certificate the server has signed, and who may do everything in `GROUP`."""
    key = new_key()
    asked = x509.CertificateSigningRequestBuilder().subject_name(name_of(user)).sign(key, SHA256())
    spec = {
        "request": base64.b64encode(asked.public_bytes(Encoding.PEM)).decode(),
        "signerName": "kubernetes.io/kube-apiserver-client",
        "usages": ["client auth"],
    }
    requests, rbac = "/apis/certificates.k8s.io/v1/certificatesigningrequests", "/apis/rbac.authorization.k8s.io/v1"
    assert (await wire.post(requests, {"metadata": {"name": "odd"}, "spec": spec})).code == 201
    condition = {"type": "Approved", "status": "True", "reason": "Test"}
    assert (await wire.merge(f"{requests}/odd/approval", {"status": {"conditions": [condition]}})).code == 200

    async def signed() -> bytes:
        status = (await wire.get(f"{requests}/odd")).body["status"]
        return base64.b64decode(status.get("certificate", ""))

    file = folder / "client.pem"
    file.write_bytes(await until(signed) + key_pem(key))
    rules = [{"verbs": ["*"], "apiGroups": [GROUP], "resources": ["*"]}]
    assert (await wire.post(f"{rbac}/clusterroles", {"metadata": {"name": "odd"}, "rules": rules})).code == 201
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "odd"}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "system:authenticated"}
    binding = {"metadata": {"name": "odd"}, "subjects": [subject], "roleRef": role}
    assert (await wire.post(f"{rbac}/clusterrolebindings", binding)).code == 201
    tls = server.tls()
    tls.load_cert_chain(file)
    return tls


async def test_a_user_name_with_a_line_break_forges_no_header(server: TestServer, tmp_path: Path) -> None:
    heads: list[bytes] = []
    switched = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"
    async with connected(server.url, server.token, server.tls()) as wire, raw_server(wire, switched, heads):
        tls = await certified(wire, server, tmp_path, "x\r\nX-Remote-Group: system:masters")
        async with upgraded(server, tls) as (reader, _, head):
            assert head.startswith(b"HTTP/1.1 503 ")
            body = await reader.readuntil(b"\n")
    assert body == (b'error trying to reach service: net/http: invalid header field value for "X-Remote-User"\n')
    assert heads == []
