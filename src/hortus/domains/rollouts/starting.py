"""Rollouts made of demand: clusters that wait for a version, under a policy, get a Rollout to it.

The key of a reconcile is a change, not an object: its namespace is the name of the ChangeKind, its name the subject.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from hortus.domains.rollouts.kindset import KindSet
from hortus.domains.rollouts.order import RolloutOrder, serves_demand
from hortus.domains.rollouts.report import terms_to_copy
from hortus.domains.rollouts.terms import DEFAULT_TERMS
from hortus.domains.rollouts.tracking import ChangeTracker
from hortus.engine.rollouts import policy_for
from hortus.engine.rollouts.types import (
    ENDED,
    ROLLOUTS,
    Rollout,
    RolloutChange,
    RolloutPhase,
    RolloutPolicy,
    RolloutSpec,
    sequence_of,
)
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import ObjectKey
from hortus.schema import ObjectMeta, encode

MADE_OF: Final = "fleet.hortus.dev/made-of"
DEMAND: Final = "demand"
"""The label of rollouts that are made of demand, and its value: demand alone may supersede them."""
HISTORY: Final = 10
"""Ended rollouts of a subject that are kept."""
_OTHERS = re.compile(r"[^a-z0-9]+")
_NAME_LENGTH: Final = 20


class RolloutStarter:
    """Starts at most one rollout of a subject at a time."""

    def __init__(
        self,
        client: Client,
        namespace: str,
        *,
        kinds: KindSet,
        order: RolloutOrder,
        policies: Callable[[], Sequence[RolloutPolicy]],
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._kinds = kinds
        self._order = order
        self._policies = policies

    async def reconcile(self, key: ObjectKey) -> None:
        tracker = self._kinds.find(key.namespace)
        policy = policy_for(self._policies(), key.namespace, key.name)
        if tracker is None or policy is None:
            return
        known = self._order.of(key.namespace, key.name)
        # Everybody who may write an object may have it ask for a version.
        waiting = Counter(one.wanted for _, one in tracker.objects(key.name) if one.wanted)
        to = wanted_version(waiting, known[-1] if known else None)
        if not to:
            return
        change = RolloutChange(key.namespace, key.name, to=to, from_=_origin(tracker, key.name, to))
        number, labels = highest(known), {MADE_OF: DEMAND}
        made = new_rollout(policy, change, namespace=self._namespace, number=number, labels=labels)
        if await self._order.create(self._client, encode(made)):
            await self._prune(known)

    async def _prune(self, known: Sequence[Rollout]) -> None:
        ended = [one for one in known if one.status.phase in ENDED]
        for old in ended[: max(0, len(ended) - HISTORY)]:
            try:
                await self._client.delete(ROLLOUTS, old.metadata.name, old.metadata.namespace)
            except NotFound:
                continue


def wanted_version(waiting: Counter[str], newest: Rollout | None) -> str:
    """The version to start a rollout to; empty for none.

    One that is under way is superseded only where demand made it and no waiting cluster asks for its version any more:
    the others wait, so that neither one owner's objects stop what a person started or the rest of the fleet asks for,
    nor replicas with different configurations chase each other. One that was aborted stands until a person starts
    another or deletes it. One that succeeded admits clusters that ask late, unless it was for chosen clusters.
    One that was superseded is not taken up again where somebody has deleted the newer one.
    """
    if not waiting:
        return ""
    version = max(waiting, key=lambda one: (waiting[one], one))
    if newest is None:
        return version
    to = newest.spec.change.to
    if version == to:
        phase = newest.status.phase
        over = phase == RolloutPhase.SUPERSEDED or (phase == RolloutPhase.SUCCEEDED and not serves_demand(newest))
        return version if over else ""
    if newest.status.phase in ENDED or newest.spec.state == "Abort":
        return version
    return version if newest.metadata.labels.get(MADE_OF) == DEMAND and not waiting[to] else ""


def highest(rollouts: Iterable[Rollout]) -> int:
    """The highest number at the end of these rollouts' names; 0 for none. Their count falls when some are deleted."""
    return max((sequence_of(one.metadata.name) for one in rollouts), default=0)


def new_rollout(
    policy: RolloutPolicy | None,
    change: RolloutChange,
    *,
    namespace: str,
    number: int,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> Rollout:
    """A rollout under a policy, after that of `number`. Its name follows from the arguments: it is made once."""
    digest = hashlib.sha256("\0".join((change.kind, change.subject, change.to)).encode()).hexdigest()[:6]
    return Rollout(
        metadata=ObjectMeta(
            name=f"{_slug(change.subject)}-{_slug(change.to)}-{digest}-{number + 1}",
            namespace=namespace,
            labels=dict(labels),
        ),
        spec=RolloutSpec(
            change=change,
            policy_name="" if policy is None else policy.metadata.name,
            policy=DEFAULT_TERMS if policy is None else terms_to_copy(policy),
        ),
    )


def _origin(tracker: ChangeTracker, subject: str, to: str) -> str:
    """The version that all waiting clusters have; empty where they differ."""
    views = (tracker.view(key, to) for key, one in tracker.objects(subject) if one.wanted == to)
    versions = {view.version for view in views if view is not None}
    return versions.pop() if len(versions) == 1 else ""


def _slug(text: str) -> str:
    return _OTHERS.sub("-", text.lower()).strip("-")[:_NAME_LENGTH].strip("-") or "x"
