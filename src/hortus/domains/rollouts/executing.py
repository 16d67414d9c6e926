"""The objects of admitted clusters, set to the new version by the patch of their ChangeKind.

A decision assigns the objects that are left; a controller of its own sets them, so that no admission waits for the
server of these objects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from hortus.domains.rollouts.changekinds import ExpressionError
from hortus.domains.rollouts.tracking import ChangeTracker
from hortus.engine import Result
from hortus.kube import Client, PatchKind
from hortus.kube.clock import Clock
from hortus.kube.errors import ApiError, KubeError, NotFound
from hortus.kube.objects import ObjectKey

CONCURRENCY: Final = 16
"""Patches at a time."""
RETRY: Final = 60.0
"""Seconds until an object that its server refused to change is set again."""
TURN: Final = 30.0
"""Seconds after which a reconcile ends with objects left, so that it never meets its deadline."""


class _Assignment:
    """The objects of one rollout that are to be set."""

    def __init__(self) -> None:
        self.pending: dict[ObjectKey, str] = {}
        """The cluster of each object."""
        self.refused: dict[ObjectKey, tuple[str, str, float]] = {}
        """Cluster, problem and the time of the next attempt of each object that its server refused."""
        self.at_work = asyncio.Lock()
        self.tracker: ChangeTracker
        self.to: str


class ObjectSetter:
    """Sets objects, and remembers which of them a server refused. Its keys are those of rollouts."""

    def __init__(
        self,
        client: Client,
        *,
        field_manager: str,
        clock: Clock,
        assigned: Callable[[ObjectKey], None],
        refused: Callable[[ObjectKey], None],
    ) -> None:
        """`client` has the permissions of the rollouts. `assigned` puts a rollout into this controller's queue;
        `refused` is called when servers refuse other objects of a rollout than before."""
        self._client = client
        self._field_manager = field_manager
        self._clock = clock
        self._assigned = assigned
        self._refused = refused
        self._assignments: dict[ObjectKey, _Assignment] = {}

    def refusals(self, rollout: ObjectKey) -> Mapping[str, str]:
        """The clusters whose object was refused, with the problem."""
        return {cluster: problem for cluster, problem, _ in self._of(rollout).refused.values()}

    def retry_after(self, rollout: ObjectKey) -> float | None:
        """Seconds until a refused object is tried again; None where there is none."""
        times = [at for _, _, at in self._of(rollout).refused.values()]
        return max(0.0, min(times) - self._clock.now()) if times else None

    def forget(self, rollout: ObjectKey) -> None:
        if (known := self._assignments.pop(rollout, None)) is not None:
            known.pending.clear()

    def assign(
        self, rollout: ObjectKey, tracker: ChangeTracker, objects: Iterable[tuple[ObjectKey, str]], to: str
    ) -> None:
        """Sets these objects, given with their clusters, and no others from now on; returns at once."""
        known, now, wanted = self._of(rollout), self._clock.now(), dict(objects)
        known.tracker, known.to = tracker, to
        settled = known.refused.keys() - wanted.keys()
        for key in settled:
            del known.refused[key]
        if settled:
            self._refused(rollout)
        known.pending = {
            key: cluster for key, cluster in wanted.items() if key not in known.refused or known.refused[key][2] <= now
        }
        if known.pending:
            self._assigned(rollout)

    async def stop(self, rollout: ObjectKey) -> None:
        """Set no further object; returns when none is being set."""
        known = self._of(rollout)
        known.pending = {}
        async with known.at_work:
            return

    async def reconcile(self, rollout: ObjectKey) -> Result | None:
        """Set the assigned objects. Raises KubeError where a server does not answer."""
        known = self._assignments.get(rollout)
        if known is None or not known.pending:
            return None
        before, until = set(known.refused), self._clock.monotonic() + TURN
        async with known.at_work:
            ended = await asyncio.gather(*(self._drain(known, until) for _ in range(CONCURRENCY)))
        if set(known.refused) != before:
            self._refused(rollout)
        if error := next((one for one in ended if one is not None), None):
            raise error
        return Result(requeue_after=0.0) if known.pending else None

    async def _drain(self, known: _Assignment, until: float) -> KubeError | None:
        """Set pending objects one after the other; returns the error that ended it."""
        while known.pending and self._clock.monotonic() < until:
            pending = known.pending
            key = next(iter(pending))
            cluster = pending.pop(key)
            try:
                problem = await self._set(known.tracker, key, known.to)
            except BaseException as error:
                # It may have been set or not, which the next attempt sees; a later assignment or a stop stands.
                pending.setdefault(key, cluster)
                if isinstance(error, KubeError):
                    return error
                raise
            if problem:
                known.refused[key] = cluster, problem, self._clock.now() + RETRY
            else:
                known.refused.pop(key, None)
        return None

    def _of(self, rollout: ObjectKey) -> _Assignment:
        return self._assignments.setdefault(rollout, _Assignment())

    async def _set(self, tracker: ChangeTracker, key: ObjectKey, to: str) -> str:
        """Set one object where it is not; returns the refusal."""
        obj, view = tracker.cache.get(key), tracker.view(key, to)
        if obj is None or view is None or view.version == to:
            return ""
        try:
            patch = tracker.kind.patch(obj, to)
            written = await self._client.patch(
                msgspec.structs.replace(tracker.kind.resource, namespaced=bool(key.namespace)),
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
