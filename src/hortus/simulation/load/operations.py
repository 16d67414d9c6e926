"""Carries out the operations of a plan: each when it is due, on one object one after the other, and awaits the effect.

What an operation waits for is seen by followers, never asked for. The time that counts begins when the call goes out.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec

from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.discovery import Discovery
from hortus.kube.errors import Forbidden, KubeError, NotFound
from hortus.kube.objects import Object, Resource
from hortus.simulation.load.calling import Caller
from hortus.simulation.load.conditions import Until
from hortus.simulation.load.following import Follower, Predicate, Seen
from hortus.simulation.load.measuring import Recorder
from hortus.simulation.load.plan import Operation
from hortus.simulation.load.settings import ScenarioError
from hortus.simulation.load.templates import LOAD_LABEL, LoadTemplate, Part

SECRETS = Resource("", "v1", "secrets", "Secret")
CLUSTER_NAME = "operator.kyma-project.io/cluster-name"
"""On a kubeconfig Secret: its GardenerCluster."""
MANAGED = "operator.kyma-project.io/managed-by=infrastructure-manager"
_ROTATE = "operator.kyma-project.io/force-kubeconfig-rotation"
CONFIRM: Object = {"metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}}
_RUBBISH = base64.b64encode(b"overwritten by a simulation").decode()


class PartLocation(msgspec.Struct, frozen=True):
    """The location of the objects of one part of a template."""

    part: Part
    resource: Resource
    caller: Caller
    follower: Follower


class Crew:
    """All objects made from one template in one run."""

    def __init__(self, template: LoadTemplate, *, namespace: str, load_id: str, letter: str) -> None:
        self.template = template
        self.namespace = namespace
        self.load_id = load_id
        self.prefix = f"{load_id}-{letter}"
        """The prefix of the names of its objects; a number follows."""
        self.places: tuple[PartLocation, ...] = ()
        self.secrets: Follower | None = None
        self.living: dict[str, Operation] = {}
        """Objects that were created and not deleted since, by name."""
        self.gone: set[str] = set()
        """Names of those deleted."""

    def owns(self, name: object) -> bool:
        """True when an object of that name is one of these."""
        return isinstance(name, str) and name.startswith(self.prefix) and name[len(self.prefix) :].isdigit()

    @property
    def subject(self) -> PartLocation:
        """The location of the objects themselves."""
        return self.places[-1]

    def followers(self) -> list[Follower]:
        """All that watch for it."""
        return [*(place.follower for place in self.places), *([self.secrets] if self.secrets else [])]


class Ground(msgspec.Struct, frozen=True):
    """The clusters and clients of a run."""

    management: Client
    garden: Client | None
    load_id: str
    project: str
    clock: Clock
    random: Random
    recorder: Recorder


async def gather_crew(ground: Ground, template: LoadTemplate, namespace: str, until: Until | None, letter: str) -> Crew:
    """Find the template's kinds. Raises ScenarioError for one that is not served, KubeError."""
    crew = Crew(template, namespace=namespace or template.namespace, load_id=ground.load_id, letter=letter)
    looked: dict[bool, Discovery] = {}
    places = []
    for part in template.parts:
        client = ground.garden if part.garden else ground.management
        if client is None:
            raise ScenarioError(
                f"template {template.name}: a {part.kind.kind} goes to the garden, and nothing says where that is: "
                "give --garden-kubeconfig FILE"
            )
        if part.garden not in looked:
            looked[part.garden] = await Discovery.look(client)
        try:
            resource = looked[part.garden].kind(part.kind).resource
        except LookupError as error:
            raise ScenarioError(f"template {template.name}: {client.host}: {error}") from None
        wanted = until if until is not None and part is template.subject else part.until
        follower = Follower(
            client,
            resource,
            labels=f"{LOAD_LABEL}={ground.load_id}",
            clock=ground.clock,
            ready=wanted.met if wanted else lambda obj: True,
            wanted=lambda obj: crew.owns(obj["metadata"]["name"]),
            annotations=frozenset({_ROTATE}),
        )
        places.append(
            PartLocation(part, resource, Caller(client, ground.recorder, ground.clock, ground.random), follower)
        )
    crew.places = tuple(places)
    crew.secrets = _secrets(ground, crew) if template.is_cluster else None
    return crew


def _secrets(ground: Ground, crew: Crew) -> Follower:
    return Follower(
        ground.management,
        SECRETS,
        labels=MANAGED,
        clock=ground.clock,
        wanted=lambda obj: crew.owns((obj["metadata"].get("labels") or {}).get(CLUSTER_NAME)),
        metadata_only=True,
    )


class Executor:
    """Does the operations of one track."""

    def __init__(self, ground: Ground, crew: Crew, *, concurrency: int) -> None:
        self._ground = ground
        self._crew = crew
        self._gate = asyncio.Semaphore(concurrency)
        self._began = 0.0
        self._problem: BaseException | None = None
        self._last: dict[str, asyncio.Task[None]] = {}
        self.last_ready = 0.0
        """Monotonic time at which an object was last seen to become ready."""
        self.unfinished: dict[str, str] = {}
        """The conditions still awaited, by object."""

    async def run(self, operations: tuple[Operation, ...], *, timeout: float) -> None:
        """Do them all, each when it is due; then wait up to `timeout` seconds for what they brought about."""
        clock = self._ground.clock
        self._began = clock.monotonic()
        tasks: set[asyncio.Task[None]] = set()
        try:
            for operation in operations:
                due = self._began + operation.at - clock.monotonic()
                if due > 0:
                    await clock.sleep(due)
                task = asyncio.create_task(self._one(operation, self._last.get(operation.object)))
                self._last[operation.object] = task
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                task.add_done_callback(self._ended)
            if tasks:
                await asyncio.wait(tasks.copy(), timeout=timeout)
            for name, what in self.unfinished.items():
                self._ground.recorder.fail(name, f"{what} within {timeout:g} s")
            if self._problem is not None:
                raise self._problem
        finally:
            leaving = list(tasks)
            for task in leaving:
                task.cancel()
            await asyncio.gather(*leaving, return_exceptions=True)
            self._last.clear()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """An error that nobody planned for is ours, and must not look like a slow system."""
        if not task.cancelled() and (problem := task.exception()) is not None:
            self._problem = problem

    async def _one(self, operation: Operation, before: asyncio.Task[None] | None) -> None:
        if before is not None and not before.done():
            await asyncio.wait({before})
        name = f"{self._ground.load_id}-{operation.object}"
        work = {"create": self._create, "rotate": self._rotate, "fail": self._damage, "delete": self._delete}
        try:
            await work[operation.verb](operation, name)
        except KubeError as error:
            self._ground.recorder.fail(name, f"{operation.verb}: {error}")
        finally:
            self.unfinished.pop(name, None)

    @asynccontextmanager
    async def _turn(self, operation: Operation | None = None) -> AsyncIterator[float]:
        """One of the calls in flight; gives the time at which it begins. The first of an operation is named.

        What was due at once waits for its turn by design; of the rest it is recorded how late they are.
        """
        async with self._gate:
            now = self._ground.clock.monotonic()
            if operation is not None and operation.at > 0:
                self._ground.recorder.lag.add(now - self._began - operation.at)
            yield now

    async def _create(self, operation: Operation, name: str) -> None:
        recorder, crew = self._ground.recorder, self._crew
        crew.living[name] = operation
        for place in crew.places:
            kind = place.part.kind.kind
            self.unfinished[name] = f"no {kind} could be created"
            async with self._turn(operation if place is crew.places[0] else None) as began:
                await place.caller.create(place.resource, place.part.make(self._values(operation, name)))
            if place is crew.subject:
                recorder.did("create")
            self.unfinished[name] = f"the {kind} was not ready"
            ready = await place.follower.until(name, _ready)
            what = "time_to_ready" if place is crew.subject else f"time_to_ready.{place.resource.plural}"
            recorder.waited(what, ready - began)
        recorder.did("ready")
        self.last_ready = max(self.last_ready, ready)

    async def _rotate(self, operation: Operation, name: str) -> None:
        place = self._crew.subject
        patch = {"metadata": {"annotations": {_ROTATE: "simulated"}}}
        self.unfinished[name] = "its kubeconfig was not rotated"
        async with self._turn(operation) as began:
            written = await place.caller.merge(place.resource, self._namespace(place, operation, name), name, patch)
        floor = int(written["metadata"]["resourceVersion"])
        over = await place.follower.until(
            name, lambda seen: seen is None or (seen.version > floor and seen.ready and not seen.annotations)
        )
        self._ground.recorder.did("rotate")
        self._ground.recorder.waited("time_to_rotated", over - began)

    async def _damage(self, operation: Operation, name: str) -> None:
        """Delete the Secret or overwrite it, and wait until the controllers have mended that."""
        crew = self._crew
        assert crew.secrets is not None
        cluster = crew.subject.part.make(self._values(operation, name))
        secret, caller = cluster["spec"]["kubeconfig"]["secret"], crew.subject.caller
        self.unfinished[name] = "there was no Secret to damage"
        await crew.secrets.until(secret["name"], _there)
        self.unfinished[name] = "its Secret was not mended"
        async with self._turn(operation) as began:
            before = crew.secrets.get(secret["name"])
            if operation.seed % 2:
                await caller.delete(SECRETS, secret["namespace"], secret["name"])
                mended = _another(before.uid if before else "")
            else:
                rubbish = {"data": {secret["key"]: _RUBBISH}}
                written = await caller.merge(SECRETS, secret["namespace"], secret["name"], rubbish)
                mended = _later(int(written["metadata"]["resourceVersion"]))
        over = await crew.secrets.until(secret["name"], mended)
        self._ground.recorder.did("fail")
        self._ground.recorder.waited("time_to_healed", over - began)

    async def _delete(self, operation: Operation, name: str) -> None:
        crew = self._crew
        crew.living.pop(name, None)
        for place in reversed(crew.places):
            self.unfinished[name] = f"the {place.part.kind.kind} was not gone"
            async with self._turn(operation if place is crew.subject else None) as began:
                namespace = self._namespace(place, operation, name)
                await delete_confirmed(place.caller, place.resource, namespace, name)
            gone = await place.follower.until(name, _gone)
            if place is crew.subject:
                self._ground.recorder.waited("time_to_gone", gone - began)
        crew.gone.add(name)
        self._ground.recorder.did("delete")

    def _values(self, operation: Operation, name: str) -> Mapping[str, Any]:
        return {
            "name": name,
            "index": operation.index,
            "seed": operation.seed,
            "load": self._ground.load_id,
            "namespace": self._crew.namespace,
            "project": self._ground.project,
        }

    def _namespace(self, place: PartLocation, operation: Operation, name: str) -> str:
        made = place.part.make(self._values(operation, name))
        return str(made["metadata"].get("namespace", ""))


def _there(seen: Seen | None) -> bool:
    return seen is not None


def _gone(seen: Seen | None) -> bool:
    return seen is None


def _ready(seen: Seen | None) -> bool:
    return seen is not None and seen.ready


def _another(uid: str) -> Predicate:
    return lambda seen: seen is not None and seen.uid != uid


def _later(version: int) -> Predicate:
    return lambda seen: seen is not None and seen.version > version


async def delete_confirmed(caller: Caller, resource: Resource, namespace: str, name: str) -> None:
    """Delete an object; one that wants its deletion confirmed, as a Shoot does, gets that first."""
    try:
        await caller.delete(resource, namespace, name)
    except Forbidden:
        try:
            await caller.merge(resource, namespace, name, CONFIRM)
        except NotFound:
            return
        await caller.delete(resource, namespace, name)
