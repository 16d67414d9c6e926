"""A management cluster, a garden whose gardener is the test, a workload cluster, and the controllers on a moved clock.

Everything goes through real sockets. The garden is the simulated one without its gardenlet: the test says when an
operation begins, ends or fails. What a test waits for, it waits for by a watch or by the end of a reconcile.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from tests.domains.clusters.shoot import samples
from tests.domains.definitions import define
from tests.waiting import until

from hortus.domains.clusters.changes import CHANGE_KINDS
from hortus.domains.clusters.composition import add_controllers
from hortus.domains.clusters.configuration import AuditTenants
from hortus.domains.clusters.garden import SHOOTS
from hortus.domains.clusters.inside import InsideError
from hortus.domains.clusters.outline import outline
from hortus.domains.clusters.settings import Settings
from hortus.domains.clusters.types import RUNTIMES, Runtime
from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster
from hortus.domains.inventory.types import ClusterProfile
from hortus.domains.rollouts.composition import add_controllers as add_rollouts
from hortus.engine import Cache, EventRecorder, Manager, without_managed_fields
from hortus.engine.deputies import Deputies
from hortus.engine.kubeconfigs import sealed
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.remote import SECRETS
from hortus.engine.rollouts import RolloutGate
from hortus.engine.rollouts.types import ChangeKind, PlacementDecision, Rollout, RolloutPolicy
from hortus.kube import Client, Resource
from hortus.kube.access import Access, Credentials, Secret
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.objects import Object, ObjectKey, format_time
from hortus.simulation.garden.kinds import SEEDS
from hortus.simulation.garden.workload import OPENID_CONNECTS
from hortus.testing import FakeClock
from hortus.testing.apiserver import TestServer

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
EVENTS = Resource("", "v1", "events", "Event")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
SECRET_LABELS = "operator.kyma-project.io/managed-by=infrastructure-manager"
PATIENCE = 60.0

_numbers = itertools.count(1)


class Requests:
    """The requests of a client, counted; a test may stop the world at one of them."""

    def __init__(self) -> None:
        self.answers: Counter[tuple[str, str]] = Counter()
        self.on_answer: Callable[[str], None] = lambda _: None

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self.answers[method, code] += 1
        self.on_answer(method)

    @property
    def total(self) -> int:
        return sum(self.answers.values())

    @property
    def writes(self) -> int:
        """Requests that changed something."""
        return sum(n for (method, code), n in self.answers.items() if method != "GET" and code.startswith("2"))


class Unruly(Client):
    """A client whose calls fail as the test wants, before they reach the server."""

    failures: dict[tuple[str, str], KubeError]
    """By verb and resource, such as ("create", "shoots")."""
    deaf: frozenset[tuple[str, str]] = frozenset()
    """Patches that are answered as if they had changed something, by the same."""

    tried: Counter[tuple[str, str]]
    """Calls by the same, also those that fail here."""

    def _check(self, verb: str, resource: Resource) -> None:
        self.tried[verb, resource.plural] += 1
        if error := self.failures.get((verb, resource.plural)):
            raise error

    async def get(self, resource: Resource, *args: Any, **options: Any) -> Object:
        self._check("get", resource)
        return await super().get(resource, *args, **options)

    async def list(self, resource: Resource, *args: Any, **options: Any) -> Any:
        self._check("list", resource)
        return await super().list(resource, *args, **options)

    async def create(self, resource: Resource, *args: Any, **options: Any) -> Object:
        self._check("create", resource)
        return await super().create(resource, *args, **options)

    async def patch(self, resource: Resource, *args: Any, **options: Any) -> Object:
        self._check("patch", resource)
        if ("patch", resource.plural) in self.deaf:
            return await super().get(resource, args[0], args[2])
        return await super().patch(resource, *args, **options)

    async def apply(self, resource: Resource, *args: Any, **options: Any) -> Object:
        self._check("apply", resource)
        return await super().apply(resource, *args, **options)

    async def delete(self, resource: Resource, *args: Any, **options: Any) -> Object:
        self._check("delete", resource)
        return await super().delete(resource, *args, **options)


class Inside:
    """`Workloads` for tests: every Runtime has the same cluster, or none while there is a `failure`."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.failure: InsideError | None = None
        self.visits = 0

    @asynccontextmanager
    async def open(self, runtime: Runtime) -> AsyncIterator[Client]:
        self.visits += 1
        if self.failure is not None:
            raise self.failure
        try:
            yield self.client
        except KubeError as error:
            raise InsideError(str(error), transient=True) from error


class World:
    def __init__(self, server: TestServer, number: int, client: Client, garden: Client, inside: Client) -> None:
        self.client = client
        """The management cluster, for the test's own hands."""
        self.garden = garden
        self.inside = Inside(inside)
        self.server = server
        self.number = number
        self.namespace = f"runtimes-{number}"
        self.trusted = "*"
        self.project = f"t{number}"
        self.garden_namespace = f"garden-{self.project}"
        self.clock = FakeClock()
        self.requests, self.garden_requests = Requests(), Requests()
        self.failures: dict[tuple[str, str], KubeError] = {}
        """Errors of the garden, for the controllers."""
        self.own_failures: dict[tuple[str, str], KubeError] = {}
        """Errors of the management cluster, for the controllers."""
        self.tried: Counter[tuple[str, str]] = Counter()
        """Calls of the controllers to the garden, by verb and resource."""
        self.inside_failures: dict[tuple[str, str], KubeError] = {}
        """Errors of the workload cluster, for everybody."""
        self.deaf: frozenset[tuple[str, str]] = frozenset()
        """Patches that the garden leaves without effect."""
        self.registry = CollectorRegistry()
        self.watching = True
        """The garden permits the controllers to watch Shoots."""
        self.choices: dict[str, Any] = {}
        self.keys: dict[str, Any] = {}
        """Further keys of the configuration, as `samples.configuration` takes them."""
        self.governed = False
        """True serves policies and rollouts in the test's namespace."""
        self.leftovers = False
        """True where Leftovers are served, in the same namespace."""
        self.controller: Any = None
        self.shoots = Cache("shoots")
        self.trail: list[tuple[Any, ...]] = []
        """Each status that was written to a Runtime, by its changes."""
        self.automatic = False
        self._statuses: dict[str, Object] = {}
        self._recorders: list[EventRecorder] = []
        self._active = 0
        self._ended: Counter[ObjectKey] = Counter()
        self._seen: dict[tuple[str, str], Object] = {}
        self._news = asyncio.Condition()
        self._tell_of_sleepers()

    # Actions of the test.

    def runtime(self, name: str = "rt-1", *, shoot: str = "c-1", provider: str = "aws", **fields: Any) -> Object:
        made = samples.runtime(provider, name=shoot, **{"enforceSeedLocation": False, **fields})
        made["metadata"] = {
            "name": name,
            "namespace": self.namespace,
            "labels": {**samples.LABELS, "kyma-project.io/runtime-id": name},
        }
        return made

    async def create(self, obj: Object | None = None) -> Object:
        return await self.client.create(RUNTIMES, obj or self.runtime())

    async def change(self, patch: Object, name: str = "rt-1") -> Object:
        return await self.client.patch(RUNTIMES, name, patch, self.namespace)

    async def annotate(self, key: str, value: str | None = "true", name: str = "rt-1") -> Object:
        return await self.change({"metadata": {"annotations": {key: value}}}, name)

    async def resize(self, maximum: int, name: str = "rt-1") -> Object:
        """Another size of the main pool: a new generation."""
        runtime = await self.client.get(RUNTIMES, name, self.namespace)
        provider = runtime["spec"]["shoot"]["provider"]
        [pool] = provider["workers"]
        return await self.change({"spec": {"shoot": {"provider": {"workers": [{**pool, "maximum": maximum}]}}}}, name)

    async def update(self, maximum: int = 5) -> Object:
        """A change of a Ready Runtime, carried through."""
        runtime = await self.resize(maximum)
        await self.until_patched(runtime["metadata"]["generation"])
        await self.operate("Reconcile", "Succeeded")
        return await self.until("Runtime", "rt-1", is_ready)

    async def delete(self, name: str = "rt-1") -> None:
        await self.client.delete(RUNTIMES, name, self.namespace)

    async def shoot(self, name: str = "c-1") -> Object:
        return await self.garden.get(SHOOTS, name, self.garden_namespace)

    async def operate(
        self,
        kind: str,
        state: str,
        *,
        name: str = "c-1",
        codes: tuple[str, ...] | None = None,
        description: str = "",
        progress: int = 50,
    ) -> Object:
        """Report the state of the garden's operation on a shoot; the garden has seen the latest generation."""
        shoot = await self.shoot(name)
        operation = {"type": kind, "state": state, "progress": progress, "description": description}
        errors = None if codes is None else [{"description": "it went wrong", "codes": list(codes)}]
        status = {
            "lastOperation": {**operation, "lastUpdateTime": format_time(self.clock.now())},
            "lastErrors": errors,
            "observedGeneration": shoot["metadata"]["generation"],
            "technicalID": f"shoot--{self.project}--{name}",
        }
        if "gardener" not in (shoot["metadata"].get("finalizers") or ()) and kind != "Delete":
            await self.garden.patch(SHOOTS, name, {"metadata": {"finalizers": ["gardener"]}}, self.garden_namespace)
        return await self.garden.patch(SHOOTS, name, {"status": status}, self.garden_namespace, subresource="status")

    async def seen(self, name: str = "c-1") -> None:
        """Return when the controllers' watch shows the Shoot as it is now."""
        version = (await self.shoot(name))["metadata"]["resourceVersion"]
        key = ObjectKey(self.garden_namespace, name)
        await self._reported_when(
            lambda: (self.shoots.get(key) or {"metadata": {}})["metadata"].get("resourceVersion") == version
        )

    async def _reported_when(self, holds: Callable[[], bool]) -> None:
        async with self._news, asyncio.timeout(PATIENCE):
            await self._news.wait_for(holds)

    async def vanish(self, name: str = "c-1") -> None:
        """The garden's last word in a deletion."""
        await self.garden.patch(SHOOTS, name, {"metadata": {"finalizers": None}}, self.garden_namespace)

    async def connect(self, name: str = "rt-1", state: str = "Ready") -> None:
        """Do the work of the GardenerCluster controller, as far as it is seen here."""
        await self.client.patch(
            GARDENER_CLUSTERS, name, {"status": {"state": state}}, self.namespace, subresource="status"
        )

    async def grow(self, obj: Object | None = None, name: str = "rt-1", shoot: str = "c-1") -> Object:
        """A Runtime that is Ready; its controllers run."""
        await self.create(obj)
        await self.until("Shoot", shoot, lambda found: found)
        await self.operate("Create", "Succeeded", name=shoot)
        await self.until("GardenerCluster", name, lambda found: found)
        await self.connect(name)
        return await self.until_state("Ready", name)

    # Conditions to wait for.

    async def until(self, kind: str, name: str, says: Callable[[Object], Any]) -> Object:
        """The object as soon as the watch shows that it exists and `says` holds of it."""
        key = (kind, name)
        await self._shown_when(key, lambda: key in self._seen and says(self._seen[key]))
        return self._seen[key]

    async def until_gone(self, kind: str = "Runtime", name: str = "rt-1") -> None:
        """Returns when the watch shows no such object."""
        key = (kind, name)
        await self._shown_when(key, lambda: key not in self._seen)

    async def _shown_when(self, key: tuple[str, str], holds: Callable[[], Any]) -> None:
        async with self._news:
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._news.wait_for(holds)
            except TimeoutError:
                raise AssertionError(f"waited in vain; last seen: {self._seen.get(key)}") from None

    async def until_state(self, state: str, name: str = "rt-1") -> Object:
        return await self.until("Runtime", name, lambda found: (found.get("status") or {}).get("state") == state)

    async def until_said(self, message: str, kind: str = "Provisioned", name: str = "rt-1") -> Object:
        """The condition once its message holds this text."""
        found = await self.until("Runtime", name, lambda obj: message in condition(obj, kind).get("message", ""))
        return condition(found, kind)

    async def until_reason(self, reason: str, kind: str = "Provisioned", name: str = "rt-1") -> Object:
        found = await self.until("Runtime", name, lambda obj: condition(obj, kind).get("reason") == reason)
        return condition(found, kind)

    async def until_trail(self, length: int) -> None:
        """Return when so many statuses were written since the trail was last cleared."""
        async with self._news:
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._news.wait_for(lambda: len(self.trail) >= length)
            except TimeoutError:
                raise AssertionError(f"waited in vain for {length}; so far: {self.trail}") from None

    async def until_patched(self, generation: int, shoot: str = "c-1") -> Object:
        """The Shoot once it was patched for that generation of its Runtime."""
        key = "infrastructuremanager.kyma-project.io/runtime-generation"
        return await self.until(
            "Shoot", shoot, lambda found: found["metadata"]["annotations"].get(key) == str(generation)
        )

    async def until_event(self, reason: str) -> Object:
        """The first event with this reason."""
        async with asyncio.timeout(PATIENCE), self.client.watch(EVENTS, self.namespace, initial_events=True) as events:
            async for event in events:
                if event.object.get("reason") == reason:
                    return event.object
        raise AssertionError(f"no event {reason}")

    async def rest(self, name: str = "rt-1") -> None:
        """Return once the Runtime was reconciled again, its events are recorded, and nothing else is to be done."""
        key = ObjectKey(self.namespace, name)
        before = self._ended[key]
        self.controller.enqueue_all([key])
        await self._reported_when(lambda: self._ended[key] > before)
        await self._idle()

    async def advance(self, seconds: float) -> None:
        """Let time pass, and let the controller finish what was due before time goes on.

        A reconcile waits for a real socket. Were the clock to go on meanwhile, it would meet its deadline.
        """
        end = self.clock.monotonic() + seconds
        await self._idle()
        while (due := self.clock.next_due) is not None and self.clock.monotonic() + due < end:
            await self.clock.advance(due)
            await self._idle()
        await self.clock.advance(end - self.clock.monotonic())
        await self._idle()

    async def asleep(self, seconds: float) -> None:
        """Return when somebody waits for the clock to go on by so much."""
        await self._reported_when(lambda: abs((self.clock.next_due or 0.0) - seconds) < 1e-6)

    async def _idle(self) -> None:
        await until(self._at_rest)

    def _at_rest(self) -> bool:
        """True when nothing is reconciled or waits for it, and every event is written.

        Only then does the store's revision stand still. A reconcile that was under way may leave another in the queue.
        """
        queue = self.controller.queue if self.controller is not None else None
        is_busy = queue is not None and not queue.closed and (queue.waiting or queue.running)
        return not self._active and not is_busy and all(recorder.idle for recorder in self._recorders)

    async def revision(self) -> str:
        """The store's revision: it moves with every write anywhere."""
        return (await self.client.list(RUNTIMES, self.namespace)).resource_version

    def stops(self) -> float:
        """`unexpected_stops_total`."""
        return float(next(line for line in self.metrics() if line.startswith("unexpected_stops_total")).split()[-1])

    def metrics(self) -> list[str]:
        lines = sorted(generate_latest(self.registry).decode().splitlines())
        return [line for line in lines if line.startswith(("infrastructure_manager", "unexpected_stops_total"))]

    async def events(self) -> list[Object]:
        return (await self.client.list(EVENTS, self.namespace)).items

    # The controllers under test.

    def settings(self) -> Settings:
        values: dict[str, Any] = {
            "configuration": samples.configuration(
                gardener__projectName=self.project,
                maintenanceWindow=None,
                auditLogging__policyConfigMapName="audit",
                **self.keys,
            ),
            "tenants": AuditTenants({"aws": {"eu-central-1": samples.TENANT}}),
            "workers": 5,
            "namespace": self.namespace,
            "cluster_timeout": 5.0,
            "plain_http": False,
            "local_clusters": True,
            "audit_log_mandatory": False,
            "structured_authentication": True,
            "custom_configs": False,
            "cache_configs": False,
            "acl": False,
            "ignore_removed_zones": False,
        }
        return Settings(**{**values, **self.choices})

    @asynccontextmanager
    async def controlled(self) -> AsyncIterator[None]:
        """The controllers at work, as a process that starts now and is killed at the end."""
        garden_access = self.garden.access
        async with (
            Unruly(self.client.access, observer=self.requests) as client,
            Unruly(garden_access, observer=self.garden_requests) as garden,
        ):
            client.failures, garden.failures = self.own_failures, self.failures
            client.tried, garden.tried = Counter(), self.tried
            garden.deaf = self.deaf
            self.registry = CollectorRegistry()
            manager = Manager(client, clock=self.clock, registry=self.registry, grace=0.0)
            reconciler = add_controllers(
                manager,
                client=client,
                garden=garden,
                shoots=self._shoots(manager, garden),
                secrets=manager.cache(SECRETS, namespace=self.namespace, labels=SECRET_LABELS, transform=sealed),
                settings=self.settings(),
                leftovers=LeftoverRecorder(client if self.leftovers else None, self.namespace),
                workloads=self.inside,
                gate=RolloutGate(self._fleet(manager) if self.governed else None),
                deputies=Deputies(client, self.trusted, clock=self.clock),
            )
            if self.governed:
                add_rollouts(
                    manager,
                    client,
                    fleet_namespace=self.namespace,
                    watched=self.namespace,
                    deputies=Deputies(client, "*", clock=manager.clock),
                    change_kinds=CHANGE_KINDS,
                )
            self._count(reconciler)
            self._recorders = [server for server in manager._servers if isinstance(server, EventRecorder)]
            for recorder in self._recorders:
                self._tell_after(recorder, "_flush")
            self.controller = manager._controllers[0]
            async with manager.running():
                yield

    def _fleet(self, manager: Manager) -> Callable[[Resource], Cache]:
        return partial(manager.cache, namespace=self.namespace, transform=without_managed_fields)

    def _shoots(self, manager: Manager, garden: Client) -> Cache:
        if not self.watching:
            return Cache("shoots", transform=outline)
        self.shoots = manager.caches_of(garden).get(SHOOTS, namespace=self.garden_namespace, transform=outline)
        self.shoots.subscribe(lambda _: self._tell())
        return self.shoots

    def _count(self, reconciler: Any) -> None:
        reconcile = reconciler.reconcile

        async def counted(key: ObjectKey) -> Any:
            self._active += 1
            try:
                return await reconcile(key)
            finally:
                self._active -= 1
                self._ended[key] += 1
                asyncio.get_running_loop().call_soon(self._tell)

        reconciler.reconcile = counted

    def _tell_of_sleepers(self) -> None:
        sleep = self.clock.sleep

        async def reported(seconds: float) -> None:
            asyncio.get_running_loop().call_soon(self._tell)
            await sleep(seconds)

        self.clock.sleep = reported  # type: ignore[method-assign]

    def _tell_after(self, recorder: Any, name: str) -> None:
        method = getattr(recorder, name)

        async def reported(*args: Any) -> Any:
            try:
                return await method(*args)
            finally:
                # Not before the recorder has noted that it writes no more.
                asyncio.get_running_loop().call_soon(self._tell)

        setattr(recorder, name, reported)

    def _tell(self) -> None:
        async def tell() -> None:
            async with self._news:
                self._news.notify_all()

        self._telling = asyncio.ensure_future(tell())

    async def follow(self, client: Client, resource: Resource, namespace: str) -> None:
        """Keep what a server says of one kind at hand."""
        async with client.watch(resource, namespace, initial_events=True) as events:
            async for event in events:
                if event.type == "BOOKMARK":
                    continue
                key = (resource.kind, event.object["metadata"]["name"])
                if resource is RUNTIMES:
                    self._note(event.object)
                async with self._news:
                    if event.type == "DELETED":
                        self._seen.pop(key, None)
                    else:
                        self._seen[key] = event.object
                    self._news.notify_all()
                # A state that the next event ends is seen by those who wait for it.
                await asyncio.sleep(0)
                if self.automatic and event.type != "DELETED":
                    await self._garden_like(resource, event.object)

    def _note(self, runtime: Object) -> None:
        name, status = runtime["metadata"]["name"], runtime.get("status") or {}
        before = self._statuses.get(name, {})
        if status == before:
            return
        self._statuses[name] = status
        if not status:
            # Created again under the same name.
            return
        old = {found["type"]: said(found) for found in before.get("conditions") or ()}
        news = [said(found) for found in status["conditions"] if old.get(found["type"]) != said(found)]
        self.trail.append((status["state"], *news))

    async def _garden_like(self, resource: Resource, obj: Object) -> None:
        """Do at once the work of gardenlet and the GardenerCluster controller on this object."""
        metadata, status = obj["metadata"], obj.get("status") or {}
        with suppress(NotFound):
            if resource is GARDENER_CLUSTERS and not status:
                await self.connect(metadata["name"])
            elif resource is SHOOTS and metadata.get("deletionTimestamp"):
                await self.vanish(metadata["name"])
            elif resource is SHOOTS and status.get("observedGeneration", 0) < metadata["generation"]:
                await self.operate("Reconcile" if status else "Create", "Succeeded", name=metadata["name"])


@asynccontextmanager
async def world(server: TestServer) -> AsyncIterator[World]:
    """Namespaces and a workload cluster of its own on `server`, with nobody at work yet."""
    number = next(_numbers)
    cluster = f"inside-{number}"
    await asyncio.to_thread(server.create_cluster, cluster)
    credentials = Credentials(token=Secret(server.token_everywhere))

    def access(name: str) -> Access:
        return Access(server=server.cluster_url(name), ca=server.ca, credentials=credentials)

    async with Client(access("root")) as client, Client(access("garden")) as garden, Unruly(access(cluster)) as inside:
        here = World(server, number, client, garden, inside)
        inside.failures, inside.tried = here.inside_failures, Counter()
        await client.create(NAMESPACES, {"metadata": {"name": here.namespace}})
        await garden.create(NAMESPACES, {"metadata": {"name": here.garden_namespace}})
        rollouts = (ChangeKind, RolloutPolicy, Rollout, PlacementDecision, ClusterProfile)
        await define(server, "root", Runtime, GardenerCluster, *rollouts)
        await define(server, cluster, OPENID_CONNECTS)
        followed = (
            (client, RUNTIMES, here.namespace),
            (client, GARDENER_CLUSTERS, here.namespace),
            (garden, SHOOTS, here.garden_namespace),
        )
        followers = [asyncio.create_task(here.follow(*what)) for what in followed]
        try:
            yield here
        finally:
            for follower in followers:
                follower.cancel()
            ended = await asyncio.gather(*followers, return_exceptions=True)
        for outcome in ended:
            if isinstance(outcome, Exception):
                raise outcome


def is_ready(runtime: Object) -> bool:
    """True when it is Ready in its present generation."""
    if not runtime or (runtime.get("status") or {}).get("state") != "Ready":
        return False
    return bool(condition(runtime).get("observedGeneration") == runtime["metadata"]["generation"])


def condition(runtime: Object, kind: str = "Provisioned") -> Object:
    found = (runtime.get("status") or {}).get("conditions") or ()
    return next((one for one in found if one["type"] == kind), {})


def said(condition: Object) -> tuple[str, str, str, str]:
    return condition["type"], condition["status"], condition["reason"], condition["message"]


def seed(name: str, region: str, **changes: Any) -> Object:
    """A seed that takes clusters."""
    conditions = [{"type": "GardenletReady", "status": "True"}]
    made: Object = {
        "apiVersion": SEEDS.api_version,
        "kind": SEEDS.kind,
        "metadata": {"name": name},
        "spec": {"provider": {"type": "aws", "region": region}, "settings": {"scheduling": {"visible": True}}},
        "status": {"conditions": conditions, "lastOperation": {"type": "Reconcile", "state": "Succeeded"}},
    }
    for part, value in changes.items():
        made[part] = {**made[part], **value}
    return made
