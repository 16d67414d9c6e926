"""The fleets that are planned for: made once by `hortus up`, kept in a folder."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.benchmarks.fleet import free_port
from tests.benchmarks.kymas.keeping import Place
from tests.benchmarks.plans import catalog

from hortus.kube import Client
from hortus.kube.objects import Object, Resource

PATIENCE = 3600.0
"""Seconds until a fleet that does not become ready is given up."""
_FAST = """
simulation:
  {create_duration: 1, reconcile_duration: 1, schedule_delay: 0, progress_period: 0.5, care_period: 0.1, workers: 200,
   workload_duration: 1, workload_clusters: 20000, sync_period: 86400}
apiserver: {limits: {connections: 19000, watches: 18500}}
controllers: {runtime-ctrl-workers-cnt: 100, modules-revalidation-interval: 24h}
"""
_AT_ONCE = 20
_PAUSE = 2.0


@contextlib.contextmanager
def child(words: Sequence[str], ready: str) -> Iterator[subprocess.Popen[str]]:
    """A process of this package, up to its end; from the line that has `ready` in it."""
    with subprocess.Popen([sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as made:
        assert made.stdout is not None
        try:
            if not any(ready in line for line in made.stdout):
                raise AssertionError(f"{words} ended before it said {ready!r}")
            yield made
        finally:
            made.terminate()
            made.communicate()


def make(place: Place, clusters: int, *, stacks: bool) -> None:
    """The fleet, ready and stopped: clusters with modules and agents, or with `stacks` those of a cluster stack."""
    config, port = place.folder / "up.yaml", free_port()
    config.write_text(_FAST)
    words = ["-m", "hortus", "up", "--state-dir", str(place.folder / "state"), "--port", str(port)]
    runtimes = 1 if stacks else clusters  # the demo's stack comes with its clusters
    ready = f"runtimes {runtimes}/{runtimes}, kymas {runtimes}/{runtimes}"
    with child([*words, "--clusters", str(runtimes), "--config", str(config)], ready):
        asyncio.run((_with_clusters if stacks else _with_agents)(place.folder / "state/kubeconfig", clusters))
    place.keep(port=port, kymas=clusters)


async def _with_agents(kubeconfig: Path, clusters: int) -> None:
    async with Client.from_kubeconfig(kubeconfig) as client:
        await apply(client, catalog.SECRETS, [catalog.keys()])
        await apply(client, catalog.AGENTS, [catalog.agents("512Mi")])

        async def running() -> int:
            found = await client.get(catalog.AGENTS, "everywhere", catalog.FLEET)
            return int(((found.get("status") or {}).get("clusters") or {}).get("ready") or 0)

        await _until(running, clusters)


async def _with_clusters(kubeconfig: Path, clusters: int) -> None:
    async with Client.from_kubeconfig(kubeconfig) as client:
        await apply(client, catalog.STACKS, [catalog.stack("v1")])
        await apply(client, catalog.CLUSTERS, catalog.clusters(clusters, "v1"))

        async def installed() -> int:
            found = (await client.list(catalog.CLUSTER_ADDONS, catalog.STACK_NAMESPACE)).items
            return sum(bool((one.get("status") or {}).get("ready")) for one in found)

        await _until(installed, clusters)


async def apply(client: Client, resource: Resource, objects: Iterable[Object]) -> None:
    """Applies objects, some at a time."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def one(obj: Object) -> None:
        async with places:
            await client.apply(resource, obj, field_manager="bench", force=True)

    await asyncio.gather(*map(one, objects))


async def _until(count: Callable[[], Awaitable[int]], wanted: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while await count() < wanted:
            await asyncio.sleep(_PAUSE)


@asynccontextmanager
async def governed(kubeconfig: Path, policy: Object) -> AsyncIterator[None]:
    """The live side with a RolloutPolicy, which is removed at the end."""
    from hortus.engine.rollouts.types import ROLLOUT_POLICIES

    async with Client.from_kubeconfig(kubeconfig) as client:
        await client.apply(ROLLOUT_POLICIES, policy, field_manager="bench", force=True)
        try:
            yield
        finally:
            await client.delete(ROLLOUT_POLICIES, policy["metadata"]["name"], policy["metadata"]["namespace"])
