"""A management cluster, a garden and a workload cluster in which the test plays the Runtimes' controllers.

Everything goes through real sockets. Time is moved: where the canary waits a few seconds for an object that is not
watched, they pass at once; the test lets longer times pass itself.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry
from tests.domains.clusters.world import Requests
from tests.domains.definitions import define

from hortus.domains.canary import book as books
from hortus.domains.canary import service
from hortus.domains.canary.book import CONFIG_MAPS, Book, ConfigMap
from hortus.domains.canary.composition import add_controller
from hortus.domains.canary.probe import NODES
from hortus.domains.canary.settings import Settings, read_template
from hortus.domains.canary.traces import SHOOTS
from hortus.domains.clusters.types import RUNTIMES, Runtime
from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster
from hortus.engine import Manager, Result, metadata_of, read
from hortus.engine.deputies import Deputies
from hortus.engine.kubeconfigs import sealed
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.remote import SECRETS
from hortus.kube import Client, Resource, yaml
from hortus.kube.access import Access, Credentials, Secret
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey
from hortus.testing import FakeClock
from hortus.testing.apiserver import TestServer

TEMPLATE = read_template(yaml.load((Path(__file__).parents[3] / "examples" / "canary.yaml").read_bytes()))
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
PATIENCE = 60.0
SHORT = 10.0
"""Seconds up to which time passes by itself."""
LONG = 36_000.0

_numbers = itertools.count(1)


class Yard:
    def __init__(self, number: int, client: Client, garden: Client, inside: Client) -> None:
        self.client, self.garden, self.inside = client, garden, inside
        self.namespace, self.garden_namespace = f"canary-{number}", f"garden-c{number}"
        self.clock = FakeClock()
        self.requests = Requests()
        self.way_in = inside
        """The cluster of every kubeconfig."""
        self.settings = Settings(
            template=TEMPLATE,
            namespace=self.namespace,
            period=3600.0,
            grow_timeout=LONG,
            use_timeout=LONG,
            delete_timeout=LONG,
        )
        self.trusted = "*"
        self.outcome = "Ready"
        """The state that each Runtime reaches."""
        self.holds = False
        """True where Runtimes stay when they are deleted."""
        self.leaves_shoot = False
        self.leftovers = False
        """True where Leftovers are served, in the same namespace."""
        self.most = 0
        """Runtimes that were there at the same time."""
        self.grown: list[str] = []
        self.metrics = CollectorRegistry()
        self._there: set[str] = set()
        self._book: Book | None = None
        self._news = asyncio.Condition()
        self._moving = asyncio.Lock()
        self._passing: set[asyncio.Task[None]] = set()

    # The controllers under test.

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """One process of controllers, killed at the end."""
        async with (
            Client(self.client.access, observer=self.requests) as client,
            Client(self.garden.access, observer=self.requests) as garden,
        ):
            self.metrics = CollectorRegistry()
            manager = Manager(client, clock=self.clock, registry=self.metrics, grace=0.0)
            controller = add_controller(
                manager,
                client=client,
                garden=garden,
                garden_namespace=self.garden_namespace,
                shoots=manager.caches_of(garden).get(SHOOTS, namespace=self.garden_namespace),
                secrets=manager.cache(SECRETS, namespace=self.namespace, transform=sealed),
                clusters=lambda place: self.way_in,
                deputies=Deputies(client, self.trusted, clock=self.clock),
                leftovers=LeftoverRecorder(client if self.leftovers else None, self.namespace),
                watched=self.namespace,
                settings=self.settings,
            )
            reconcile = controller.reconcile

            async def timed(key: ObjectKey) -> Result | None:
                result = await reconcile(key)
                under_way = self._book is not None and self._book.run is not None
                if under_way and result is not None and 0.0 < (result.requeue_after or 0.0) <= SHORT:
                    task = asyncio.ensure_future(self.advance(result.requeue_after or 0.0))
                    self._passing.add(task)
                    task.add_done_callback(self._passing.discard)
                return result

            controller.reconcile = timed  # type: ignore[method-assign]
            async with manager.running():
                yield

    async def advance(self, seconds: float) -> None:
        """Let time pass; one at a time, since each waits until the loop has nothing else to do."""
        async with self._moving:
            await self.clock.advance(seconds)

    def choose(self, **changes: Any) -> None:
        self.settings = msgspec.structs.replace(self.settings, **changes)

    # Conditions to wait for.

    async def until(self, says: Callable[[Book], Any]) -> Book:
        async with self._news:
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._news.wait_for(lambda: self._book is not None and says(self._book))
            except TimeoutError:
                raise AssertionError(f"waited in vain; the book: {self._book}") from None
            assert self._book is not None
            return self._book

    async def until_over(self, runs: int = 1) -> Book:
        return await self.until(lambda book: book.run is None and book.succeeded + book.failed == runs)

    async def until_phase(self, phase: str) -> Book:
        return await self.until(lambda book: book.run is not None and book.run.phase == phase)

    async def clean(self) -> bool:
        """True when nothing of any run is left anywhere."""
        runtimes = (await self.client.list(RUNTIMES, self.namespace)).items
        shoots = (await self.garden.list(SHOOTS, self.garden_namespace)).items
        namespaces = (await self.inside.list(NAMESPACES, labels=service.RUN)).items
        return not runtimes and not shoots and not namespaces

    # Parts that the test plays.

    async def play(self) -> None:
        """Runtimes as their controllers would treat them."""
        async with self.client.watch(RUNTIMES, self.namespace, initial_events=True) as events:
            async for event in events:
                if event.type == "BOOKMARK":
                    continue
                with suppress(NotFound):
                    await self._treat(event.type, event.object)
                async with self._news:
                    self._news.notify_all()

    async def _treat(self, what: str, runtime: Object) -> None:
        metadata = runtime["metadata"]
        name = metadata["name"]
        if what == "DELETED":
            self._there.discard(name)
            return
        if metadata.get("deletionTimestamp"):
            if not self.holds:
                await self.release(name)
        elif name not in self._there and service.run_of(metadata_of(runtime)):
            self._there.add(name)
            self.grown.append(name)
            self.most = max(self.most, len(self._there))
            await self._grow(name)

    async def _grow(self, name: str) -> None:
        await self.client.patch(RUNTIMES, name, {"metadata": {"finalizers": ["example.org/hold"]}}, self.namespace)
        note = {"infrastructuremanager.kyma-project.io/runtime-id": name}
        shoot: Object = {
            "apiVersion": SHOOTS.api_version,
            "kind": SHOOTS.kind,
            "metadata": {"name": name, "annotations": {**note, "confirmation.gardener.cloud/deletion": "true"}},
            "spec": {
                "cloudProfile": {"name": "aws"},
                "kubernetes": {"version": "1.34.1"},
                "provider": {"type": "aws"},
                "region": "eu-central-1",
            },
        }
        await self.garden.create(SHOOTS, shoot, namespace=self.garden_namespace)
        condition = {"type": "Provisioned", "status": "False", "reason": "x", "message": "quota exceeded"}
        condition["lastTransitionTime"] = "2023-01-01T00:00:00Z"
        conditions = [] if self.outcome == "Ready" else [condition]
        status = {"status": {"state": self.outcome, "conditions": conditions}}
        await self.client.patch(RUNTIMES, name, status, self.namespace, subresource="status")

    async def release(self, name: str) -> None:
        """The last of a deletion."""
        if not self.leaves_shoot:
            await self.remove_shoot(name)
        await self.client.patch(RUNTIMES, name, {"metadata": {"finalizers": None}}, self.namespace)

    async def remove_shoot(self, name: str) -> None:
        with suppress(NotFound):
            await self.garden.delete(SHOOTS, name, self.garden_namespace)

    async def read_along(self) -> None:
        """Keep what the book says at hand."""
        async with self.client.watch(CONFIG_MAPS, self.namespace, name=books.NAME, initial_events=True) as events:
            async for event in events:
                if event.type == "BOOKMARK":
                    continue
                async with self._news:
                    self._book = None if event.type == "DELETED" else books.read_book(read(ConfigMap, event.object))
                    self._news.notify_all()


@asynccontextmanager
async def yard(server: TestServer) -> AsyncIterator[Yard]:
    """Namespaces and a workload cluster of its own on `server`."""
    number = next(_numbers)
    cluster = f"canary-{number}"
    await asyncio.to_thread(server.create_cluster, cluster)
    credentials = Credentials(token=Secret(server.token_everywhere))

    def access(name: str) -> Access:
        return Access(server=server.cluster_url(name), ca=server.ca, credentials=credentials)

    async with Client(access("root")) as client, Client(access("garden")) as garden:
        here = Yard(number, client, garden, Client(access(cluster)))
        async with Client(access(cluster), observer=here.requests) as inside:
            here.inside = here.way_in = inside
            await client.create(NAMESPACES, {"metadata": {"name": here.namespace}})
            await garden.create(NAMESPACES, {"metadata": {"name": here.garden_namespace}})
            await define(server, "root", Runtime, GardenerCluster)
            await client.list(GARDENER_CLUSTERS, here.namespace)
            await inside.create(NODES, {"metadata": {"name": "node-1"}})
            await set_ready(inside, ready=True)
            tasks = [asyncio.create_task(task) for task in (here.play(), here.read_along())]
            try:
                yield here
            finally:
                for task in tasks:
                    task.cancel()
                ended = await asyncio.gather(*tasks, return_exceptions=True)
            for outcome in ended:
                if isinstance(outcome, Exception):
                    raise outcome


async def set_ready(inside: Client, *, ready: bool) -> None:
    condition = {"type": "Ready", "status": "True" if ready else "False", "reason": "Kubelet", "message": ""}
    await inside.patch(NODES, "node-1", {"status": {"conditions": [condition]}}, subresource="status")
