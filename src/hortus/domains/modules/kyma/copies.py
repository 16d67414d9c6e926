"""Copies of the control plane's objects in the clusters of Kymas: the namespace, CRDs, the pull Secret, the catalog.

A set of copies is compared with the cluster when it differs from what was applied before, when another cluster answers
in its place, after a restart, and from time to time. The regular comparison reads metadata only: a checksum over uid,
generation, labels and annotations shows any change of an object by any client. Two checksums are remembered for each
set and cluster. Watches of these objects would cost four connections for each cluster, most of which never differ.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeVar

import orjson

from hortus.engine import Actor, Applier, StepError
from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError, NotFound, NotServed, TransportError
from hortus.kube.objects import Object, ObjectKey, Resource, key_of

AT_ONCE: Final = 8
"""Requests to one cluster at the same time."""
_S = TypeVar("_S")
_T = TypeVar("_T")


class Copy(NamedTuple):
    """One object as it shall be in the cluster."""

    resource: Resource
    config: Object


class CopySet(NamedTuple):
    """Objects that are copied together, by one field manager."""

    name: str
    manager: str
    copies: Sequence[Copy]
    fingerprint: str
    """Differs when any of the copies does."""
    pruned: tuple[Resource, ...] = ()
    """Kinds of which those objects are deleted that the manager applied before and the set does not have."""


class CopyErrors(StepError):
    """Copies that could not be applied; the text names each."""

    def __init__(self, errors: Sequence[KubeError]) -> None:
        super().__init__("; ".join(str(error) for error in errors), reason="CopyFailed", actor=Actor.PROVIDER)
        self.errors = errors

    @property
    def unserved(self) -> bool:
        """True where the cluster does not serve a kind, as in the moment after its CRD was applied."""
        return any(isinstance(error, NotServed) for error in self.errors)


class _Known(NamedTuple):
    fingerprint: str
    seen: str
    """Checksum of the objects in the cluster."""
    due: float
    """Monotonic seconds at which the cluster is compared again."""


def copy_set(name: str, manager: str, copies: Iterable[Copy], *, pruned: tuple[Resource, ...] = ()) -> CopySet:
    """The set of `copies`, with its fingerprint."""
    listed = tuple(copies)
    body = orjson.dumps([copy.config for copy in listed], option=orjson.OPT_SORT_KEYS)
    return CopySet(name, manager, listed, hashlib.sha256(body).hexdigest()[:32], pruned)


class ClusterCopies:
    """Keeps sets of copies in clusters; each cluster has the key of its Kyma."""

    def __init__(self, clock: Clock, *, period: float, spread: Callable[[ObjectKey], float]) -> None:
        """`period` is the time in seconds between two comparisons; `spread` varies it, from 0 to 1, by the cluster."""
        self._clock = clock
        self._period = period
        self._spread = spread
        self._known: dict[ObjectKey, dict[str, _Known]] = {}

    def forget(self, cluster: ObjectKey) -> None:
        """Compare everything when the cluster is synchronized the next time."""
        self._known.pop(cluster, None)

    def shed(self, holds: Callable[[ObjectKey], bool]) -> None:
        """Forget the clusters that have become another replica's."""
        for cluster in [cluster for cluster in self._known if not holds(cluster)]:
            self.forget(cluster)

    def due_in(self, cluster: ObjectKey) -> float:
        """Seconds until one of the sets of a cluster is compared; 0 for a cluster of which nothing is known."""
        due = min((known.due for known in self._known.get(cluster, {}).values()), default=0.0)
        return max(0.0, due - self._clock.monotonic())

    async def ensure(self, cluster: ObjectKey, client: Client, wanted: CopySet) -> bool:
        """Make the cluster hold the copies; returns whether anything was written. Raises CopyErrors,
        TransportError."""
        known = self._known.get(cluster, {}).get(wanted.name)
        now = self._clock.monotonic()
        if known is not None and known.fingerprint == wanted.fingerprint:
            if now < known.due:
                return False
            if _checksum(await self._present(client, wanted, metadata_only=True)) == known.seen:
                self._remember(cluster, wanted, known.seen)
                return False
        self._known.get(cluster, {}).pop(wanted.name, None)
        present = {_identity(copy.resource, copy.config): copy for copy in await self._present(client, wanted)}
        objects, written = await self._apply(client, wanted, present)
        deleted = await self._prune(client, wanted, present)
        self._remember(cluster, wanted, _checksum(objects))
        return written or deleted

    def _remember(self, cluster: ObjectKey, wanted: CopySet, seen: str) -> None:
        due = self._clock.monotonic() + self._period * (0.75 + 0.5 * self._spread(cluster))
        self._known.setdefault(cluster, {})[wanted.name] = _Known(wanted.fingerprint, seen, due)

    async def _present(self, client: Client, wanted: CopySet, *, metadata_only: bool = False) -> list[Copy]:
        """The objects of the set as they are in the cluster. Raises CopyErrors."""
        if not wanted.pruned:
            found = await _each(wanted.copies, lambda copy: _get(client, copy, metadata_only=metadata_only))
            return [copy for copy in found if copy is not None]
        names = {_identity(copy.resource, copy.config) for copy in wanted.copies}
        lists = await _each(wanted.pruned, lambda kind: _list(client, kind, metadata_only=metadata_only))
        return [
            copy
            for listed in lists
            for copy in listed
            if _is_applied_by(copy.config, wanted.manager) or _identity(copy.resource, copy.config) in names
        ]

    async def _apply(
        self, client: Client, wanted: CopySet, present: dict[tuple[Resource, ObjectKey], Copy]
    ) -> tuple[list[Copy], bool]:
        applier = Applier(client, field_manager=wanted.manager)

        async def one(copy: Copy) -> tuple[Copy, bool]:
            known = present.get(_identity(copy.resource, copy.config))
            live = known.config if known is not None else None
            applied = await applier.apply(copy.resource, copy.config, live=live)
            return Copy(copy.resource, applied.object), applied.written

        found = await _each(wanted.copies, one)
        return [copy for copy, _ in found], any(written for _, written in found)

    async def _prune(self, client: Client, wanted: CopySet, present: dict[tuple[Resource, ObjectKey], Copy]) -> bool:
        names = {_identity(copy.resource, copy.config) for copy in wanted.copies}
        surplus = [copy for identity, copy in present.items() if identity not in names] if wanted.pruned else []
        await _each(surplus, lambda copy: _delete(client, copy))
        return bool(surplus)


async def _each(items: Iterable[_S], call: Callable[[_S], Awaitable[_T]]) -> list[_T]:
    """The results for all items, a few at a time; every item is tried. Raises CopyErrors, TransportError."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(item: _S) -> _T:
        async with places:
            return await call(item)

    found = await asyncio.gather(*map(one, items), return_exceptions=True)
    errors = [one for one in found if isinstance(one, KubeError) and not isinstance(one, TransportError)]
    for result in found:
        if isinstance(result, BaseException) and (
            isinstance(result, TransportError) or not isinstance(result, KubeError)
        ):
            raise result
    if errors:
        raise CopyErrors(errors)
    return [result for result in found if not isinstance(result, BaseException)]


async def _get(client: Client, copy: Copy, *, metadata_only: bool) -> Copy | None:
    key = key_of(copy.config)
    try:
        found = await client.get(copy.resource, key.name, key.namespace, metadata_only=metadata_only)
    except NotFound:
        return None
    return Copy(copy.resource, found)


async def _list(client: Client, kind: Resource, *, metadata_only: bool) -> list[Copy]:
    found = await client.list(kind, metadata_only=metadata_only)
    return [Copy(kind, obj) for obj in found.items]


async def _delete(client: Client, copy: Copy) -> None:
    key = key_of(copy.config)
    try:
        await client.delete(copy.resource, key.name, key.namespace, uid=copy.config["metadata"].get("uid", ""))
    except NotFound:
        return


def _identity(resource: Resource, obj: Object) -> tuple[Resource, ObjectKey]:
    return resource, key_of(obj)


def _is_applied_by(obj: Object, manager: str) -> bool:
    return any(entry.get("manager") == manager for entry in obj["metadata"].get("managedFields") or ())


def _checksum(copies: Iterable[Copy]) -> str:
    lines = sorted(
        orjson.dumps([copy.resource.plural, *(copy.config["metadata"].get(name) for name in _SEEN)], option=_SORTED)
        for copy in copies
    )
    return hashlib.sha256(b"\n".join(lines)).hexdigest()[:32]


_SEEN: Final = ("namespace", "name", "uid", "generation", "labels", "annotations", "deletionTimestamp")
_SORTED: Final = orjson.OPT_SORT_KEYS
