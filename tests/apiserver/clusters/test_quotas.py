"""A full logical cluster takes no new objects, and says how to make room."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from tests.apiserver.authn.world import World, world

from hortus.apiserver.authn import UserInfo
from hortus.apiserver.clusters import BUCKET
from hortus.apiserver.clusters.quotas import QuotaGuard
from hortus.apiserver.store import Key
from hortus.kube.errors import Forbidden
from hortus.kube.objects import Resource


class Kind(NamedTuple):
    resource: Resource


class Scope(NamedTuple):
    cluster: str
    kind: Kind
    user: UserInfo
    subresource: str = ""


CONFIG_MAPS = Kind(Resource("", "v1", "configmaps", "ConfigMap"))
JANE = UserInfo("jane")


async def limit(here: World, **quota: int) -> None:
    record = await here.storage.get(Key(BUCKET, "/a"))
    assert record is not None
    await here.write(record.key, {**json.loads(record.value), "spec": {"quota": quota}})


async def create(here: World, name: str) -> None:
    obj: dict[str, Any] = {"metadata": {"name": name, "namespace": "ns"}}
    guard = QuotaGuard(here.clusters, here.storage.backend)
    assert not await guard.admit(Scope("a", CONFIG_MAPS, JANE), "CREATE", obj, None, dry_run=False)
    await here.write(Key("a/core/configmaps", f"ns/{name}"), obj)


async def test_a_cluster_takes_objects_up_to_its_quota_and_again_when_it_is_raised() -> None:
    async with world() as here:
        await here.create_cluster("a")
        await create(here, "one")
        await limit(here, objects=2)
        await create(here, "two")
        with pytest.raises(Forbidden, match='logical cluster "a" holds 2 of 2 objects; delete objects or raise'):
            await create(here, "three")
        guard = QuotaGuard(here.clusters, here.storage.backend)
        assert not await guard.admit(Scope("a", CONFIG_MAPS, JANE), "UPDATE", {}, {}, dry_run=False)
        await limit(here, objects=3)
        await create(here, "three")


async def test_a_cluster_takes_bytes_up_to_its_quota() -> None:
    async with world() as here:
        await here.create_cluster("a")
        await limit(here, bytes=10)
        await create(here, "one")
        with pytest.raises(Forbidden, match="of 10 bytes"):
            await create(here, "two")


async def test_bytes_are_counted_when_objects_grow_too() -> None:
    async with world() as here:
        await here.create_cluster("a")
        await create(here, "one")
        await limit(here, bytes=1)
        guard, scope = QuotaGuard(here.clusters, here.storage.backend), Scope("a", CONFIG_MAPS, JANE)
        small: dict[str, Any] = {"metadata": {"name": "one"}, "data": {}}
        large: dict[str, Any] = {"metadata": {"name": "one"}, "data": {"a": "b"}}
        with pytest.raises(Forbidden, match="of 1 bytes; delete objects or raise"):
            await guard.admit(scope, "UPDATE", large, small, dry_run=False)
        assert not await guard.admit(scope, "UPDATE", small, large, dry_run=False)
        going = {**large, "metadata": {"name": "one", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
        assert not await guard.admit(scope, "UPDATE", going, small, dry_run=False)
