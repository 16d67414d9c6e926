"""A management cluster with Secrets, remote clusters behind real sockets, and servers that misbehave on purpose."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

from tests.waiting import until

from hortus.engine import Backoff, Cache, Manager
from hortus.engine.cache import version_of
from hortus.engine.kubeconfigs import sealed
from hortus.engine.remote import SECRETS, KubeconfigRef, RemotePool, RemoteSettings, RemoteState, SecretCredentials
from hortus.kube import Client, yaml
from hortus.kube.kubeconfig import Trust
from hortus.kube.objects import Object, Resource, key_of
from hortus.testing.apiserver import TestServer

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
NAMESPACE = "default"
KEY = "config"
QUICK = Backoff(first=0.02, cap=0.1, jitter=0.2)
PATIENCE = 60.0
"""Seconds until a test that waits for something says that it never came."""

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def place_of(name: str) -> KubeconfigRef:
    return KubeconfigRef(NAMESPACE, name, KEY)


def settings_with(**options: Any) -> RemoteSettings:
    """Quick and local: what tests need."""
    chosen: dict[str, Any] = {"deny": (), "trust": Trust(plain_http=True), "breaker": QUICK, "qps": 10_000.0}
    return RemoteSettings(**{**chosen, **options})


class Calls:
    """Counts what goes to remote clusters."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, str, str]] = []

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self.answers.append((method, host, code))


class World:
    """One management cluster, and a pool on its Secrets."""

    def __init__(self, server: TestServer, client: Client, manager: Manager, pool: RemotePool, calls: Calls) -> None:
        self.server, self.client, self.manager, self.pool, self.calls = server, client, manager, pool, calls

    async def give(self, name: str, kubeconfig: Object | str) -> KubeconfigRef:
        """Write the Secret `name` with a kubeconfig; return when the pool has heard of it."""
        text = kubeconfig if isinstance(kubeconfig, str) else yaml.dump(kubeconfig)
        secret = {
            "metadata": {"name": name, "namespace": NAMESPACE},
            "data": {KEY: base64.b64encode(text.encode()).decode()},
        }
        written = await self.client.apply(SECRETS, secret, field_manager="test")
        secrets = self.manager.cache(SECRETS, namespace=NAMESPACE, transform=sealed)
        await self.until(lambda: self._has_seen(secrets, written))
        return place_of(name)

    @staticmethod
    def _has_seen(secrets: Cache, written: Object) -> bool:
        known = secrets.get(key_of(written))
        return known is not None and version_of(known) >= version_of(written)

    async def take(self, name: str) -> None:
        await self.client.delete(SECRETS, name, NAMESPACE)

    async def until(self, holds: Callable[[], object]) -> None:
        await until(holds)

    async def reaches(self, place: KubeconfigRef, reason: str) -> None:
        """Return when the state of `place` has that reason."""
        reached = asyncio.Event()

        def note(at: KubeconfigRef, before: RemoteState, after: RemoteState) -> None:
            if at == place and after.reason == reason:
                reached.set()

        undo = self.pool.subscribe(note)
        try:
            if self.pool.state(place).reason != reason:
                async with asyncio.timeout(PATIENCE):
                    await reached.wait()
        except TimeoutError:
            raise AssertionError(f"{place} is {self.pool.state(place)}, not {reason}") from None
        finally:
            undo()


@asynccontextmanager
async def world_of(server: TestServer, **options: Any) -> AsyncIterator[World]:
    calls = Calls()
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        manager = Manager(client)
        secrets = manager.cache(SECRETS, namespace=NAMESPACE, transform=sealed)
        pool = RemotePool(
            SecretCredentials(client, secrets),
            settings=settings_with(**options),
            registry=manager.registry,
            observer=calls,
        )
        manager.on_stop(pool.close)
        async with manager.running():
            yield World(server, client, manager, pool, calls)


def http_kubeconfig(url: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "a", "cluster": {"server": url}}],
        "users": [{"name": "a", "user": {"token": "secret-token"}}],
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "current-context": "a",
    }


@asynccontextmanager
async def listening(serve: Serve) -> AsyncIterator[Object]:
    """A server that does with each connection what `serve` does; gives the kubeconfig that leads to it."""
    tasks: set[asyncio.Task[None]] = set()

    closing = False

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            if closing:
                return
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    made = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = made.sockets[0].getsockname()[1]
    try:
        yield http_kubeconfig(f"http://127.0.0.1:{port}")
    finally:
        made.close()
        closing = True
        await asyncio.sleep(0)  # connections that were just accepted begin, and end
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)


async def request_of(reader: asyncio.StreamReader) -> bytes:
    """The head of one request without a body."""
    return await reader.readuntil(b"\r\n\r\n")


def answer_of(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    named = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n{named}\r\n".encode() + body


IDENTITY = b'{"kind":"Namespace","metadata":{"name":"kube-system","uid":"one"}}'
"""The answer of a cluster to a probe."""


def sane_then(serve: Callable[[bytes, asyncio.StreamWriter], Awaitable[None]]) -> Serve:
    """A server that answers probes and leaves every other request to `serve`."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = await request_of(reader)
            if b"kube-system" in head.split(b"\r\n")[0]:
                writer.write(answer_of(IDENTITY, Content_Type="application/json"))
            else:
                await serve(head, writer)

    return answer
