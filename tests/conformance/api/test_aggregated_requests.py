"""Requests on their way through the server to another one behind it, as that one sees them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import aiohttp
import pytest
from tests.apiserver.wire import connected
from tests.conformance.api.behind import BIG, Behind, running_behind, until_condition
from tests.conformance.api.conftest import Server
from tests.conformance.api.transcripts import RecordedWire, Transcript

from hortus.kube.objects import Object


@pytest.fixture
async def plain(server: Server) -> AsyncIterator[RecordedWire]:
    """Requests whose answers are not compared with those of another server."""
    async with connected(server.url, server.token, server.tls()) as found:
        yield RecordedWire(found, Transcript())


@pytest.fixture
async def behind(plain: RecordedWire, namespace: str) -> AsyncIterator[Behind]:
    async with running_behind(plain, namespace) as found:
        yield found


@pytest.fixture
def things(behind: Behind, namespace: str) -> str:
    return f"/apis/{behind.group}/v1/namespaces/{namespace}/things"


async def test_the_server_behind_learns_the_user_and_none_of_the_credentials(
    plain: RecordedWire, behind: Behind, things: str
) -> None:
    forged = {
        "X-Remote-User": "mallory",
        "x-remote-group": "system:masters",
        "X-Remote-Extra-Scopes": "all",
        "X-Remote-Uid": "1",
        "Connection": "keep-alive, X-Remote-User",
        "Proxy-Authorization": "Basic x",
        "X-Kept": "yes",
    }
    impersonating = {
        "Impersonate-User": "jane",
        "Impersonate-Group": "system:masters",
        "Impersonate-Uid": "7",
        "Impersonate-Extra-Example.org%2fscopes": "some",
    }
    answer = await plain.post(f"{things}?x=1&y=a%20b", {"a": 1}, headers={**forged, **impersonating})
    assert (answer.code, answer.body) == (201, b'{"a":1}')
    [seen] = behind.received
    assert (seen.method, seen.body) == ("POST", b'{"a":1}')
    assert seen.path in (f"{things}?x=1&y=a%20b", f"{things}?x=1&y=a+b")  # kube-apiserver writes the query again
    assert seen.caller == "front-proxy-client"
    assert seen.values("X-Remote-User") == ["jane"]
    assert seen.values("X-Remote-Uid") == ["7"]
    assert seen.values("X-Remote-Group") == ["system:masters", "system:authenticated"]
    assert seen.values("X-Remote-Extra-Example.org%2fscopes") == ["some"]
    assert seen.values("X-Kept") == ["yes"]
    assert seen.values("X-Forwarded-For") == ["127.0.0.1"]
    assert seen.values("X-Forwarded-Proto") == ["https"]
    names = {name.lower() for name, _ in seen.headers}
    assert "audit-id" in names
    assert not {name for name in names if name.startswith("impersonate-")}
    assert not names & {"authorization", "proxy-authorization", "x-remote-extra-scopes"}
    assert (answer.headers["X-Own"], "X-Secret" in answer.headers) == ("yes", False)
    assert answer.headers["Content-Type"].startswith("text/x-echo")


async def test_a_user_by_himself_is_named_with_what_proves_him(
    plain: RecordedWire, behind: Behind, things: str
) -> None:
    await plain.get(things)
    [seen] = behind.received
    assert seen.values("X-Remote-User") == ["kubernetes-admin"]
    assert set(seen.values("X-Remote-Group")) == {"system:masters", "system:authenticated"}


async def test_every_method_and_every_path_below_the_version_is_passed_on(
    plain: RecordedWire, behind: Behind, things: str
) -> None:
    for method, path in (
        ("PUT", f"{things}/a"),
        ("PATCH", f"{things}/a/status"),
        ("DELETE", f"{things}/a"),
        ("DELETE", things),
        ("GET", f"{things}/a/some/page"),
        ("GET", f"/apis/{behind.group}/v1/odd"),
        ("OPTIONS", f"{things}/a"),
    ):
        body = {"kind": "Thing"} if method in ("PUT", "PATCH", "DELETE") else None
        assert (await plain.send(method, path, body)).code == 200
        assert (behind.received[-1].method, behind.received[-1].path) == (method, path)


async def test_a_watch_streams_and_ends_with_its_client(plain: RecordedWire, behind: Behind, things: str) -> None:
    async with plain.watch(f"{things}?watch=true") as events:
        for number in (1, 2):
            behind.events.put_nowait(b'{"type":"ADDED","object":{"metadata":{"name":"%d"}}}' % number)
            assert await events.take(1) == [("ADDED", str(number))]
    async with asyncio.timeout(30):
        await behind.gone.wait()


async def test_a_request_ends_with_its_client(server: Server, behind: Behind, things: str) -> None:
    async with aiohttp.ClientSession() as session:
        asked = session.get(
            f"{server.url}{things}/slow", ssl=server.tls(), headers={"Authorization": f"Bearer {server.token}"}
        )
        task = asyncio.ensure_future(asked)
        async with asyncio.timeout(30):
            while not behind.received:
                await asyncio.sleep(0.01)
            task.cancel()
            await behind.gone.wait()


async def test_a_body_arrives_while_it_is_being_sent(server: Server, behind: Behind, things: str) -> None:
    more = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        yield b"one"
        await more.wait()
        yield b"two"

    headers = {"Authorization": f"Bearer {server.token}", "Content-Type": "application/json"}
    async with aiohttp.ClientSession() as session, asyncio.timeout(30):
        asked = asyncio.ensure_future(
            session.put(f"{server.url}{things}/streamed", ssl=server.tls(), headers=headers, data=body())
        )
        assert await behind.arrived.get() == b"one"
        more.set()
        assert await behind.arrived.get() == b"two"
        (await asked).close()


async def test_an_answer_that_nobody_reads_is_not_read_ahead(server: Server, behind: Behind, things: str) -> None:
    headers = {"Authorization": f"Bearer {server.token}"}
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{server.url}{things}/big", ssl=server.tls(), headers=headers) as response,
    ):
        before = -1
        async with asyncio.timeout(30):
            while before != behind.sent:
                before = behind.sent
                await asyncio.sleep(0.5)
        assert before < BIG
        size = 0
        async for piece in response.content.iter_any():
            size += len(piece)
        assert size == BIG


async def test_an_answer_that_breaks_off_is_no_whole_one(server: Server, behind: Behind, things: str) -> None:
    headers = {"Authorization": f"Bearer {server.token}"}
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            async with session.get(f"{server.url}{things}/broken", ssl=server.tls(), headers=headers) as response:
                await response.read()


async def test_a_redirect_is_refused(plain: RecordedWire, behind: Behind, things: str) -> None:
    answer = await plain.get(f"{things}/redirected")
    refusal = b"the backend attempted to redirect this request, which is not permitted"
    assert (answer.code, answer.body.rstrip()) == (502, refusal)


async def test_a_connection_switches_to_another_protocol(plain: RecordedWire, behind: Behind, things: str) -> None:
    headers = {"Authorization": f"Bearer {plain.token}"}
    async with (
        asyncio.timeout(30),
        plain.session.ws_connect(
            f"{plain.base}{things}/a/socket", headers=headers, protocols=("v5.channel.k8s.io",)
        ) as talk,
    ):
        assert talk.protocol == "v5.channel.k8s.io"
        for word in (b"abc", bytes(1024 * 1024)):
            await talk.send_bytes(word)
            assert (await talk.receive_bytes()) == word[::-1]
    async with asyncio.timeout(30):
        await behind.gone.wait()
    [seen] = behind.received
    assert (seen.values("X-Remote-User"), seen.values("Authorization")) == (["kubernetes-admin"], [])


async def test_a_refused_switch_is_answered_as_by_the_server_behind(
    plain: RecordedWire, behind: Behind, things: str
) -> None:
    headers = {"Authorization": f"Bearer {plain.token}"}
    with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
        async with plain.session.ws_connect(f"{plain.base}{things}/refused", headers=headers):
            pass
    assert refused.value.status == 403


async def test_a_server_whose_certificate_is_not_trusted_gets_no_request(plain: RecordedWire, namespace: str) -> None:
    async with running_behind(plain, namespace, believed=False) as behind:
        answer = await plain.get(f"/apis/{behind.group}/v1/namespaces/{namespace}/things")
        assert answer.code == 503
        assert answer.body.startswith(b"error trying to reach service: tls: failed to verify certificate: x509: ")
        assert behind.received == []


async def test_a_server_that_has_ended_is_unreachable_and_then_unavailable(plain: RecordedWire, namespace: str) -> None:
    async with contextlib.AsyncExitStack() as stack:
        behind = await stack.enter_async_context(running_behind(plain, namespace))
        name = f"v1.{behind.group}"
        kept: Object = (await plain.get(f"/apis/apiregistration.k8s.io/v1/apiservices/{name}")).body
    # The fixture has ended the server and its APIService; this is another one that leads to the same port.
    port = kept["spec"]["service"]["port"]
    again = {"metadata": {"name": name}, "spec": kept["spec"]}
    assert (await plain.post("/apis/apiregistration.k8s.io/v1/apiservices", again)).code == 201
    condition = await until_condition(plain, name, "False")
    assert condition["reason"] == "FailedDiscoveryCheck"
    url = f"https://localhost:{port}/apis/{behind.group}/v1"
    assert condition["message"].startswith(f'failing or missing response from {url}: Get "{url}": dial tcp ')
    assert condition["message"].endswith(f":{port}: connect: connection refused")
    answer = await plain.get(f"/apis/{behind.group}/v1/namespaces/{namespace}/things")
    assert (answer.code, answer.body) == (503, b"service unavailable\n")
    await plain.delete(f"/apis/apiregistration.k8s.io/v1/apiservices/{name}")


async def test_discovery_of_a_server_without_its_aggregated_form_is_converted(
    plain: RecordedWire, behind: Behind
) -> None:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

    async def versions() -> list[Object]:
        items = (await plain.get("/apis", accept=accept)).body["items"]
        return [version for item in items if item["metadata"]["name"] == behind.group for version in item["versions"]]

    async with asyncio.timeout(30):
        while not (found := await versions()) or found[0]["freshness"] != "Current":
            await asyncio.sleep(0.05)
    kind = {"group": "", "version": "", "kind": "Thing"}
    part = {"subresource": "status", "responseKind": kind, "verbs": ["get"]}
    assert found == [
        {
            "version": "v1",
            "freshness": "Current",
            "resources": [
                {
                    "resource": "things",
                    "responseKind": kind,
                    "scope": "Namespaced",
                    "singularResource": "thing",
                    "verbs": ["create", "delete", "deletecollection", "get", "list", "watch"],
                    "shortNames": ["th"],
                    "categories": ["all"],
                    "subresources": [part],
                }
            ],
        }
    ]
