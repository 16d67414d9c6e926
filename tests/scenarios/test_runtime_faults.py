"""One Runtime of each provider in `hortus up` while the garden fails at random: all converge, and nothing is left.

The test does what an operator does, and no more: it retries Shoots that are Failed, and has Failed Runtimes reconciled
again, once more when a seed is back. What fails, and how, follows from a seed.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.scenarios.running import UP, Up, up

from hortus.domains.clusters.garden import CONFIG_MAPS, SEEDS, SHOOTS
from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.remote import SECRETS
from hortus.kube import Client, Object, Resource, yaml
from hortus.kube.errors import Conflict, KubeError, NotFound
from hortus.kube.kubeconfig import from_untrusted
from hortus.simulation.garden.kinds import LOGICAL_CLUSTERS
from hortus.simulation.settings import ERROR_CODES

EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples/runtimes").glob("*.yaml"))
PROVIDERS = [path.stem for path in EXAMPLES]
NAMESPACE, GARDEN = "kcp-system", "garden-demo"
PATIENCE = 90.0
NODES = Resource("", "v1", "nodes", "Node", namespaced=False)
FORCE = "operator.kyma-project.io/force-patch-reconciliation"
SUSPEND = "operator.kyma-project.io/suspend-patch-reconciliation"
Says = Callable[[Object], Any]


def garden_of(seed: int) -> dict[str, Any]:
    """Settings of a garden in which about every other operation goes wrong."""
    random = Random(seed)
    codes = ["", *random.sample(sorted(ERROR_CODES), 5)]
    operations = ("Create", "Reconcile", "Delete")
    fails = [
        {"operation": operation, "code": code, "chance": 0.08, "at_progress": random.randint(0, 100)}
        for operation in operations
        for code in codes
    ]
    others = [
        {"operation": operation, "effect": effect, "seconds": 0.2, "chance": 0.15}
        for operation in operations
        for effect in ("stuck", "slow", "abort")
    ]
    kubeconfigs = [{"kubeconfig": answer, "chance": 0.2} for answer in ("429", "500", "garbage", "unusable")]
    return {
        "schedule_delay": 0,
        "create_duration": 0.4,
        "reconcile_duration": 0.3,
        "delete_duration": 0.2,
        "progress_period": 0.1,
        "retry_period": 0.3,
        "care_period": 0.1,
        "node_duration": 0.05,
        "jitter": 0.5,
        "random_seed": seed,
        "paces": [{"provider": random.choice(PROVIDERS), "operation": "Create", "seconds": 1.0}],
        "faults": [*fails, *others, *kubeconfigs],
        "outages": [
            {"seeds": "gcp-*", "what": "gardenlet", "after": 2, "seconds": 1, "every": 5},
            {"seeds": "aws-*", "what": "seed", "after": 1, "seconds": 1, "every": 4},
        ],
    }


@asynccontextmanager
async def clients(fleet: Up) -> AsyncIterator[tuple[Client, Client]]:
    async with (
        Client.from_kubeconfig(fleet.kubeconfig) as management,
        Client.from_kubeconfig(fleet.garden) as garden,
    ):
        yield management, garden


async def until(client: Client, resource: Resource, namespace: str, name: str, says: Says) -> Object:
    """The object as soon as the watch shows that it exists and `says` holds of it."""
    return await _until(client, resource, namespace, name, lambda found: found and says(found))


async def until_gone(client: Client, resource: Resource, namespace: str, name: str) -> None:
    await _until(client, resource, namespace, name, lambda found: not found)


async def _until(client: Client, resource: Resource, namespace: str, name: str, says: Says) -> Object:
    """The object as soon as `says` holds of it; `says` gets an empty dict where there is none."""
    seen: Object = {}
    try:
        async with (
            asyncio.timeout(PATIENCE),
            client.watch(resource, namespace, name=name, initial_events=True) as events,
        ):
            async for event in events:
                if event.type != "BOOKMARK":
                    seen = {} if event.type == "DELETED" else event.object
                if says(seen):
                    return seen
    except TimeoutError:
        pass
    raise AssertionError(f"{resource.kind} {name}: {seen.get('status')}")


def ready(generation: int) -> Says:
    def says(runtime: Object) -> bool:
        status = runtime.get("status") or {}
        first: Object = next(iter(status.get("conditions") or ()), {})
        return status.get("state") == "Ready" and first.get("observedGeneration") == generation

    return says


async def operate(management: Client, garden: Client) -> None:
    """The daily work of an operator."""

    async def retry() -> None:
        async with garden.watch(SHOOTS, GARDEN, initial_events=True) as events:
            async for event in events:
                last = (event.object.get("status") or {}).get("lastOperation") or {}
                if event.type in ("ADDED", "MODIFIED") and last.get("state") == "Failed":
                    await _annotate(garden, SHOOTS, GARDEN, event.object, {"gardener.cloud/operation": "retry"})

    async def force() -> None:
        async with management.watch(RUNTIMES, NAMESPACE, initial_events=True) as events:
            async for event in events:
                failed = (event.object.get("status") or {}).get("state") == "Failed"
                marks = (event.object["metadata"].get("annotations") or {}) if event.type != "BOOKMARK" else {}
                if event.type in ("ADDED", "MODIFIED") and failed and FORCE not in marks:
                    await _annotate(management, RUNTIMES, NAMESPACE, event.object, {FORCE: "true"})

    async def retry_with_seeds() -> None:
        """A Runtime without a seed stays Failed when the seed comes back, and keeps the annotation of the last try."""
        async with garden.watch(SEEDS, initial_events=True) as events:
            async for event in events:
                if event.type != "MODIFIED" or not _takes_clusters(event.object):
                    continue
                for runtime in (await management.list(RUNTIMES, NAMESPACE)).items:
                    if (runtime.get("status") or {}).get("state") == "Failed":
                        await _annotate(management, RUNTIMES, NAMESPACE, runtime, {FORCE: None})
                        await _annotate(management, RUNTIMES, NAMESPACE, runtime, {FORCE: "true"})

    await asyncio.gather(retry(), force(), retry_with_seeds())


def _takes_clusters(seed: Object) -> bool:
    conditions = {one["type"]: one["status"] for one in seed["status"]["conditions"]}
    return conditions["GardenletReady"] == "True"


async def _annotate(client: Client, resource: Resource, namespace: str, obj: Object, marks: Object) -> None:
    with suppress(NotFound, Conflict):
        await client.patch(resource, obj["metadata"]["name"], {"metadata": {"annotations": marks}}, namespace)


async def journey(management: Client, garden: Client, path: Path) -> None:
    """Create, look inside, patch, suspend, wake, delete."""
    runtime: Object = yaml.load(path.read_text())
    name = runtime["metadata"]["name"]
    shoot = runtime["spec"]["shoot"]["name"]
    [pool] = runtime["spec"]["shoot"]["provider"]["workers"]
    await management.create(RUNTIMES, runtime)
    await until(management, RUNTIMES, NAMESPACE, name, ready(1))
    expected = sum(one["minimum"] for one in [pool, *runtime["spec"]["shoot"]["provider"].get("additionalWorkers", ())])
    await _until_nodes(management, name, expected)
    await _grow(management, name, {**pool, "minimum": pool["minimum"] + 1})
    await until(management, RUNTIMES, NAMESPACE, name, ready(2))
    await _until_nodes(management, name, expected + 1)
    # Suspended, a change goes no further; taken up again, it does.
    await _mark(management, name, "true")
    await _grow(management, name, {**pool, "maximum": pool["maximum"] + 1})
    assert (await garden.get(SHOOTS, shoot, GARDEN))["spec"]["provider"]["workers"][0]["maximum"] == pool["maximum"]
    await _mark(management, name, None)
    await until(management, RUNTIMES, NAMESPACE, name, ready(3))
    await _sleep_and_wake(garden, shoot)
    await management.delete(RUNTIMES, name, NAMESPACE)
    await until_gone(management, RUNTIMES, NAMESPACE, name)


async def _mark(management: Client, name: str, value: str | None) -> None:
    await management.patch(RUNTIMES, name, {"metadata": {"annotations": {SUSPEND: value}}}, NAMESPACE)


async def _grow(management: Client, name: str, pool: Object) -> None:
    await management.patch(RUNTIMES, name, {"spec": {"shoot": {"provider": {"workers": [pool]}}}}, NAMESPACE)


async def _sleep_and_wake(garden: Client, shoot: str) -> None:
    for asleep in (True, False):
        made = await garden.patch(SHOOTS, shoot, {"spec": {"hibernation": {"enabled": asleep}}}, GARDEN)
        generation = made["metadata"]["generation"]

        def done(found: Object, asleep: bool = asleep, generation: int = generation) -> bool:
            status = found.get("status") or {}
            settled = status.get("lastOperation", {}).get("state") == "Succeeded"
            observed = status.get("observedGeneration", 0) >= generation
            return bool(settled and observed and status.get("hibernated") is asleep)

        await until(garden, SHOOTS, GARDEN, shoot, done)


async def _until_nodes(management: Client, name: str, count: int) -> None:
    """The kubeconfig where brokers look for it leads into a cluster that comes to have so many nodes."""
    names: set[str] = set()
    secret = await management.get(SECRETS, f"kubeconfig-{name}", NAMESPACE)
    access = from_untrusted(base64.b64decode(secret["data"]["config"])).access()
    async with (
        asyncio.timeout(PATIENCE),
        Client(access) as cluster,
        cluster.watch(NODES, initial_events=True) as events,
    ):
        async for event in events:
            if event.type != "BOOKMARK":
                node = event.object["metadata"]["name"]
                (names.discard if event.type == "DELETED" else names.add)(node)
            if len(names) == count:
                return


async def _nothing_left(management: Client, garden: Client) -> None:
    assert (await garden.list(SHOOTS, GARDEN)).items == []
    left = [found["metadata"]["name"] for found in (await garden.list(CONFIG_MAPS, GARDEN)).items]
    assert [name for name in left if name != "kube-root-ca.crt"] == []
    assert (await management.list(GARDENER_CLUSTERS, NAMESPACE)).items == []
    for name in PROVIDERS:
        await until_gone(management, SECRETS, NAMESPACE, f"kubeconfig-{name}")
        await until_gone(management, LOGICAL_CLUSTERS, "", f"shoot--demo--{name}")


@pytest.fixture(params=[1, pytest.param(2, marks=pytest.mark.soak), pytest.param(3, marks=pytest.mark.soak)])
def fleet(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Up]:
    config = {"simulation": garden_of(request.param), "controllers": {"structured-auth-enabled": True}}
    with up(tmp_path / "state", "--clusters", "0", "--ephemeral", config=config) as running:
        running.expect(UP)
        yield running


async def test_every_provider_gets_through_a_failing_garden_and_leaves_nothing(fleet: Up) -> None:
    assert PROVIDERS == ["alicloud", "aws", "azure", "gcp", "openstack"]
    async with clients(fleet) as (management, garden):
        operator = asyncio.create_task(operate(management, garden))
        try:
            ends = await asyncio.gather(
                *(journey(management, garden, path) for path in EXAMPLES), return_exceptions=True
            )
        finally:
            operator.cancel()
            with suppress(asyncio.CancelledError, KubeError):
                await operator
        assert dict(zip(PROVIDERS, ends, strict=True)) == dict.fromkeys(PROVIDERS)
        await _nothing_left(management, garden)
