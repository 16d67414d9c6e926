"""A control plane of real processes that can move: a `MovingPlane` over etcd, API servers and Envoy."""

from __future__ import annotations

import asyncio
import secrets
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
from tests.domains.garden.migration.elections import ElectedControllers, elected_controllers
from tests.domains.garden.migration.forwarding import Links
from tests.domains.garden.migration.observing import Observer
from tests.domains.garden.migration.router import HOST, Router, running_router
from tests.domains.garden.migration.sites import MemberProcess, SeedSite, ServerProcess
from tests.waiting import until

from hortus.domains.garden.migration.members import EtcdCluster, EtcdState
from hortus.gardener.livemigration import (
    Backends,
    MigrationRecord,
    MoveDecision,
    Observation,
    ServerState,
    Site,
    StepRefused,
    migration_record,
    steps,
    walk,
)
from hortus.gardener.livemigration.steps import Action, Step
from hortus.kube.access import Access, Credentials, Secret
from hortus.kube.clock import Clock


class Reached(Exception):
    """The walk has come to the step that it was to stop before."""


class RealPlane:
    """The processes of both sites, and the steps that concern them."""

    def __init__(
        self, folder: Path, *, size: int = 3, servers: int = 2, kind: type[ServerProcess] = ServerProcess
    ) -> None:
        self.token = secrets.token_urlsafe(16)
        self.links = Links()
        names = [[f"{prefix}-{number}" for number in range(size)] for prefix in ("src", "dst")]
        self.source = SeedSite("source", folder, names[0], kind=kind, servers=servers)
        self.destination = SeedSite("destination", folder, names[1], kind=kind, servers=servers)
        kind.write_keys(self.source.keys, self.token)
        self.etcd = EtcdCluster(self.clients)
        self.backends = Backends.SOURCE
        self.router: Router
        self.controllers: ElectedControllers
        self.timeline: list[tuple[float, MoveDecision]] = []
        """The decisions with their times."""
        self._sources: set[str] = set()
        self.folder = folder
        self.links.site_of = lambda id_: "source" if str(int(id_, 16)) in self._sources else "destination"

    @property
    def members(self) -> list[MemberProcess]:
        return [*self.source.members, *self.destination.members]

    def site(self, site: Site) -> SeedSite:
        return self.source if site == Site.SOURCE else self.destination

    def clients(self) -> dict[str, str]:
        """URLs of client ports, by the names of the members that run."""
        return {one.name: one.client_url for one in self.members if one.is_running}

    async def begin(self) -> None:
        """Start the source, as it was before any migration."""
        for one in self.members:
            await one.forward(self.links)
        # Until the members are known, all are of the source.
        self.links.site_of = lambda id_: "source"
        initial = ",".join(f"{one.name}={one.inside_url}" for one in self.source.members)
        for one in self.source.members:
            one.start(initial, state="new", own=one.inside_url)
        state = await until(self._whole)
        self._sources = {one.id for one in state.members}
        self.links.site_of = lambda id_: "source" if str(int(id_, 16)) in self._sources else "destination"
        self.source.has_extensions = True
        self.source.start_servers()
        await until(lambda: self.source.state == ServerState.READY)

    async def _whole(self) -> EtcdState | None:
        try:
            state = await self.etcd.state()
        except StepRefused:
            return None
        return state if all(one.is_healthy for one in state.members) else None

    async def has_leader(self) -> bool:
        """Reports whether etcd answers with a leader."""
        try:
            return bool((await self.etcd.state()).members)
        except StepRefused:
            return False

    @property
    def ca(self) -> str:
        return next(one.ca for one in (*self.source.servers, *self.destination.servers) if one.ca)

    def tls(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=self.ca)
        return context

    def access(self, token: str = "") -> Access:
        """The way of a client through the router; the administrator's without another token."""
        return Access(
            server=f"https://127.0.0.1:{self.router.port}",
            ca=self.ca.encode(),
            tls_server_name=HOST,
            credentials=Credentials(token=Secret(token or self.token)),
        )

    # MovingPlane.

    async def observe(self) -> Observation:
        state = await self.etcd.state()
        open_ = await self.router.connections()
        source, destination = (
            one.report(
                sum(open_.get(server.port, 0) for server in one.servers),
                has_controllers=self.controllers.are_at(one.name),
                is_reachable=self.links.whole or one is self.source,
            )
            for one in (self.source, self.destination)
        )
        return Observation(
            cluster_id=state.cluster_id,
            revision=state.revision,
            members=state.members,
            source=source,
            destination=destination,
            backends=self.backends,
        )

    async def act(self, step: Action) -> None:
        match step:
            case steps.TakeSnapshot():
                await self._snapshot(self.site(step.site))
            case steps.CopyKeys():
                self.destination.copy_keys(self.source)
            case steps.RemoveKeys():
                self.site(step.site).remove_keys()
            case steps.StartMember():
                await self._start(step)
            case steps.WipeMember():
                next(one for one in self.site(step.site).members if one.name == step.name).wipe()
            case steps.MoveExtensions():
                self.site(step.site).has_extensions = True
            case steps.StartServers():
                self.site(step.site).start_servers()
            case steps.DrainServers():
                self.site(step.site).drain()
            case steps.StopServers():
                await self.site(step.site).stop_servers()
            case steps.MoveControllers():
                await self.controllers.move(step.site)
            case steps.RouteTo():
                await self._route(step.backends)
            case _:
                await self.etcd.act(step)

    async def _start(self, step: steps.StartMember) -> None:
        member = next(one for one in self.destination.members if one.name == step.name)
        member.start(",".join(f"{name}={url}" for name, url in step.initial_cluster))

    async def _route(self, backends: Backends) -> None:
        old, new = [[one.port for one in site.servers] for site in (self.source, self.destination)]
        match backends:
            case Backends.SOURCE:
                await self.router.route(old, new)
            case Backends.BOTH:
                await self.router.route([*old, *new], [])
            case Backends.DESTINATION:
                await self.router.route(new, old)
        self.backends = backends

    async def _snapshot(self, site: SeedSite) -> None:
        member = next(one for one in site.members if one.is_running)
        path = site.folder / f"{site.name}.snapshot"
        url = f"{member.client_url}/v3/maintenance/snapshot"
        try:
            async with aiohttp.ClientSession() as session, session.post(url, data=b"{}") as answer:
                with path.open("wb") as file:
                    async for piece in answer.content.iter_any():
                        file.write(piece)
        except aiohttp.ClientError as error:
            raise StepRefused(f"{member.name} has not answered with a snapshot: {error}") from None
        site.has_snapshot = path.stat().st_size > 0

    # Walks.

    async def walk(
        self, record: MigrationRecord, *, aborting: bool = False, until: Callable[[Step], bool] = lambda step: False
    ) -> None:
        """Walk to the end, as a coordinator does that is called again and again, or before a step that fits `until`."""

        async def report(decision: MoveDecision, seen: Observation) -> None:
            self.timeline.append((time.monotonic(), decision))
            if until(decision.step):
                raise Reached

        while True:
            try:
                decision = await walk(self, record, report, aborting=aborting)
            except Reached:
                return
            except StepRefused:
                await asyncio.sleep(0.2)
                continue
            if isinstance(decision.step, steps.Moved):
                return
            assert not isinstance(decision.step, steps.Halt), decision
            if isinstance(decision.step, steps.Wait):
                await asyncio.sleep(decision.step.seconds)

    def story(self) -> str:
        """The last decisions and the members, for the message of a test."""
        steps = dict.fromkeys(repr(decision.step) for _, decision in self.timeline)
        members = ", ".join(f"{one.name} {'runs' if one.is_running else 'is down'}" for one in self.members)
        return f"{'; '.join([*steps][-8:])}; {members}; servers {self.source.state}, {self.destination.state}"

    @asynccontextmanager
    async def observed(self) -> AsyncIterator[Observer]:
        """The invariants are looked at until the end of the block."""
        observer = Observer(self.clients, source=frozenset(one.name for one in self.source.members))
        task = asyncio.create_task(observer.watch())
        try:
            yield observer
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def record(self) -> MigrationRecord:
        return migration_record(await self.observe(), source="source", destination="destination")

    async def close(self) -> None:
        await self.etcd.close()
        await asyncio.gather(self.source.kill(), self.destination.kill())
        await self.links.close()


@asynccontextmanager
async def real_plane(
    folder: Path,
    *,
    size: int = 3,
    servers: int = 2,
    kind: type[ServerProcess] = ServerProcess,
    elections: Clock | None = None,
) -> AsyncIterator[RealPlane]:
    """A running control plane at the source behind the router; `elections` is the clock of `ElectedControllers`."""
    plane = RealPlane(folder, size=size, servers=servers, kind=kind)
    try:
        await plane.begin()
        async with (
            running_router(folder, [one.port for one in plane.source.servers]) as plane.router,
            elected_controllers(plane.access(), clock=elections) as plane.controllers,
        ):
            yield plane
    finally:
        await plane.close()
