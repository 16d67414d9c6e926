"""The order of the rollouts of one subject: the newest counts, the one before it may still be in flight."""

from __future__ import annotations

from hortus.engine import Cache, TypedCache
from hortus.engine.rollouts.types import ENDED, ROLLOUTS, Rollout, RolloutPhase, age_of
from hortus.kube import Client
from hortus.kube.errors import AlreadyExists
from hortus.kube.objects import Object, ObjectKey

_SUBJECT = "subject"


class RolloutOrder:
    """The rollouts of one namespace by what they change."""

    def __init__(self, cache: Cache, *, field_manager: str) -> None:
        self._cache = TypedCache(Rollout, cache)
        self._field_manager = field_manager
        self._cache.add_index(_SUBJECT, lambda one: (f"{one.spec.change.kind}/{one.spec.change.subject}",))

    def of(self, kind: str, subject: str) -> list[Rollout]:
        """The rollouts of a subject, the oldest first."""
        return sorted(self._cache.by(_SUBJECT, f"{kind}/{subject}"), key=_age)

    def keys_of(self, kind: str, subject: str) -> list[ObjectKey]:
        """The keys of the rollouts of a subject; without a subject, of all rollouts of the kind."""
        if subject:
            return self._cache.keys_by(_SUBJECT, f"{kind}/{subject}")
        raw = self._cache.raw
        subjects = [value for value in raw.values_of(_SUBJECT) if value.startswith(f"{kind}/")]
        return [key for value in subjects for key in raw.keys_by(_SUBJECT, value)]

    def under_way(self) -> list[ObjectKey]:
        """The keys of the rollouts that time and the fleet may still move."""
        raw = self._cache.raw
        return [key for key in raw if (one := self._cache.get(key)) is not None and not is_at_rest(one)]

    def neighbours(self, rollout: Rollout) -> tuple[Rollout | None, list[Rollout]]:
        """The newest rollout of the subject where that is another one, and those before that may be in flight.

        The one before counts unless it succeeded; those before it while clusters of them are in work.
        """
        change = rollout.spec.change
        known = self.of(change.kind, change.subject)
        newer = known[-1] if known and _age(known[-1]) > _age(rollout) else None
        older = [one for one in known if _age(one) < _age(rollout)]
        before = [one for one in older[-1:] if one.status.phase != RolloutPhase.SUCCEEDED]
        return newer, before + [one for one in older[:-1] if not is_at_rest(one)]

    async def create(self, client: Client, rollout: Object) -> bool:
        """Create a rollout; returns False when one of that name is there. Raises KubeError."""
        try:
            written = await client.create(ROLLOUTS, rollout, field_manager=self._field_manager)
        except AlreadyExists:
            return False
        self._cache.raw.learn(written)
        return True


def is_at_rest(rollout: Rollout) -> bool:
    """True when a rollout has ended, no cluster of it is in work, and none is left to come back."""
    status = rollout.status
    if status.phase not in ENDED or status.observed_generation != rollout.metadata.generation:
        return False
    left = sum(one.running for one in status.stages)
    if status.phase == RolloutPhase.SUCCEEDED:
        left += sum(one.skipped for one in status.stages)
    return not left


def serves_demand(rollout: Rollout) -> bool:
    """True for a rollout that admits whatever cluster asks for its version; one for chosen clusters ends for good."""
    return rollout.spec.execute == "Owner" and not rollout.spec.clusters and not rollout.spec.reverts


def _age(rollout: Rollout) -> tuple[str, int, str]:
    return age_of(rollout.metadata.creation_timestamp or "", rollout.metadata.name)
