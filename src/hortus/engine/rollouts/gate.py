"""The gate: may this cluster change now?

A domain asks it before it changes a cluster because of something that concerns many. The answer comes from caches,
without a call: yes at once where no policy governs the change, otherwise yes when the cluster is in a PlacementDecision
of the rollout. A cache that is behind makes the gate stricter, never laxer, since no admitted cluster is withdrawn.

The gate only reads. A cluster that has to wait carries an annotation with the version it waits for, which
`RolloutGate.admit` writes; the rollouts domain makes a Rollout of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any, NamedTuple

from hortus.engine.cache import Cache, Change
from hortus.engine.context import ReconcileContext
from hortus.engine.queue import Priority
from hortus.engine.rollouts.types import (
    ENDED,
    PLACEMENT_DECISIONS,
    ROLLOUT_POLICIES,
    ROLLOUTS,
    WANTS,
    Label,
    RolloutPhase,
    RolloutPolicy,
)
from hortus.engine.sources import Add, Detach
from hortus.engine.typed import NotReadable, read
from hortus.kube.clock import Clock
from hortus.kube.objects import Object, ObjectKey, Resource

_CHANGE = "change"
_ADMITTED = "admitted"


class Proposal(NamedTuple):
    """A change that a cluster is about to make."""

    kind: str
    """Name of the ChangeKind."""
    subject: str
    to: str
    """The version."""


class Answer(NamedTuple):
    """The answer of the gate."""

    allowed: bool
    reason: str = ""
    """The obstacle, with the policy or the rollout; empty when allowed."""
    rollout: str = ""
    """Name of the Rollout that governs the change; empty where there is none."""


ALLOWED = Answer(allowed=True)


class RolloutGate:
    """The policies, rollouts and decisions of one namespace. Without caches it is open for everything."""

    def __init__(
        self,
        cache: Callable[[Resource], Cache] | None,
    ) -> None:
        """`cache` gives the cache of a kind in the fleet's namespace; None where rollouts are not served."""
        self._caches: tuple[Cache, Cache, Cache] | None = None
        if cache is not None:
            policies, rollouts, decisions = cache(ROLLOUT_POLICIES), cache(ROLLOUTS), cache(PLACEMENT_DECISIONS)
            rollouts.add_index(_CHANGE, _changes_of)
            decisions.add_index(_ADMITTED, _admitted_by)
            self._caches = policies, rollouts, decisions
            policies.subscribe(self._read_policies)
        self._policies: tuple[RolloutPolicy, ...] = ()

    def _read_policies(self, change: Change) -> None:
        """One that cannot be read governs nothing; the rollouts domain reports it."""
        assert self._caches is not None
        self._policies = tuple(readable(self._caches[0].values()))

    def ask(self, proposal: Proposal, cluster: str) -> Answer:
        """Returns whether the cluster of this ClusterProfile may make the change now. Costs no call."""
        if self._caches is None:
            return ALLOWED
        _, rollouts, decisions = self._caches
        known = rollouts.by(_CHANGE, _change(proposal.kind, proposal.subject))
        newest = max(known, key=_age, default=None)
        if newest is None:
            return _without_rollout(self._policies, proposal)
        name, phase = newest["metadata"]["name"], (newest.get("status") or {}).get("phase", "")
        if newest["spec"]["change"]["to"] != proposal.to:
            if phase in ENDED:
                return _without_rollout(self._policies, proposal)
            return Answer(allowed=False, reason=f"rollout {name} to another version is under way", rollout=name)
        if phase == RolloutPhase.SUCCEEDED or decisions.keys_by(_ADMITTED, f"{name}/{cluster}"):
            return ALLOWED._replace(rollout=name)
        return Answer(allowed=False, reason=f"waits in rollout {name} ({phase or RolloutPhase.PENDING})", rollout=name)

    async def admit(
        self, context: ReconcileContext[Any], proposal: Proposal, cluster: str, *, latest: float | None = None
    ) -> Answer:
        """Ask for the object of a reconcile, and have its annotation report the version it waits for.

        After `latest`, in seconds since the epoch, the change is allowed whatever a policy says. Raises KubeError.
        """
        answer = ALLOWED if latest is not None and context.now >= latest else self.ask(proposal, cluster)
        key = f"{WANTS}{proposal.kind}"
        wanted = None if answer.allowed else proposal.to
        if (context.raw["metadata"].get("annotations") or {}).get(key) != wanted:
            await context.patch({"metadata": {"annotations": {key: wanted}}})
        return answer

    def source(
        self, kind: str, *, keys_of: Callable[[str], Iterable[ObjectKey]], waiting: Callable[[], Iterable[ObjectKey]]
    ) -> GateSource:
        """The source of a controller that asks for changes of this kind.

        `keys_of` gives the objects of a cluster; `waiting` the objects that carry the annotation.
        """
        return GateSource(self._caches, kind, keys_of, waiting)


class GateSource:
    """Adds the objects of clusters that were just admitted, and all that wait when a policy or a rollout changes."""

    def __init__(
        self,
        caches: tuple[Cache, Cache, Cache] | None,
        kind: str,
        keys_of: Callable[[str], Iterable[ObjectKey]],
        waiting: Callable[[], Iterable[ObjectKey]],
    ) -> None:
        self._caches = caches
        self._kind = kind
        self._keys_of = keys_of
        self._waiting = waiting

    def attach(self, add: Add, clock: Clock) -> Detach:
        if self._caches is None:
            return lambda: None
        policies, rollouts, decisions = self._caches
        event = int(Priority.EVENT)

        def on_decision(change: Change) -> None:
            for cluster in _clusters_of(change.new) - _clusters_of(change.old):
                for key in self._keys_of(cluster):
                    add(key, event)

        def on_terms(change: Change) -> None:
            for key in self._waiting():
                add(key, event)

        def on_rollout(change: Change) -> None:
            if change.current["spec"]["change"]["kind"] == self._kind and _phase(change.old) != _phase(change.new):
                on_terms(change)

        detach = [policies.subscribe(on_terms), rollouts.subscribe(on_rollout), decisions.subscribe(on_decision)]

        def end() -> None:
            for one in detach:
                one()

        return end

    async def ready(self) -> None:
        for cache in self._caches or ():
            await cache.synced()


def readable(policies: Iterable[Object]) -> Iterator[RolloutPolicy]:
    """The policies that can be read, by name."""
    for raw in sorted(policies, key=lambda one: str(one["metadata"]["name"])):
        with suppress(NotReadable):
            yield read(RolloutPolicy, raw)


def policy_for(policies: Iterable[RolloutPolicy], kind: str, subject: str) -> RolloutPolicy | None:
    """The policy that governs a change: the first of `policies` that names it."""
    for policy in policies:
        if any(one.kind == kind and _matches(one.subjects, subject) for one in policy.spec.changes):
            return policy
    return None


def _without_rollout(policies: Iterable[RolloutPolicy], proposal: Proposal) -> Answer:
    policy = policy_for(policies, proposal.kind, proposal.subject)
    if policy is None:
        return ALLOWED
    return Answer(allowed=False, reason=f"policy {policy.metadata.name} governs it, and no rollout admits it yet")


def _matches(patterns: Iterable[str], subject: str) -> bool:
    return any(_pattern(one).fullmatch(subject) for one in patterns)


@lru_cache(maxsize=1024)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(re.escape(part) for part in text.split("*")), re.DOTALL)


def _change(kind: str, subject: str) -> str:
    return f"{kind}/{subject}"


def _changes_of(rollout: Object) -> Iterable[str]:
    change = rollout["spec"]["change"]
    return (_change(change["kind"], change["subject"]),)


def _age(rollout: Object) -> tuple[str, str]:
    metadata = rollout["metadata"]
    return metadata["creationTimestamp"], metadata["name"]


def _phase(rollout: Object | None) -> str:
    return "" if rollout is None else (rollout.get("status") or {}).get("phase", "")


def _admitted_by(decision: Object) -> Iterable[str]:
    rollout = (decision["metadata"].get("labels") or {}).get(Label.DECISION_KEY, "")
    return (f"{rollout}/{cluster}" for cluster in _clusters_of(decision))


def _clusters_of(decision: Object | None) -> set[str]:
    return set() if decision is None else {one["clusterProfileRef"]["name"] for one in decision["decisions"]}
