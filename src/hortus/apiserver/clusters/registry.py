"""The active logical clusters of this server, by name.

The source is the LogicalCluster objects of the management cluster. They are read once at start and followed commit by
commit (`changed`), so a cluster is served with the commit of its creation, and its credentials become invalid with the
commit of its deletion. A deleted cluster keeps its name until `retire` has emptied it, so that no second cluster of
that name gets the first one's objects. Each cluster costs one small object and no task.

Several servers on one store each empty deleted clusters; their writes are bound to the revision of the object that they
saw, so that a slow one cannot empty a cluster that has been made again. Late writes of another server into a removed
cluster are removed when they are seen.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence
from typing import Protocol
from uuid import UUID

import msgspec

from hortus.apiserver.authn.certificates import IssuedCertificate
from hortus.apiserver.authn.cluster_keys import ClusterKeys
from hortus.apiserver.authn.keys import ServerKeys
from hortus.apiserver.clusters.content import without_finalizer
from hortus.apiserver.clusters.issuing import issue
from hortus.apiserver.store.backend import (
    Backend,
    Commit,
    Mismatch,
    RecordPage,
    StoredRecord,
    StoreFailed,
    StoreKey,
    Value,
)
from hortus.kube.clock import Clock
from hortus.kube.errors import NotFound

ROOT = "root"
"""The management cluster; it always exists and has no object."""

BUCKET = f"{ROOT}/tenancy.hortus.dev/logicalclusters"


_log = logging.getLogger("hortus.apiserver.clusters")

_REQUEST_SECONDS = 120.0
"""Seconds for which a request may delay the end of its deleted cluster; the server ends slow ones sooner."""

_RETRY_SECONDS = 1.0
"""Seconds after which emptying a deleted cluster is retried when the store failed."""


class ClusterStorage(Protocol):
    """The store as writers see it: listeners get each write before it is acknowledged."""

    backend: Backend

    async def get(self, key: StoreKey) -> StoredRecord | None: ...

    async def list(self, bucket: str) -> RecordPage: ...

    async def buckets(self, prefix: str) -> Sequence[str]: ...

    async def put(self, key: StoreKey, value: Value, *, replaced: StoredRecord | None) -> StoredRecord: ...

    async def delete(self, replaced: StoredRecord, final: Value) -> int: ...


class LogicalCluster:
    """One logical cluster.

    `requests` counts those in progress: a handler adds 1 and calls `request_done` at its end. `living` becomes False
    when the cluster is deleted.
    """

    __slots__ = ("_quiet", "keys", "living", "name", "quota", "requests", "revision", "uid")

    def __init__(self, name: str, uid: str, revision: int, keys: ClusterKeys, quota: Quota | None) -> None:
        self.name = name
        self.uid = uid
        self.revision = revision
        self.keys = keys
        self.living = True
        self.quota = quota
        self.requests = 0
        self._quiet: asyncio.Event | None = None

    def request_done(self) -> None:
        self.requests -= 1
        if self._quiet is not None and self.requests <= 0:
            self._quiet.set()

    async def quiet(self, clock: Clock, seconds: float) -> None:
        """Waits until no request is in progress, at most for `seconds`."""
        if self.requests > 0:
            self._quiet = asyncio.Event()
            timer = clock.call_later(seconds, self._quiet.set)
            await self._quiet.wait()
            timer.cancel()

    @property
    def path(self) -> str:
        """The prefix of /api and /apis in this cluster's URLs."""
        return "" if self.name == ROOT else f"/clusters/{self.name}"


class Quota(msgspec.Struct, frozen=True):
    """The limits of the cluster; None: no limit."""

    objects: int | None = None
    bytes: int | None = None


class _Numbers(msgspec.Struct):
    """A quota as it was written: a whole number may be 2.0."""

    objects: float | None = None
    bytes: float | None = None

    def quota(self) -> Quota:
        return Quota(*(None if number is None else int(number) for number in (self.objects, self.bytes)))


class _Spec(msgspec.Struct):
    quota: _Numbers | None = None


class _Metadata(msgspec.Struct):
    name: str
    uid: UUID
    deletionTimestamp: str = ""


class _Seen(msgspec.Struct):
    metadata: _Metadata
    spec: msgspec.Raw = msgspec.Raw(b"null")


_SEEN: msgspec.json.Decoder[_Seen] = msgspec.json.Decoder(_Seen)
_SPEC: msgspec.json.Decoder[_Spec | None] = msgspec.json.Decoder(_Spec | None)


class LogicalClusters:
    """The registry: a listener of the store, and the ClusterLookup of the authenticators."""

    def __init__(self, storage: ClusterStorage, server_keys: ServerKeys, clock: Clock) -> None:
        self._storage = storage
        self._clock = clock
        self._server_keys = server_keys
        self._living: dict[str, LogicalCluster] = {}
        self._ended: dict[str, LogicalCluster] = {}
        self._retiring: dict[str, asyncio.Task[None]] = {}
        self._quarantined: set[str] = set()
        """Names of objects that cannot be read. These clusters are neither served nor emptied."""
        self._due: set[str] = set()
        """The names that the task in `_retiring` has to process."""
        self._put(ROOT, server_keys.root_uid, 0)

    async def start(self) -> None:
        """Reads all clusters, and continues to empty those whose deletion a crash interrupted."""
        page = await self._storage.list(BUCKET)
        for record in page.records:
            self._follow(record.name.lstrip("/"), record.value, record.revision)
        for name in {bucket.partition("/")[0] for bucket in await self._storage.buckets("")}:
            if name not in self._living and name not in self._retiring and name not in self._quarantined:
                self._begin_retiring(name)

    async def stop(self) -> None:
        """Stops emptying deleted clusters; the next start continues."""
        tasks = list(self._retiring.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def get(self, name: str) -> LogicalCluster | None:
        """The active cluster of that name; None also while it is being deleted."""
        return self._living.get(name)

    def uid(self, name: str) -> str | None:
        """The uid of a LogicalCluster that is active or being emptied; the management cluster has none."""
        found = self._living.get(name) or self._ended.get(name)
        return found.uid if found is not None and name != ROOT else None

    def keys(self, cluster: str) -> ClusterKeys | None:
        found = self._living.get(cluster)
        return found.keys if found is not None else None

    @property
    def server_ca(self) -> bytes:
        """PEM of the authority that clients verify this server with, the same for all clusters."""
        return self._server_keys.ca_pem

    def issue(
        self, name: str, *, username: str, groups: Sequence[str] = (), seconds: float, csr: bytes = b""
    ) -> IssuedCertificate:
        """A client certificate for the cluster `name`: see `issuing.issue`. Raises NotFound, BadRequest."""
        cluster = self._living.get(name)
        if cluster is None:
            raise NotFound(f'logicalclusters.tenancy.hortus.dev "{name}" not found')
        now = self._clock.now()
        return issue(cluster.keys, username=username, groups=groups, seconds=seconds, now=now, csr=csr)

    def __len__(self) -> int:
        return len(self._living)

    def __iter__(self) -> Iterator[LogicalCluster]:
        return iter(tuple(self._living.values()))

    def changed(self, change: Commit) -> None:
        """Follows a write of any object: a LogicalCluster, or an object that a cluster's tokens depend on."""
        key = change.key
        if key.bucket == BUCKET:
            self._follow(key.name.lstrip("/"), change.value, change.revision)
            return
        name = key.cluster
        cluster = self._living.get(name)
        if cluster is not None:
            cluster.keys.written(key)
        elif change.value is not None and name not in self._ended and name not in self._quarantined:
            self._begin_retiring(name)

    def _follow(self, name: str, value: bytes | None, revision: int) -> None:
        known = self._living.get(name)
        self._quarantined.discard(name)
        if value is None:
            self._end(name)
            self._ended.pop(name, None)
            return
        try:
            metadata, quota = _read(value)
        except msgspec.MsgspecError as error:
            # One bad object does not affect other clusters; an active cluster keeps its old state.
            if known is None:
                self._quarantined.add(name)
            _log.error("a LogicalCluster is not understood and not served", extra={"object": name, "error": str(error)})
            return
        uid = str(metadata.uid)
        if metadata.deletionTimestamp:
            self._end(name)
            self._begin_retiring(name)
        elif known is None or known.uid != uid:
            self._put(name, uid, revision, quota)
        else:
            known.revision, known.quota = revision, quota

    def _end(self, name: str) -> None:
        cluster = self._living.pop(name, None)
        if cluster is not None:
            cluster.living = False
            self._ended[name] = cluster

    def _put(self, name: str, uid: str, revision: int, quota: Quota | None = None) -> None:
        self._end(name)
        self._ended.pop(name, None)
        self._living[name] = LogicalCluster(name, uid, revision, ClusterKeys(self._server_keys, name, uid), quota)

    def _begin_retiring(self, name: str) -> None:
        if name.startswith("_"):
            return
        self._due.add(name)
        if name not in self._retiring:
            task = asyncio.get_running_loop().create_task(self._retire_until_done(name), name=f"retire {name}")
            self._retiring[name] = task

    async def _retire_until_done(self, name: str) -> None:
        try:
            while name in self._due:
                self._due.discard(name)
                try:
                    await self.retire(name)
                except StoreFailed:
                    self._due.add(name)
                    # The store logs its failure itself; here it is only retried.
                    await self._clock.sleep(_RETRY_SECONDS)
                except Exception:
                    _log.exception(
                        "a logical cluster cannot be emptied before its object changes", extra={"object": name}
                    )
        finally:
            del self._retiring[name]

    async def retire(self, name: str) -> None:
        """Empties a cluster in deletion, then removes the finalizer of its object. Idempotent.

        The first drop ends its watches. A request that was admitted before the deletion may still write; the name is
        only released after such requests have ended, so that none of them writes into a later cluster of that name.
        """
        key, backend = StoreKey(BUCKET, f"/{name}"), self._storage.backend
        while True:
            record = await self._storage.get(key)
            if record is None or b'"deletionTimestamp"' not in record.value:
                break
            released = without_finalizer(record.value)
            if released is None:
                break
            try:
                await backend.drop(f"{name}/", guard=key, expected=record.revision)
                ended = self._ended.get(name)
                if ended is not None and ended.requests > 0:
                    await ended.quiet(self._clock, _REQUEST_SECONDS)
                    await backend.drop(f"{name}/", guard=key, expected=record.revision)
                await self._release(record, released)
            except Mismatch:
                continue
        await self._sweep(name, key)
        self._ended.pop(name, None)

    async def _sweep(self, name: str, guard: StoreKey) -> None:
        """Removes late writes of a request on another server into a removed cluster."""
        while (await self._storage.backend.usage(f"{name}/")).objects:
            try:
                await self._storage.backend.drop(f"{name}/", guard=guard, expected=0)
            except Mismatch:
                return  # made again, or others hold it in deletion

    async def _release(self, record: StoredRecord, released: tuple[Value, bool]) -> None:
        value, last = released
        if last:
            await self._storage.delete(record, value)
        else:
            await self._storage.put(record.key, value, replaced=record)


def _read(value: bytes) -> tuple[_Metadata, Quota | None]:
    """Raises msgspec.MsgspecError; of an object in deletion only the metadata has to be valid."""
    seen = _SEEN.decode(value)
    spec = None if seen.metadata.deletionTimestamp else _SPEC.decode(seen.spec)
    return seen.metadata, spec.quota.quota() if spec is not None and spec.quota is not None else None
