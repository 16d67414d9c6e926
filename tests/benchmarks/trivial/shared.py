"""A job that costs processor time, by replicas that share the objects: `shared KUBECONFIG MILLISECONDS`.

For each GardenerCluster so many milliseconds of computing, as rendering a chart would take, and one status write. Says
`ready` when it has joined, and prints its processor time when its standard input ends.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

from tests.benchmarks.trivial.contest import NAMESPACE, STATUS, WORKERS

from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine import Cache, Manager, Result, Watch, run, spec_or_metadata_changed
from hortus.engine.shards import Shards
from hortus.kube import Client, SystemClock
from hortus.kube.objects import ObjectKey


class Laborious:
    def __init__(self, client: Client, clusters: Cache, cost: float) -> None:
        self._client = client
        self._clusters = clusters
        self._cost = cost
        self.done = 0

    async def reconcile(self, key: ObjectKey) -> Result | None:
        cluster = self._clusters.get(key)
        if cluster is None or cluster.get("status") == STATUS:
            return None
        end = time.process_time() + self._cost
        while time.process_time() < end:
            pass
        patch = {"status": STATUS}
        written = await self._client.patch(GARDENER_CLUSTERS, key.name, patch, key.namespace, subresource="status")
        self._clusters.learn(written)
        self.done += 1
        return None


async def main(path: str, cost: float) -> None:
    async with Client.from_kubeconfig(path) as client:
        clock = SystemClock()
        manager = Manager(client, clock=clock, shards=Shards(client, group="bench", namespace="default", clock=clock))
        clusters = manager.cache(GARDENER_CLUSTERS, namespace=NAMESPACE)
        job = Laborious(client, clusters, cost)
        manager.controller("job", job, sources=[Watch(clusters, when=spec_or_metadata_changed)], workers=WORKERS)
        async with manager.running():
            began = time.process_time()
            print("ready", flush=True)
            await asyncio.to_thread(sys.stdin.read)
            print(json.dumps({"objects": job.done, "cpu_s": time.process_time() - began}), flush=True)


if __name__ == "__main__":
    run(lambda: main(sys.argv[1], float(sys.argv[2]) / 1000))
