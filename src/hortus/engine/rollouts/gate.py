"""The gate: may this cluster change now?

A domain asks it before it changes a cluster because of something that concerns many. The answer comes from caches,
without a call: yes at once where no policy governs the change, otherwise yes when the cluster is in a PlacementDecision
of the rollout. A cache that is behind makes the gate stricter, never laxer, since no admitted cluster is withdrawn.

An object that has to wait carries an annotation with the version it waits for, which `RolloutGate.admit` writes; the
rollouts domain makes a Rollout of it. Once the change is made, `RolloutGate.settle` turns it into the annotation of the
version that the object has. Where no policy governs a change, the gate writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from math import inf
from typing import Any, NamedTuple

from hortus.engine.cache import Cache, Change
from hortus.engine.context import ReconcileContext
from hortus.engine.indexes import by_owner_uid
from hortus.engine.queue import Priority
from hortus.engine.rollouts.types import (
    ENDED,
    MOVED,
    PLACEMENT_DECISIONS,
    ROLLOUT_POLICIES,
    ROLLOUTS,
    WANTS,
    Proposal,
    RolloutPhase,
    RolloutPolicy,
    age_of,
)
from hortus.engine.sources import Add, Detach
from hortus.engine.typed import NotReadable, read
from hortus.kube.clock import Clock
from hortus.kube.objects import Object, ObjectKey, Resource

_CHANGE = "change"
_ADMITTED = "admitted"


class Answer(NamedTuple):
    """The answer of the gate."""

    allowed: bool
    reason: str = ""
    """The obstacle, with the policy or the rollout; empty when allowed."""
    rollout: str = ""
    """Name of the Rollout that governs the change; empty where there is none."""


ALLOWED = Answer(allowed=True)
UNREAD = Answer(allowed=False, reason="policies and rollouts are not read yet")


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
        if not self.has_synced:
            return UNREAD
        newest, decisions = self._newest(proposal.kind, proposal.subject), self._caches[2]
        if newest is None:
            return _without_rollout(self._policies, proposal)
        name, uid = newest["metadata"]["name"], newest["metadata"]["uid"]
        phase = (newest.get("status") or {}).get("phase", "")
        if newest["spec"]["change"]["to"] != proposal.to:
            if phase in ENDED:
                return _without_rollout(self._policies, proposal)
            return Answer(allowed=False, reason=f"rollout {name} to another version is under way", rollout=name)
        if decisions.keys_by(_ADMITTED, f"{uid}/{cluster}"):
            return ALLOWED._replace(rollout=name)
        if phase == RolloutPhase.SUCCEEDED and policy_for(self._policies, proposal.kind, proposal.subject) is None:
            return ALLOWED._replace(rollout=name)
        return Answer(allowed=False, reason=f"waits in rollout {name} ({phase or RolloutPhase.PENDING})", rollout=name)

    def _newest(self, kind: str, subject: str) -> Object | None:
        known = () if self._caches is None else self._caches[1].by(_CHANGE, _change(kind, subject))
        return max(known, key=_age, default=None)

    @property
    def has_synced(self) -> bool:
        """True once the policies, rollouts and decisions are known; without caches always."""
        return all(cache.has_synced for cache in self._caches or ())

    def governs(self, kind: str, subject: str) -> bool:
        """Returns whether a policy or a rollout that has not ended decides over changes of this subject."""
        return policy_for(self._policies, kind, subject) is not None or bool(self.under_way(kind, subject))

    def under_way(self, kind: str, subject: str) -> str:
        """The version of the rollout of this subject that has not ended; empty where there is none."""
        newest = self._newest(kind, subject)
        return newest["spec"]["change"]["to"] if newest is not None and _phase(newest) not in ENDED else ""

    async def admit(
        self, context: ReconcileContext[Any], proposal: Proposal, cluster: str, *, latest: float = inf
    ) -> Answer:
        """Ask for the object of a reconcile, and have its annotation report the version it waits for.

        From `latest` on, in seconds since the epoch, the change is allowed whatever a policy says. Once it is made,
        `settle` follows; when it is given up, `withdraw`. Raises KubeError.
        """
        answer = ALLOWED if context.now >= latest else self.ask(proposal, cluster)
        if not answer.allowed and answer is not UNREAD:
            await _annotate(context, {f"{WANTS}{proposal.kind}": proposal.to})
        return answer

    async def settle(self, context: ReconcileContext[Any], kind: str, version: str = "") -> None:
        """Report, in the annotations of an object that waits, that it has a version, by default the one it waits for.

        Raises KubeError.
        """
        if wanted := waits_for(context.raw, kind):
            await _annotate(context, {f"{WANTS}{kind}": None, f"{MOVED}{kind}": version or wanted})

    async def withdraw(self, context: ReconcileContext[Any], kind: str) -> None:
        """Take off the annotation of an object that no longer asks for a change. Raises KubeError."""
        await _annotate(context, {f"{WANTS}{kind}": None})

    def source(
        self,
        kind: str,
        *,
        keys_of: Callable[[str], Iterable[ObjectKey]],
        waiting: Callable[[], Iterable[ObjectKey]],
        awaited: bool = True,
    ) -> GateSource:
        """The source of a controller that asks for changes of this kind.

        `keys_of` gives the objects of a cluster; `waiting` those to reconcile again when a policy or a rollout changes.
        Workers begin once the gate has synced, unless `awaited` is False.
        """
        return GateSource(self._caches, kind, keys_of, waiting, awaited=awaited)


class GateSource:
    """Adds the objects of clusters that were just admitted, and all that wait when a policy or a rollout changes."""

    def __init__(
        self,
        caches: tuple[Cache, Cache, Cache] | None,
        kind: str,
        keys_of: Callable[[str], Iterable[ObjectKey]],
        waiting: Callable[[], Iterable[ObjectKey]],
        *,
        awaited: bool,
    ) -> None:
        self._caches = caches
        self._kind = kind
        self._keys_of = keys_of
        self._waiting = waiting
        self.awaited: Sequence[Cache] = caches if caches is not None and awaited else ()

    def attach(self, add: Add, clock: Clock) -> Detach:
        if self._caches is None:
            return lambda: None
        policies, rollouts, decisions = self._caches
        # Rollouts move many at once: an edit of one object does not wait behind them.
        admitted, resync = int(Priority.RETRY), int(Priority.RESYNC)

        def on_decision(change: Change) -> None:
            for cluster in _clusters_of(change.new) - _clusters_of(change.old):
                for key in self._keys_of(cluster):
                    add(key, admitted)

        def on_terms(change: Change) -> None:
            for key in self._waiting():
                add(key, resync)

        def on_rollout(change: Change) -> None:
            if change.current["spec"]["change"]["kind"] == self._kind and _phase(change.old) != _phase(change.new):
                on_terms(change)

        detach = [policies.subscribe(on_terms), rollouts.subscribe(on_rollout), decisions.subscribe(on_decision)]

        def end() -> None:
            for one in detach:
                one()

        return end

    async def ready(self) -> None:
        for cache in self.awaited:
            await cache.synced()


def waits_for(obj: Object, kind: str) -> str:
    """The version of a change for which an object waits, by its annotation; empty for none."""
    found: str = (obj["metadata"].get("annotations") or {}).get(f"{WANTS}{kind}", "")
    return found


async def _annotate(context: ReconcileContext[Any], annotations: dict[str, str | None]) -> None:
    present = context.raw["metadata"].get("annotations") or {}
    if any(present.get(name) != value for name, value in annotations.items()):
        await context.patch({"metadata": {"annotations": annotations}})


def readable(policies: Iterable[Object]) -> Iterator[RolloutPolicy]:
    """The policies that can be read, by name."""
    for raw in sorted(policies, key=lambda one: str(one["metadata"]["name"])):
        with suppress(NotReadable):
            yield read(RolloutPolicy, raw)


def policy_for(policies: Iterable[RolloutPolicy], kind: str, subject: str) -> RolloutPolicy | None:
    """The policy that governs a change: the first of `policies` that names it, and before these any that asks for
    approval, so that another policy next to it takes no approval away."""
    first = None
    for policy in policies:
        if any(one.kind == kind and _matches(one.subjects, subject) for one in policy.spec.changes):
            if any(stage.approval != "None" for stage in policy.spec.stages):
                return policy
            first = first or policy
    return first


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


def _age(rollout: Object) -> tuple[str, int, str]:
    metadata = rollout["metadata"]
    return age_of(metadata["creationTimestamp"], metadata["name"])


def _phase(rollout: Object | None) -> str:
    return "" if rollout is None else (rollout.get("status") or {}).get("phase", "")


def _admitted_by(decision: Object) -> Iterable[str]:
    """Files by uid: slices of a deleted rollout stay for a moment, and admit nothing for its namesake."""
    return (f"{uid}/{cluster}" for uid in by_owner_uid(decision) for cluster in _clusters_of(decision))


def _clusters_of(decision: Object | None) -> set[str]:
    return set() if decision is None else {one["clusterProfileRef"]["name"] for one in decision["decisions"]}
