"""Leftovers next to requests for access: a management cluster, clusters, a garden, the controller on a fake clock.

The clusters and the requests are those of the tests of access. A later look waits on the clock, which the tests move
until the server shows what they expect.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import CollectorRegistry
from tests.domains.access.world import NAMESPACES, Requests, World, content
from tests.domains.access.world import world as access_world
from tests.domains.definitions import define
from tests.simulation.shoots import small_shoot

from hortus.domains.credentials.types import Label
from hortus.domains.leftovers.composition import add_controller
from hortus.domains.leftovers.following import MOST
from hortus.engine import Manager, read
from hortus.engine.kubeconfigs import SECRETS, sealed
from hortus.engine.leftovers import Debt, LeftoverRecorder, leftovers_of, member_cluster
from hortus.engine.leftovers.types import LEFTOVERS, Leftover, LeftoverItem, LeftoverSource
from hortus.engine.remote import MemberIdentity, RemotePool, RemoteSettings, SecretCredentials
from hortus.kube import Client, yaml
from hortus.kube.access import Access, Credentials, Secret
from hortus.kube.objects import Resource
from hortus.testing import FakeClock
from hortus.testing.apiserver import TestServer

SHOOTS = Resource("core.gardener.cloud", "v1beta1", "shoots", "Shoot")
KEEP = 7 * 24 * 3600.0
PATIENCE = 60.0
LONGEST = 400
"""Steps of the clock after which a test gives up."""


class Ledger:
    """The world of a test."""

    def __init__(self, access: World, garden: Client) -> None:
        self.access = access
        """Requests, GardenerClusters and the clusters behind them."""
        self.client = access.client
        self.namespace = access.namespace
        self.garden = garden
        self.garden_namespace = f"garden-{access.namespace}"
        self.clock = FakeClock(now=access.clock.now())
        self.registry = CollectorRegistry()
        self.requests = Requests()
        """Requests of the controller, to all servers."""

    # Actions of the test.

    async def record(
        self,
        items: Sequence[LeftoverItem],
        *,
        name: str = "reader",
        shoot: str = "",
        identity: str = "",
        member: MemberIdentity | None = None,
        namespace: str = "",
    ) -> str:
        """A Leftover of the cluster `tulip`, as the recorder writes it; returns its name."""
        namespace = namespace or self.namespace
        debt = Debt(
            source=LeftoverSource(kind="ClusterAccess", name=name, namespace=self.namespace, uid=f"uid-{name}"),
            reason="ClusterUnreachable",
            message="no route to host",
            items=items,
            cluster=member_cluster(member or MemberIdentity(identity), "tulip", self.namespace, shoot=shoot),
        )
        assert await LeftoverRecorder(self.client, namespace, registry=CollectorRegistry()).record(debt)
        [made] = leftovers_of(debt, namespace)
        return made.metadata.name

    async def leftovers(self) -> list[Leftover]:
        return [read(Leftover, one) for one in (await self.client.list(LEFTOVERS, self.namespace)).items]

    async def only(self) -> Leftover:
        [found] = await self.leftovers()
        return found

    async def plant(self, name: str = "tulip") -> None:
        """A Shoot in the garden."""
        shoot = small_shoot(self.namespace, 0)
        shoot["metadata"]["name"] = name
        await self.garden.create(SHOOTS, shoot)

    async def fell(self, name: str = "tulip") -> None:
        """The Shoot is gone."""
        patch = {"metadata": {"finalizers": None, "annotations": {"confirmation.gardener.cloud/deletion": "true"}}}
        await self.garden.patch(SHOOTS, name, patch, self.garden_namespace)
        await self.garden.delete(SHOOTS, name, self.garden_namespace)

    async def lead(self, server: str = "https://127.0.0.1:1") -> str:
        """Make the kubeconfig of `tulip` lead elsewhere, by default to a port where nobody listens; returns where it
        led before."""
        found = await self.client.get(SECRETS, "kubeconfig-tulip", self.namespace)
        document = yaml.load(content(found))
        cluster = document["clusters"][0]["cluster"]
        before, cluster["server"] = cluster["server"], server
        value = base64.b64encode(yaml.dump(document).encode()).decode()
        await self.client.patch(SECRETS, "kubeconfig-tulip", {"data": {"config": value}}, self.namespace)
        return str(before)

    # Conditions to wait for.

    async def until(self, says: Callable[[Leftover], Any], *, step: float = 2.0) -> Leftover:
        """The only Leftover once it is so; time passes meanwhile."""
        seen: Leftover | None = None
        for _ in range(LONGEST):
            seen = await self.only()
            if says(seen):
                return seen
            await self.clock.advance(step)
        raise AssertionError(f"waited in vain; last seen: {seen}")

    async def shown(self, says: Callable[[Leftover], Any]) -> Leftover:
        """The only Leftover once it is so, while no time passes."""
        async with (
            asyncio.timeout(PATIENCE),
            self.client.watch(LEFTOVERS, self.namespace, initial_events=True) as events,
        ):
            async for event in events:
                if event.type != "BOOKMARK" and says(found := read(Leftover, event.object)):
                    return found
        raise AssertionError("the watch ended")

    async def pass_time(self, seconds: float) -> None:
        """Let time pass, in steps that leave a call to a cluster the time for its answer."""
        for _ in range(int(seconds / 2.0)):
            await self.leftovers()
            await self.clock.advance(2.0)

    async def until_none(self, *, step: float = 3600.0) -> None:
        """Return once there is no Leftover any more."""
        for _ in range(LONGEST):
            if not await self.leftovers():
                return
            await self.clock.advance(step)
        raise AssertionError(f"still there: {await self.leftovers()}")

    def metric(self, state: str) -> float | None:
        return self.registry.get_sample_value("hortus_leftovers", {"state": state})

    # The controllers under test.

    @asynccontextmanager
    async def controlled(self, *, grace: float = 0.0, watches: int = MOST) -> AsyncIterator[Manager]:
        """The controller of Leftovers at work, as a process that starts now and is killed at the end.

        With `grace` it ends what it has begun.
        """
        async with (
            Client(self.client.access, observer=self.requests) as client,
            Client(self.garden.access, observer=self.requests) as garden,
        ):
            self.registry = CollectorRegistry()
            manager = Manager(client, clock=self.clock, registry=self.registry, grace=grace)
            kubeconfigs = manager.cache(SECRETS, labels=Label.SHOOT_NAME, transform=sealed)
            pool = RemotePool(
                SecretCredentials(client, kubeconfigs),
                # The clock of the test goes on while a call is under way.
                settings=RemoteSettings(deny=(), connect_timeout=PATIENCE, timeout=PATIENCE, deadline=1e9),
                clock=self.clock,
                observer=self.requests,
            )
            manager.on_stop(pool.close)
            add_controller(
                manager,
                client=client,
                garden=garden,
                garden_namespace=self.garden_namespace,
                shoots=manager.caches_of(garden).get(SHOOTS, namespace=self.garden_namespace),
                pool=pool,
                kubeconfigs=kubeconfigs,
                fleet_namespace=self.namespace,
                watched="",
                keep=KEEP,
                watches=watches,
            )
            async with manager.running():
                yield manager


@asynccontextmanager
async def ledger(server: TestServer) -> AsyncIterator[Ledger]:
    """A namespace, a project and clusters of the test's own, with nobody at work yet."""
    credentials = Credentials(token=Secret(server.token_everywhere))
    access = Access(server=server.cluster_url("garden"), ca=server.ca, credentials=credentials)
    async with access_world(server) as requests, Client(access) as garden:
        requests.leftovers = True
        await define(server, "root", Leftover)
        made = Ledger(requests, garden)
        await garden.create(NAMESPACES, {"metadata": {"name": made.garden_namespace}})
        yield made
