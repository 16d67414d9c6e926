"""The clusters of Shoots with Flux: clients, and watches of what Flux has there.

gardenlet keeps a kubeconfig in a Secret of each Shoot's namespace. Three watches a Shoot follow Flux's Deployments, the
source and the Kustomization, so that a change by hand and a new state are seen at once; a Shoot that hibernates has
none. The members are the keys of the Extensions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from hortus.domains.garden.extension.composition import SeedView
from hortus.domains.garden.extension.shoots import place_of, shoot_pool
from hortus.domains.garden.flux.config import FluxPlan
from hortus.domains.garden.flux.names import (
    DEPLOYMENTS,
    FIELD_MANAGER,
    KUSTOMIZATIONS,
    SOURCES,
    TYPE,
)
from hortus.engine import Cache, Selection, managed_fields_of
from hortus.engine.backoff import Backoff
from hortus.engine.remote import KubeconfigRef, RemoteSettings, RemoteStates, RemoteWatch
from hortus.engine.sources import Source
from hortus.kube import Client, RequestObserver
from hortus.kube.objects import Object, ObjectKey, Resource, key_of

_SELECTOR = "app.kubernetes.io/part-of=flux"
_UNSERVED = Backoff(first=1.0, cap=60.0, factor=2.0, jitter=0.2)
"""The time between two looks for a kind of Flux, whose definition the controller applies itself."""
_KEEP = managed_fields_of(FIELD_MANAGER)


class Followed(msgspec.Struct, frozen=True):
    """The objects that are followed in one Shoot."""

    namespace: str
    """Namespace of Flux's controllers."""
    source: tuple[Resource, ObjectKey] | None
    kustomization: ObjectKey | None


def followed_by(plan: FluxPlan) -> Followed:
    """The objects that a plan leads to."""
    source = (SOURCES[_kind(plan.source)], key_of(plan.source)) if plan.source is not None else None
    return Followed(plan.namespace, source, key_of(plan.kustomization) if plan.kustomization is not None else None)


class _Kind(msgspec.Struct):
    kind: str = ""


def _kind(template: Object) -> str:
    return msgspec.convert(template, _Kind).kind


class FluxShoots:
    """The Shoots with Flux on one seed."""

    def __init__(self, view: SeedView, settings: RemoteSettings, observer: RequestObserver | None = None) -> None:
        self._view = view
        self.pool = shoot_pool(view, settings, observer)
        self._members = Cache("Shoots with Flux")
        self._members.replace((), 0)
        self._followed: dict[ObjectKey, Followed] = {}
        self._deployments = self._watch(
            lambda found: Selection(DEPLOYMENTS, namespace=found.namespace, labels=_SELECTOR)
        )
        self._sources = self._watch(lambda found: _one(*found.source) if found.source is not None else None)
        self._kustomizations = self._watch(
            lambda found: _one(KUSTOMIZATIONS, found.kustomization) if found.kustomization is not None else None
        )

    def _watch(self, select: Callable[[Followed], Selection | None]) -> RemoteWatch:
        def place(member: Object) -> KubeconfigRef | None:
            key = key_of(member)
            found = self._followed.get(key)
            return place_of(key) if found is not None and select(found) is not None else None

        def selection(key: ObjectKey) -> Selection:
            found = select(self._followed[key])
            assert found is not None, "a member without a selection has no place"
            return found

        return RemoteWatch(
            self.pool, self._members, place=place, selection=selection, transform=_KEEP, optional=_UNSERVED
        )

    @property
    def sources(self) -> Sequence[Source]:
        """The changes that concern Extensions."""
        states = RemoteStates(self.pool, to=lambda place: self._view.extensions_in(place.namespace, TYPE))
        return (self._deployments, self._sources, self._kustomizations, states)

    def client(self, key: ObjectKey) -> Client:
        """A client of the cluster of an Extension's Shoot."""
        return self.pool.at(place_of(key))

    def enter(self, key: ObjectKey, wanted: Followed) -> None:
        """Follow these objects from now on."""
        if self._followed.get(key) == wanted:
            return
        self.leave(key)
        self._followed[key] = wanted
        self._members.put({"metadata": {"namespace": key.namespace, "name": key.name, "resourceVersion": str(wanted)}})

    def leave(self, key: ObjectKey) -> None:
        """Follow nothing there any more."""
        if self._followed.pop(key, None) is not None:
            self._members.drop(key)

    def is_followed(self, key: ObjectKey) -> bool:
        """True for an Extension whose Shoot is followed."""
        return key in self._followed

    def problem(self, key: ObjectKey) -> str:
        """The reason for which the watches do not show the cluster as it is; empty where they do."""
        for watch in self._wanted_watches(key):
            cache, problem = watch.cache(key), watch.problem(key)
            if problem is not None:
                return str(problem)
            if cache is None or not cache.has_synced:
                return "its objects are being listed"
        return ""

    def deployments(self, key: ObjectKey) -> list[Object]:
        """Flux's Deployments there."""
        cache = self._deployments.cache(key)
        return list(cache.values()) if cache is not None else []

    def source(self, key: ObjectKey) -> Object | None:
        """The source there."""
        return _only(self._sources.cache(key))

    def kustomization(self, key: ObjectKey) -> Object | None:
        """The Kustomization there."""
        return _only(self._kustomizations.cache(key))

    def learn(self, key: ObjectKey, resource: Resource, obj: Object) -> None:
        """Take over the answer to a write, which the watch shows a moment later."""
        watch = self._by_resource.get(resource)
        cache = watch.cache(key) if watch is not None else None
        found = self._followed.get(key)
        if cache is None or found is None or not cache.has_synced:
            return
        named = {found.kustomization, found.source[1] if found.source is not None else None}
        if (resource == DEPLOYMENTS and key_of(obj).namespace == found.namespace) or key_of(obj) in named:
            cache.learn(obj)

    @property
    def _by_resource(self) -> Mapping[Resource, RemoteWatch]:
        sources: dict[Resource, RemoteWatch] = dict.fromkeys(SOURCES.values(), self._sources)
        return {**sources, DEPLOYMENTS: self._deployments, KUSTOMIZATIONS: self._kustomizations}

    def _wanted_watches(self, key: ObjectKey) -> list[RemoteWatch]:
        found = self._followed.get(key)
        if found is None:
            return []
        watches = [self._deployments]
        if found.source is not None:
            watches.append(self._sources)
        if found.kustomization is not None:
            watches.append(self._kustomizations)
        return watches


def _one(resource: Resource, key: ObjectKey) -> Selection:
    return Selection(resource, namespace=key.namespace, fields=f"metadata.name={key.name}")


def _only(cache: Cache | None) -> Object | None:
    return next(iter(cache.values()), None) if cache is not None else None
