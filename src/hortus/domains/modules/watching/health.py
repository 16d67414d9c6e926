"""The health of each cluster's watcher: whether its events arrive.

A watcher can break in silence: its objects are all there, its pod is ready, and no event arrives, because a network
policy, a proxy, a gateway or a certificate is in the way. So a cluster that has been silent for long is asked for an
event: Hortus creates a Kyma there as a dry run, which stores nothing and is sent through the same webhook, agent and
gateway as a user's change. The request rides on a reconcile that talks to the cluster anyway; nothing polls. An event
that does not come back within `PATIENCE`, twice, makes the watcher `Silent`.

Times are kept in memory: after a restart a watcher is `Unproven` until it is heard.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Final

import msgspec
import structlog

from hortus.domains.modules.names import MANAGED_BY_KYMA, Label
from hortus.domains.modules.types import KYMAS
from hortus.domains.modules.watching.events import PROBE_NAME
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError
from hortus.kube.objects import Object, ObjectKey

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

PATIENCE: Final = 60.0
"""Seconds for an event to arrive: the agent's first three tries, with room."""
PROBES_TO_SILENCE: Final = 2
AFTER_FAILURE: Final = 300.0
"""Seconds between two attempts while events do not arrive."""
LABEL_WATCHED: Final = "kyma"


class Hearing(StrEnum):
    """The standing of one cluster's watcher."""

    UNPROVEN = "Unproven"
    """No event has arrived since the start of this process."""
    HEARD = "Heard"
    """Events arrive."""
    SILENT = "Silent"
    """Events that were provoked did not arrive."""


class _Ear(msgspec.Struct):
    """The times of one cluster, monotonic."""

    since: float
    heard: float | None = None
    probed: float | None = None
    missed: int = 0


class WatcherHealth:
    """The standing of all clusters' watchers that this process works on."""

    def __init__(self, *, every: float, namespace: str, clock: Clock) -> None:
        """`every`: seconds without an event after which one is provoked; 0 for never. `namespace`: of the Kyma in the
        cluster."""
        self._every = every
        self._namespace = namespace
        self._clock = clock
        self._ears: dict[ObjectKey, _Ear] = {}

    def heard(self, kyma: ObjectKey, *, is_probe: bool = False) -> bool:
        """Note an event; returns whether a Kyma shall be reconciled for it, which the answer to a probe is not."""
        ear = self._ear(kyma)
        expected = is_probe and ear.probed is not None
        if ear.missed >= PROBES_TO_SILENCE:
            _log.info("events of a cluster arrive again", kyma=str(kyma))
        ear.heard, ear.probed, ear.missed = self._clock.monotonic(), None, 0
        return not expected

    def hearing(self, kyma: ObjectKey) -> Hearing:
        """The standing of one watcher."""
        ear = self._ears.get(kyma)
        if ear is None:
            return Hearing.UNPROVEN
        self._settle(kyma, ear)
        if ear.missed >= PROBES_TO_SILENCE:
            return Hearing.SILENT
        return Hearing.UNPROVEN if ear.heard is None else Hearing.HEARD

    async def check(self, kyma: ObjectKey, remote: Client) -> Hearing:
        """Provoke an event where one is due; returns the standing before it. The cluster's refusal is only logged."""
        ear = self._ear(kyma)
        hearing = self.hearing(kyma)
        if not self._is_due(ear):
            return hearing
        ear.probed = self._clock.monotonic()
        try:
            await remote.create(KYMAS, probe(self._namespace), field_manager="lifecycle-manager", dry_run=True)
        except KubeError as error:
            # It says nothing about the way of an event.
            ear.probed = None
            _log.info("a cluster refused the check of its watcher", kyma=str(kyma), error=str(error))
        return hearing

    def forget(self, kyma: ObjectKey) -> None:
        """Drop what is known of a Kyma."""
        self._ears.pop(kyma, None)

    def shed(self, holds: Callable[[ObjectKey], bool]) -> None:
        """Drop what is known of Kymas that are another replica's."""
        self._ears = {kyma: ear for kyma, ear in self._ears.items() if holds(kyma)}

    def counts(self) -> dict[str, int]:
        """The number of watchers in each standing."""
        found = {hearing.value: 0 for hearing in Hearing}
        for kyma in self._ears:
            found[self.hearing(kyma).value] += 1
        return found

    def _ear(self, kyma: ObjectKey) -> _Ear:
        found = self._ears.get(kyma)
        if found is None:
            found = self._ears[kyma] = _Ear(self._clock.monotonic())
        return found

    def _is_due(self, ear: _Ear) -> bool:
        if not self._every or ear.probed is not None:
            return False
        now = self._clock.monotonic()
        return ear.missed > 0 or now - (ear.since if ear.heard is None else ear.heard) >= self._every

    def _settle(self, kyma: ObjectKey, ear: _Ear) -> None:
        """Count a probe whose event did not come."""
        if ear.probed is None:
            return
        waited = self._clock.monotonic() - ear.probed
        if waited < (PATIENCE if ear.missed < PROBES_TO_SILENCE else AFTER_FAILURE):
            return
        ear.probed = None
        ear.missed += 1
        if ear.missed == PROBES_TO_SILENCE:
            _log.warning("events of a cluster do not arrive", kyma=str(kyma), probes=ear.missed)


def probe(namespace: str) -> Object:
    """The Kyma whose creation is tried."""
    return {
        "apiVersion": KYMAS.api_version,
        "kind": KYMAS.kind,
        "metadata": {
            "name": PROBE_NAME,
            "namespace": namespace,
            "labels": {Label.WATCHED_BY: LABEL_WATCHED, Label.MANAGED_BY: MANAGED_BY_KYMA},
        },
        "spec": {"channel": "regular"},
    }
