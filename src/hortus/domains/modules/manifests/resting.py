"""Manifests at rest: those that were found as they should be and have not changed since, here or on their cluster.

A reconcile of such a Manifest ends at once, and the next one is due with the comparison of all objects. What ends the
rest before: any write of the Manifest, an event of its cluster's watch or of its Kyma, and a watch that is not current.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from hortus.engine.cache import version_of
from hortus.engine.remote import KubeconfigRef
from hortus.kube import Clock
from hortus.kube.objects import Object, ObjectKey


class _Rest(NamedTuple):
    version: int
    """Resource version of the Manifest."""
    place: KubeconfigRef
    until: float
    """Monotonic time of the next comparison."""


class Resting:
    """`watched` reports whether the watch of a cluster is current."""

    def __init__(self, *, clock: Clock, watched: Callable[[KubeconfigRef], bool]) -> None:
        self._clock = clock
        self.watched = watched
        self._resting: dict[ObjectKey, _Rest] = {}
        self._undisturbed: set[ObjectKey] = set()
        """Manifests that are being reconciled, and of which nothing was heard since that began."""

    def begin(self, key: ObjectKey) -> None:
        """A Manifest is being reconciled."""
        self._undisturbed.add(key)

    def rest(self, key: ObjectKey, manifest: Object, place: KubeconfigRef, *, seconds: float) -> None:
        """A Manifest was found as it should be, in its state `manifest`, unless something changed meanwhile.

        It is compared again after so many seconds.
        """
        if key not in self._undisturbed:
            return
        self._resting[key] = _Rest(version_of(manifest), place, self._clock.monotonic() + seconds)

    def pause(self, key: ObjectKey, manifest: Object) -> float | None:
        """Seconds until a Manifest at rest is compared again; None for one that has to be reconciled."""
        known = self._resting.get(key)
        if known is None:
            return None
        now = self._clock.monotonic()
        if known.version == version_of(manifest) and now < known.until and self.watched(known.place):
            return known.until - now
        del self._resting[key]
        return None

    def disturb(self, key: ObjectKey) -> None:
        """Something changed that concerns a Manifest."""
        self._resting.pop(key, None)
        self._undisturbed.discard(key)

    forget = disturb
