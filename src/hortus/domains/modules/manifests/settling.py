"""Manifests whose objects were all applied a moment ago and whose workloads are not available yet.

The event by which a workload reports that it is available says nothing of the other objects, so they are not read,
rendered and compared once more for it. The memory of a Manifest ends with its next spec, with a Deployment of it that
is another than the one observed after the apply, with a watch that is not current, and after `HOLDS` seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, NamedTuple

import msgspec

from hortus.domains.modules.manifests.outline import Edition
from hortus.engine.remote import KubeconfigRef
from hortus.kube import Clock
from hortus.kube.objects import Object, ObjectKey

HOLDS: Final = 600.0
"""Seconds. With a fleet that is installed at once the event may wait in the queue for minutes."""


class _Metadata(msgspec.Struct):
    """The parts of a Manifest's metadata that differ when its spec or itself does."""

    uid: str = ""
    generation: int = 0


class _Written(msgspec.Struct):
    metadata: _Metadata


class AppliedModule(NamedTuple):
    """The end of one apply."""

    place: KubeconfigRef
    workloads: Sequence[Object]
    """The workloads of the module as they were rendered."""
    editions: Collection[Edition]
    """Editions of its Deployments as they were observed afterwards."""
    written: _Written
    until: float
    """Monotonic time."""


class Settling:
    """Remembers what was applied. `watched` reports whether the watch of a cluster is current."""

    def __init__(self, *, clock: Clock, watched: Callable[[KubeconfigRef], bool]) -> None:
        self._clock = clock
        self._watched = watched
        self._applied: dict[ObjectKey, AppliedModule] = {}

    def note(
        self,
        key: ObjectKey,
        manifest: Object,
        place: KubeconfigRef,
        *,
        workloads: Sequence[Object],
        editions: Collection[Edition],
    ) -> None:
        """All objects of a Manifest, in its state `manifest`, were applied now."""
        until = self._clock.monotonic() + HOLDS
        self._applied[key] = AppliedModule(place, workloads, editions, _written(manifest), until)

    def applied(self, key: ObjectKey, manifest: Object) -> AppliedModule | None:
        """The apply that still holds; None where everything has to be compared."""
        known = self._applied.get(key)
        if known is None:
            return None
        holds = known.written == _written(manifest) and self._clock.monotonic() < known.until
        if holds and self._watched(known.place):
            return known
        del self._applied[key]
        return None

    def seen(self, key: ObjectKey, found: Edition | None) -> None:
        """A Deployment that was known has changed; None for one that is gone."""
        known = self._applied.get(key)
        if known is not None and found not in known.editions:
            del self._applied[key]

    def forget(self, key: ObjectKey) -> None:
        """Compare everything at the next reconcile."""
        self._applied.pop(key, None)


def _written(manifest: Object) -> _Written:
    return msgspec.convert(manifest, _Written)
