"""The clusters that a rollout concerns, each with its state: objects of the ChangeKind joined with ClusterProfiles."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from hortus.domains.rollouts.changekinds import Identity, ObjectView
from hortus.domains.rollouts.decisions import NOBODY, AdmittedCluster, Expected, RolloutMember, State
from hortus.domains.rollouts.fleet import FleetClusters
from hortus.domains.rollouts.tracking import ChangeTracker
from hortus.engine.rollouts.types import Rollout
from hortus.kube.objects import ObjectKey, parse_time
from hortus.kube.selectors import LabelSelector

SETTLING: Final = 30.0
"""Seconds from the beginning of a rollout in which its clusters come to ask, each after its own reconcile. Without them
the first cluster that asks would be all of the fleet, and every stage before its own would be over without a cluster.
"""
_WORST = (State.FAILED, State.MOVING, State.WAITING, State.SUCCEEDED)


class EarlierRollout(NamedTuple):
    """A rollout that this one took the place of."""

    to: str
    admitted: Mapping[str, AdmittedCluster]
    deadline: float
    """Seconds that its clusters have to finish; 0 for no limit."""


class Membership:
    """The members of one rollout at one moment."""

    def __init__(
        self,
        rollout: Rollout,
        selector: LabelSelector | None,
        tracker: ChangeTracker,
        fleet: FleetClusters,
        admitted: Mapping[str, AdmittedCluster],
        *,
        earlier: Sequence[EarlierRollout] = (),
        reverted: Mapping[str, AdmittedCluster] | None = None,
        refusals: Mapping[str, str],
        now: float,
    ) -> None:
        """`earlier` are the rollouts before this one that may be in flight; `reverted` are the clusters admitted by
        the rollout that this one takes back. `refusals` are clusters whose object could not be set, with the problem.
        """
        self._rollout = rollout
        self._change = rollout.spec.change
        self._tracker = tracker
        self._fleet = fleet
        self.admitted = admitted
        """The clusters admitted so far, by name."""
        self._earlier = earlier
        self._reverted = reverted
        self._refusals = refusals
        self._selector = selector
        self._now = now

    def members(self) -> list[RolloutMember]:
        """Each cluster once; of several objects of a cluster the one that is worst off counts."""
        found: dict[str, RolloutMember] = {}
        for key, identity in self._tracker.objects(self._change.subject):
            member = self._member(key, identity)
            if member is None:
                continue
            known = found.get(member.cluster)
            if known is None or _WORST.index(member.state) < _WORST.index(known.state):
                found[member.cluster] = member
        return list(found.values())

    def expected(self) -> Expected:
        """The clusters at another version that have not asked; none where rollouts set the objects themselves."""
        until = parse_time(self._rollout.metadata.creation_timestamp or "1970-01-01T00:00:00Z") + SETTLING
        if self._rollout.spec.execute != "Owner" or self._now >= until:
            return NOBODY
        return Expected(list(self._silent()), until)

    def _silent(self) -> Iterator[Mapping[str, str]]:
        for key, identity in self._tracker.objects(self._change.subject):
            view, labels = self._tracker.view(key, self._change.to), self._fleet.get(identity.cluster).labels
            asks = identity.wanted == self._change.to or identity.cluster in self.admitted
            if not asks and view is not None and view.version != self._change.to and self._selects(labels):
                yield labels

    def to_set(self, admitted: Collection[str]) -> Iterator[tuple[ObjectKey, str]]:
        """The objects of admitted clusters that are not set to the new version, with their clusters."""
        for key, identity in self._tracker.objects(self._change.subject):
            if identity.cluster in admitted:
                view = self._tracker.view(key, self._change.to)
                if view is not None and view.version != self._change.to:
                    yield key, identity.cluster

    def not_begun(self) -> set[str]:
        """The admitted clusters of which no object is set to the new version."""
        left = set(self.admitted)
        for key, identity in self._tracker.objects(self._change.subject):
            view = self._tracker.view(key, self._change.to)
            if view is not None and view.version == self._change.to:
                left.discard(identity.cluster)
        return left

    def _member(self, key: ObjectKey, identity: Identity) -> RolloutMember | None:
        view = self._tracker.view(key, self._change.to)
        name, entry = identity.cluster, self.admitted.get(identity.cluster)
        cluster = self._fleet.get(name)
        if view is None:
            # Nothing says that an admitted cluster has finished: it is in work until its deadline.
            moving = RolloutMember(name, cluster.labels, State.MOVING, unavailable=cluster.unavailable)
            return None if entry is None else moving
        if entry is None and not self._takes_part(key, identity, view, cluster.labels):
            return None
        opens = 0.0 if cluster.window is None or entry is not None else cluster.window.opens(self._now)
        state, message = self._state(key, identity, view)
        return RolloutMember(name, cluster.labels, state, message, cluster.unavailable, opens)

    def _selects(self, labels: Mapping[str, str]) -> bool:
        return self._selector is not None and self._selector.matches(labels)

    def _takes_part(self, key: ObjectKey, identity: Identity, view: ObjectView, labels: Mapping[str, str]) -> bool:
        """A cluster that is at the new version without this rollout is none of its clusters.

        A rollout that sets objects leaves out those without a field for the version, and those made after it ended.
        """
        if view.version == self._change.to or not self._selects(labels):
            return False
        if self._reverted is not None and identity.cluster not in self._reverted:
            return False
        if self._rollout.spec.execute == "Owner":
            return identity.wanted == self._change.to
        ended = self._rollout.status.ended_at
        if (ended and identity.created > ended) or self._change.from_ not in ("", view.version):
            return False
        return self._tracker.sets(key, self._change.to)

    def _state(self, key: ObjectKey, identity: Identity, view: ObjectView) -> tuple[State, str]:
        if refusal := self._refusals.get(identity.cluster):
            return State.FAILED, refusal
        if view.version == self._change.to:
            if view.succeeded:
                return State.SUCCEEDED, ""
            return (State.FAILED, view.message) if view.failed else (State.MOVING, "")
        return (State.MOVING if self._is_busy(key, identity.cluster) else State.WAITING), ""

    def _is_busy(self, key: ObjectKey, cluster: str) -> bool:
        """True while the cluster is on its way to the version of a rollout before."""
        return any(self._is_in_flight(key, earlier, earlier.admitted.get(cluster)) for earlier in self._earlier)

    def _is_in_flight(self, key: ObjectKey, earlier: EarlierRollout, entry: AdmittedCluster | None) -> bool:
        if entry is None or 0 < earlier.deadline <= self._now - entry.at:
            return False
        view = self._tracker.view(key, earlier.to)
        return view is not None and view.version == earlier.to and not view.succeeded and not view.failed
