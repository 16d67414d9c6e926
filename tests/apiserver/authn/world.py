"""A server's authentication and authorization without its HTTP part, over a memory store and a clock moved by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from hortus.apiserver.authn import (
    Authentication,
    CertificateAuthenticator,
    RequestCredentials,
    ServerKeys,
    ServiceAccountTokens,
    StaticTokens,
    StoredObjects,
    UserInfo,
    open_keys,
)
from hortus.apiserver.authz.rbac import RbacAuthorizer
from hortus.apiserver.clusters import BUCKET, LogicalClusters
from hortus.apiserver.clusters.content import FINALIZER
from hortus.apiserver.resources.storage import Storage
from hortus.apiserver.store import MemoryBackend, StoredRecord, StoreKey
from hortus.apiserver.store.encoding import encode
from hortus.apiserver.store.overlay import Born, Overlay
from hortus.testing import FakeClock


@dataclass
class World:
    clock: FakeClock
    storage: Storage
    keys: ServerKeys
    clusters: LogicalClusters
    authorizer: RbacAuthorizer
    authentication: Authentication
    service_accounts: ServiceAccountTokens

    async def write(self, key: StoreKey, obj: dict[str, Any]) -> StoredRecord:
        return await self.storage.put(key, encode(obj), replaced=await self.storage.get(key))

    async def remove(self, key: StoreKey) -> None:
        record = await self.storage.get(key)
        assert record is not None
        await self.storage.delete(record, encode(json.loads(record.value)))

    async def create_cluster(self, name: str) -> None:
        metadata = {"name": name, "uid": str(uuid4()), "finalizers": [FINALIZER]}
        await self.write(StoreKey(BUCKET, f"/{name}"), {"metadata": metadata})

    async def delete_cluster(self, name: str) -> None:
        """Delete it as the resource layer does: it stamps the object, the registry ends it."""
        record = await self.storage.get(StoreKey(BUCKET, f"/{name}"))
        assert record is not None
        obj = json.loads(record.value)
        del obj["metadata"]["resourceVersion"]
        obj["metadata"]["deletionTimestamp"] = "2023-01-01T12:00:00Z"
        await self.write(record.key, obj)

    async def whoami(self, cluster: str, *, bearer: str = "", certificate: bytes = b"") -> UserInfo:
        return await self.authentication.authenticate(RequestCredentials(cluster, bearer, certificate))


@asynccontextmanager
async def world(
    *, born: Born | None = None, anonymous: bool = True, clock: FakeClock | None = None
) -> AsyncIterator[World]:
    memory, clock = MemoryBackend(), clock or FakeClock()
    await memory.start()
    keys = await open_keys(memory, now=clock.now())
    backend = Overlay(memory, born or {})
    storage = Storage(backend)
    clusters = LogicalClusters(storage, keys, clock)
    authorizer = RbacAuthorizer(backend)
    storage.listen(clusters.changed)
    storage.listen(authorizer.changed)
    storage.on_dropped(authorizer.forget)
    fixed = StaticTokens({("root", "first-token"): UserInfo("root-admin", groups=("system:masters",))})
    service_accounts = ServiceAccountTokens(clusters, StoredObjects(backend), clock)
    authentication = Authentication(
        CertificateAuthenticator(clusters, clock), fixed, service_accounts, anonymous=anonymous
    )
    await clusters.start()
    try:
        yield World(clock, storage, keys, clusters, authorizer, authentication, service_accounts)
    finally:
        await clusters.stop()
        await memory.close()
