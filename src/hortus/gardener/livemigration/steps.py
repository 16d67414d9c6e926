"""The steps of a migration: values that an adapter carries out. Each may be repeated."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from hortus.gardener.livemigration.state import Backends, Site


class _Step(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Base of all steps."""


class TakeSnapshot(_Step, frozen=True):
    """Keep a snapshot of etcd at a site until the end."""

    site: Site


class CopyKeys(_Step, frozen=True):
    """Copy certificates, the encryption configuration and keys of ServiceAccounts from the source to the destination.

    A key that is there already stays as it is.
    """


class RemoveKeys(_Step, frozen=True):
    """Delete the keys at a site that serves no more."""

    site: Site


class UpdatePeerUrls(_Step, frozen=True):
    """Change the peer URLs of a member."""

    id: str
    name: str
    peer_urls: tuple[str, ...]


class AddLearner(_Step, frozen=True):
    """Add a member of the destination, as learner."""

    name: str
    peer_url: str


class StartMember(_Step, frozen=True):
    """Start the process of a member of the destination, with the member list of this moment."""

    name: str
    initial_cluster: tuple[tuple[str, str], ...]


class Promote(_Step, frozen=True):
    """Make a learner a voter."""

    id: str
    name: str


class Swing(_Step, frozen=True):
    """Promote the last learner, and at once remove a member of the source, so that an even split lasts milliseconds."""

    id: str
    name: str
    removed_id: str
    removed_name: str


class TransferLeadership(_Step, frozen=True):
    """Move the leadership from one member to another."""

    leader_id: str
    target_id: str
    target_name: str


class Remove(_Step, frozen=True):
    """Remove a member."""

    id: str
    name: str


class MoveExtensions(_Step, frozen=True):
    """Put the extensions that API servers need in place at a site."""

    site: Site


class StartServers(_Step, frozen=True):
    """Start the API servers of a site, on the members of that site alone."""

    site: Site


class DrainServers(_Step, frozen=True):
    """Let the API servers of a site end each connection after its answer, and end watches."""

    site: Site


class StopServers(_Step, frozen=True):
    """Stop the API servers of a site."""

    site: Site


class MoveControllers(_Step, frozen=True):
    """Stop the controllers at the other site, and start them at this one."""

    site: Site


class RouteTo(_Step, frozen=True):
    """Send new connections to these API servers."""

    backends: Backends


class WipeMember(_Step, frozen=True):
    """Stop a member that is in no member list any more, and delete its data."""

    site: Site
    name: str


class Wait(_Step, frozen=True):
    """Observe again after some seconds: no step is possible now."""

    reason: str
    message: str
    seconds: float = 1.0


class Halt(_Step, frozen=True):
    """End the walk until an operator has acted."""

    reason: str
    message: str


class Moved(_Step, frozen=True):
    """The goal is reached."""


Action: TypeAlias = (
    TakeSnapshot
    | CopyKeys
    | RemoveKeys
    | UpdatePeerUrls
    | AddLearner
    | StartMember
    | Promote
    | Swing
    | TransferLeadership
    | Remove
    | MoveExtensions
    | StartServers
    | DrainServers
    | StopServers
    | MoveControllers
    | RouteTo
    | WipeMember
)
"""Steps that change the world."""
Step: TypeAlias = Action | Wait | Halt | Moved
