"""The way back: clients return to the source, the members and keys of the destination leave, peer URLs are restored."""

from __future__ import annotations

from hortus.gardener.livemigration.state import Backends, EtcdMember, ServerState, Site
from hortus.gardener.livemigration.steps import (
    DrainServers,
    MoveControllers,
    Moved,
    Remove,
    RemoveKeys,
    RouteTo,
    StartServers,
    Step,
    StopServers,
    TransferLeadership,
    UpdatePeerUrls,
    Wait,
    WipeMember,
)
from hortus.gardener.livemigration.view import MigrationView


def abort_step(view: MigrationView) -> Step:
    """The next step of an abort; Moved once the member list is that of the record."""
    for rule in (_clients_return, _servers_leave, _members_leave, _restore_urls, _wipe):
        if (step := rule(view)) is not None:
            return step
    return Moved()


def _clients_return(view: MigrationView) -> Step | None:
    seen = view.seen
    if seen.source.servers in (ServerState.STOPPED, ServerState.DRAINING):
        return StartServers(site=Site.SOURCE)
    if seen.source.servers != ServerState.READY:
        return Wait(reason="ServersStarting", message="the API servers of the source are not ready yet")
    if seen.backends == Backends.DESTINATION:
        return RouteTo(backends=Backends.BOTH)
    if seen.backends == Backends.BOTH:
        return RouteTo(backends=Backends.SOURCE)
    return None if seen.source.has_controllers else MoveControllers(site=Site.SOURCE)


def _servers_leave(view: MigrationView) -> Step | None:
    destination = view.seen.destination
    if destination.servers == ServerState.STOPPED or not destination.is_reachable:
        return None
    if destination.servers == ServerState.READY:
        return DrainServers(site=Site.DESTINATION)
    if destination.servers == ServerState.DRAINING and destination.connections:
        open_ = f"{destination.connections} connections to the destination are open"
        return Wait(reason="Draining", message=open_, seconds=0.25)
    return StopServers(site=Site.DESTINATION)


def _members_leave(view: MigrationView) -> Step | None:
    """The learner first, then voters, those that are down before those that work."""
    if not view.joined:
        return None
    leader = view.seen.leader
    target = min(view.joined, key=lambda one: (not one.is_learner, one.is_healthy, one.title))
    if leader is not None and leader in view.joined:
        return _hand_back(view, leader)
    if not view.keeps_majority(without=target.id):
        return Wait(reason="QuorumAtRisk", message="the change would leave etcd without a healthy majority")
    return Remove(id=target.id, name=target.name)


def _hand_back(view: MigrationView, leader: EtcdMember) -> Step:
    able = [one for one in view.source if one.is_healthy]
    if not able:
        return Wait(reason="NoSuccessor", message="no voter at the source can take the leadership")
    target = max(able, key=lambda one: (one.index, one.name))
    return TransferLeadership(leader_id=leader.id, target_id=target.id, target_name=target.name)


def _restore_urls(view: MigrationView) -> Step | None:
    before = {one.id: one.peer_urls for one in view.record.members}
    for member in view.source:
        if member.peer_urls != before[member.id]:
            return UpdatePeerUrls(id=member.id, name=member.name, peer_urls=before[member.id])
    return None


def _wipe(view: MigrationView) -> Step | None:
    destination = view.seen.destination
    for slot in destination.members:
        if slot.is_running or slot.has_data:
            return _once_reachable(view, WipeMember(site=Site.DESTINATION, name=slot.name))
    return _once_reachable(view, RemoveKeys(site=Site.DESTINATION)) if destination.keys else None


def _once_reachable(view: MigrationView, step: Step) -> Step:
    if view.seen.destination.is_reachable:
        return step
    return Wait(reason="DestinationUnreachable", message="the destination does not answer", seconds=5.0)
