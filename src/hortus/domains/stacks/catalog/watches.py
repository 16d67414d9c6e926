"""Watches of kinds that become known at run time: objects of releases, and objects of providers.

An event of such an object reconciles the ClusterStackRelease that lists it, or that has its name. Events that only
report the first list, or a change of a status where the spec alone matters, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

from hortus.domains.stacks.types import ClusterStackRelease
from hortus.engine import Cache, Change, NotReadable, Trigger, read
from hortus.engine.predicates import generation_changed, labels_changed
from hortus.kube.objects import Object, ObjectKey, Resource, key_of

_RESOURCE_INDEX: Final = "resource"
_edited: Final = generation_changed | labels_changed


class ObjectWatches:
    """The watches of one process. `trigger` is a source of the controller of ClusterStackReleases."""

    def __init__(self, releases: Cache) -> None:
        self.trigger = Trigger()
        self._releases = releases
        self._followed: set[int] = set()
        releases.add_index(_RESOURCE_INDEX, _resources_of)

    def follow_members(self, resource: Resource, cache: Cache) -> None:
        """Reconcile the release of an object in `cache` when it is edited or deleted."""
        self._subscribe(
            cache, _edited, lambda obj: self._releases.keys_by(_RESOURCE_INDEX, _value(resource, key_of(obj)))
        )

    def follow_providers(self, cache: Cache) -> None:
        """Reconcile the release with the name of an object in `cache` when that changes in any way."""
        self._subscribe(cache, lambda change: True, lambda obj: (key_of(obj),))

    def _subscribe(
        self, cache: Cache, when: Callable[[Change], bool], to: Callable[[Object], Iterable[ObjectKey]]
    ) -> None:
        if id(cache) in self._followed:
            return
        self._followed.add(id(cache))

        def on_change(change: Change) -> None:
            if not change.initial and when(change):
                for key in to(change.current):
                    self.trigger.fire(key)

        cache.subscribe(on_change)


def _resources_of(obj: Object) -> Iterable[str]:
    """The objects of a release; those without a namespace in the status may be in the release's own."""
    with suppress(NotReadable):
        release = read(ClusterStackRelease, obj)
        for one in release.status.resources:
            resource = Resource(one.group, one.version, "", one.kind)
            for namespace in (one.namespace or release.metadata.namespace, one.namespace):
                yield _value(resource, ObjectKey(namespace, one.name))


def _value(resource: Resource, key: ObjectKey) -> str:
    return f"{resource.kind}.{resource.group} {key}"
