"""The HTTPS server of webhooks."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import ssl

from tests.waiting import until

from hortus.engine.health import Address
from hortus.engine.serving import HttpsServer, ServingEndpoint, self_signed


def connected(port: int) -> ssl.SSLSocket:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(socket.create_connection(("127.0.0.1", port), timeout=60.0))


def until_closed(client: ssl.SSLSocket) -> None:
    """Return when the server has closed the connection, without an answer to its farewell. Raises TimeoutError."""
    with socket.socket(fileno=os.dup(client.fileno())) as raw:
        raw.settimeout(20.0)
        try:
            while raw.recv(4096):
                pass
        except ConnectionResetError:
            return


async def test_a_silent_client_does_not_outlive_the_server() -> None:
    """A graceful end of TLS would wait half a minute for its farewell."""
    server = HttpsServer("hooks", Address("127.0.0.1", 0), {})
    server.identify(self_signed(ServingEndpoint(service="hooks", namespace="default").names(), now=0.0))
    serving = asyncio.create_task(server.run())
    await until(lambda: server.port)
    client = await asyncio.to_thread(connected, server.port)
    try:
        serving.cancel()
        await asyncio.wait((serving,))
        await asyncio.to_thread(until_closed, client)
        assert server.port == 0
    finally:
        client.close()


async def test_a_client_in_the_middle_of_its_handshake_does_not_outlive_the_server() -> None:
    server = HttpsServer("hooks", Address("127.0.0.1", 0), {})
    server.identify(self_signed(ServingEndpoint(service="hooks", namespace="default").names(), now=0.0))
    serving = asyncio.create_task(server.run())
    await until(lambda: server.port)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    for _ in range(10):
        await asyncio.sleep(0)  # turns of the loop in which the server accepts
    serving.cancel()
    await asyncio.wait((serving,))
    try:
        async with asyncio.timeout(20.0):
            assert await reader.read() == b""
    finally:
        writer.close()


async def test_a_client_that_is_not_accepted_yet_does_not_outlive_the_server() -> None:
    server = HttpsServer("hooks", Address("127.0.0.1", 0), {})
    server.identify(self_signed(ServingEndpoint(service="hooks", namespace="default").names(), now=0.0))
    serving = asyncio.create_task(server.run())
    await until(lambda: server.port)
    with socket.create_connection(("127.0.0.1", server.port), timeout=60.0) as client:
        serving.cancel()  # in the turn of the loop in which it would have accepted
        await asyncio.wait((serving,))
        with contextlib.suppress(ConnectionResetError):
            assert await asyncio.to_thread(client.recv, 1) == b""
