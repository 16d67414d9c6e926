"""Callers that a server knows by their certificates."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from tests.kube.certificates import Pair, issue
from tests.waiting import until

from hortus.engine.health import Address
from hortus.engine.serving import HttpsServer, KnownClients, self_signed
from hortus.kube.secret import Secret
from hortus.kube.tls import client_context

CA = issue("clients", ca=True)


async def _answer(request: web.Request) -> web.Response:
    return web.Response()


@asynccontextmanager
async def serving(clients: KnownClients | None) -> AsyncIterator[HttpsServer]:
    routes, reads = {"/hook": _answer}, {"/chart": _answer}
    server = HttpsServer("hooks", Address("127.0.0.1", 0), routes, reads=reads, clients=clients)
    server.identify(self_signed(["127.0.0.1"], now=0.0))
    running = asyncio.create_task(server.run())
    try:
        await until(lambda: server.port)
        yield server
    finally:
        running.cancel()
        await asyncio.wait((running,))


async def status(server: HttpsServer, method: str, path: str, shown: Pair | None = None) -> int:
    """Raises aiohttp.ClientError for a connection that the server ends."""
    key = Secret(shown.key_pem.decode()) if shown is not None else None
    context: ssl.SSLContext = client_context(certificate=shown.pem if shown else b"", key=key, insecure=True)
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, f"https://127.0.0.1:{server.port}{path}", ssl=context) as answer,
    ):
        return answer.status


async def test_callers_show_a_certificate_of_the_authority_with_a_name(tmp_path: Path) -> None:
    file = tmp_path / "ca.crt"
    file.write_bytes(CA.pem)
    async with serving(KnownClients.named(str(file), "capi, kube-apiserver")) as server:
        assert await status(server, "POST", "/hook", issue("capi", CA)) == 200
        assert await status(server, "POST", "/hook", issue("kube-apiserver", CA)) == 200
        assert await status(server, "POST", "/hook", issue("somebody", CA)) == 403
        assert await status(server, "POST", "/hook") == 403
        with pytest.raises(aiohttp.ClientError):
            await status(server, "POST", "/hook", issue("capi", issue("others", ca=True)))
        assert await status(server, "GET", "/chart") == 200


async def test_without_names_each_client_of_the_authority_may_call() -> None:
    async with serving(KnownClients(CA.pem)) as server:
        assert await status(server, "POST", "/hook", issue("somebody", CA)) == 200
        assert await status(server, "POST", "/hook") == 403


async def test_without_an_authority_anybody_may_call() -> None:
    assert KnownClients.named("", "capi") is None
    async with serving(None) as server:
        assert await status(server, "POST", "/hook") == 200
