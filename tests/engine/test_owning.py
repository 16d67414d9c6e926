"""Objects that a controller applies for its own, through a real API server: names that others have are refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from hortus.engine import EventRecorder, KindController, Manager, ReconcileContext, Steps, find_condition
from hortus.engine.conditions import UNKNOWN, has_condition
from hortus.engine.controller import Controller
from hortus.engine.kinds import add_kind
from hortus.engine.owners import owner_reference
from hortus.engine.owning import OwnedApplier
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.schema import Fields, Kind, kind
from hortus.testing import TestCluster, wait_for, wait_gone
from hortus.testing.clusters import install

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
POTS = Resource("example.org", "v1", "pots", "Pot")


class PotSpec(Fields, frozen=True):
    text: str = "mine"
    adopt: bool = False


class PotStatus(Fields, frozen=True):
    conditions: tuple[dict[str, Any], ...] = ()


@kind(group="example.org", version="v1", status=True)
class Pot(Kind, frozen=True):
    """A pot."""

    spec: PotSpec = PotSpec()
    status: PotStatus = PotStatus()


class Potter(KindController[ReconcileContext[Pot]]):
    """Keeps a ConfigMap with the text of each Pot."""

    kind = Pot
    owns = (CONFIG_MAPS,)
    field_manager = "potter"

    def steps(self, context: ReconcileContext[Pot]) -> Steps:
        return (self._keep,)

    async def _keep(self, context: ReconcileContext[Pot]) -> None:
        spec = context.object.spec
        await context.apply(CONFIG_MAPS, {"data": {"text": spec.text}}, adopt=spec.adopt)
        context.ready("Kept")


class Pottery:
    """The administrator's view of a cluster where the controller can run."""

    def __init__(self, client: Client) -> None:
        self.client = client

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Controller]:
        manager = Manager(self.client)
        events = EventRecorder(self.client, component="potter", clock=manager.clock)
        manager.add_server(events)
        made = add_kind(manager, Potter, client=self.client, events=events)
        async with manager.running():
            yield made

    async def pot(self, name: str = "blue", **spec: Any) -> Object:
        metadata = {"name": name, "namespace": "default"}
        body = {"apiVersion": POTS.api_version, "kind": POTS.kind, "metadata": metadata, "spec": spec}
        return await self.client.create(POTS, body)

    async def config_map(self, name: str = "blue", **metadata: Any) -> Object:
        body = {"metadata": {"name": name, "namespace": "default", **metadata}, "data": {"theirs": "yes"}}
        return await self.client.create(CONFIG_MAPS, body)

    async def data(self, name: str = "blue") -> Object | None:
        try:
            found: Object = (await self.client.get(CONFIG_MAPS, name, "default"))["data"]
        except NotFound:
            return None
        return found

    async def reported(self, condition: str, name: str = "blue") -> tuple[str, str]:
        found = find_condition(await self.client.get(POTS, name, "default"), condition) or {}
        return found.get("reason", ""), found.get("message", "")

    async def until_reason(self, condition: str, reason: str) -> Object:
        """The Pot as soon as its condition has this reason."""

        def says(pot: Object) -> bool:
            return (find_condition(pot, condition) or {}).get("reason") == reason

        return await wait_for(self.client, POTS, "blue", until=says)

    async def until_data(self, data: Object, name: str = "blue") -> Object:
        """The ConfigMap as soon as it holds this."""
        return await wait_for(self.client, CONFIG_MAPS, name, until=lambda found: bool(found["data"] == data))

    async def until_gone(self, name: str = "blue") -> None:
        await wait_gone(self.client, CONFIG_MAPS, name)


@pytest.fixture
async def pottery(hortus_cluster: TestCluster) -> AsyncIterator[Pottery]:
    async with hortus_cluster.client() as client:
        await install(client, Pot)
        yield Pottery(client)


async def test_an_object_of_somebody_else_is_left_alone_also_when_the_owner_is_deleted(pottery: Pottery) -> None:
    theirs = await pottery.config_map()
    await pottery.pot()
    async with pottery.running():
        await pottery.until_reason("Stalled", "ObjectTaken")
        assert (await pottery.reported("Ready"))[1] == (
            "ConfigMap default/blue exists and has no controller: delete it, or give Pot blue another name"
        )
        await pottery.client.delete(POTS, "blue", "default")
        # The collector has handled the deletion of the first when the later one's object is collected.
        await pottery.pot("red")
        await pottery.until_data({"text": "mine"}, "red")
        await pottery.client.delete(POTS, "red", "default")
        await pottery.until_gone("red")
    assert await pottery.client.get(CONFIG_MAPS, "blue", "default") == theirs


async def test_a_name_that_becomes_free_is_used_at_once(pottery: Pottery) -> None:
    await pottery.config_map()
    await pottery.pot()
    async with pottery.running():
        await pottery.until_reason("Stalled", "ObjectTaken")
        await pottery.client.delete(CONFIG_MAPS, "blue", "default")
        made = await pottery.until_data({"text": "mine"})
        pot = await pottery.until_reason("Ready", "Kept")
    assert made["metadata"]["ownerReferences"][0]["uid"] == pot["metadata"]["uid"]


async def test_adoption_takes_over_an_object_without_a_controller(pottery: Pottery) -> None:
    await pottery.config_map()
    await pottery.pot()
    async with pottery.running():
        await pottery.until_reason("Stalled", "ObjectTaken")
        await pottery.client.patch(POTS, "blue", {"spec": {"adopt": True}}, "default")
        adopted = await pottery.until_data({"theirs": "yes", "text": "mine"})
        assert adopted["metadata"]["ownerReferences"][0]["kind"] == "Pot"
        await pottery.client.delete(POTS, "blue", "default")
        await pottery.until_gone()


async def test_an_object_that_another_controls_is_not_even_adopted(pottery: Pottery) -> None:
    async with pottery.running():
        red = await pottery.pot("red")
        await pottery.until_data({"text": "mine"}, "red")
        await pottery.config_map(ownerReferences=[owner_reference(red)])
        await pottery.pot(adopt=True)
        await pottery.until_reason("Stalled", "ObjectTaken")
        message = (await pottery.reported("Stalled"))[1]
        assert message.startswith("ConfigMap default/blue exists and is controlled by Pot red: ")
        assert await pottery.data() == {"theirs": "yes"}


async def test_what_a_former_owner_left_is_waited_for(pottery: Pottery) -> None:
    body = {"metadata": {"name": "blue", "namespace": "default", "finalizers": ["example.org/slow"]}}
    former = await pottery.pot()
    old = await pottery.client.create(
        CONFIG_MAPS, {**body, "metadata": {**body["metadata"], "ownerReferences": [owner_reference(former)]}}
    )
    await pottery.client.delete(POTS, "blue", "default")
    await pottery.pot()
    async with pottery.running():
        await pottery.until_reason("Reconciling", "ObjectLeftOver")
        release = {"metadata": {"finalizers": None}}
        await pottery.client.patch(CONFIG_MAPS, "blue", release, "default")
        await pottery.until_data({"text": "mine"})
        assert (await pottery.client.get(CONFIG_MAPS, "blue", "default"))["metadata"]["uid"] != old["metadata"]["uid"]


@pytest.mark.parametrize(
    "data", [{"theirs": "yes"}, {"text": "theirs"}, {"text": "mine"}], ids=["else", "other", "same"]
)
async def test_an_object_that_is_created_between_look_and_apply_stays_as_it_is(
    pottery: Pottery, data: Object, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, made = OwnedApplier._look, list[Object]()

    async def look_too_early(self: OwnedApplier, resource: Resource, key: ObjectKey) -> Object | None:
        found = await look(self, resource, key)
        if not made:
            body = {"metadata": {"name": key.name, "namespace": key.namespace}, "data": data}
            made.append(await pottery.client.create(resource, body))
        return found

    monkeypatch.setattr(OwnedApplier, "_look", look_too_early)
    await pottery.pot()
    async with pottery.running():
        await pottery.until_reason("Stalled", "ObjectTaken")
    live = await pottery.client.get(CONFIG_MAPS, "blue", "default")
    changing = ("resourceVersion", "managedFields")
    for one in (live, made[0]):
        one["metadata"] = {name: value for name, value in one["metadata"].items() if name not in changing}
    assert live == made[0]


async def test_an_object_that_is_replaced_between_look_and_apply_stays_as_it_is(
    pottery: Pottery, monkeypatch: pytest.MonkeyPatch
) -> None:
    apply, replaced = Client.apply, asyncio.Event()

    async def apply_too_late(self: Client, resource: Resource, obj: Object, **options: Any) -> Object:
        if "uid" in obj["metadata"] and not replaced.is_set():
            replaced.set()
            await pottery.client.delete(CONFIG_MAPS, "blue", "default")
            await pottery.config_map()
        return await apply(self, resource, obj, **options)

    await pottery.pot()
    async with pottery.running():
        await pottery.until_data({"text": "mine"})
        monkeypatch.setattr(Client, "apply", apply_too_late)
        await pottery.client.patch(POTS, "blue", {"spec": {"text": "new"}}, "default")
        await pottery.until_reason("Stalled", "ObjectTaken")
    assert replaced.is_set()
    assert await pottery.data() == {"theirs": "yes"}


async def test_an_object_at_rest_costs_no_call(pottery: Pottery, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = list[str]()
    async with pottery.running() as controller:
        await pottery.pot()
        await pottery.until_reason("Ready", "Kept")
        await controller.queue.join()
        for name in ("list", "get", "apply", "patch"):
            monkeypatch.setattr(Client, name, lambda *args, called=name, **options: calls.append(called))
        for _ in range(3):
            controller.enqueue_all()
            await controller.queue.join()
        monkeypatch.undo()
    assert calls == []


async def test_a_condition_of_another_writer_without_status_or_reason_fails_no_reconcile(pottery: Pottery) -> None:
    theirs = {"type": "Theirs"}
    await pottery.pot()
    patched = {"status": {"conditions": [theirs]}}
    written = await pottery.client.patch(POTS, "blue", patched, "default", subresource="status")
    assert has_condition(written, "Theirs", UNKNOWN)
    assert not has_condition(written, "Theirs")
    async with pottery.running():
        await pottery.until_reason("Ready", "Kept")
    assert find_condition(await pottery.client.get(POTS, "blue", "default"), "Theirs") == theirs
