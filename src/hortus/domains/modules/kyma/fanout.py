"""Changes of the catalog, as Kymas to reconcile: which ones a change concerns, and when.

A change of a ModuleReleaseMeta reaches each Kyma after a delay of its own, so that a channel moves over a fleet in
minutes, not in a moment. The delay follows from the Kyma, the module and the version, and counts from the time of the
change that the API server recorded: a restart keeps it, and so does a reconcile for another reason. Where a policy
governs the change, the Kymas ask its rollout at once, which spreads them instead. In the queue they come after the
edits of single Kymas.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from hortus.domains.modules.kyma.documents import changed_at
from hortus.domains.modules.names import MANAGED_BY_LIFECYCLE_MANAGER, Label
from hortus.domains.modules.types import Kyma, ModuleReleaseMeta, ModuleTemplate
from hortus.engine import Cache, Change, Priority, TypedCache, read
from hortus.engine.delays import Delays
from hortus.engine.sources import Add, Detach
from hortus.kube.clock import Clock
from hortus.kube.objects import Object, ObjectKey, key_of

BY_MODULE: Final = "module"
"""Index of managed Kymas by the modules of their status, each with its channel."""
BY_TEMPLATE: Final = "template"
"""Index of managed Kymas by the ModuleTemplates of their status."""
BY_MISSING: Final = "missing"
"""Index of managed Kymas by the modules of their status for which no ModuleTemplate was found."""
BY_CLUSTER: Final = "cluster"
"""Index of Kymas by the names of their ClusterProfiles."""
MANAGED: Final = "managed"
"""Index of all managed Kymas, by their namespace."""


def spread_of(*parts: str) -> float:
    """A number from 0 to 1 that follows from texts alone."""
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def upgrade_time(kyma: ObjectKey, module: str, version: str, *, changed: float, longest: float) -> float:
    """The time, in seconds since the epoch, from which a Kyma takes a version that a release got at `changed`;
    `longest` is the longest delay in seconds."""
    return changed + longest * spread_of(*kyma, module, version)


def upgrade_delay(kyma: ObjectKey, module: str, version: str, *, release: Object, now: float, longest: float) -> float:
    """Seconds from `now` until a Kyma takes a version of a cached release that has just changed."""
    due = upgrade_time(kyma, module, version, changed=changed_at(release) or now, longest=longest)
    return min(max(0.0, due - now), longest)


def index(kymas: TypedCache[Kyma]) -> None:
    """File Kymas by the modules and the ModuleTemplates in their status."""
    kymas.add_index(BY_MODULE, _modules)
    kymas.add_index(BY_TEMPLATE, _templates)
    kymas.add_index(BY_MISSING, _missing)
    kymas.add_index(BY_CLUSTER, lambda kyma: (cluster_of(kyma),))
    kymas.add_index(MANAGED, lambda kyma: (kyma.metadata.namespace,) if _is_managed(kyma) else ())


def cluster_of(kyma: Kyma) -> str:
    """The name of the ClusterProfile of a Kyma's cluster."""
    return kyma.metadata.labels.get(Label.RUNTIME_ID) or kyma.metadata.name


def _is_managed(kyma: Kyma) -> bool:
    return kyma.metadata.labels.get(Label.MANAGED_BY) == MANAGED_BY_LIFECYCLE_MANAGER


def _modules(kyma: Kyma) -> Iterator[str]:
    for module in kyma.status.modules if _is_managed(kyma) else ():
        yield _entry(kyma.metadata.namespace, module.name, module.channel or kyma.spec.channel)


def _entry(namespace: str, module: str, channel: str) -> str:
    return f"{namespace}/{module}/{channel}"


def _templates(kyma: Kyma) -> Iterator[str]:
    for module in kyma.status.modules if _is_managed(kyma) else ():
        if module.channel and module.template is not None:
            yield str(ObjectKey(module.template.metadata.namespace, module.template.metadata.name))


def _missing(kyma: Kyma) -> Iterator[str]:
    for module in kyma.status.modules if _is_managed(kyma) else ():
        if module.template is None:
            yield f"{kyma.metadata.namespace}/{module.name}"


def kymas_of_template(kymas: Cache) -> Callable[[Object], Iterable[ObjectKey]]:
    """Maps a ModuleTemplate to the managed Kymas that have it in their status, in a channel, or lack a template of its
    module."""

    def concerned(template: Object) -> Iterable[ObjectKey]:
        found = read(ModuleTemplate, template)
        waiting = kymas.keys_by(BY_MISSING, f"{found.metadata.namespace}/{found.spec.module_name}")
        return {*kymas.keys_by(BY_TEMPLATE, str(key_of(template))), *waiting}

    return concerned


def changed_channels(old: ModuleReleaseMeta, new: ModuleReleaseMeta | None) -> dict[str, str]:
    """The channels in which two states of a release differ, with their new versions; empty for one that is gone."""
    before = {one.channel: one.version for one in old.spec.channels}
    after = {one.channel: one.version for one in new.spec.channels} if new is not None else {}
    names = before.keys() | after.keys()
    return {name: after.get(name, "") for name in names if before.get(name) != after.get(name)}


class DelayedChanges(ABC):
    """A source: the Kymas that a change of a ModuleReleaseMeta concerns, each after its delay."""

    def __init__(
        self, releases: Cache, kymas: Cache, *, longest: float, governs: Callable[[str], bool] = lambda module: False
    ) -> None:
        """`longest` is the longest delay in seconds; `governs` reports whether a policy governs a module's versions."""
        self.awaited = (releases,)
        self.kymas = kymas
        self.longest = longest
        self._governs = governs

    def attach(self, add: Add, clock: Clock) -> Detach:
        delays: Delays[ObjectKey] = Delays(clock, add)

        def on_change(change: Change) -> None:
            for key, delay in self.concerned(change, clock.now()) if not change.initial else ():
                if delay:
                    delays.add(key, delay, int(Priority.RETRY))
                else:
                    add(key, int(Priority.RETRY))

        undo = [cache.subscribe(on_change) for cache in self.awaited]

        def detach() -> None:
            for end in undo:
                end()
            delays.close()

        return detach

    async def ready(self) -> None:
        for cache in self.awaited:
            await cache.synced()

    @abstractmethod
    def concerned(self, change: Change, now: float) -> Iterator[tuple[ObjectKey, float]]:
        """The Kymas, each with its delay in seconds."""


class CatalogChanges:
    """A source: every Kyma after a change of the catalog, since what its cluster is offered may be another.

    The Kymas are spread over `period` seconds.
    """

    def __init__(self, catalog: Sequence[Cache], kymas: Cache, *, period: float) -> None:
        """`catalog` has the ModuleReleaseMetas and the ModuleTemplates."""
        self.awaited = catalog
        self._kymas = kymas
        self._period = period

    def attach(self, add: Add, clock: Clock) -> Detach:
        delays: Delays[ObjectKey] = Delays(clock, add)

        def on_change(change: Change) -> None:
            for key in self._kymas if not change.initial else ():
                delays.add(key, self._period * spread_of(*key), int(Priority.RESYNC))

        undo = [cache.subscribe(on_change) for cache in self.awaited]

        def detach() -> None:
            for end in undo:
                end()
            delays.close()

        return detach

    async def ready(self) -> None:
        for cache in self.awaited:
            await cache.synced()


class ReleaseChanges(DelayedChanges):
    """The Kymas that list a module in a channel whose version changes; they are concerned at once if it is gone."""

    def concerned(self, change: Change, now: float) -> Iterator[tuple[ObjectKey, float]]:
        old, new = change.old, change.new
        if old is None:
            return
        module = change.key.name
        channels = changed_channels(
            read(ModuleReleaseMeta, old), read(ModuleReleaseMeta, new) if new is not None else None
        )
        at_once = new is None or self._governs(module)
        for channel, version in channels.items():
            for key in self.kymas.keys_by(BY_MODULE, _entry(change.key.namespace, module, channel)):
                if new is None or at_once:
                    yield key, 0.0
                else:
                    yield key, upgrade_delay(key, module, version, release=new, now=now, longest=self.longest)
