"""The next step of a migration: pure, from the record and an observation. The algorithm is docs/garden/migration.md.

Rules stand in the order of the phases. Each returns the step that its phase lacks, or None. Nothing is remembered, so
that a coordinator that was killed anywhere goes on from what is there.

No rule lets etcd depend on a learner, removes the leader, changes a second member while a change is in flight, or
removes a member of the source before the leader is at the destination and clients are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from hortus.gardener.livemigration.aborting import abort_step
from hortus.gardener.livemigration.phases import LEARNER_SYNCING, MigrationPhase
from hortus.gardener.livemigration.state import Backends, EtcdMember, ServerState, Site
from hortus.gardener.livemigration.steps import (
    AddLearner,
    CopyKeys,
    DrainServers,
    Halt,
    MoveControllers,
    Moved,
    MoveExtensions,
    Promote,
    Remove,
    RemoveKeys,
    RouteTo,
    StartServers,
    Step,
    StopServers,
    Swing,
    TakeSnapshot,
    TransferLeadership,
    UpdatePeerUrls,
    Wait,
    WipeMember,
)
from hortus.gardener.livemigration.view import MigrationView, titles


class MoveDecision(NamedTuple):
    """A step, and the phase that it belongs to."""

    phase: MigrationPhase
    step: Step


def next_step(view: MigrationView, *, aborting: bool = False) -> MoveDecision:
    """The step to do now. An abort after the first removal of a member of the source is ignored."""
    if (stop := _stop(view)) is not None:
        return MoveDecision(phase_of(view), stop)
    if aborting and not view.is_past_return:
        return MoveDecision(phase_of(view), abort_step(view))
    if (changed := _changed_keys(view)) is not None:
        return MoveDecision(phase_of(view), changed)
    for phase, rule in _RULES:
        if (step := rule(view)) is not None:
            return MoveDecision(phase, step)
    return MoveDecision(MigrationPhase.COMPLETED, Moved())


def phase_of(view: MigrationView) -> MigrationPhase:
    """The first phase that is not over."""
    return next((phase for phase, rule in _RULES if rule(view) is not None), MigrationPhase.COMPLETED)


def _stop(view: MigrationView) -> Step | None:
    seen = view.seen
    if seen.cluster_id != view.record.cluster_id:
        return Halt(
            reason="OtherCluster",
            message=f"etcd's cluster is {seen.cluster_id or 'unknown'}, and {view.record.cluster_id} was to be moved",
        )
    if alarmed := [one for one in seen.members if one.alarms]:
        words = "; ".join(f"{one.title}: {', '.join(one.alarms)}" for one in alarmed)
        return Halt(reason="EtcdAlarm", message=f"etcd has raised alarms: {words}. Free space and disarm them")
    if strange := [one for one in view.joined if view.slot_of(one) is None]:
        return Halt(
            reason="StrangeMember",
            message=f"etcd has members that neither site knows: {titles(strange)}. Remove them, or repair the plan",
        )
    if seen.leader is None:
        return Wait(reason="NoLeader", message="etcd has no leader that answers")
    return None


def _changed_keys(view: MigrationView) -> Step | None:
    """A halt where a site has other keys than the source at the start, until the source is left.

    Its API servers would refuse tokens of the others, and write Secrets that the others cannot read. It comes after
    an abort, which is the way out.
    """
    if view.is_past_return:
        return None
    for site in Site:
        if changed := view.foreign_keys(site):
            return Halt(
                reason="KeysChanged",
                message=f"keys at the {site} are not those of the start: {', '.join(changed)}. Restore them, or abort",
            )
    return None


def _prepare(view: MigrationView) -> Step | None:
    if view.joined or view.is_past_return:
        return None
    if not view.seen.source.has_snapshot:
        return TakeSnapshot(site=Site.SOURCE)
    reachable = {one.name: one.peer_url for one in view.seen.source.members}
    for member in view.source:
        url = reachable.get(member.name, "")
        if url and url not in member.peer_urls:
            return _when_whole(view) or UpdatePeerUrls(
                id=member.id, name=member.name, peer_urls=(*member.peer_urls, url)
            )
    return CopyKeys() if view.lacks_keys else None


def _join_voters(view: MigrationView) -> Step | None:
    """All members of the destination but the last become voters.

    Of one member none is left out: a learner answers no reads that API servers could start with.
    """
    if len(view.joined_voters) >= max(view.size - 1, 1) or view.is_past_return:
        return None
    if (restarted := _restart(view)) is not None:
        return restarted
    learner = view.learner
    if learner is None:
        return _add(view)
    if not view.has_caught_up(learner):
        return _catching_up(learner)
    return _when_whole(view) or Promote(id=learner.id, name=learner.name)


def _join_learner(view: MigrationView) -> Step | None:
    """The last one waits as a learner, so that the source keeps a majority for as long as the slow work takes."""
    if (restarted := _restart(view)) is not None:
        return restarted
    if not view.is_past_return and len(view.joined_voters) < view.size:
        learner = view.learner
        if learner is None:
            return _add(view)
        if not view.has_caught_up(learner):
            return _catching_up(learner)
    return None if view.seen.destination.has_extensions else MoveExtensions(site=Site.DESTINATION)


def _serve(view: MigrationView) -> Step | None:
    servers = view.seen.destination.servers
    if servers == ServerState.READY:
        return None
    if servers == ServerState.STARTING:
        return Wait(reason="ServersStarting", message="the API servers of the destination are not ready yet")
    return CopyKeys() if view.lacks_keys else StartServers(site=Site.DESTINATION)


def _route(view: MigrationView) -> Step | None:
    seen = view.seen
    if not seen.destination.has_controllers or seen.source.has_controllers:
        return MoveControllers(site=Site.DESTINATION)
    if seen.backends == Backends.SOURCE:
        return RouteTo(backends=Backends.BOTH)
    if seen.backends == Backends.BOTH:
        return RouteTo(backends=Backends.DESTINATION)
    if seen.source.servers == ServerState.STOPPED or view.is_forced:
        return None
    if seen.source.servers != ServerState.DRAINING:
        return DrainServers(site=Site.SOURCE)
    if seen.source.connections:
        return Wait(
            reason="Draining",
            message=f"{seen.source.connections} connections to the source are open",
            seconds=0.25,
        )
    return StopServers(site=Site.SOURCE)


def _shrink(view: MigrationView) -> Step | None:
    """Leadership moves, then voters: the last learner in, and the members of the source out, one by one."""
    learner = view.learner
    if not view.source and learner is None:
        return None
    if (transfer := _lead(view, Site.DESTINATION)) is not None:
        return transfer
    if learner is not None:
        return _swing(view, learner)
    target = _to_remove(view)
    is_split = len(view.seen.voters) % 2 == 0
    if not (is_split or view.is_forced) and (down := [one for one in view.joined if not one.is_healthy]):
        return _unhealthy(down)
    if not view.keeps_majority(without=target.id):
        return _no_majority()
    return Remove(id=target.id, name=target.name)


def _swing(view: MigrationView, learner: EtcdMember) -> Step:
    if not view.has_caught_up(learner):
        return _catching_up(learner)
    if not view.is_forced and (down := [one for one in view.joined if not one.is_healthy]):
        return _unhealthy(down)
    if not view.keeps_majority(with_learner=learner.id):
        return _no_majority()
    target = _to_remove(view)
    return Swing(id=learner.id, name=learner.name, removed_id=target.id, removed_name=target.name)


def _clean_up(view: MigrationView) -> Step | None:
    seen = view.seen
    if not seen.destination.has_snapshot:
        return TakeSnapshot(site=Site.DESTINATION)
    for slot in seen.source.members:
        if slot.is_running or slot.has_data:
            return WipeMember(site=Site.SOURCE, name=slot.name)
    if seen.source.keys:
        return RemoveKeys(site=Site.SOURCE)
    for member in view.joined:
        slot_ = view.slot_of(member)
        if slot_ is not None and slot_.internal_url and member.peer_urls != (slot_.internal_url,):
            return _when_whole(view) or UpdatePeerUrls(id=member.id, name=member.name, peer_urls=(slot_.internal_url,))
    return None


def _add(view: MigrationView) -> Step:
    taken = {slot.name for one in view.joined if (slot := view.slot_of(one)) is not None}
    slot = next((one for one in view.planned if one.name not in taken), None)
    if slot is None:
        return Halt(reason="TooFewMembers", message=f"the destination has no {view.size} members to offer")
    if not view.seen.destination.is_reachable:
        return Wait(reason="DestinationUnreachable", message="the destination does not answer", seconds=5.0)
    return _when_whole(view) or AddLearner(name=slot.name, peer_url=slot.peer_url)


def _start(view: MigrationView, member: EtcdMember) -> Step | None:
    slot = view.slot_of(member)
    return view.starting(slot) if slot is not None and not slot.is_running else None


def _restart(view: MigrationView) -> Step | None:
    """The start of a member of the destination whose process is gone."""
    return next((step for one in view.joined if (step := _start(view, one)) is not None), None)


def _to_remove(view: MigrationView) -> EtcdMember:
    """A member of the source: one that is down before one that works, never the leader while there is another."""
    return min(view.source, key=lambda one: (one.is_leader, one.is_healthy, one.name))


def _lead(view: MigrationView, site: Site) -> Step | None:
    leader = view.seen.leader
    if leader is None or view.is_at(leader, site):
        return None
    able = [one for one in view.seen.voters if view.is_at(one, site) and one.is_healthy]
    if not able:
        return Wait(reason="NoSuccessor", message=f"no voter at the {site} can take the leadership")
    target = max(able, key=lambda one: (one.index, one.name))
    return TransferLeadership(leader_id=leader.id, target_id=target.id, target_name=target.name)


def _when_whole(view: MigrationView) -> Step | None:
    """A wait while some voter is down: etcd refuses to grow then, and no change may add a second fault."""
    down = view.unhealthy()
    return _unhealthy(down) if down else None


def _unhealthy(down: list[EtcdMember]) -> Wait:
    return Wait(reason="MembersUnhealthy", message=f"etcd members do not answer: {titles(down)}")


def _catching_up(learner: EtcdMember) -> Wait:
    return Wait(reason=LEARNER_SYNCING, message=f"{learner.title} has not caught up with the leader", seconds=0.5)


def _no_majority() -> Wait:
    return Wait(reason="QuorumAtRisk", message="the change would leave etcd without a healthy majority")


_RULES: Final[tuple[tuple[MigrationPhase, Callable[[MigrationView], Step | None]], ...]] = (
    (MigrationPhase.SOURCE_PREPARED, _prepare),
    (MigrationPhase.PEERS_JOINED, _join_voters),
    (MigrationPhase.EXTENSIONS, _join_learner),
    (MigrationPhase.SERVERS_READY, _serve),
    (MigrationPhase.DNS, _route),
    (MigrationPhase.ETCD_COMPLETE, _shrink),
    (MigrationPhase.SOURCE_CLEANUP, _clean_up),
)
