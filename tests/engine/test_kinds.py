"""The shape of a controller, through a real API server: the example of the package, and what a failed step becomes."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.waiting import until

import hortus.engine
from hortus.engine import (
    FALSE,
    NEVER,
    Actor,
    Controller,
    EventRecorder,
    KindController,
    Manager,
    ReconcileContext,
    Result,
    StepError,
    Steps,
    find_condition,
    read,
    sources_of,
    wire,
)
from hortus.engine.events import EVENTS
from hortus.kube import Client
from hortus.kube.errors import Conflict, Forbidden, KubeError, NotFound
from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.schema import Fields, Kind, crd, kind
from hortus.testing import TestCluster
from hortus.testing.apiserver import TestServer

CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
GREETINGS = Resource("example.org", "v1", "greetings", "Greeting")
PLANTS = Resource("example.org", "v1", "plants", "Plant")

GREETING_CRD: Object = {
    "metadata": {"name": "greetings.example.org"},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"plural": "greetings", "singular": "greeting", "kind": "Greeting", "listKind": "GreetingList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                "subresources": {"status": {}},
            }
        ],
    },
}


class PlantSpec(Fields, frozen=True):
    water: int = 0


class PlantStatus(Fields, frozen=True):
    seen: int | None = None
    conditions: tuple[dict[str, Any], ...] = ()


@kind(group="example.org", version="v1", status=True)
class Plant(Kind, frozen=True):
    """A plant."""

    spec: PlantSpec
    status: PlantStatus = PlantStatus()


class Gardener(KindController[ReconcileContext[Plant]]):
    """Runs the steps that a test gives it, and records the calls that it receives."""

    kind = Plant
    field_manager = "gardener"

    def __init__(self, wiring: Any, *steps: Callable[[ReconcileContext[Plant]], Awaitable[Result | None]]) -> None:
        super().__init__(wiring)
        self.chosen: Steps = steps
        self.final: Steps = ()
        self.left: list[ObjectKey] = []
        self.observed = 0

    def steps(self, context: ReconcileContext[Plant]) -> Steps:
        return self.chosen

    def finalize_steps(self, context: ReconcileContext[Plant]) -> Steps:
        return self.final

    async def gone(self, key: ObjectKey) -> Result | None:
        self.left.append(key)
        return None

    async def on_error(self, context: ReconcileContext[Plant], error: StepError | KubeError) -> StepError | None:
        if isinstance(error, Forbidden):
            return StepError(f"{error} (gardener: ask for the key)", reason="Locked", after=NEVER)
        return await super().on_error(context, error)

    def observe(self, context: ReconcileContext[Plant]) -> None:
        self.observed += 1


class Garden:
    """A manager with a Gardener on the server."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.manager = Manager(client)
        self.events = EventRecorder(client, component="gardener", clock=self.manager.clock)
        self.manager.add_server(self.events)
        wiring = wire(self.manager, Gardener, client=client, events=self.events, namespace="default")
        self.gardener = Gardener(wiring)
        self.cache = wiring.cache.raw
        self.controller: Controller = self.manager.controller("plant", self.gardener, sources=sources_of(wiring))

    async def plant(self, name: str, **spec: Any) -> ObjectKey:
        metadata = {"name": name, "namespace": "default"}
        body = {"apiVersion": "example.org/v1", "kind": "Plant", "metadata": metadata, "spec": spec}
        self.cache.learn(await self.client.create(PLANTS, body))
        return ObjectKey("default", name)

    async def live(self, key: ObjectKey) -> Object:
        return await self.client.get(PLANTS, key.name, key.namespace)

    async def until(self, holds: Callable[[], Any]) -> None:
        await until(holds)


@pytest.fixture
async def client(server: TestServer) -> AsyncIterator[Client]:
    async with Client.from_kubeconfig(server.kubeconfig) as made:
        for definition, resource in ((GREETING_CRD, GREETINGS), (crd(Plant), PLANTS)):
            await serve_kind(made, definition, resource)
        yield made
        for resource in (PLANTS, GREETINGS):
            for found in (await made.list(resource, "default")).items:
                await made.delete(resource, found["metadata"]["name"], "default")


async def serve_kind(client: Client, definition: Object, resource: Resource) -> None:
    try:
        await client.get(CRDS, definition["metadata"]["name"])
    except NotFound:
        await client.create(CRDS, definition)
    while True:
        try:
            await client.list(resource)
            return
        except NotFound:
            await asyncio.sleep(0.01)


@asynccontextmanager
async def running_example(folder: Path, server: TestServer | TestCluster) -> AsyncIterator[subprocess.Popen[bytes]]:
    """The first example of the engine, as its reader would start it."""
    documentation = hortus.engine.__doc__ or ""
    example = documentation[documentation.index("    import sys") : documentation.index("In a test the controller")]
    program = folder / "greeter.py"
    program.write_text(textwrap.dedent(example))
    command = [sys.executable, str(program), "--kubeconfig", str(server.kubeconfig)]
    command += ["--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=0"]
    with subprocess.Popen(command, env={**os.environ}, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(process.communicate)


def greeting(name: str, **spec: str) -> Object:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "example.org/v1", "kind": "Greeting", "metadata": metadata, "spec": spec}


async def text_of(client: Client, name: str) -> str | None:
    try:
        return str((await client.get(CONFIG_MAPS, name, "default"))["data"]["text"])
    except NotFound:
        return None


async def eventually(value: Callable[[], Awaitable[Any]], wanted: Any) -> None:
    async def reached() -> bool:
        return bool(await value() == wanted)

    await until(reached)


async def test_the_first_example_of_the_engine_does_what_it_claims(
    server: TestServer, client: Client, tmp_path: Path
) -> None:
    await client.create(GREETINGS, greeting("before", text="hello"))
    await client.create(GREETINGS, greeting("empty"))
    async with running_example(tmp_path, server) as process:

        async def reason(name: str, kind: str) -> str:
            found = find_condition(await client.get(GREETINGS, name, "default"), kind)
            return "" if found is None else str(found["reason"])

        await eventually(lambda: text_of(client, "before"), "hello")
        await eventually(lambda: reason("before", "Ready"), "Greeted")
        await eventually(lambda: reason("empty", "Stalled"), "NoText")
        # The owner is edited, the ConfigMap is edited by somebody else, and it is deleted.
        await client.patch(GREETINGS, "before", {"spec": {"text": "good day"}}, "default")
        await eventually(lambda: text_of(client, "before"), "good day")
        await client.patch(CONFIG_MAPS, "before", {"data": {"text": "gone wrong"}}, "default")
        await eventually(lambda: text_of(client, "before"), "good day")
        uid = (await client.get(CONFIG_MAPS, "before", "default"))["metadata"]["uid"]
        await client.delete(CONFIG_MAPS, "before", "default")
        await eventually(lambda: text_of(client, "before"), "good day")
        assert (await client.get(CONFIG_MAPS, "before", "default"))["metadata"]["uid"] != uid
        await client.patch(GREETINGS, "empty", {"spec": {"text": "now"}}, "default")
        await eventually(lambda: reason("empty", "Ready"), "Greeted")
        await client.delete(GREETINGS, "before", "default")
        await eventually(lambda: text_of(client, "before"), None)
    assert process.returncode == 0


async def test_a_program_names_the_crd_that_is_missing_and_works_when_it_appears(
    hortus_cluster: TestCluster, tmp_path: Path
) -> None:
    async with hortus_cluster.client() as client, running_example(tmp_path, hortus_cluster) as process:
        assert process.stderr is not None
        line = orjson.loads(await asyncio.to_thread(process.stderr.readline))
        assert (line["level"], line["msg"]) == ("error", "the kind is not served")
        assert line["error"].startswith("the CRD greetings.example.org is not installed or does not serve version v1:")
        await serve_kind(client, GREETING_CRD, GREETINGS)
        await client.create(GREETINGS, greeting("late", text="hello"))
        await eventually(lambda: text_of(client, "late"), "hello")
    assert process.returncode == 0


def test_the_first_example_is_as_short_as_it_is_said_to_be() -> None:
    documentation = hortus.engine.__doc__ or ""
    body = documentation[documentation.index("    class Greeter") : documentation.index("In a test the controller")]
    lines = [line for line in body.splitlines() if line.strip()]
    assert len(lines) <= 25


def test_help_names_a_package_that_is_run_as_a_program(tmp_path: Path) -> None:
    (tmp_path / "greeter").mkdir()
    program = "import sys; from hortus.engine import serve, KindController; sys.exit(serve(KindController))"
    (tmp_path / "greeter" / "__main__.py").write_text(program)
    command = [sys.executable, "-m", "greeter", "--help"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.startswith("Usage: greeter [flags]\n")


async def test_help_lists_the_flags_and_a_wrong_one_is_named(tmp_path: Path) -> None:
    program = "import sys; from hortus.engine import serve, KindController; sys.exit(serve(KindController))"
    said = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program, "--help"], capture_output=True, text=True, check=True
    )
    assert "--leader-elect" in said.stdout
    said = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", program, "--leader-elct"], capture_output=True, text=True, check=False
    )
    assert said.returncode == 2
    assert said.stderr.startswith("error: ")
    assert "leader-elct" in said.stderr


async def test_steps_run_in_order_until_one_ends_the_reconcile(client: Client) -> None:
    garden, ran = Garden(client), list[str]()

    async def first(context: ReconcileContext[Plant]) -> None:
        ran.append(f"first {context.object.spec.water}")

    async def second(context: ReconcileContext[Plant]) -> Result:
        ran.append("second")
        return Result(requeue_after=3600)

    async def third(context: ReconcileContext[Plant]) -> None:
        ran.append("third")

    garden.gardener.chosen = (first, second, third)
    async with garden.manager.running():
        await garden.plant("rose", water=3)
        await garden.until(lambda: garden.gardener.observed)
    assert ran[:2] == ["first 3", "second"]
    assert "third" not in ran


@pytest.mark.parametrize(
    ("error", "condition", "attempts"),
    [
        (StepError("no water: buy some", reason="NoWater", actor=Actor.USER, after=NEVER), "Stalled", 1),
        (StepError("the tap is off", reason="TapOff", actor=Actor.PROVIDER, after=0.01), "Reconciling", 3),
    ],
    ids=["rests", "retries"],
)
async def test_a_failed_step_becomes_condition_event_and_time_of_the_next_attempt(
    client: Client, error: StepError, condition: str, attempts: int
) -> None:
    garden, tried = Garden(client), 0

    async def fail(context: ReconcileContext[Plant]) -> None:
        nonlocal tried
        tried += 1
        raise error

    garden.gardener.chosen = (fail,)
    async with garden.manager.running():
        key = await garden.plant("fern")
        await garden.until(lambda: tried >= attempts)
        await garden.until(lambda: find_condition(garden.cache[key], condition))
        await garden.until(lambda: garden.events.idle)
        assert garden.gardener.observed >= attempts
    found = find_condition(await garden.live(key), condition) or {}
    assert (found["reason"], found["message"]) == (error.reason, error.message)
    events = (await client.list(EVENTS, "default")).items
    assert error.reason in {event["reason"] for event in events if event["involvedObject"]["name"] == "fern"}


async def test_an_error_of_a_server_is_reported_as_the_controller_says_and_otherwise_only_retried(
    client: Client,
) -> None:
    garden, answers = Garden(client), list[KubeError]([Conflict("somebody was faster"), Forbidden("no entry")])

    async def enter(context: ReconcileContext[Plant]) -> None:
        raise answers.pop(0)

    garden.gardener.chosen = (enter,)
    async with garden.manager.running():
        key = await garden.plant("ivy")
        await garden.until(lambda: find_condition(garden.cache[key], "Stalled"))
    conditions = (await garden.live(key))["status"]["conditions"]
    assert {(one["reason"], one["message"]) for one in conditions} == {
        ("Locked", "no entry (gardener: ask for the key)")
    }
    assert answers == []


async def test_the_status_is_written_once_and_not_at_all_when_nothing_differs(client: Client) -> None:
    garden, versions = Garden(client), list[str]()

    async def look(context: ReconcileContext[Plant]) -> None:
        versions.append(context.raw["metadata"]["resourceVersion"])
        context.condition("Watered", FALSE, reason="Dry", message="no water")
        context.set_status("seen", 1)
        context.ready("Alive")

    garden.gardener.chosen = (look,)
    async with garden.manager.running():
        key = await garden.plant("oak")
        await garden.until(lambda: (garden.cache[key].get("status") or {}).get("seen") == 1)
        written = (await garden.live(key))["metadata"]["resourceVersion"]
        for _ in range(3):
            garden.controller.enqueue_all()
            await garden.controller.queue.join()
    assert (await garden.live(key))["metadata"]["resourceVersion"] == written
    assert len(versions) >= 2


async def test_a_checkpoint_and_a_finalizer_are_written_at_once_and_the_draft_goes_on(client: Client) -> None:
    garden, seen = Garden(client), list[Object]()

    async def hold(context: ReconcileContext[Plant]) -> None:
        context.set_status("seen", 1)
        await context.ensure_finalizer("example.org/plant")
        await context.checkpoint()
        seen.append(await garden.live(context.key))
        context.set_status("seen", 2)
        await context.patch({"metadata": {"labels": {"watered": "yes"}}})

    async def dig_out(context: ReconcileContext[Plant]) -> None:
        await context.remove_finalizer("example.org/plant")

    garden.gardener.chosen, garden.gardener.final = (hold,), (dig_out,)
    async with garden.manager.running():
        key = await garden.plant("elm")
        await garden.until(lambda: (garden.cache[key].get("status") or {}).get("seen") == 2)
        assert seen[0]["status"]["seen"] == 1
        assert seen[0]["metadata"]["finalizers"] == ["example.org/plant"]
        assert garden.cache[key]["metadata"]["labels"] == {"watered": "yes"}
        await client.delete(PLANTS, "elm", "default")
        await garden.until(lambda: garden.gardener.left)
    assert garden.gardener.left == [key]


async def test_a_patch_of_the_spec_goes_on_where_nobody_else_has_changed_it(client: Client) -> None:
    garden, seen = Garden(client), list[tuple[str, int]]()

    async def change(context: ReconcileContext[Plant]) -> None:
        if context.object.spec.water < 10:
            if context.key.name == "oak":  # the owner edits it at the same time
                await client.patch(PLANTS, "oak", {"metadata": {"labels": {"edited": "yes"}}}, "default")
            await context.patch({"spec": {"water": 10}}, goes_on=True)
            seen.append((context.key.name, context.object.spec.water))

    garden.gardener.chosen = (change,)
    async with garden.manager.running():
        keys = [await garden.plant(name) for name in ("ash", "oak")]
        await garden.until(lambda: all(garden.cache[key]["spec"].get("water") == 10 for key in keys))
    assert seen == [("ash", 10)]


async def test_all_steps_of_a_reconcile_read_the_spec_that_the_first_one_checked(client: Client) -> None:
    garden, checked, used = Garden(client), list[int](), list[tuple[int, int]]()

    async def check(context: ReconcileContext[Plant]) -> None:
        checked.append(context.object.spec.water)
        if len(checked) == 1:  # the owner edits what was just checked
            await client.patch(PLANTS, context.key.name, {"spec": {"water": 99}}, "default")

    async def write(context: ReconcileContext[Plant]) -> None:
        await context.ensure_finalizer("example.org/plant")

    async def use(context: ReconcileContext[Plant]) -> None:
        used.append((checked[-1], context.object.spec.water))
        context.set_status("seen", context.object.spec.water)

    async def release(context: ReconcileContext[Plant]) -> None:
        await context.remove_finalizer("example.org/plant")

    garden.gardener.chosen, garden.gardener.final = (check, write, use), (release,)
    async with garden.manager.running():
        key = await garden.plant("yew", water=1)
        await garden.until(lambda: (garden.cache[key].get("status") or {}).get("seen") == 99)
        await client.delete(PLANTS, "yew", "default")
        await garden.until(lambda: garden.gardener.left)
    assert checked[:2] == [1, 99]
    assert {before == after for before, after in used} == {True}


async def test_a_checkpoint_ends_the_reconcile_of_an_object_that_was_changed(client: Client) -> None:
    garden, after = Garden(client), list[int]()

    async def report(context: ReconcileContext[Plant]) -> None:
        water = context.object.spec.water
        if water == 1:
            await client.patch(PLANTS, context.key.name, {"spec": {"water": 2}}, "default")
        context.set_status("seen", water)
        await context.checkpoint()
        after.append(water)

    garden.gardener.chosen = (report,)
    async with garden.manager.running():
        key = await garden.plant("ash", water=1)
        await garden.until(lambda: (garden.cache[key].get("status") or {}).get("seen") == 2)
        await garden.controller.queue.join()
    assert 1 not in after


async def test_an_object_without_the_shape_of_its_kind_is_reported_and_rests(client: Client) -> None:
    loose = crd(Plant)
    version = loose["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["properties"]["spec"] = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    await client.patch(CRDS, "plants.example.org", {"spec": {"versions": [version]}})
    garden = Garden(client)

    async def look(context: ReconcileContext[Plant]) -> None:
        assert context.object.spec.water >= 0

    garden.gardener.chosen = (look,)
    async with garden.manager.running():
        key = ObjectKey("default", "weed")
        while key not in garden.cache:  # the definition takes a moment
            try:
                await garden.plant("weed", water="much")
            except hortus.kube.errors.ApiError:
                await asyncio.sleep(0.02)
        await garden.until(lambda: find_condition(garden.cache[key], "Stalled"))
    message = (find_condition(garden.cache[key], "Stalled") or {})["message"]
    assert message == "Plant default/weed: Expected `int`, got `str` - at `$.spec.water`"


async def test_another_object_without_the_shape_of_its_kind_is_reported_and_retried(client: Client) -> None:
    garden, neighbour = (
        Garden(client),
        {"metadata": {"name": "moss", "namespace": "default"}, "spec": {"water": "much"}},
    )
    outcomes = list[StepError]()

    async def look(context: ReconcileContext[Plant]) -> None:
        context.set_status("seen", read(Plant, neighbour).spec.water)

    def outcome(context: ReconcileContext[Plant], error: StepError) -> Result | None:
        outcomes.append(error)
        raise error

    garden.gardener.chosen = (look,)
    garden.gardener.outcome = outcome  # type: ignore[method-assign]
    async with garden.manager.running():
        key = await garden.plant("fir")
        await garden.until(lambda: find_condition(garden.cache[key], "Reconciling"))
        neighbour["spec"] = {"water": 3}  # nothing watches it
        await garden.until(lambda: (garden.cache[key].get("status") or {}).get("seen") == 3)
    found = {(error.reason, error.actor, error.after, error.message) for error in outcomes}
    message = "Plant default/moss: Expected `int`, got `str` - at `$.spec.water`"
    assert found == {("InvalidDependency", Actor.USER, None, message)}
