"""The trivial job on Hortus' engine: cache, queue, 25 workers, metrics, everything a real controller has."""

from __future__ import annotations

import asyncio

from tests.benchmarks.trivial.contest import NAMESPACE, STATUS, WORKERS, Stopwatch, arguments, secret_for

from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine import Cache, Manager, Result, Watch, run, spec_or_metadata_changed
from hortus.kube import Client
from hortus.kube.objects import ObjectKey, Resource

SECRETS = Resource("", "v1", "secrets", "Secret")


class Trivial:
    def __init__(self, client: Client, clusters: Cache, count: int) -> None:
        self._client = client
        self._clusters = clusters
        self._left = count
        self.finished = asyncio.Event()

    async def reconcile(self, key: ObjectKey) -> Result | None:
        cluster = self._clusters.get(key)
        if cluster is None or cluster.get("status") == STATUS:
            return None
        await self._client.create(SECRETS, secret_for(key.name))
        written = await self._client.patch(
            GARDENER_CLUSTERS, key.name, {"status": STATUS}, key.namespace, subresource="status"
        )
        self._clusters.learn(written)
        self._left -= 1
        if not self._left:
            self.finished.set()
        return None


async def main(path: str, count: int) -> None:
    async with Client.from_kubeconfig(path) as client:
        watch = Stopwatch()
        manager = Manager(client)
        clusters = manager.cache(GARDENER_CLUSTERS, namespace=NAMESPACE)
        trivial = Trivial(client, clusters, count)
        manager.controller(
            "trivial", trivial, sources=[Watch(clusters, when=spec_or_metadata_changed)], workers=WORKERS
        )
        async with manager.running():
            await trivial.finished.wait()
            watch.finish(count)


if __name__ == "__main__":
    run(lambda: main(*arguments()))
