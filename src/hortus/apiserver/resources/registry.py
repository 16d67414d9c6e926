"""The kinds that a logical cluster serves: built-in ones everywhere, extensions where they are bound, and CRDs.

Thousands of clusters share one table of built-in kinds; a cluster of its own costs an entry only when it defines
something. A cluster's CRDs are read at its first request for a kind that is not built in.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence

import msgspec

from hortus.apiserver.resources.definition import ResourceDefinition, Step, Strategy
from hortus.apiserver.resources.kind import Kind

_SHARED = ""
_Key = tuple[str, str, str]
_Table = dict[_Key, Kind]
Loader = Callable[[str], Awaitable[None]]
"""Puts the kinds that a cluster's CRDs define into the registry, with `define`."""


class Registry:
    def __init__(
        self, definitions: Sequence[ResourceDefinition], *, synced: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        """`synced` returns when the writes of other servers on the same store are known here."""
        self._synced = synced
        self._shared = _table([Kind(definition) for definition in definitions])
        self._bound: dict[str, _Table] = {}
        self._custom: dict[str, _Table] = {}
        self._loader: Loader | None = None
        self._named: dict[str, dict[tuple[str, str], list[Kind]]] = {}
        """By cluster (`_SHARED`: those of all), group and name of the kind; made at the first look-up after a
        change."""
        self._defined: list[Callable[[str], None]] = []

    def bind(self, cluster: str, definitions: Sequence[ResourceDefinition]) -> None:
        """Serves further kinds in one cluster."""
        self._named.pop(cluster, None)
        self._bound.setdefault(cluster, {}).update(_table([Kind(definition) for definition in definitions]))
        self._tell(cluster)

    def replace_strategy(
        self, group: str, plural: str, make: Callable[[Strategy], Strategy], *, complete: Step, end: Step
    ) -> None:
        """Gives a shared kind another strategy, made from its present one, and steps for its creation and deletion."""
        self._named.clear()
        for key, kind in self._shared.items():
            if key[0] == group and key[2] == plural:
                strategy = make(kind.definition.strategy)
                self._shared[key] = Kind(
                    msgspec.structs.replace(kind.definition, strategy=strategy, complete=complete, end=end)
                )

    def on_defined(self, listener: Callable[[str], None]) -> None:
        """Calls `listener` with each cluster in which kinds of its own are defined, changed or gone."""
        self._defined.append(listener)
        for cluster in self._bound:
            listener(cluster)

    def own_versions(self, cluster: str) -> set[tuple[str, str]]:
        """The groups and versions of the cluster's own kinds, as far as it has been loaded."""
        own = (*self._bound.get(cluster, ()), *self._custom.get(cluster, ()))
        return {(group, version) for group, version, _ in own}

    def _tell(self, cluster: str) -> None:
        for listener in self._defined:
            listener(cluster)

    def load_with(self, loader: Loader) -> None:
        self._loader = loader

    async def find(self, cluster: str, group: str, version: str, plural: str) -> Kind | None:
        key = (group, version, plural)
        kind = self._shared.get(key)
        if kind is not None:
            return kind
        if cluster not in self._custom:
            await self.load(cluster)
        kind = self.known(cluster, key)
        if kind is None and self._synced is not None:
            await self._synced()  # its CRD may have been made a moment ago, through another server
            kind = self.known(cluster, key)
        return kind

    def known(self, cluster: str, key: _Key) -> Kind | None:
        """The kind, as far as the cluster has been loaded."""
        kind = self._shared.get(key)
        for tables in (self._bound, self._custom):
            if kind is None and cluster in tables:
                kind = tables[cluster].get(key)
        return kind

    async def load(self, cluster: str) -> None:
        """Reads the cluster's CRDs unless that has happened already."""
        if self._loader is not None and cluster not in self._custom:
            await self._loader(cluster)
        self._custom.setdefault(cluster, {})

    def is_built_in(self, cluster: str, group: str, plural: str) -> bool:
        """True when the server itself serves this resource in some version; its objects are no custom resources."""
        return any(key[0] == group and key[2] == plural for key in (*self._shared, *self._bound.get(cluster, ())))

    def forget(self, cluster: str) -> None:
        """Drops the kinds of a removed cluster."""
        self._custom.pop(cluster, None)
        self._named.pop(cluster, None)

    def define(self, cluster: str, group: str, plural: str, kinds: Sequence[Kind]) -> None:
        """Serves these versions of one custom resource, and no other version of it; never those of a built-in one."""
        if self.is_built_in(cluster, group, plural):
            kinds = ()
        self._named.pop(cluster, None)
        table = self._custom.setdefault(cluster, {})
        for key in [key for key in table if key[0] == group and key[2] == plural]:
            del table[key]
        table.update(_table(kinds))
        self._tell(cluster)

    def is_loaded(self, cluster: str) -> bool:
        return cluster in self._custom

    def kinds(self, cluster: str) -> Iterator[Kind]:
        """All kinds the cluster serves (as far as it has been loaded), each version apart."""
        yield from self._shared.values()
        yield from self._bound.get(cluster, {}).values()
        yield from self._custom.get(cluster, {}).values()

    def signature(self, cluster: str) -> Hashable:
        """A value that is equal where, and as long as, the same kinds are served; it references none of them."""
        custom = tuple(
            (key, kind.digest, tuple(kind.definition.verbs)) for key, kind in self._custom.get(cluster, {}).items()
        )
        return (cluster if cluster in self._bound else "", custom)

    def by_kind(self, cluster: str, group: str, version: str, kind: str) -> Kind | None:
        """The kind of that name; an empty version finds any."""
        for owner in (_SHARED, cluster):
            for one in self._kinds_named(owner).get((group, kind), ()):
                if version in ("", one.resource.version):
                    return one
        return None

    def _kinds_named(self, cluster: str) -> Mapping[tuple[str, str], Sequence[Kind]]:
        found = self._named.get(cluster)
        if found is None:
            found = self._named[cluster] = {}
            own = (*self._bound.get(cluster, {}).values(), *self._custom.get(cluster, {}).values())
            for kind in self._shared.values() if cluster == _SHARED else own:
                found.setdefault((kind.resource.group, kind.resource.kind), []).append(kind)
        return found

    def by_suffix(self, cluster: str, suffix: str) -> Kind | None:
        """A kind stored in the bucket `<group or core>/<plural>`, in its storage version where that is served."""
        found = None
        for candidate in self.kinds(cluster):
            if candidate.suffix == suffix:
                found = candidate
                if candidate.resource.version == candidate.storage_version:
                    break
        return found


def _table(kinds: Sequence[Kind]) -> _Table:
    return {(kind.resource.group, kind.resource.version, kind.resource.plural): kind for kind in kinds}
