"""The engine against the embedded API server, through sockets: what a fake would forgive."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from tests.waiting import until

from hortus.engine.apply import Applier
from hortus.engine.caches import Caches
from hortus.engine.conditions import has_condition
from hortus.engine.events import EVENTS, NORMAL, EventRecorder
from hortus.engine.finalizers import add_finalizer, finalizers_of, remove_finalizer
from hortus.engine.indexes import managed_fields_of
from hortus.engine.leases import LEASES, Elector, LeaseTimes
from hortus.engine.owners import own
from hortus.engine.status import StatusDraft
from hortus.kube import Client, SystemClock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.testing.apiserver import TestServer

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
PODS = Resource("", "v1", "pods", "Pod")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
GREETINGS = Resource("example.org", "v1", "greetings", "Greeting")


class Calls:
    """Counts what a client asks the server."""

    def __init__(self) -> None:
        self.methods: list[str] = []

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self.methods.append(method)

    @property
    def writes(self) -> int:
        return sum(method != "GET" for method in self.methods)


class World:
    def __init__(self, client: Client, calls: Calls) -> None:
        self.client, self.calls = client, calls
        self.clock = SystemClock()

    async def until(self, holds: Callable[[], Any]) -> None:
        await until(holds)


@pytest.fixture
async def world(server: TestServer, request: pytest.FixtureRequest) -> AsyncIterator[World]:
    calls = Calls()
    async with Client.from_kubeconfig(server.kubeconfig, observer=calls) as client:
        yield World(client, calls)


def configmap(name: str, **data: str) -> Object:
    return {"metadata": {"name": name, "namespace": "default"}, "data": data}


async def test_what_is_applied_already_costs_no_call_and_drift_is_put_right(world: World) -> None:
    caches = Caches(world.client, clock=world.clock)
    cache = caches.get(CONFIGMAPS, namespace="default", transform=managed_fields_of("hortus"))
    caches.start()
    await caches.synced()
    applier = Applier(world.client, field_manager="hortus")
    config = configmap("applied", a="1", b="2")
    key = ObjectKey("default", "applied")
    assert (await applier.apply(CONFIGMAPS, config, cache=cache)).written
    writes = world.calls.writes
    assert not (await applier.apply(CONFIGMAPS, config, cache=cache)).written
    assert world.calls.writes == writes
    # Fields of others are theirs; a change to ours is drift.
    await world.client.patch(CONFIGMAPS, "applied", {"data": {"other": "x"}}, "default", field_manager="somebody")
    await world.until(lambda: "other" in cache[key]["data"])
    assert not (await applier.apply(CONFIGMAPS, config, cache=cache)).written
    await world.client.patch(CONFIGMAPS, "applied", {"data": {"a": "5"}}, "default", field_manager="somebody")
    await world.until(lambda: cache[key]["data"]["a"] == "5")
    assert (await applier.apply(CONFIGMAPS, config, cache=cache)).object["data"] == {"a": "1", "b": "2", "other": "x"}
    # A field that the configuration drops is removed from the object.
    applied = await applier.apply(CONFIGMAPS, configmap("applied", a="1"), cache=cache)
    assert applied.written
    assert applied.object["data"] == {"a": "1", "other": "x"}
    await caches.stop()


async def test_finalizers_hold_and_let_go_on_a_real_server(world: World) -> None:
    made = await world.client.create(CONFIGMAPS, configmap("held"))
    ours = await add_finalizer(world.client, CONFIGMAPS, made, "hortus.dev/one")
    both = await add_finalizer(world.client, CONFIGMAPS, ours, "hortus.dev/two")
    # With a stale view of the list the precise patch is refused and made again.
    again = await add_finalizer(world.client, CONFIGMAPS, ours, "hortus.dev/three")
    assert finalizers_of(again) == ["hortus.dev/one", "hortus.dev/two", "hortus.dev/three"]
    await world.client.delete(CONFIGMAPS, "held", "default")
    for finalizer in ("hortus.dev/one", "hortus.dev/two"):
        left = await remove_finalizer(world.client, CONFIGMAPS, both, finalizer)
        assert left is not None and finalizer not in finalizers_of(left)
    await remove_finalizer(world.client, CONFIGMAPS, again, "hortus.dev/three")
    with pytest.raises(NotFound):
        await world.client.get(CONFIGMAPS, "held", "default")


async def test_a_status_is_written_once(world: World) -> None:
    container = {"name": "c", "image": "i"}
    pod = {"metadata": {"name": "p", "namespace": "default"}, "spec": {"containers": [container]}}
    live = await world.client.create(PODS, pod)
    writes = world.calls.writes
    for _ in range(3):
        draft = StatusDraft(live, clock=world.clock)
        draft.condition("Ready", "True", reason="Fine")
        live = await draft.write(world.client, PODS) or live
    assert world.calls.writes == writes + 1
    assert has_condition(live, "Ready")


async def test_owned_objects_go_with_their_owner(world: World) -> None:
    owner = await world.client.create(CONFIGMAPS, configmap("owner"))
    dependent = configmap("dependent")
    own(dependent, {"apiVersion": "v1", "kind": "ConfigMap", **owner})
    await world.client.create(CONFIGMAPS, dependent)
    caches = Caches(world.client, clock=world.clock)
    cache = caches.get(CONFIGMAPS, namespace="default")
    caches.start()
    await caches.synced()
    await world.client.delete(CONFIGMAPS, "owner", "default")
    await world.until(lambda: ObjectKey("default", "dependent") not in cache)
    await caches.stop()
    with pytest.raises(NotFound):
        await world.client.get(CONFIGMAPS, "dependent", "default")


async def test_two_candidates_share_a_lease_on_a_real_server(world: World) -> None:
    times = LeaseTimes(duration=60.0, renew_deadline=50.0, retry_period=0.05)
    one, two = (
        Elector(world.client, name="lock", namespace="default", identity=name, clock=world.clock, times=times)
        for name in ("1", "2")
    )
    await one.acquire()
    waiting = asyncio.create_task(two.acquire())
    await world.until(lambda: two.leader == "1")
    assert one.leading and not two.leading
    await one.release()
    await waiting
    assert two.leading and not one.leading
    lease = await world.client.get(LEASES, "lock", "default")
    assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseTransitions"]) == ("2", 1)
    await two.release()


async def test_events_are_counted_on_a_real_server(world: World) -> None:
    subject = await world.client.create(CONFIGMAPS, configmap("subject"))
    subject = {"apiVersion": "v1", "kind": "ConfigMap", **subject}
    recorder = EventRecorder(world.client, component="test", clock=world.clock)
    await recorder.start()
    for _ in range(3):
        recorder.event(subject, NORMAL, "Seen", "seen again")
        await world.until(lambda: recorder.idle)
    await recorder.stop()
    found = await world.client.list(EVENTS, "default", fields="involvedObject.name=subject")
    assert [event["count"] for event in found.items] == [3]


async def test_a_cache_follows_many_writers(world: World) -> None:
    caches = Caches(world.client, clock=world.clock)
    cache = caches.get(CONFIGMAPS, namespace="default", labels="crowd=yes")
    caches.start()
    await caches.synced()

    async def write(number: int) -> None:
        name = f"crowd-{number}"
        wanted = configmap(name)
        wanted["metadata"]["labels"] = {"crowd": "yes"}
        await world.client.create(CONFIGMAPS, wanted)
        await world.client.patch(CONFIGMAPS, name, {"data": {"n": "1"}}, "default")
        if number % 2:
            await world.client.delete(CONFIGMAPS, name, "default")
        elif number % 4:
            await world.client.patch(CONFIGMAPS, name, {"metadata": {"labels": None}}, "default")

    await asyncio.gather(*(write(number) for number in range(100)))
    await world.until(lambda: len(cache) == 25)
    listed = await world.client.list(CONFIGMAPS, "default", labels="crowd=yes")
    wanted = {obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in listed.items}
    assert set(wanted) == {f"crowd-{number}" for number in range(0, 100, 4)}
    await world.until(
        lambda: {obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in cache.values()} == wanted
    )
    await caches.stop()
