"""The objects behind the rows of the fleet: listed once, or kept current by watches.

A kind that is not served has no objects. A kind that cannot be read is noted, and the rest of the fleet is shown.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence, ValuesView
from typing import Any, NamedTuple

from msgspec.structs import replace

from hortus.engine.cache import Cache, number_of
from hortus.engine.caches import Caches
from hortus.engine.fleet import FleetKind, FleetObjects, FleetRow, FleetView, KeptRows, RowStanding, Unreadable
from hortus.engine.outcomes import Actor
from hortus.engine.reflector import EventStream, Page
from hortus.kube import Client, SystemClock
from hortus.kube.errors import Forbidden, KubeError, NotFound
from hortus.kube.objects import Object, ObjectKey, Resource


class NotAFleet(Exception):
    """A cluster serves none of the kinds of a fleet; the message names them."""


class ReadGarden(NamedTuple):
    """The garden as far as it may be read."""

    client: Client | None = None
    """None where no garden is known: kinds of the garden have no objects then."""
    namespace: str = ""
    """Namespace of the project; empty for all namespaces."""


class FleetReader:
    """The objects of some kinds and the rows of some views, from one management cluster and its garden."""

    def __init__(
        self,
        management: Client,
        garden: ReadGarden,
        namespace: str,
        *,
        views: Sequence[FleetView[Any]] = (),
        kinds: Sequence[FleetKind] = (),
    ) -> None:
        """The kinds of the views are read too."""
        self._management = management
        self._garden = garden
        self._namespace = namespace
        views = sorted(views, key=lambda view: view.order)
        kinds = list(dict.fromkeys([*kinds, *(kind for view in views for kind in view.kinds)]))
        self._kinds = [kind for kind in kinds if not kind.garden or garden.client is not None]
        self._rows = [KeptRows(view) for view in views]
        self._caches: dict[FleetKind, Cache] = {}
        self._running: list[Caches] = []
        self._problems: dict[FleetKind, Exception] = {}
        self._unused = [kind for kind in kinds if kind not in self._kinds]

    @property
    def host(self) -> str:
        return self._management.host

    async def read(self) -> None:
        """Lists everything once. Raises KubeError, and NotAFleet if the cluster serves nothing of a fleet."""
        for kind in self._kinds:
            cache = self._caches[kind] = Cache(kind.resource.plural, transform=kept_part(kind))
            kept: list[Object] = []
            version = ""
            try:
                async for page in self._lister(kind).pages(kind.resource, self._place(kind), kind.labels):
                    if page.restarted:
                        kept.clear()
                    kept += [found for item in page.items if (found := cache.taken(item)) is not None]
                    version = page.resource_version
            except KubeError as error:
                if not kind.garden and not isinstance(error, Forbidden | NotFound):
                    raise
                self._problems[kind] = error
            cache.replace(kept, number_of(version))
        ours = [kind for kind in self._kinds if not kind.garden and kind.resource.group]
        if all(isinstance(self._problems.get(kind), NotFound) for kind in ours):
            names = ", ".join(dict.fromkeys(kind.resource.kind for kind in ours))
            raise NotAFleet(f"{self.host} serves none of {names}")

    def watch(self, changed: Callable[[], None]) -> None:
        """Keeps everything current until `close`; `changed` is called after each change."""
        hosts: dict[tuple[bool, bool], Caches] = {}
        for kind in self._kinds:
            caches = hosts.setdefault(
                (kind.garden, kind.metadata_only), Caches(self._lister(kind), clock=SystemClock())
            )
            cache = caches.get(
                kind.resource, namespace=self._place(kind), labels=kind.labels, transform=kept_part(kind)
            )
            cache.subscribe(lambda _: changed())
            self._caches[kind] = cache
        self._running = list(hosts.values())
        for caches in self._running:
            caches.start()

    async def close(self) -> None:
        for caches in self._running:
            await caches.stop()

    @property
    def complete(self) -> bool:
        """True when each kind was listed, or cannot be."""
        watched = {id(cache): problem for caches in self._running for cache, problem in caches.problems()}
        return all(cache.has_synced or watched.get(id(cache)) for cache in self._caches.values())

    @property
    def notes(self) -> list[str]:
        """The kinds that cannot be read, with the reason."""
        problems = dict(self._problems)
        watched = {id(cache): problem for caches in self._running for cache, problem in caches.problems()}
        for kind, cache in self._caches.items():
            if (problem := watched.get(id(cache))) is not None:
                problems[kind] = problem
        return [f"{kind.resource.plural}: {why}" for kind, why in problems.items() if not isinstance(why, NotFound)]

    @property
    def objects(self) -> FleetObjects:
        empty: Mapping[ObjectKey, object] = {}
        values: dict[FleetKind, Mapping[ObjectKey, object]] = dict.fromkeys(self._unused, empty)
        return FleetObjects({**values, **{kind: KeptValues(cache) for kind, cache in self._caches.items()}})

    def rows(self, now: float) -> list[FleetRow]:
        """All rows as they are now, worst first, and among these the oldest."""
        return ranked_rows(self._rows, self.objects, now)

    def _lister(self, kind: FleetKind) -> Client | MetadataOnly:
        client = self._garden.client if kind.garden else self._management
        assert client is not None, "kinds of a garden that is not named are left out"
        return MetadataOnly(client) if kind.metadata_only else client

    def _place(self, kind: FleetKind) -> str:
        return self._garden.namespace if kind.garden else self._namespace


class MetadataOnly:
    """A client that lists and watches objects without the rest: values of Secrets are never asked for."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def pages(
        self, resource: Resource, namespace: str = "", labels: object = "", fields: object = "", limit: int = 500
    ) -> AsyncIterator[Page]:
        return self._client.pages(resource, namespace, labels, fields, limit, metadata_only=True)

    def watch(self, resource: Resource, namespace: str = "", **options: Any) -> EventStream:
        return self._client.watch(resource, namespace, metadata_only=True, **options)


class KeptValues(Mapping[ObjectKey, object]):
    """The values that a cache keeps of its objects."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def __getitem__(self, key: ObjectKey) -> object:
        return self._cache[key]["value"]

    def __iter__(self) -> Iterator[ObjectKey]:
        return iter(self._cache)

    def __len__(self) -> int:
        return len(self._cache)

    def get(self, key: ObjectKey, default: Any = None) -> Any:
        found = self._cache.get(key)
        return default if found is None else found["value"]

    def values(self) -> ValuesView[object]:
        return _CacheValues(self._cache)


class _CacheValues(ValuesView[object]):
    """One pass over the cache, without a look for each key."""

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def __iter__(self) -> Iterator[object]:
        return (kept["value"] for kept in self._cache.values())

    def __len__(self) -> int:
        return len(self._cache)


def kept_part(kind: FleetKind) -> Callable[[Object], Object]:
    """The part of an object that is kept: what a cache needs of its metadata, and the value that views read."""

    def shrink(obj: Object) -> Object:
        metadata = obj["metadata"]
        kept = {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion") if name in metadata}
        return {"metadata": kept, "value": kind.taken(obj)}

    return shrink


def ranked_rows(kept: Iterable[KeptRows[Any]], objects: FleetObjects, now: float) -> list[FleetRow]:
    """The rows of some views at this time, worst first, and among these the oldest."""
    found = [_unreadable(one) for one in dict.fromkeys(_refused(objects.values.values()))]
    for rows in kept:
        found += sorted((_judged(row, now) for row in rows.rows(objects)), key=_name)
    return sorted(found, key=_rank)


def _refused(values: Iterable[Mapping[ObjectKey, object]]) -> Iterator[Unreadable]:
    for known in values:
        yield from (value for value in known.values() if isinstance(value, Unreadable))


def _unreadable(found: Unreadable) -> FleetRow:
    return FleetRow(
        kind=found.resource.kind,
        namespace=found.key.namespace,
        name=found.key.name,
        standing=RowStanding.FAILED,
        state="Unreadable",
        message=found.problem,
        owner=Actor.USER,
        step="correct the field that the message names",
    )


def _judged(row: FleetRow, now: float) -> FleetRow:
    """The row as it is at this time: a credential may have expired without a change of any object."""
    if row.expires is None or row.expires > now:
        return row
    owner = row.owner if row.owner != Actor.NOBODY else Actor.OPERATOR
    return replace(row, standing=RowStanding.FAILED, reason="CredentialExpired", owner=owner, since=row.expires)


def _rank(row: FleetRow) -> tuple[int, float]:
    """The worst first, and among these the oldest."""
    return row.standing, 0.0 if row.standing == RowStanding.WELL or row.since is None else row.since


def _name(row: FleetRow) -> tuple[str, str, str]:
    return row.kind, row.namespace, row.name
