"""The trivial job as a bare asyncio loop: one list, then 25 tasks with aiohttp and orjson. The floor for Python."""

from __future__ import annotations

import asyncio

import aiohttp
import orjson
import uvloop
from tests.benchmarks.trivial.contest import (
    GROUP,
    NAMESPACE,
    PLURAL,
    STATUS,
    VERSION,
    WORKERS,
    Stopwatch,
    arguments,
    secret_for,
)

from hortus.kube import kubeconfig
from hortus.kube.tls import client_context


async def main(path: str, count: int) -> None:
    access = kubeconfig.load(path).access()
    credentials = access.credentials
    context = client_context(ca=access.ca, certificate=credentials.certificate, key=credentials.key)
    collection = f"{access.server}/apis/{GROUP}/{VERSION}/namespaces/{NAMESPACE}/{PLURAL}"
    secrets = f"{access.server}/api/v1/namespaces/{NAMESPACE}/secrets"
    json_headers = {"Content-Type": "application/json"}
    merge_headers = {"Content-Type": "application/merge-patch+json"}
    connector = aiohttp.TCPConnector(ssl=context, limit=64)
    watch = Stopwatch()
    async with aiohttp.ClientSession(connector=connector) as session:
        async with session.get(collection) as answer:
            names = [item["metadata"]["name"] for item in orjson.loads(await answer.read())["items"]]

        async def work() -> None:
            while names:
                name = names.pop()
                async with session.post(secrets, data=orjson.dumps(secret_for(name)), headers=json_headers) as made:
                    assert made.status == 201, made.status
                    orjson.loads(await made.read())
                patch = orjson.dumps({"status": STATUS})
                url = f"{collection}/{name}/status"
                async with session.patch(url, data=patch, headers=merge_headers) as shown:
                    assert shown.status == 200, shown.status
                    orjson.loads(await shown.read())

        await asyncio.gather(*(work() for _ in range(WORKERS)))
    watch.finish(count)


if __name__ == "__main__":
    uvloop.run(main(*arguments()))
