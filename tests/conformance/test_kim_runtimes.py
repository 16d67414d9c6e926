"""The Go system's own Runtimes in `hortus up`: each grows, changes and goes, and nothing of it is left anywhere."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.test_runtime_crd import REFUSED, examples
from tests.scenarios.running import UP, Up, up

from hortus.domains.clusters.garden import CONFIG_MAPS, SHOOTS
from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.remote import SECRETS
from hortus.kube import Client, Object, Resource
from hortus.kube.errors import Invalid
from hortus.kube.kubeconfig import from_untrusted
from hortus.simulation.garden.kinds import LOGICAL_CLUSTERS

NAMESPACE = "kcp-system"
GARDEN = "garden-demo"
PATIENCE = 60.0
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
FAST: dict[str, Any] = {
    "simulation": {
        "schedule_delay": 0,
        "create_duration": 0.4,
        "reconcile_duration": 0.3,
        "delete_duration": 0.2,
        "progress_period": 0.1,
    },
}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder = tmp_path_factory.mktemp("runtimes") / "state"
    with up(folder, "--clusters", "0", "--ephemeral", config=FAST) as running:
        running.expect(UP)
        yield running


@asynccontextmanager
async def clients(fleet: Up) -> AsyncIterator[tuple[Client, Client]]:
    async with (
        Client.from_kubeconfig(fleet.kubeconfig) as management,
        Client.from_kubeconfig(fleet.garden) as garden,
    ):
        yield management, garden


def own_id(runtime: Object) -> Object:
    """All examples have the same runtime-id; in one fleet each needs its own."""
    name = runtime["metadata"]["name"]
    runtime["metadata"]["labels"]["kyma-project.io/runtime-id"] = name
    return runtime


async def until_all(client: Client, says: Callable[[dict[str, Object]], bool]) -> dict[str, Object]:
    """All Runtimes, as soon as they are together as wanted."""
    seen: dict[str, Object] = {}
    try:
        async with asyncio.timeout(PATIENCE), client.watch(RUNTIMES, NAMESPACE, initial_events=True) as events:
            async for event in events:
                if event.type == "BOOKMARK":
                    if says(seen):
                        return seen
                    continue
                name = event.object["metadata"]["name"]
                seen[name] = event.object
                if event.type == "DELETED":
                    del seen[name]
                if says(seen):
                    return seen
    except TimeoutError:
        pass
    raise AssertionError({name: found.get("status") for name, found in seen.items()})


def ready(generation: int, count: int) -> Callable[[dict[str, Object]], bool]:
    def says(seen: dict[str, Object]) -> bool:
        return len(seen) == count and all(_ready(found, generation) for found in seen.values())

    return says


def _ready(runtime: Object, generation: int) -> bool:
    status = runtime.get("status") or {}
    provisioned: Object = next(iter(status.get("conditions") or ()), {})
    return status.get("state") == "Ready" and provisioned.get("observedGeneration") == generation


async def test_every_example_grows_changes_and_goes_without_a_trace(fleet: Up, upstream: Path) -> None:
    found = examples(upstream)
    async with clients(fleet) as (management, garden):
        with pytest.raises(Invalid, match=r"spec\.shoot\.enforceSeedLocation"):
            await management.create(RUNTIMES, found.pop(REFUSED))
        for runtime in found.values():
            await management.create(RUNTIMES, own_id(runtime))
        grown = await until_all(management, ready(1, len(found)))
        for runtime in grown.values():
            await _see_inside(management, runtime)
            await management.patch(RUNTIMES, runtime["metadata"]["name"], _bigger(runtime), NAMESPACE)
        changed = await until_all(management, ready(2, len(found)))
        for runtime in changed.values():
            shoot = await garden.get(SHOOTS, runtime["spec"]["shoot"]["name"], GARDEN)
            assert shoot["spec"]["provider"]["workers"][0]["maximum"] == 21
            assert shoot["status"]["observedGeneration"] == shoot["metadata"]["generation"]
            await management.delete(RUNTIMES, runtime["metadata"]["name"], NAMESPACE)
        await until_all(management, lambda seen: not seen)
        await _nothing_left(management, garden)


def _bigger(runtime: Object) -> Object:
    [pool] = runtime["spec"]["shoot"]["provider"]["workers"]
    return {"spec": {"shoot": {"provider": {"workers": [{**pool, "maximum": 21}]}}}}


async def _see_inside(management: Client, runtime: Object) -> None:
    """The kubeconfig where brokers look for it leads into a cluster with the machines that were asked for."""
    name = runtime["metadata"]["labels"]["kyma-project.io/runtime-id"]
    secret = await management.get(SECRETS, f"kubeconfig-{name}", NAMESPACE)
    access = from_untrusted(base64.b64decode(secret["data"]["config"])).access()
    async with Client(access) as cluster:
        nodes = (await cluster.list(NODES)).items
    [pool] = runtime["spec"]["shoot"]["provider"]["workers"]
    assert len(nodes) == pool["minimum"]


async def _nothing_left(management: Client, garden: Client) -> None:
    assert (await garden.list(SHOOTS, GARDEN)).items == []
    config_maps = (await garden.list(CONFIG_MAPS, GARDEN)).items
    assert [found["metadata"]["name"] for found in config_maps if found["metadata"]["name"] != "kube-root-ca.crt"] == []
    assert (await management.list(GARDENER_CLUSTERS, NAMESPACE)).items == []
    clusters = (await management.list(LOGICAL_CLUSTERS)).items
    assert [found["metadata"]["name"] for found in clusters] == ["garden", "seed"]
    async with asyncio.timeout(PATIENCE):
        await _no_secrets(management)


async def _no_secrets(management: Client) -> None:
    """The controller of GardenerClusters may be a moment behind."""
    left: set[str] = set()
    async with management.watch(SECRETS, NAMESPACE, initial_events=True) as events:
        async for event in events:
            if event.type != "BOOKMARK":
                name = event.object["metadata"]["name"]
                (left.discard if event.type == "DELETED" else left.add)(name)
            if not left and event.type in ("BOOKMARK", "DELETED"):
                return
