"""Two replicas share the stacks of one API server, and one of them ends in the middle of an upgrade."""

from __future__ import annotations

import asyncio
import base64
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from tests.domains.definitions import define
from tests.domains.stacks.addons.releases import DirectRenderer, config_map
from tests.domains.stacks.addons.test_kill import GATE, OPEN
from tests.domains.stacks.addons.test_stages import AFTER, BEFORE, NEXT, ONE, applied, chart
from tests.domains.stacks.addons.world import (
    CONFIG_MAPS,
    HOME,
    AddonWorld,
    Requests,
    addon_world,
    conditions,
    is_installed,
    typed,
)
from tests.domains.stacks.releasing import CLUSTER_CLASS, CLUSTER_TEMPLATE
from tests.domains.stacks.releasing import chart as packed

from hortus.domains.stacks import settings, types
from hortus.domains.stacks.addons.composition import add_addons
from hortus.domains.stacks.catalog.composition import add_catalog
from hortus.domains.stacks.clusters import cluster_cache
from hortus.domains.stacks.names import parse_tag
from hortus.domains.stacks.releases import LocalLibrary, ReleaseFolder
from hortus.engine import Controller, EventRecorder, Manager, Result
from hortus.engine.controller import Reconciler
from hortus.engine.deputies import Deputies
from hortus.engine.flags import FlagSet
from hortus.engine.kubeconfigs import SECRETS, sealed
from hortus.engine.leases import LEASES, LeaseTimes
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.remote import RemotePool, RemoteSettings, SecretCredentials
from hortus.engine.rollouts import RolloutGate
from hortus.engine.shards import Shards
from hortus.kube import Client, Resource, yaml
from hortus.kube.objects import Object, ObjectKey, key_of
from hortus.testing.apiserver import TestServer
from hortus.testing.waiting import wait_for

NAMES = tuple(f"shop-{number}" for number in range(6))
CLASSES = Resource("cluster.x-k8s.io", "v1beta1", "clusterclasses", "ClusterClass")
TIMES = LeaseTimes(duration=60.0, renew_deadline=50.0, retry_period=0.3)
"""A replica that a busy machine stops for a while keeps its Lease."""


class Turn(NamedTuple):
    """The reconciles of one object by one controller."""

    controller: str
    key: ObjectKey


class Ledger:
    """The replicas that reconciled each object; one that begins next to another breaks the rule."""

    def __init__(self) -> None:
        self.done: dict[Turn, Counter[str]] = {}
        self.broken: list[str] = []
        self._running: dict[Turn, set[str]] = {}

    def begin(self, turn: Turn, replica: str) -> None:
        running = self._running.setdefault(turn, set())
        if running - {replica}:
            self.broken.append(f"{replica} began {turn} next to {running}")
        running.add(replica)
        self.done.setdefault(turn, Counter())[replica] += 1

    def end(self, turn: Turn, replica: str) -> None:
        self._running[turn].discard(replica)

    def of(self, replica: str, controller: str) -> set[ObjectKey]:
        return {turn.key for turn, who in self.done.items() if turn.controller == controller and replica in who}


class Noted:
    """A reconciler whose reconciles are noted."""

    def __init__(self, inner: Reconciler, controller: str, replica: str, ledger: Ledger) -> None:
        self._inner = inner
        self._controller = controller
        self._replica = replica
        self._ledger = ledger

    async def reconcile(self, key: ObjectKey) -> Result | None:
        turn = Turn(self._controller, key)
        self._ledger.begin(turn, self._replica)
        try:
            return await self._inner.reconcile(key)
        finally:
            self._ledger.end(turn, self._replica)


class NotedManager(Manager):
    """A manager whose controllers' reconciles are noted."""

    replica: str
    ledger: Ledger

    def controller(self, name: str, reconciler: Reconciler, **options: Any) -> Controller:
        return super().controller(name, Noted(reconciler, name, self.replica, self.ledger), **options)


class MortalShards(Shards):
    """A place among the shards that is not given back where the process is killed."""

    killed = False

    async def leave_group(self) -> None:
        if not self.killed:
            await super().leave_group()


class Replica:
    """One process of the stacks' controllers."""

    def __init__(self, manager: NotedManager, shards: MortalShards, requests: Requests) -> None:
        self.manager = manager
        self.shards = shards
        self.requests = requests
        self.name = manager.replica

    def die_at_a_write(self) -> None:
        """Ends its work at the answer to its next write, and gives nothing back."""

        def answered(method: str, host: str) -> None:
            if method == "GET":
                return
            self.shards.killed = True
            for controller in self.manager.controllers:
                for task in controller.tasks:
                    task.cancel()

        self.requests.on_answer = answered

    async def is_dead(self) -> None:
        await asyncio.wait([task for controller in self.manager.controllers for task in controller.tasks])

    async def at_rest(self) -> None:
        async with asyncio.timeout(60):
            for controller in self.manager.controllers:
                await controller.queue.join()

    async def sees(self, members: int) -> None:
        """Returns when this replica is one of so many and waits for nobody."""
        news = asyncio.Event()

        def look(gained: Callable[[ObjectKey], bool]) -> int:
            news.set()
            return 0

        self.shards.on_gain(look)
        async with asyncio.timeout(60):
            while len(self.shards.members) != members or self.shards.problem:
                news.clear()
                await news.wait()


class Shared:
    """A world with a workload cluster for each Cluster, and replicas that share one management cluster."""

    def __init__(self, world: AddonWorld, insides: dict[str, Client]) -> None:
        self.world = world
        self.client = world.client
        self.insides = insides
        self.ledger = Ledger()

    @asynccontextmanager
    async def replica(self, name: str) -> AsyncIterator[Replica]:
        requests = Requests()
        async with Client(self.client.access, observer=requests) as client:
            shards = MortalShards(
                client,
                group="stacks",
                namespace=HOME,
                identity=name,
                clock=self.world.clock,
                times=TIMES,
                random=Random(name),
            )
            manager = NotedManager(client, clock=self.world.clock, shards=shards)
            manager.replica, manager.ledger = name, self.ledger
            self._put_together(manager, client, requests)
            async with manager.running():
                yield Replica(manager, shards, requests)

    def _put_together(self, manager: Manager, client: Client, requests: Requests) -> None:
        pool = RemotePool(
            SecretCredentials(client, manager.cache(SECRETS, labels="none=of-these", transform=sealed)),
            settings=RemoteSettings(deny=(), connect_timeout=20.0, timeout=20.0),
            clock=self.world.clock,
            observer=requests,
        )
        manager.on_stop(pool.close)
        events = EventRecorder(client, component="clusterstack-controller", clock=manager.clock)
        manager.add_server(events)
        clusters = cluster_cache(manager, client, namespace="")
        library = LocalLibrary(ReleaseFolder(self.world.shelf.folder), clock=self.world.clock)
        chosen = FlagSet(settings.FLAGS).parse(["--stacks", "--local"])
        add_catalog(
            manager,
            client=client,
            namespace="",
            clusters=clusters,
            library=library,
            renderer=DirectRenderer(),
            events=events,
            settings=settings.from_flags(chosen, {}),
            deputies=Deputies(client, "*", clock=manager.clock),
            leftovers=LeftoverRecorder(None, ""),
        )
        add_addons(
            manager,
            client=client,
            namespace="",
            clusters=clusters,
            pool=pool,
            releases=library,
            renderer=DirectRenderer(),
            events=events,
            gate=RolloutGate(None),
            deputies=Deputies(client, "*", clock=manager.clock),
        )

    # Steps of the owner of the stack.

    def publish(self) -> None:
        """Two releases; the addons of the second wait for a gate in each workload cluster between two charts."""
        gate = applied("csi", waitForPreCondition=OPEN)
        charts = {"cni": chart("cni", "leaves"), "csi": chart("csi"), "old": chart("old")}
        self._stage(ONE, charts, {AFTER: applied("cni", "csi", "old")}, "v1.33.1")
        charts = {"cni": chart("cni", "comes", release="next"), "csi": chart("csi", release="next")}
        self._stage(NEXT, charts, {BEFORE: [*applied("cni"), *gate]}, "v1.34.1")

    def _stage(self, tag: str, charts: dict[str, list[Object]], stages: Object, kubernetes: str) -> None:
        self.world.shelf.staged(tag, charts, stages, kubernetes=kubernetes)
        name = parse_tag(tag)
        stem = f"{name.stem}-cluster-class"
        file = self.world.shelf.folder / "cluster-stacks" / tag / f"{stem}-{name.version.dot}.tgz"
        file.write_bytes(packed(stem, name.version.dot, {"class.yaml": CLUSTER_CLASS, "infra.yaml": CLUSTER_TEMPLATE}))

    async def begin(self) -> None:
        """A ClusterStack for each minor version, and Clusters of the first."""
        for minor in ("1.33", "1.34"):
            spec = {"provider": "docker", "name": "plain", "kubernetesVersion": minor, "versions": ["v1"]}
            spec |= {"autoSubscribe": False, "noProvider": True}
            stack = typed(types.CLUSTER_STACKS, f"stack-{minor}", spec)
            await self.client.create(types.CLUSTER_STACKS, stack)
        for tag in (ONE, NEXT):
            await wait_for(self.client, types.CLUSTER_STACK_RELEASES, tag, HOME, until=_is_ready)
        for name in NAMES:
            await self.world.cluster(ONE, name)
            await self._kubeconfig(name)
            await self.insides[name].create(CONFIG_MAPS, config_map("gate", "default", open="no"))
        for name in NAMES:
            await self.world.installed(ONE, name)

    async def upgrade(self) -> None:
        """All Clusters move to the second release; returns when each of them waits before its gate."""
        for name in NAMES:
            await self.world.move(NEXT, name, version="v1.34.1")
            await self.world.hook(BEFORE, name)
        for name in NAMES:
            inside = self.insides[name]
            await wait_for(inside, CONFIG_MAPS, "cni", "kube-system", until=lambda obj: bool(obj.get("data")))
            await self.world.until(lambda obj: "gate" in str(conditions_of(obj)), name)

    async def open_gates(self) -> None:
        """Gates are read again after some seconds, or when something else changes."""
        for name, inside in self.insides.items():
            await inside.patch(CONFIG_MAPS, GATE["name"], {"data": {"open": "yes"}}, GATE["namespace"])
            await self.world.nudge(name)

    async def ended(self) -> None:
        for name in NAMES:
            await self.world.installed(NEXT, name)

    async def unfinished(self) -> set[ObjectKey]:
        """The ClusterAddons that are not upgraded yet."""
        addons = (await self.client.list(types.CLUSTER_ADDONS, HOME)).items
        return {key_of(one) for one in addons if not is_installed(one, NEXT)}

    async def _kubeconfig(self, name: str) -> None:
        document = yaml.dump(self.world.server.kubeconfig_dict(f"{self.world.name}-{name}")).encode()
        metadata = {"name": f"{name}-kubeconfig", "namespace": HOME, "labels": {"cluster.x-k8s.io/cluster-name": name}}
        data = {"value": base64.b64encode(document).decode()}
        await self.client.apply(SECRETS, {"metadata": metadata, "data": data}, field_manager="test")

    # The objects that are there.

    async def uids(self) -> dict[tuple[str, str], str]:
        """The UIDs of all that the controllers made, by kind and name."""
        found = {}
        for resource in (types.CLUSTER_STACK_RELEASES, CLASSES, types.CLUSTER_ADDONS):
            for one in (await self.client.list(resource, HOME)).items:
                found[resource.kind, one["metadata"]["name"]] = one["metadata"]["uid"]
        for name, inside in self.insides.items():
            for one in (await inside.list(CONFIG_MAPS, "kube-system", labels=OWNED)).items:
                found[name, one["metadata"]["name"]] = one["metadata"]["uid"]
        return found

    async def state(self) -> Object:
        """The objects as users see them, without times and identities."""
        found: Object = {}
        for name, inside in self.insides.items():
            addon = await self.client.get(types.CLUSTER_ADDONS, f"cluster-addon-{name}", HOME)
            objects = (await inside.list(CONFIG_MAPS, "kube-system", labels=OWNED)).items
            spec = {field: value for field, value in addon["spec"].items() if field != "clusterRef"}
            status = addon["status"]
            found[name] = [
                spec,
                status["ready"],
                status.get("stages"),
                status["resources"],
                conditions(addon),
                {one["metadata"]["name"]: one.get("data") for one in objects},
            ]
        for one in (await self.client.list(types.CLUSTER_STACK_RELEASES, HOME)).items:
            found[one["metadata"]["name"]] = [one["status"]["ready"], one["status"]["resources"], conditions(one)]
        return found

    async def run_out(self, replica: str) -> None:
        """The Lease of a dead replica, which nobody renews, is to last a second and not a minute."""
        leases = (await self.client.list(LEASES, HOME)).items
        (name,) = (one["metadata"]["name"] for one in leases if one["spec"]["holderIdentity"] == replica)
        await self.client.patch(LEASES, name, {"spec": {"leaseDurationSeconds": 1}}, HOME)


OWNED = "clusterstack.x-k8s.io/instance=owned"


def conditions_of(obj: Object) -> Any:
    return obj.get("status", {}).get("conditions") or ()


def _is_ready(obj: Object) -> bool:
    return bool(obj.get("status", {}).get("ready"))


@asynccontextmanager
async def shared(server: TestServer, folder: Path) -> AsyncIterator[Shared]:
    async with addon_world(server, folder) as world, AsyncExitStack() as open_clients:
        await define(server, world.name, types.ClusterStack, types.ClusterStackRelease, types.StackPolicy)
        insides = {}
        for name in NAMES:
            await asyncio.to_thread(server.create_cluster, f"{world.name}-{name}")
            client = Client.from_kubeconfig(server.kubeconfig_for(f"{world.name}-{name}"))
            insides[name] = await open_clients.enter_async_context(client)
        made = Shared(world, insides)
        made.publish()
        yield made


async def undisturbed(server: TestServer, folder: Path) -> Object:
    """The end of an upgrade by one replica alone."""
    async with shared(server, folder) as here, here.replica("alone"):
        await here.begin()
        await here.upgrade()
        await here.open_gates()
        await here.ended()
        return await here.state()


@pytest.mark.parametrize("killed", [False, True], ids=["released", "killed"])
async def test_an_upgrade_is_ended_by_the_other_replica(server: TestServer, tmp_path: Path, *, killed: bool) -> None:
    expected = await undisturbed(server, tmp_path / "alone")
    async with shared(server, tmp_path) as here, here.replica("stays") as stays:
        async with here.replica("ends") as ends:
            await stays.sees(2)
            await ends.sees(2)
            here.ledger.done.clear()
            await here.begin()
            await here.upgrade()
            shares = {one.name: here.ledger.of(one.name, "clusteraddon") for one in (stays, ends)}
            assert all(shares.values()), "one of them had nothing to do"
            assert {turn: len(who) for turn, who in here.ledger.done.items() if len(who) > 1} == {}
            before = await here.uids()
            if killed:
                ends.die_at_a_write()
                await here.open_gates()
                await ends.is_dead()
        assert await here.unfinished() & shares["ends"], "it ended when all was done"
        if killed:
            await here.run_out("ends")
        else:
            await here.open_gates()
        await here.ended()
        await stays.sees(1)
        await stays.at_rest()
        assert here.ledger.of("stays", "clusteraddon") == shares["stays"] | shares["ends"]
        assert here.ledger.broken == []
        after = await here.uids()
        assert {key: uid for key, uid in after.items() if before.get(key, uid) != uid} == {}, "made a second time"
        refused = [one for each in (stays, ends) for one in each.requests.answers if one[::2] == ("POST", "409")]
        assert refused == [], "made by both"
        assert await here.state() == expected
