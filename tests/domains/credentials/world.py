"""A management cluster, the controller on a fake clock, and a garden and a proof whose answers tests choose.

The controller reaches the API server through a real socket. A test waits by a watch on the server or for the end of a
reconcile, never for a time.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from tests.domains.definitions import define
from tests.waiting import until

from hortus.cli.flags import SHARED_FLAGS
from hortus.domains.credentials.changes import ROTATION
from hortus.domains.credentials.composition import assemble
from hortus.domains.credentials.garden import GardenFailure, Grant
from hortus.domains.credentials.settings import FLAGS, Settings
from hortus.domains.credentials.shoots import outline
from hortus.domains.credentials.types import CONDITION, GARDENER_CLUSTERS, Annotation, GardenerCluster, Label
from hortus.domains.inventory.types import ClusterProfile
from hortus.domains.rollouts.composition import add_controllers as add_rollouts
from hortus.engine import Actor, Cache, EventRecorder, Manager, without_managed_fields
from hortus.engine.deputies import Deputies
from hortus.engine.flags import FlagSet
from hortus.engine.kubeconfigs import SECRETS, ProofFailed
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.rollouts import RolloutGate
from hortus.engine.rollouts.types import ChangeKind, PlacementDecision, Rollout, RolloutPolicy
from hortus.kube import Client, Resource
from hortus.kube.objects import Object, ObjectKey, format_time
from hortus.testing import FakeClock
from hortus.testing.apiserver import TestServer

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
EVENTS = Resource("", "v1", "events", "Event")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
PATIENCE = 60.0
CANARY = "c4n4ry"
"""Stands in everything that is secret, and must stand nowhere else."""

_numbers = itertools.count()


def kubeconfig(mark: str) -> bytes:
    return f"apiVersion: v1\nkind: Config\nusers: [{{name: x, user: {{token: {CANARY}-{mark}}}}}]\n".encode()


class FakeGarden:
    """Grants a kubeconfig for every shoot in `shoots`, another one each time."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.shoots = {"c-1"}
        self.calls: list[str] = []
        self.failure: GardenFailure | None = None
        self.gate: asyncio.Event | None = None
        """While set and not open, calls hang."""
        self.entered = asyncio.Event()
        self.asleep: set[str] = set()
        self.lifetime: float | None = 24 * 3600.0

    async def admin_kubeconfig(self, shoot: str, seconds: int) -> Grant:
        self.calls.append(shoot)
        self.entered.set()
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        if shoot not in self.shoots:
            raise GardenFailure("failed to get shoot: not found", actor=Actor.USER, missing=True)
        expires = None if self.lifetime is None else self._clock.now() + min(self.lifetime, seconds)
        return Grant(kubeconfig(f"{shoot}-{len(self.calls)}"), expires)

    async def hibernated(self, shoot: str) -> bool:
        return shoot in self.asleep


class FakeProof:
    def __init__(self) -> None:
        self.failure: ProofFailed | None = None
        self.proven: list[bytes] = []

    async def prove(self, kubeconfig: bytes, *, origin: str) -> None:
        if self.failure is not None:
            raise self.failure
        self.proven.append(kubeconfig)


class Requests:
    """Requests on the wire, as the client counts them."""

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, str]] = Counter()
        self.on_answer: Callable[[str], None] = lambda _: None

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self.answers[method, code] += 1
        self.on_answer(method)

    @property
    def writes(self) -> int:
        return sum(count for (method, _), count in self.answers.items() if method != "GET")

    def codes(self, code: str) -> int:
        return sum(count for (_, found), count in self.answers.items() if found == code)


class World:
    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        """For the test's own hands."""
        self.access = client.access
        """As whom the controller comes."""
        self.namespace = namespace
        self.clock = FakeClock()
        self.garden = FakeGarden(self.clock)
        self.proof = FakeProof()
        self.leftovers = False
        """True where Leftovers are served, in the same namespace."""
        self.requests = Requests()
        self.shoots = Cache("shoots")
        self.registry = CollectorRegistry()
        self.watched = ""
        """The namespace which the controller watches; the test's own when empty."""
        self.trusted = "*"
        self.spread = 0.0
        self.flags: list[str] = []
        """Further ones."""
        self.governed = False
        """True serves policies and rollouts in the test's namespace."""
        self.controller: Any = None
        self._active = 0
        self._ended: Counter[ObjectKey] = Counter()
        self._seen: dict[tuple[str, str, str], Object] = {}
        self._news = asyncio.Condition()

    # Actions of the test.

    def cluster(self, name: str = "rt-1", *, shoot: str = "c-1", **changes: Any) -> Object:
        secret = {"name": f"kubeconfig-{name}", "namespace": self.namespace, "key": "config"}
        labels = {Label.SHOOT_NAME: shoot, Label.RUNTIME_ID: name, Label.REGION: "eu-1"}
        return {
            "apiVersion": GARDENER_CLUSTERS.api_version,
            "kind": GARDENER_CLUSTERS.kind,
            "metadata": {"name": name, "namespace": self.namespace, "labels": labels, **changes.get("metadata", {})},
            "spec": {"shoot": {"name": shoot}, "kubeconfig": {"secret": {**secret, **changes.get("secret", {})}}},
        }

    async def create(self, obj: Object | None = None) -> Object:
        return await self.client.create(GARDENER_CLUSTERS, obj or self.cluster())

    async def change(self, resource: Resource, name: str, patch: Object) -> Object:
        return await self.client.patch(resource, name, patch, self.namespace)

    async def annotate(self, name: str = "rt-1", value: str = "true") -> Object:
        """Ask for a forced rotation."""
        patch = {"metadata": {"annotations": {Annotation.FORCE_ROTATION: value}}}
        return await self.change(GARDENER_CLUSTERS, name, patch)

    async def secret(self, name: str = "kubeconfig-rt-1") -> Object:
        return await self.client.get(SECRETS, name, self.namespace)

    def know_shoot(
        self,
        name: str = "c-1",
        *,
        uid: str = "s-1",
        url: str = "https://api.c-1",
        version: int = 1,
    ) -> None:
        """Put a shoot into the controller's cache."""
        metadata = {"name": name, "namespace": "garden-demo", "uid": uid, "resourceVersion": str(version)}
        status = {
            "advertisedAddresses": [{"name": "external", "url": url}],
            "lastOperation": {"type": "Create", "state": "Succeeded"},
        }
        self.shoots.put(outline({"metadata": metadata, "status": status}))

    # Conditions to wait for.

    async def until(self, kind: str, name: str, says: Callable[[Object], Any], namespace: str = "") -> Object:
        """The object as soon as the watch shows that it exists and `says` holds of it."""
        key = (kind, namespace or self.namespace, name)
        await self._shown_when(key, lambda: key in self._seen and says(self._seen[key]))
        return self._seen[key]

    async def until_gone(self, kind: str, name: str, namespace: str = "") -> None:
        """Returns when the watch shows no such object."""
        key = (kind, namespace or self.namespace, name)
        await self._shown_when(key, lambda: key not in self._seen)

    async def _shown_when(self, key: tuple[str, str, str], holds: Callable[[], Any]) -> None:
        async with self._news:
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._news.wait_for(holds)
            except TimeoutError:
                raise AssertionError(f"waited in vain; last seen: {self._seen.get(key)}") from None

    async def until_condition(self, reason: str, name: str = "rt-1") -> Object:
        """The condition once it has this reason."""
        found = await self.until("GardenerCluster", name, lambda obj: condition(obj).get("reason") == reason)
        return condition(found)

    async def until_secret(self, says: Callable[[Object], Any], name: str = "kubeconfig-rt-1") -> Object:
        return await self.until("Secret", name, says)

    async def advance(self, seconds: float) -> None:
        """Let time pass, from one due moment to the next, and let the controller finish its work at each."""
        end = self.clock.monotonic() + seconds
        while True:
            await self._idle()
            due = self.clock.next_due
            left = end - self.clock.monotonic()
            if due is None or due >= left:
                break
            await self.clock.advance(due)
        await self.clock.advance(left)
        await self._idle()

    async def _idle(self) -> None:
        async with self._news, asyncio.timeout(PATIENCE):
            await self._news.wait_for(lambda: not self._active)

    async def rest(self, name: str = "rt-1", namespace: str = "") -> None:
        """Return when the controller has looked at the cluster once more and has nothing else to do."""
        key = ObjectKey(namespace or self.namespace, name)
        before = self._ended[key]
        self.controller.enqueue_all([key])
        async with self._news, asyncio.timeout(PATIENCE):
            await self._news.wait_for(lambda: self._ended[key] > before)
        # The one that has ended may have begun before.
        queue = self.controller.queue
        await until(lambda: key not in queue.waiting and key not in queue.running)

    async def revision(self) -> str:
        """The store's revision: it moves with every write anywhere."""
        return (await self.client.list(GARDENER_CLUSTERS, self.namespace)).resource_version

    def metrics(self) -> list[str]:
        """The samples of this domain as they are scraped."""
        lines = sorted(generate_latest(self.registry).decode().splitlines())
        return [line for line in lines if line.startswith("infrastructure_manager")]

    def metrics_of(self, name: str) -> list[str]:
        return [line for line in self.metrics() if f'"{name}"' in line]

    async def until_event(self, reason: str, name: str = "rt-1") -> Object:
        """The first event about a cluster that has this reason."""

        def found() -> list[Object]:
            events = [obj for (kind, namespace, _), obj in self._seen.items() if (kind, namespace) == own]
            about = [event for event in events if event["involvedObject"]["name"] == name]
            return [event for event in about if event["reason"] == reason]

        own = ("Event", self.namespace)
        async with self._news, asyncio.timeout(PATIENCE):
            await self._news.wait_for(found)
        return found()[0]

    async def events(self) -> list[Object]:
        return (await self.client.list(EVENTS, self.namespace)).items

    # The controller under test.

    @asynccontextmanager
    async def controlled(self) -> AsyncIterator[None]:
        """The controller at work, as a process that starts now and stops at the end."""
        async with Client(self.access, observer=self.requests) as client, Client(self.access) as uncounted:
            registry = self.registry = CollectorRegistry()
            manager = Manager(client, clock=self.clock, registry=registry)
            events = EventRecorder(client, component="infrastructure-manager", clock=self.clock)
            manager.add_server(events)
            fleet = partial(manager.cache, namespace=self.namespace, transform=without_managed_fields)
            reconciler = assemble(
                manager,
                client=client,
                garden=self.garden,
                shoots=self.shoots,
                proof=self.proof,
                settings=self._settings(),
                events=events,
                gate=RolloutGate(fleet if self.governed else None),
                deputies=Deputies(client, self.trusted, clock=manager.clock),
                leftovers=LeftoverRecorder(client if self.leftovers else None, self.namespace),
            )
            if self.governed:
                add_rollouts(
                    manager,
                    uncounted,
                    fleet_namespace=self.namespace,
                    watched=self.namespace,
                    deputies=Deputies(uncounted, "*", clock=manager.clock),
                    change_kinds=(ROTATION,),
                )
            reconcile = reconciler.reconcile

            async def counted(key: ObjectKey) -> Any:
                self._active += 1
                try:
                    return await reconcile(key)
                finally:
                    self._active -= 1
                    self._ended[key] += 1
                    asyncio.get_running_loop().call_soon(self._tell)

            reconciler.reconcile = counted  # type: ignore[method-assign]
            self.controller = manager._controllers[0]
            async with manager.running():
                yield

    def _settings(self) -> Settings:
        watched = self.watched if self.watched != "*" else ""
        flags = ["--gardener-project-name=demo", f"--watch-namespace={watched or self.namespace}"]
        if self.watched == "*":
            flags[1] = "--watch-namespace="
        flags += [f"--rotation-spread={self.spread}", *self.flags]
        return Settings.from_flags(FlagSet((*SHARED_FLAGS, *FLAGS)).parse(flags))

    def _tell(self) -> None:
        async def tell() -> None:
            async with self._news:
                self._news.notify_all()

        task = asyncio.ensure_future(tell())
        self._telling = task

    async def follow(self, resource: Resource) -> None:
        """Keep what the server says of one kind at hand, in all namespaces."""
        async with self.client.watch(resource, initial_events=True) as events:
            async for event in events:
                metadata = event.object["metadata"]
                key = (resource.kind, metadata.get("namespace", ""), metadata.get("name", ""))
                async with self._news:
                    if event.type == "DELETED":
                        self._seen.pop(key, None)
                    elif event.type != "BOOKMARK":
                        self._seen[key] = event.object
                    self._news.notify_all()
                # A state that the next event ends is seen by those who wait for it.
                await asyncio.sleep(0)


@asynccontextmanager
async def world(server: TestServer, namespace: str = "") -> AsyncIterator[World]:
    """A namespace of its own on `server`, with nobody at work yet."""
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        namespace = namespace or f"test-{next(_numbers)}"
        await client.create(NAMESPACES, {"metadata": {"name": namespace}})
        await define(
            server, "root", GardenerCluster, ChangeKind, RolloutPolicy, Rollout, PlacementDecision, ClusterProfile
        )
        here = World(client, namespace)
        followers = [asyncio.create_task(here.follow(resource)) for resource in (GARDENER_CLUSTERS, SECRETS, EVENTS)]
        try:
            yield here
        finally:
            for follower in followers:
                follower.cancel()
            await asyncio.gather(*followers, return_exceptions=True)


def condition(cluster: Object) -> Object:
    conditions = (cluster.get("status") or {}).get("conditions") or ()
    return next((found for found in conditions if found["type"] == CONDITION), {})


def content(secret: Object, key: str = "config") -> bytes:
    return base64.b64decode((secret.get("data") or {}).get(key, ""))


def at(seconds: float) -> str:
    return format_time(seconds)
