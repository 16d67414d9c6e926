"""Writes of kubeconfig Secrets through a real API server: each reaches the Secret that was looked at and no other."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator
from typing import Any, NamedTuple

import pytest

from hortus.engine import Cache, StepError
from hortus.engine.kubeconfigs import (
    SECRETS,
    KubeconfigSecret,
    KubeconfigStore,
    RepairBackoff,
    checksum,
    sealed,
)
from hortus.kube import Client
from hortus.kube.errors import AlreadyExists, Conflict, Forbidden, Invalid
from hortus.kube.objects import Object, ObjectKey
from hortus.testing.apiserver import TestServer

_numbers = itertools.count()


class World(NamedTuple):
    client: Client
    cache: Cache
    store: KubeconfigStore
    key: ObjectKey
    """A name that no other test uses."""

    async def stored(self) -> KubeconfigSecret:
        metadata = {"name": self.key.name, "namespace": self.key.namespace}
        return await self.store.create({"metadata": metadata, "data": {"config": "Zmlyc3Q="}})

    async def replaced(self) -> Object:
        """Another Secret under the same name."""
        await self.client.delete(SECRETS, self.key.name, self.key.namespace)
        metadata = {"name": self.key.name, "namespace": self.key.namespace}
        return await self.client.create(SECRETS, {"metadata": metadata, "data": {"theirs": "eHg="}})

    async def live(self) -> Object:
        return await self.client.get(SECRETS, self.key.name, self.key.namespace)


@pytest.fixture
async def world(server: TestServer) -> AsyncIterator[World]:
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        cache = Cache("secrets", transform=sealed)
        store = KubeconfigStore(client, cache, field_manager="tests")
        yield World(client, cache, store, ObjectKey("default", f"kubeconfig-{next(_numbers)}"))


async def test_what_is_written_is_returned_and_cached_without_its_values(world: World) -> None:
    made = await world.stored()
    assert made.data == {"config": checksum("Zmlyc3Q=")}
    changed = await world.store.change(made, {"data": {"config": "c2Vjb25k"}})
    assert changed is not None
    assert changed.data == {"config": checksum("c2Vjb25k")}
    assert world.cache[world.key]["data"] == changed.data
    assert await world.store.read(world.key) == changed
    assert (await world.live())["data"] == {"config": "c2Vjb25k"}
    with pytest.raises(AlreadyExists):
        await world.stored()


async def test_a_secret_that_is_gone_is_neither_read_changed_nor_deleted(world: World) -> None:
    made = await world.stored()
    assert await world.store.delete(made)
    assert await world.store.read(world.key) is None
    assert await world.store.change(made, {"data": {"config": "c2Vjb25k"}}) is None
    assert not await world.store.delete(made)


async def test_another_secret_of_the_same_name_is_never_touched(world: World) -> None:
    made = await world.stored()
    theirs = await world.replaced()
    assert await world.store.change(made, {"data": {"config": "c2Vjb25k"}}) is None
    assert not await world.store.delete(made)
    assert await world.live() == theirs


async def test_a_value_that_the_server_refuses_is_no_secret_that_is_gone(world: World) -> None:
    made = await world.stored()
    with pytest.raises(Invalid):
        await world.store.change(made, {"metadata": {"labels": {"a": "not a label!"}}})


class WithoutPatch:
    """A client whose account may update Secrets and not patch them."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.conflicts = 0
        """Replacements that another writer is still to overtake."""
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def patch(self, *arguments: object, **options: object) -> Object:
        self.calls.append("patch")
        raise Forbidden("secrets may not be patched")

    async def replace(self, *arguments: Any, **options: Any) -> Object:
        self.calls.append("replace")
        if self.conflicts:
            self.conflicts -= 1
            raise Conflict("the object has been modified")
        return await self._client.replace(*arguments, **options)


@pytest.fixture
def limited(world: World) -> tuple[WithoutPatch, World]:
    client: Any = WithoutPatch(world.client)
    return client, world._replace(store=KubeconfigStore(client, world.cache, field_manager="tests"))


async def test_where_patches_are_forbidden_the_secret_is_replaced(limited: tuple[WithoutPatch, World]) -> None:
    client, world = limited
    made = await world.stored()
    client.conflicts = 2
    changed = await world.store.change(made, {"data": {"config": "c2Vjb25k"}})
    assert changed is not None
    await world.store.change(changed, {"metadata": {"labels": {"a": "b"}}})
    assert client.calls == ["patch", "replace", "replace", "replace", "replace"]
    live = await world.live()
    assert (live["data"], live["metadata"]["labels"]) == ({"config": "c2Vjb25k"}, {"a": "b"})


async def test_a_replacement_reaches_no_other_secret_either(limited: tuple[WithoutPatch, World]) -> None:
    _, world = limited
    made = await world.stored()
    theirs = await world.replaced()
    assert await world.store.change(made, {"data": {"config": "c2Vjb25k"}}) is None
    assert await world.live() == theirs


async def test_a_secret_that_is_changed_all_the_time_is_left_to_the_back_off(
    limited: tuple[WithoutPatch, World],
) -> None:
    client, world = limited
    made = await world.stored()
    client.conflicts = 99
    with pytest.raises(StepError, match=f"secret {world.key} is being changed by another writer all the time"):
        await world.store.change(made, {"data": {"config": "c2Vjb25k"}})


def test_repairs_come_less_and_less_often_until_there_is_quiet() -> None:
    backoff, key, now = RepairBackoff(), ObjectKey("a", "b"), 1000.0
    pauses = []
    for _ in range(8):
        pauses.append(backoff.pause(key, now))
        now += pauses[-1]
        backoff.repaired(key, now)
    assert pauses == [0, 10, 20, 40, 80, 160, 300, 300]
    assert backoff.pause(key, now + 120) == 180
    assert backoff.pause(key, now + 900) == 0
    assert backoff.pause(ObjectKey("a", "c"), now) == 0
    backoff.forget(key)
    assert backoff.pause(key, now) == 0
