"""A simulated control plane: two sites with simulated members, API servers that need time to start, and a router."""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Final

from hortus.gardener.livemigration import (
    Backends,
    EtcdMember,
    Observation,
    ServerState,
    Site,
    SiteMember,
    SiteState,
    StepRefused,
)
from hortus.gardener.livemigration import steps as step_kinds
from hortus.gardener.livemigration.steps import Action
from hortus.kube.clock import Clock
from hortus.simulation.garden.livemigration.etcd import CONNECTED_FOR, EtcdRefused, SimulatedEtcd, SimulatedMember

KEYS: Final = ("ca", "encryption-configuration", "service-account-key")
"""Names of the keys of a control plane."""


@dataclass
class SimulatedSite:
    """One site."""

    members: list[str]
    """Names of members that it runs or can run."""
    prefix: str = ""
    has_data: set[str] = field(default_factory=set)
    servers: ServerState = ServerState.STOPPED
    ready_at: float = 0.0
    drained_at: float = 0.0
    connections: int = 0
    keys: dict[str, str] = field(default_factory=dict)
    """SHA-256 by name."""
    has_extensions: bool = False
    has_controllers: bool = False
    has_snapshot: bool = False

    def url(self, name: str) -> str:
        return f"https://{name}.{self.prefix or 'internal'}:2380"


class SimulatedControlPlane:
    """A `MovingPlane` without processes. `seconds` scales all durations: 1 is as long as on a real machine."""

    def __init__(
        self, clock: Clock, *, cluster_id: str, source: str, destination: str, size: int = 3, seconds: float = 1.0
    ) -> None:
        self._clock = clock
        self._start_time = 3.0 * seconds
        self.etcd = SimulatedEtcd(cluster_id, pace=seconds)
        names = [f"{source}-etcd-main-{number}" for number in range(size)]
        later = [f"{destination}-etcd-main-{number}" for number in range(size)]
        self.sites = {
            Site.SOURCE: SimulatedSite(names, prefix=source, has_data=set(names), has_controllers=True),
            Site.DESTINATION: SimulatedSite(later, prefix=destination),
        }
        here = self.sites[Site.SOURCE]
        here.servers, here.has_extensions, here.connections = ServerState.READY, True, 3
        here.keys = {one: sha256(f"{one} of {cluster_id}".encode()).hexdigest() for one in KEYS}
        self.backends = Backends.SOURCE
        since = clock.monotonic() - CONNECTED_FOR
        for number, name in enumerate(names, start=1):
            made = SimulatedMember(
                f"a{number}", name, (f"https://{name}.{source}.svc:2380",), Site.SOURCE, is_up=True, joined_at=since
            )
            self.etcd.members[made.id] = made
        self.etcd.settle(clock.monotonic())

    async def observe(self) -> Observation:
        """The state at this moment. Raises StepRefused where no majority answers."""
        now = self._clock.monotonic()
        self.etcd.settle(now)
        for name, site in self.sites.items():
            # A learner answers no read that a server starts with.
            votes = any(one.site == name and one.is_up for one in self.etcd.voters())
            if site.servers == ServerState.STARTING and now >= site.ready_at and votes:
                site.servers = ServerState.READY
            if site.servers == ServerState.DRAINING and now >= site.drained_at:
                site.connections = 0
        group = self.etcd.group()
        if not group:
            raise StepRefused("etcd has no majority that answers", reason="NoLeader")
        return Observation(
            cluster_id=self.etcd.cluster_id,
            revision=self.etcd.revision,
            members=tuple(_seen(one, group, self.etcd.leader_id) for one in self.etcd.members.values()),
            source=self._site(Site.SOURCE),
            destination=self._site(Site.DESTINATION),
            backends=self.backends,
        )

    def _site(self, which: Site) -> SiteState:
        site = self.sites[which]
        running = {one.name for one in self.etcd.members.values() if one.is_up}
        members = tuple(
            SiteMember(name=name, peer_url=site.url(name), is_running=name in running, has_data=name in site.has_data)
            for name in site.members
        )
        return SiteState(
            members=members,
            servers=site.servers,
            connections=site.connections,
            keys=dict(site.keys),
            has_extensions=site.has_extensions,
            has_controllers=site.has_controllers,
            has_snapshot=site.has_snapshot,
            is_reachable=self.etcd.link or which == Site.SOURCE,
        )

    async def act(self, step: Action) -> None:
        """One step. Raises StepRefused."""
        try:
            self._act(step, self._clock.monotonic())
        except EtcdRefused as refusal:
            raise StepRefused(str(refusal), reason="EtcdRefused") from None

    def _act(self, step: Action, now: float) -> None:
        etcd, destination = self.etcd, self.sites[Site.DESTINATION]
        match step:
            case step_kinds.AddLearner():
                etcd.add(step.peer_url, Site.DESTINATION, now)
            case step_kinds.StartMember():
                self._start(step.name, now)
            case step_kinds.Promote():
                etcd.promote(step.id, now)
            case step_kinds.Swing():
                etcd.promote(step.id, now)
                etcd.remove(step.removed_id, now)
            case step_kinds.Remove():
                etcd.remove(step.id, now)
            case step_kinds.TransferLeadership():
                etcd.transfer(step.target_id, now)
            case step_kinds.UpdatePeerUrls():
                etcd.update(step.id, step.peer_urls, now)
            case step_kinds.CopyKeys():
                if not (keys := self.sites[Site.SOURCE].keys):
                    raise StepRefused("the source has no keys any more", reason="KeysUnknown")
                destination.keys = keys | destination.keys
            case step_kinds.RouteTo():
                self._route(step.backends)
            case step_kinds.MoveControllers():
                for name, site in self.sites.items():
                    site.has_controllers = name == step.site
            case _:
                self._at_site(step, self.sites[step.site], now)

    def _at_site(
        self,
        step: step_kinds.TakeSnapshot
        | step_kinds.MoveExtensions
        | step_kinds.StartServers
        | step_kinds.DrainServers
        | step_kinds.StopServers
        | step_kinds.WipeMember
        | step_kinds.RemoveKeys,
        site: SimulatedSite,
        now: float,
    ) -> None:
        match step:
            case step_kinds.TakeSnapshot():
                site.has_snapshot = True
            case step_kinds.MoveExtensions():
                site.has_extensions = True
            case step_kinds.StartServers():
                site.servers, site.ready_at = ServerState.STARTING, now + self._start_time
            case step_kinds.DrainServers():
                site.servers, site.drained_at = ServerState.DRAINING, now + self._start_time / 3
            case step_kinds.StopServers():
                site.servers, site.connections = ServerState.STOPPED, 0
            case step_kinds.WipeMember():
                site.has_data.discard(step.name)
            case step_kinds.RemoveKeys():
                site.keys.clear()

    def _start(self, name: str, now: float) -> None:
        site = self.sites[Site.DESTINATION]
        found = next((one for one in self.etcd.members.values() if site.url(name) in one.peer_urls), None)
        if found is None:
            raise StepRefused(f"{name} is in no member list: it would found a cluster of its own")
        site.has_data.add(name)
        self.etcd.start(found.id, name, now)

    def _route(self, backends: Backends) -> None:
        self.backends = backends
        for name, site in self.sites.items():
            if backends in (Backends.BOTH, Backends(name.value)):
                site.connections = max(site.connections, 1)


def _seen(member: SimulatedMember, group: set[str], leader: str) -> EtcdMember:
    return EtcdMember(
        id=member.id,
        name=member.name,
        peer_urls=member.peer_urls,
        is_learner=member.is_learner,
        is_healthy=member.id in group,
        is_leader=member.id == leader,
        index=member.index,
        version=member.version,
        alarms=member.alarms,
    )
