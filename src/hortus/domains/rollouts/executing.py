"""The objects of admitted clusters, set to the new version by the patch of their ChangeKind."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from hortus.domains.rollouts.changekinds import ExpressionError
from hortus.domains.rollouts.tracking import ChangeTracker
from hortus.kube import Client, PatchKind
from hortus.kube.clock import Clock
from hortus.kube.errors import ApiError, NotFound
from hortus.kube.objects import ObjectKey

CONCURRENCY = 16
"""Patches at a time."""
RETRY = 60.0
"""Seconds until an object that its server refused to change is set again."""


class ObjectSetter:
    """Sets objects, and remembers which of them a server refused."""

    def __init__(self, client: Client, *, field_manager: str, clock: Clock) -> None:
        self._client = client
        self._field_manager = field_manager
        self._clock = clock
        self._refused: dict[ObjectKey, dict[ObjectKey, tuple[str, str, float]]] = {}

    def refusals(self, rollout: ObjectKey) -> Mapping[str, str]:
        """The clusters whose object was refused, with the problem."""
        return {cluster: problem for cluster, problem, _ in self._refused.get(rollout, {}).values()}

    def retry_after(self, rollout: ObjectKey) -> float | None:
        """Seconds until a refused object is tried again; None where there is none."""
        times = [at for _, _, at in self._refused.get(rollout, {}).values()]
        return max(0.0, min(times) - self._clock.now()) if times else None

    def forget(self, rollout: ObjectKey) -> None:
        self._refused.pop(rollout, None)

    async def run(
        self, rollout: ObjectKey, tracker: ChangeTracker, keys: Iterable[tuple[ObjectKey, str]], to: str
    ) -> bool:
        """Set these objects, given with their clusters; returns whether other objects are refused than before.

        Raises KubeError where a server does not answer.
        """
        refused, now = self._refused.setdefault(rollout, {}), self._clock.now()
        before = set(refused)
        turns = asyncio.Semaphore(CONCURRENCY)

        async def one(key: ObjectKey, cluster: str) -> None:
            async with turns:
                problem = await self._set(tracker, key, to)
            if problem:
                refused[key] = cluster, problem, self._clock.now() + RETRY
            else:
                refused.pop(key, None)

        wanted = [(key, cluster) for key, cluster in keys if key not in refused or refused[key][2] <= now]
        async with asyncio.TaskGroup() as group:
            for key, cluster in wanted:
                group.create_task(one(key, cluster))
        return set(refused) != before

    async def _set(self, tracker: ChangeTracker, key: ObjectKey, to: str) -> str:
        """Set one object; returns the refusal."""
        obj = tracker.cache.get(key)
        if obj is None:
            return ""
        try:
            patch = tracker.kind.patch(obj, to)
            written = await self._client.patch(
                tracker.kind.resource,
                key.name,
                patch,
                key.namespace,
                PatchKind.JSON if isinstance(patch, list) else PatchKind.MERGE,
                field_manager=self._field_manager,
            )
        except NotFound:
            return ""
        except ExpressionError as error:
            return str(error)
        except ApiError as error:
            if error.code >= 500 or error.code in (409, 429):
                raise
            return f"could not be set to {to}: {error}"
        tracker.cache.learn(written)
        return ""
