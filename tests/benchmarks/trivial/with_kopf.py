"""The trivial job on kopf, set up to its advantage: no events posted, uvloop, no worker limit (with
one its idle workers keep places for seconds), aiohttp and orjson for the Secret."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import aiohttp
import kopf
import orjson
import uvloop
from tests.benchmarks.trivial.contest import (
    GROUP,
    NAMESPACE,
    PLURAL,
    STATUS,
    VERSION,
    Stopwatch,
    arguments,
    secret_for,
)

from hortus.kube import kubeconfig
from hortus.kube.tls import client_context

HEADERS = {"Content-Type": "application/json"}


async def main(path: str, count: int) -> None:
    logging.disable(logging.WARNING)
    access = kubeconfig.load(path).access()
    credentials = access.credentials
    context = client_context(ca=access.ca, certificate=credentials.certificate, key=credentials.key)
    session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context, limit=64))
    secrets = f"{access.server}/api/v1/namespaces/{NAMESPACE}/secrets"
    handled = 0
    stop = asyncio.Event()
    registry = kopf.get_default_registry()

    @kopf.on.startup(registry=registry)
    def configure(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.posting.enabled = False
        settings.networking.request_timeout = 60

    @kopf.on.create(GROUP, VERSION, PLURAL, registry=registry)
    async def create(name: str, patch: kopf.Patch, **_: Any) -> None:
        nonlocal handled
        async with session.post(secrets, data=orjson.dumps(secret_for(name)), headers=HEADERS) as made:
            assert made.status in (201, 409), made.status
            await made.read()
        patch.status.update(STATUS)
        handled += 1

    shown: set[str] = set()

    @kopf.on.event(GROUP, VERSION, PLURAL, registry=registry)
    async def seen(name: str, status: Any, **_: Any) -> None:
        """Only to know the end: when every status has come back over the watch."""
        if status.get("state") == STATUS["state"]:
            shown.add(name)
            if len(shown) == count:
                stop.set()

    watch = Stopwatch()
    operator = asyncio.create_task(
        kopf.operator(registry=registry, namespaces=[NAMESPACE], stop_flag=stop, standalone=True)
    )
    await stop.wait()
    watch.finish(count)
    await session.close()
    await asyncio.wait([operator], timeout=10)


if __name__ == "__main__":
    uvloop.run(main(*arguments()))
