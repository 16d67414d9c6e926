"""A full logical cluster takes no new objects, and says how to make room."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pytest
from tests.apiserver.authn.world import World, world

from hortus.apiserver.authn import UserInfo
from hortus.apiserver.authz.aggregator import RoleAggregator
from hortus.apiserver.clusters import BUCKET
from hortus.apiserver.clusters.quotas import QuotaGuard
from hortus.apiserver.store import StoreKey
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
    record = await here.storage.get(StoreKey(BUCKET, "/a"))
    assert record is not None
    await here.write(record.key, {**json.loads(record.value), "spec": {"quota": quota}})


async def create(here: World, name: str) -> None:
    obj: dict[str, Any] = {"metadata": {"name": name, "namespace": "ns"}}
    guard = QuotaGuard(here.clusters, here.storage.backend)
    assert not await guard.admit(Scope("a", CONFIG_MAPS, JANE), "CREATE", obj, None, dry_run=False)
    await here.write(StoreKey("a/core/configmaps", f"ns/{name}"), obj)


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


def _going(size: int, *finalizers: str) -> dict[str, Any]:
    metadata = {"name": "one", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": list(finalizers)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "x" * size}}


async def test_objects_in_deletion_may_use_the_reserve_and_no_more() -> None:
    async with world() as here:
        await here.create_cluster("a")
        await create(here, "one")
        used = (await here.storage.backend.usage("a/")).bytes
        guard, scope = QuotaGuard(here.clusters, here.storage.backend), Scope("a", CONFIG_MAPS, JANE)
        await limit(here, bytes=used)
        assert not await guard.admit(scope, "UPDATE", _going(9, "a/b"), _going(1, "a/b"), dry_run=False)
        await limit(here, bytes=used // 2)
        with pytest.raises(Forbidden, match="delete objects or raise"):
            await guard.admit(scope, "UPDATE", _going(9, "a/b"), _going(1, "a/b"), dry_run=False)
        assert not await guard.admit(scope, "UPDATE", _going(1), _going(1, "a/b"), dry_run=False)
        assert not await guard.admit(scope, "UPDATE", _going(99), _going(1, "a/b"), dry_run=False)


async def test_a_deletion_mark_by_a_client_gives_no_reserve() -> None:
    async with world() as here:
        await here.create_cluster("a")
        await create(here, "one")
        await limit(here, bytes=1)
        guard, scope = QuotaGuard(here.clusters, here.storage.backend), Scope("a", CONFIG_MAPS, JANE)
        living = {**_going(1, "a/b"), "metadata": {"name": "one"}}
        with pytest.raises(Forbidden):
            await guard.admit(scope, "UPDATE", _going(9, "a/b"), living, dry_run=False)


async def test_roles_that_gather_others_stop_at_the_quota() -> None:
    async with world() as here:
        await here.create_cluster("a")
        large = [{"apiGroups": ["x"], "resources": [f"r{n}" for n in range(100)], "verbs": ["get"]}]
        selectors = {"clusterRoleSelectors": [{"matchLabels": {"gathered": "true"}}]}
        bucket = "a/rbac.authorization.k8s.io/clusterroles"
        gathered = {"name": "large", "labels": {"gathered": "true"}}
        await here.write(StoreKey(bucket, "/large"), {"apiVersion": "v1", "metadata": gathered, "rules": large})
        for number in range(20):
            gathering = {"apiVersion": "v1", "metadata": {"name": f"g{number}"}, "aggregationRule": selectors}
            await here.write(StoreKey(bucket, f"/g{number}"), gathering)
        before = (await here.storage.backend.usage("a/")).bytes
        await limit(here, bytes=before + 1)
        guard = QuotaGuard(here.clusters, here.storage.backend)
        await RoleAggregator(here.storage, here.clock, guard.full).aggregate("a")
        after = (await here.storage.backend.usage("a/")).bytes
        assert before < after < before + 2000
