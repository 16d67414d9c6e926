"""Puts the controllers of the catalog together for a process that has a `Manager`."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, NamedTuple

from hortus.domains.stacks.approval import Approvals
from hortus.domains.stacks.catalog.classes import ClassObjects
from hortus.domains.stacks.catalog.controllers import CatalogParts
from hortus.domains.stacks.catalog.releases import ClusterStackReleaseController, to_users
from hortus.domains.stacks.catalog.stacks import ClusterStackController, stacks_of
from hortus.domains.stacks.catalog.watches import ObjectWatches
from hortus.domains.stacks.clusters import series_of_user, series_value, use_ended
from hortus.domains.stacks.metrics import add_metrics
from hortus.domains.stacks.names import FIELD_MANAGER, INSTANCE_LABEL, OWNED, BadName, parse_minor
from hortus.domains.stacks.releases import Library
from hortus.domains.stacks.selection import Selected
from hortus.domains.stacks.settings import Settings
from hortus.domains.stacks.types import STACK_POLICIES, ClusterStack
from hortus.engine import (
    Cache,
    Change,
    EventRecorder,
    Manager,
    NotReadable,
    Watch,
    Wiring,
    read,
    spec_or_metadata_changed,
    wire,
)
from hortus.engine.applysets import DiscoveredKinds, WatchedLive
from hortus.engine.deputies import Deputies
from hortus.engine.indexes import without_managed_fields
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.predicates import fields_changed
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey, key_of
from hortus.render.helm import ChartRenderer

STACKS: Final = "clusterstack"
RELEASES: Final = "clusterstackrelease"
"""The controllers' names in metrics, logs and events, as in the Go system."""
_SERIES: Final = "series"


class StackCatalog(NamedTuple):
    """The caches of the catalog, for the parts of the domain that read it."""

    stacks: Cache
    releases: Cache
    approvals: Approvals


def add_catalog(
    manager: Manager,
    *,
    client: Client,
    namespace: str,
    clusters: Cache,
    library: Library,
    renderer: ChartRenderer,
    events: EventRecorder,
    settings: Settings,
    deputies: Deputies,
    leftovers: LeftoverRecorder,
) -> StackCatalog:
    """Add both controllers. `clusters` is the cache of Clusters, `namespace` the watched one, empty for all."""
    policies = manager.cache(STACK_POLICIES, namespace=namespace, transform=without_managed_fields)
    stacks = wire(manager, ClusterStackController, client=client, events=events, namespace=namespace)
    releases = wire(manager, ClusterStackReleaseController, client=client, events=events, namespace=namespace)
    approvals = Approvals(policies)
    parts = CatalogParts(clusters, library, Selected(settings.watch_filter), deputies, leftovers)
    controller = ClusterStackController(stacks, parts, releases=releases.cache.raw, approvals=approvals)
    _add_stacks(manager, controller, stacks.cache.raw, policies, releases.cache.raw, clusters, settings)
    add_metrics(manager.registry, releases.cache.raw)
    _add_releases(manager, releases, parts, renderer, namespace, settings)
    return StackCatalog(stacks.cache.raw, releases.cache.raw, approvals)


def _add_stacks(
    manager: Manager,
    controller: ClusterStackController,
    stacks: Cache,
    policies: Cache,
    releases: Cache,
    clusters: Cache,
    settings: Settings,
) -> None:
    stacks.add_index(_SERIES, _series_of)

    def in_namespace(obj: Object) -> list[ObjectKey]:
        namespaces = {key.namespace for key in to_users(obj)}
        return [key for key in stacks if key.namespace in namespaces]

    def of_series(obj: Object) -> list[ObjectKey]:
        return [key for value in series_of_user(obj) for key in stacks.keys_by(_SERIES, value)]

    def of_policy(obj: Object) -> list[ObjectKey]:
        return [key for key in stacks if key.namespace == key_of(obj).namespace]

    manager.controller(
        STACKS,
        controller,
        sources=[
            # Before the first list of Clusters no stack deletes anything.
            Watch(clusters, to=in_namespace, when=_is_listed, awaited=False),
            Watch(clusters, to=of_series, when=use_ended, awaited=False),
            Watch(policies, to=of_policy, when=spec_or_metadata_changed),
            Watch(releases, to=stacks_of, when=fields_changed("status") | spec_or_metadata_changed),
            Watch(stacks, when=spec_or_metadata_changed),
        ],
        workers=settings.stack_workers,
        resync=settings.resync,
    )


def _add_releases(
    manager: Manager,
    wiring: Wiring[Any],
    parts: CatalogParts,
    renderer: ChartRenderer,
    namespace: str,
    settings: Settings,
) -> None:
    client, releases = wiring.client, wiring.cache.raw
    kinds = DiscoveredKinds(client)
    live = WatchedLive(
        client,
        manager.caches,
        field_manager=FIELD_MANAGER,
        labels=f"{INSTANCE_LABEL}={OWNED}",
        namespace=namespace,
    )
    watches = ObjectWatches(releases)
    controller = ClusterStackReleaseController(
        wiring,
        parts,
        manager=manager,
        classes=ClassObjects(client, renderer, deputies=parts.deputies, kinds=kinds, live=live, clock=manager.clock),
        kinds=kinds,
        live=live,
        namespace=namespace,
        watches=watches,
    )
    manager.controller(
        RELEASES,
        controller,
        sources=[
            Watch(parts.clusters, to=to_users, when=use_ended, awaited=False),
            watches.trigger,
            Watch(releases, when=spec_or_metadata_changed),
        ],
        workers=settings.release_workers,
        resync=settings.resync,
    )


def _is_listed(change: Change) -> bool:
    return change.initial


def _series_of(stack: Object) -> Iterable[str]:
    """The series of a ClusterStack, which are those of its releases."""
    with suppress(NotReadable, BadName):
        found = read(ClusterStack, stack)
        spec = found.spec
        yield series_value(found.metadata.namespace, (spec.provider, spec.name, parse_minor(spec.kubernetes_version)))
