"""The way of an accepted event to the queue of the replica that works on its Kyma.

One cluster may send many events: its Kyma is queued at once for the first, and once more `SPACING` later for all that
come meanwhile. So a flood costs one reconcile in that time, and nothing is kept for more than one time a Kyma.

With shards any replica may be asked. One that does not own the Kyma notes the event in an annotation of the Kyma, which
the owner sees by its watch.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from hortus.domains.modules.types import KYMAS
from hortus.domains.modules.watching.health import WatcherHealth
from hortus.engine import Cache, Change, Trigger, metadata_of
from hortus.engine.delays import Delays
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError
from hortus.kube.objects import ObjectKey, format_micro_time

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

SPACING: Final = 1.0
"""Seconds between two reconciles of a Kyma that events ask for."""
EVENT: Final = "watcher.hortus.dev/event"
"""Annotation of a Kyma: the time of an event that another replica than the owner has received."""
HEARD: Final = "watcher.hortus.dev/heard"
"""The same for the event of a check, for which nothing is reconciled."""


class EventRouter:
    """Takes accepted events."""

    def __init__(
        self,
        client: Client,
        *,
        health: WatcherHealth,
        trigger: Trigger,
        holds: Callable[[ObjectKey], bool],
        clock: Clock,
    ) -> None:
        self._client = client
        self._health = health
        self._trigger = trigger
        self._holds = holds
        self._clock = clock
        self._fired: dict[ObjectKey, float] = {}
        self._later: Delays[ObjectKey] = Delays(clock, lambda kyma, _: self._queue(kyma))
        self._notes: set[asyncio.Task[None]] = set()

    @property
    def paced(self) -> int:
        """The number of Kymas that were queued within the last `SPACING`, as of the last one."""
        return len(self._fired)

    def accept(self, kyma: ObjectKey, *, is_probe: bool) -> None:
        """Take an event of a Kyma's cluster."""
        if not self._holds(kyma):
            if is_probe:
                self._note(kyma, HEARD)
            else:
                self._pace(kyma)
        elif self._health.heard(kyma, is_probe=is_probe):
            self._pace(kyma)

    def follow(self, kymas: Cache) -> Callable[[], None]:
        """Hear of events that other replicas have noted; returns the way to stop it."""
        return kymas.subscribe(self._noted)

    def _pace(self, kyma: ObjectKey) -> None:
        if kyma in self._later:
            return
        left = self._fired.get(kyma, -SPACING) + SPACING - self._clock.monotonic()
        if left > 0:
            self._later.add(kyma, left, 0)
        else:
            self._queue(kyma)

    def _queue(self, kyma: ObjectKey) -> None:
        now = self._clock.monotonic()
        self._fired.pop(kyma, None)
        self._fired[kyma] = now
        # The oldest come first: of thousands that report in one second each is looked at once.
        while (oldest := next(iter(self._fired))) != kyma and self._fired[oldest] <= now - SPACING:
            del self._fired[oldest]
        if self._holds(kyma):
            self._trigger.fire(kyma)
        else:
            self._note(kyma, EVENT)

    def _note(self, kyma: ObjectKey, annotation: str) -> None:
        task = asyncio.ensure_future(self._annotate(kyma, annotation))
        self._notes.add(task)
        task.add_done_callback(self._notes.discard)

    async def _annotate(self, kyma: ObjectKey, annotation: str) -> None:
        patch = {"metadata": {"annotations": {annotation: format_micro_time(self._clock.now())}}}
        try:
            await self._client.patch(KYMAS, kyma.name, patch, kyma.namespace)
        except KubeError as error:
            _log.warning("an event could not be handed to the replica of its Kyma", kyma=str(kyma), error=str(error))

    def _noted(self, change: Change) -> None:
        if change.old is None or change.new is None or not self._holds(change.key):
            return
        if _annotation(change, HEARD):
            self._health.heard(change.key, is_probe=True)
        if _annotation(change, EVENT) and self._health.heard(change.key):
            self._trigger.fire(change.key)


def _annotation(change: Change, name: str) -> bool:
    """Returns whether an annotation has another value than before."""
    assert change.old is not None
    assert change.new is not None
    return metadata_of(change.old).annotations.get(name) != metadata_of(change.new).annotations.get(name)
