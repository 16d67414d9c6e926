"""Adds the controller of one topic to a process. All topics of a process share the caches of the seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import msgspec

from hortus.domains.garden.extension.controller import FIELD_MANAGER, GardenExtensionController
from hortus.domains.garden.extension.managed import EXTENSION_LABEL, SECRETS, ManagedObjects
from hortus.domains.garden.extension.topic import ExtensionTopic
from hortus.domains.garden.types import (
    EXTENSIONS,
    MANAGED_RESOURCES,
    SEED_CLUSTERS,
    GardenExtension,
    SeedCluster,
)
from hortus.engine import (
    Caches,
    Change,
    EventRecorder,
    Manager,
    NotReadable,
    TypedCache,
    Watch,
    Wiring,
    managed_fields_of,
    metadata_of,
    read,
    spec_or_metadata_changed,
    without_managed_fields,
)
from hortus.engine.deputies import Deputies
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey, key_of

CONTROLLER_PREFIX: Final = "extension-"
"""Begin of the names of the controllers in metrics, logs and events; the type follows."""
_BY_TYPE: Final = "garden-extension-type"
_SHOOT_CLASSES: Final = ("", "shoot")


class SeedView:
    """One seed, as all topics of a process see it."""

    def __init__(self, manager: Manager, client: Client, caches: Caches, deputies: Deputies) -> None:
        self.manager = manager
        self.client = client
        self.deputies = deputies
        self.caches = caches
        self.clusters = TypedCache(SeedCluster, caches.get(SEED_CLUSTERS, transform=without_managed_fields))
        self.extensions = TypedCache(GardenExtension, caches.get(EXTENSIONS, transform=without_managed_fields))
        keep = _OURS
        self.resources = caches.get(MANAGED_RESOURCES, labels=EXTENSION_LABEL, transform=keep)
        self.secrets = caches.get(SECRETS, labels=EXTENSION_LABEL, transform=keep)
        self.extensions.raw.add_index(_BY_TYPE, _places)

    def extensions_in(self, namespace: str, type_: str) -> list[ObjectKey]:
        """The Extensions of a type in the namespace of one Shoot."""
        return self.extensions.raw.keys_by(_BY_TYPE, f"{type_}/{namespace}")

    def extensions_of(self, type_: str) -> list[ObjectKey]:
        """All Extensions of a type."""
        return self.extensions.raw.keys_by(_BY_TYPE, type_)


def seed_view(manager: Manager, client: Client, *, trusted: str, is_own: bool) -> SeedView:
    """The view of a seed; `is_own` says that it is the manager's own cluster, whose caches are there already.

    `trusted` are namespaces as `Deputies` takes them. Others have what their deputy may in the seed.
    """
    caches = manager.caches if is_own else manager.caches_of(client)
    return SeedView(manager, client, caches, Deputies(client, trusted, clock=manager.clock))


def add_extension(view: SeedView, topic: ExtensionTopic, *, workers: int) -> GardenExtensionController:
    """Add the controller of a topic."""
    manager, type_ = view.manager, topic.facts.type
    events = EventRecorder(view.client, component=f"{CONTROLLER_PREFIX}{type_}", clock=manager.clock)
    manager.add_server(events)
    wiring = Wiring(
        kind=GardenExtension,
        client=view.client,
        cache=view.extensions.raw,
        owned={},
        events=events,
        field_manager=FIELD_MANAGER,
        clock=manager.clock,
        holds=manager.holds,
    )
    managed = ManagedObjects(
        view.client, type_=type_, field_manager=FIELD_MANAGER, resources=view.resources, secrets=view.secrets
    )
    controller = GardenExtensionController(
        wiring, topic, clusters=view.clusters, managed=managed, deputies=view.deputies
    )
    of_namespace = _in_namespace(view, type_)
    manager.controller(
        f"{CONTROLLER_PREFIX}{type_}",
        controller,
        sources=[
            # The first reconcile reads all of these, so that their lists are complete before.
            Watch(view.secrets, to=of_namespace),
            Watch(view.resources, to=of_namespace, when=_resource_changed),
            Watch(view.clusters.raw, to=lambda obj: view.extensions_in(key_of(obj).name, type_), when=_cluster_changed),
            *topic.sources(),
            Watch(view.extensions.raw, when=_of_type(type_)),
        ],
        workers=workers,
    )
    return controller


_OURS: Final = managed_fields_of(FIELD_MANAGER)


def _in_namespace(view: SeedView, type_: str) -> Callable[[Object], Iterable[ObjectKey]]:
    def keys(obj: Object) -> Iterable[ObjectKey]:
        if metadata_of(obj).labels.get(EXTENSION_LABEL) != type_:
            return ()
        return view.extensions_in(key_of(obj).namespace, type_)

    return keys


def _of_type(type_: str) -> Callable[[Change], bool]:
    def passes(change: Change) -> bool:
        return f"{type_}/{change.key.namespace}" in _places(change.current) and spec_or_metadata_changed(change)

    return passes


def _places(extension: Object) -> Iterable[str]:
    """The type of an Extension of a Shoot, alone and with the namespace."""
    try:
        found = read(GardenExtension, extension)
    except NotReadable:
        return ()
    if found.spec.class_name not in _SHOOT_CLASSES:
        return ()
    return found.spec.type, f"{found.spec.type}/{found.metadata.namespace}"


def _resource_changed(change: Change) -> bool:
    """Reports whether a ManagedResource came, went, or has another spec or other conditions."""
    return change.old is None or change.new is None or _parts(change.old) != _parts(change.new)


class _Parts(msgspec.Struct):
    spec: object = None
    status: object = None


def _parts(obj: Object) -> _Parts:
    return msgspec.convert(obj, _Parts)


def _cluster_changed(change: Change) -> bool:
    """Reports whether anything differs that extensions read: a Shoot's progress is written every few seconds."""
    if change.old is None or change.new is None:
        return True
    before, after = _copies(change.old), _copies(change.new)
    return before is None or after is None or before != after


def _copies(obj: Object) -> tuple[object, ...] | None:
    try:
        found = read(SeedCluster, obj)
    except NotReadable:
        return None
    shoot, status = found.shoot, found.shoot.status
    failed = status.last_operation is not None and status.last_operation.state == "Failed"
    return (
        shoot.spec,
        shoot.metadata.annotations,
        status.advertised_addresses,
        status.networking,
        status.hibernated,
        failed,
        found.seed.spec,
    )


__all__ = ["CONTROLLER_PREFIX", "SeedView", "add_extension", "seed_view"]
