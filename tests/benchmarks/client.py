"""The cost of the client over bare aiohttp: CPU per call and per watch event, and memory per client.

Alone: `python -m tests.benchmarks.client`. The server is a few lines in another process that answer constant bytes, so
that its cost is not in the figures. Metrics and a rate limit are on, as in a controller.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import resource
import tracemalloc
from collections.abc import Awaitable, Callable
from multiprocessing.queues import Queue
from typing import cast

import aiohttp
import orjson
import uvloop
from prometheus_client import CollectorRegistry

from hortus.kube import Access, Client, ConnectionSettings, Credentials, RequestMetrics, Resource, Secret

CALLS = 1200
EVENTS = 20_000
ROUNDS = 6
CALLERS = 8
CLIENTS = 500
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
PATH = "/api/v1/namespaces/default/configmaps/one"
OBJECT = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "one", "namespace": "default", "resourceVersion": "12", "uid": "x" * 36},
    "data": {"k": "v" * 300},
}
BODY = orjson.dumps(OBJECT)
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
STREAM = (orjson.dumps({"type": "MODIFIED", "object": OBJECT}) + b"\n") * EVENTS

Figures = dict[str, float]


class _Server(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if b"watch=true" not in data:
            self._transport.write(ANSWER)
            return
        self._transport.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for begin in range(0, len(STREAM), 60_000):
            piece = STREAM[begin : begin + 60_000]
            self._transport.write(b"%x\r\n" % len(piece) + piece + b"\r\n")


def _serve(ports: Queue[int]) -> None:
    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(_Server, "127.0.0.1", 0)
        ports.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(run())


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def _microseconds(step: Callable[[], Awaitable[object]]) -> float:
    async def caller() -> None:
        for _ in range(CALLS // CALLERS):
            await step()

    begin = _cpu()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return (_cpu() - begin) / CALLS * 1e6


async def _bare_watch(session: aiohttp.ClientSession, base: str) -> float:
    begin, left = _cpu(), EVENTS
    async with session.get(f"{base}/api/v1/configmaps?watch=true") as response:
        async for line in response.content:
            orjson.loads(line)
            left -= 1
            if not left:
                break
    return (_cpu() - begin) / EVENTS * 1e6


async def _our_watch(client: Client) -> float:
    begin, left = _cpu(), EVENTS
    async with client.watch(CONFIGMAPS, resource_version="1") as events:
        async for _ in events:
            left -= 1
            if not left:
                break
    return (_cpu() - begin) / EVENTS * 1e6


async def _kilobytes_per_client(access: Access) -> Figures:
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    clients = [Client(access) for _ in range(CLIENTS)]
    made = tracemalloc.get_traced_memory()[0]
    for client in clients:
        await client.get_raw(PATH)
    connected = tracemalloc.get_traced_memory()[0]
    for client in clients:
        await client.close()
    tracemalloc.stop()
    return {"kb_per_client": (made - before) / CLIENTS / 1e3, "kb_connected": (connected - before) / CLIENTS / 1e3}


async def _rounds(access: Access) -> Figures:
    """The best of several rounds, ours and bare in turn."""
    settings = ConnectionSettings(qps=1e6, burst=100_000)
    observer = RequestMetrics(CollectorRegistry())
    session = aiohttp.ClientSession(headers={"Authorization": "Bearer abc", "Accept": "application/json"})
    best: Figures = {}

    async def bare() -> None:
        async with session.get(access.server + PATH) as response:
            orjson.loads(await response.read())

    async with session, Client(access, settings=settings, observer=observer) as client:
        for _ in range(ROUNDS):
            figures = {
                "bare_call_us": await _microseconds(bare),
                "call_us": await _microseconds(lambda: client.get(CONFIGMAPS, "one", "default")),
                "bare_event_us": await _bare_watch(session, access.server),
                "event_us": await _our_watch(client),
            }
            best = {name: min(figure, best.get(name, figure)) for name, figure in figures.items()}
    return best


async def measure(port: int) -> Figures:
    access = Access(server=f"http://127.0.0.1:{port}", credentials=Credentials(token=Secret("abc")))
    figures = await _rounds(access)
    figures["call_ratio"] = figures["call_us"] / figures["bare_call_us"]
    figures["event_ratio"] = figures["event_us"] / figures["bare_event_us"]
    return figures | await _kilobytes_per_client(access)


def run() -> dict[str, Figures]:
    """Figures of one run: microseconds of CPU (the best of several rounds), ratios, kilobytes."""
    ports: Queue[int] = multiprocessing.Queue()
    server = multiprocessing.Process(target=_serve, args=(ports,), daemon=True)
    server.start()
    try:
        return {"client": uvloop.run(measure(ports.get()))}
    finally:
        server.terminate()
        server.join()


if __name__ == "__main__":
    print(json.dumps(run(), indent=2))
