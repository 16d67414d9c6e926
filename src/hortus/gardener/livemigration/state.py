"""The state of a control plane that moves: etcd's members, the two sites, the router, and the record of the start.

An `Observation` is read before each step. Nothing in it is remembered from an earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

import msgspec


class Site(StrEnum):
    """One of the two seeds."""

    SOURCE = "source"
    DESTINATION = "destination"


class Backends(StrEnum):
    """The API servers that the router sends new connections to."""

    SOURCE = "source"
    BOTH = "both"
    DESTINATION = "destination"


class ServerState(StrEnum):
    """The API servers of one site."""

    STOPPED = "stopped"
    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    """Each answer ends its connection, and watches end."""


class EtcdMember(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of etcd's member list, with the member's own status."""

    id: str
    name: str = ""
    """Empty until the member has started once."""
    peer_urls: tuple[str, ...] = ()
    is_learner: bool = False
    is_healthy: bool = False
    """True for a member that answers and knows the leader."""
    is_leader: bool = False
    index: int = 0
    """The last entry of the log that it applied."""
    version: str = ""
    alarms: tuple[str, ...] = ()
    db_size: int = 0
    """Bytes."""

    @property
    def title(self) -> str:
        """The name, or the peer URL of a member that has none yet."""
        return self.name or ", ".join(self.peer_urls) or self.id


class SiteMember(msgspec.Struct, frozen=True, kw_only=True):
    """A member that a site runs or can run."""

    name: str
    peer_url: str
    """The peer URL that both sites reach."""
    internal_url: str = ""
    """The peer URL within the site; empty where that is the same."""
    is_running: bool = False
    has_data: bool = False


class SiteState(msgspec.Struct, frozen=True, kw_only=True):
    """One site, as its agent reports it."""

    members: tuple[SiteMember, ...] = ()
    servers: ServerState = ServerState.STOPPED
    connections: int = 0
    """Open connections of clients that came by the router."""
    keys: Mapping[str, str] = {}
    """SHA-256 of each key that API servers need, by name: certificates, the encryption configuration, keys of
    ServiceAccounts."""
    has_extensions: bool = False
    """True where the extensions that API servers need are in place."""
    has_controllers: bool = False
    """True where the controllers run."""
    has_snapshot: bool = False
    """True once a snapshot of this migration is kept."""
    is_reachable: bool = True


class Observation(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a step is decided from."""

    cluster_id: str = ""
    revision: int = 0
    members: tuple[EtcdMember, ...] = ()
    source: SiteState = SiteState()
    destination: SiteState = SiteState()
    backends: Backends = Backends.SOURCE
    latency: float = 0.0
    """Seconds of a round trip between the sites."""

    def site(self, site: Site) -> SiteState:
        return self.source if site == Site.SOURCE else self.destination

    @property
    def voters(self) -> tuple[EtcdMember, ...]:
        return tuple(one for one in self.members if not one.is_learner)

    @property
    def learners(self) -> tuple[EtcdMember, ...]:
        return tuple(one for one in self.members if one.is_learner)

    @property
    def leader(self) -> EtcdMember | None:
        return next((one for one in self.members if one.is_leader and one.is_healthy), None)


class RecordedMember(msgspec.Struct, frozen=True, rename="camel"):
    """A member of the source, as it was before the migration."""

    id: str
    name: str
    peer_urls: tuple[str, ...] = msgspec.field(name="peerURLs")


class MigrationRecord(msgspec.Struct, frozen=True, rename="camel"):
    """The state before the first step, to which an abort returns."""

    cluster_id: str = msgspec.field(name="clusterID")
    revision: int
    members: tuple[RecordedMember, ...]
    keys: Mapping[str, str]
    """SHA-256 of the keys of the source, by name."""
    source: str = ""
    destination: str = ""


def migration_record(seen: Observation, *, source: str = "", destination: str = "") -> MigrationRecord:
    """The record of a cluster that no step has touched."""
    members = tuple(RecordedMember(one.id, one.name, one.peer_urls) for one in seen.members)
    return MigrationRecord(seen.cluster_id, seen.revision, members, seen.source.keys, source, destination)


def quorum(voters: int) -> int:
    return voters // 2 + 1
