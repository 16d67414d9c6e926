"""/healthz, /readyz and /metrics of the agent, on two ports, in a server of a few lines that a probe needs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import NamedTuple

import h11

from hortus.kube.listeners import ConnectionPlaces, ListenerLimits, sender_of
from hortus.nodeagent.settings import Endpoint

_PIECE = 16 << 10
PROBE_LIMITS = ListenerLimits(connections=64, head=10.0)
"""A connection has one request, whose answer must be taken within the same time."""


class PlainReply(NamedTuple):
    status: int
    text: str


class Sample(NamedTuple):
    """One line of metrics."""

    name: str
    labels: Mapping[str, str]
    value: float


def exposition(samples: Iterable[Sample], helps: Mapping[str, tuple[str, str]]) -> str:
    """The text format of Prometheus; `helps` gives type and description by name."""
    lines: list[str] = []
    seen: set[str] = set()
    for name, labels, value in samples:
        if name not in seen:
            seen.add(name)
            kind, text = helps[name]
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
        pairs = ",".join(f'{key}="{_escaped(each)}"' for key, each in labels.items())
        lines.append(f"{name}{{{pairs}}} {value:g}" if pairs else f"{name} {value:g}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


@contextlib.asynccontextmanager
async def served(
    endpoint: Endpoint, paths: Mapping[str, Callable[[], PlainReply]], *, limits: ListenerLimits = PROBE_LIMITS
) -> AsyncIterator[int]:
    """Answers GETs of these paths; yields the port."""
    places = ConnectionPlaces(limits.connections, limits.bodies)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        place = places.take(sender_of(writer.get_extra_info("peername")), writer.transport.abort)
        try:
            if place is not None:
                with contextlib.suppress(OSError, TimeoutError, h11.RemoteProtocolError):
                    async with asyncio.timeout(limits.head):
                        await _answer(reader, writer, paths)
                        writer.close()
                        await writer.wait_closed()
        finally:
            writer.transport.abort()
            if place is not None:
                places.leave(place)

    # One that serves at once has its socket open at an await, where a cancellation would leave it so.
    server = await asyncio.start_server(handle, endpoint.bind_address or None, endpoint.port, start_serving=False)
    try:
        await server.start_serving()
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()


async def _answer(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, paths: Mapping[str, Callable[[], PlainReply]]
) -> None:
    http = h11.Connection(h11.SERVER)
    while (event := http.next_event()) is h11.NEED_DATA:
        http.receive_data(await reader.read(_PIECE))
    if not isinstance(event, h11.Request):
        return
    respond = paths.get(event.target.decode("latin-1").partition("?")[0])
    reply = respond() if respond is not None and event.method == b"GET" else PlainReply(404, "not found\n")
    body = reply.text.encode()
    headers = [
        ("Content-Type", "text/plain; version=0.0.4; charset=utf-8"),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),
    ]
    pieces = [
        http.send(h11.Response(status_code=reply.status, headers=headers)),
        http.send(h11.Data(data=body)),
        http.send(h11.EndOfMessage()),
    ]
    writer.write(b"".join(piece for piece in pieces if piece))
    await writer.drain()
