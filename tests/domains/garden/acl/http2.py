"""A CONNECT by HTTP/2 without TLS, which Envoy takes on the ports of a gateway that have none."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, ResponseReceived, StreamReset

_LIMIT = 60.0


async def connect_by_http2(port: int, lines: Iterable[str], source: str) -> int:
    """The status of a CONNECT with these headers from an address; 0 where the stream or the connection is ended."""
    config = H2Configuration(client_side=True, header_encoding="utf-8", validate_outbound_headers=False)
    connection = H2Connection(config)
    connection.initiate_connection()
    headers = [(":method", "CONNECT"), (":authority", "api:443")]
    for line in lines:
        name, _, value = line.partition(":")
        headers.append((name.lower(), value.strip()))
    connection.send_headers(1, headers)
    async with asyncio.timeout(_LIMIT):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"PROXY TCP4 {source} 192.0.2.1 4711 443\r\n".encode() + connection.data_to_send())
        try:
            while data := await reader.read(65536):
                for event in connection.receive_data(data):
                    if isinstance(event, ResponseReceived):
                        return next(int(value) for name, value in event.headers if name in (":status", b":status"))
                    if isinstance(event, StreamReset | ConnectionTerminated):
                        return 0
                writer.write(connection.data_to_send())
        finally:
            writer.close()
    return 0
