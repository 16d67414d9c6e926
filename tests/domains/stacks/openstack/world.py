"""A management cluster with the OpenStack controllers, and a cloud on loopback."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.domains.definitions import define
from tests.waiting import PATIENCE, until

from hortus.domains.stacks.openstack.clouds import CloudAccess
from hortus.domains.stacks.openstack.composition import add_openstack
from hortus.domains.stacks.openstack.glance import GlanceService, ImageService
from hortus.domains.stacks.openstack.settings import OpenStackSettings
from hortus.domains.stacks.openstack.transport import CloudAnswer, CloudLimits, CloudTransport
from hortus.domains.stacks.releases import LocalLibrary, ReleaseFolder
from hortus.domains.stacks.types import (
    OPENSTACK_NODE_IMAGES,
    OPENSTACK_RELEASES,
    OpenStackClusterStackRelease,
    OpenStackNodeImageRelease,
)
from hortus.engine import EventRecorder, Manager, Selection, read
from hortus.engine.cache import version_of
from hortus.engine.deputies import Deputies
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.leftovers.types import Leftover
from hortus.engine.remote import SECRETS
from hortus.kube import Client, yaml
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, Resource, key_of
from hortus.simulation.glance import CloudServer
from hortus.testing import FakeClock, wait_for
from hortus.testing.apiserver import TestServer

RELEASE = "openstack-ferrol-1-27-v4"
IMAGE_NAME = "ubuntu-capi-image-v1.27.8"
IMAGE = f"openstack-ferrol-1-27-{IMAGE_NAME}-v2"
URL = "https://images.example.com/ubuntu-2204-kube-v1.27.8.qcow2"
EVENTS = Resource("", "v1", "events", "Event")
METADATA = """apiVersion: metadata.clusterstack.x-k8s.io/v1alpha1
versions:
  clusterStack: v4
  kubernetes: v1.27.8
  components:
    clusterAddon: v2
    nodeImage: v2
"""
NODE_IMAGES = f"""apiVersion: openstack.infrastructure.clusterstack.x-k8s.io/v1alpha1
openStackNodeImages:
  - url: {URL}
    createOpts:
      name: {IMAGE_NAME}
      disk_format: qcow2
      container_format: bare
      visibility: shared
      properties:
        hw_disk_bus: scsi
"""
POLL = 31.0
WATCHED = (OPENSTACK_RELEASES, OPENSTACK_NODE_IMAGES, SECRETS)
"""The kinds that the controllers watch."""
_numbers = itertools.count(1)


class Requests:
    """The requests of the controllers to the management cluster and to the cloud."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, str]] = []
        self.on_answer: Callable[..., None] = lambda method: None

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self.note(method, host)

    def note(self, method: str, host: str) -> None:
        self.answers.append((method, host))
        self.on_answer(method)

    @property
    def writes(self) -> list[tuple[str, str]]:
        return [one for one in self.answers if one[0] != "GET"]


class ObservedTransport(CloudTransport):
    """A transport that notes each answer in the task of the caller."""

    requests: Requests

    async def call(self, method: str, *given: Any, **options: Any) -> CloudAnswer:
        answer = await super().call(method, *given, **options)
        self.requests.note(method, "cloud")
        return answer


class World:
    """The clients, the cloud and the releases of one test."""

    def __init__(self, client: Client, cloud: CloudServer, folder: Path, clock: FakeClock) -> None:
        self.client = client
        self.cloud = cloud
        self.folder = folder
        self.clock = clock
        self.requests = Requests()
        self.limits = CloudLimits(local=True)
        self.trusted = "*"
        """The namespaces that controllers trust."""
        self.manager: Manager | None = None
        """The process that runs now."""
        self.recorder: EventRecorder | None = None

    # Objects and files of people.

    def write_release(self, files: Mapping[str, str | None] | None = None, name: str = RELEASE) -> None:
        place = self.folder / "cluster-stacks" / name
        place.mkdir(parents=True, exist_ok=True)
        for file, text in {"metadata.yaml": METADATA, "node-images.yaml": NODE_IMAGES, **(files or {})}.items():
            if text is not None:
                (place / file).write_text(text)

    def clouds(self, **changed: object) -> Object:
        """A clouds.yaml for the one user of the cloud; changed parts of the cloud, and of its `auth`."""
        users = self.cloud.users
        auth = {
            "auth_url": self.cloud.auth_url,
            "username": users.username,
            "user_domain_name": users.domain,
            "password": users.password,
            "project_name": users.project,
            "project_domain_name": users.domain,
        }
        given = changed.pop("auth", {})
        assert isinstance(given, dict)
        cloud = {"auth": auth | given, "region_name": "RegionOne", "interface": "public", **changed}
        return {"clouds": {"openstack": cloud}}

    async def write_secret(self, document: Object | None = None, *, raw: str = "", **more: str) -> None:
        text = raw or yaml.dump(document if document is not None else self.clouds())
        data = {"clouds.yaml": text, **more}
        await self.client.apply(
            SECRETS,
            {
                "metadata": {"name": "openstack", "namespace": "default"},
                "data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()},
            },
            field_manager="test",
        )

    async def write_image(self, name: str = IMAGE, *, url: str = URL, **options: object) -> None:
        created = {"name": IMAGE_NAME, "disk_format": "qcow2", "container_format": "bare", **options}
        spec = {"identityRef": {"kind": "Secret", "name": "openstack"}, "image": {"url": url, "createOpts": created}}
        await self.client.create(OPENSTACK_NODE_IMAGES, {**head(OPENSTACK_NODE_IMAGES, name), "spec": spec})

    async def write_oscsr(self, name: str = RELEASE) -> Object:
        return await self.client.create(OPENSTACK_RELEASES, head(OPENSTACK_RELEASES, name))

    # The process.

    @asynccontextmanager
    async def running(self, settings: OpenStackSettings | None = None) -> AsyncIterator[Manager]:
        """One process with both controllers."""
        async with Client(self.client.access, observer=self.requests) as client:
            manager = Manager(client, clock=self.clock, grace=0.0)
            events = EventRecorder(client, component="cspo-controller", clock=self.clock)
            manager.add_server(events)
            add_openstack(
                manager,
                client=client,
                events=events,
                library=LocalLibrary(ReleaseFolder(self.folder), clock=self.clock),
                settings=settings or OpenStackSettings(),
                resync=300.0,
                deputies=Deputies(client, self.trusted, clock=self.clock),
                leftovers=LeftoverRecorder(client, "default", registry=manager.registry),
                open_service=self._service,
            )
            async with manager.running():
                self.manager, self.recorder = manager, events
                try:
                    yield manager
                finally:
                    self.manager = None

    def _service(self, access: CloudAccess) -> ImageService:
        transport = ObservedTransport(access, self.limits)
        transport.requests = self.requests
        return GlanceService(access, transport, self.clock)

    # Observations.

    async def image(self, name: str = IMAGE) -> OpenStackNodeImageRelease:
        return read(OpenStackNodeImageRelease, await self.client.get(OPENSTACK_NODE_IMAGES, name, "default"))

    async def until(
        self, holds: Callable[[OpenStackNodeImageRelease], bool], name: str = IMAGE
    ) -> OpenStackNodeImageRelease:
        """Let time pass by polls until the image is as wanted."""
        found = None
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    with contextlib.suppress(NotFound):
                        found = await self.image(name)
                        if holds(found):
                            return found
                    await self.at_rest()
                    await self.clock.advance(POLL)
        except TimeoutError:
            raise AssertionError(found) from None

    async def at_rest(self) -> None:
        """Return when the controllers have nothing to do, so that none of them meets its deadline by a step of time.

        Where no process runs, wait for the next.
        """
        await until(self._rests)

    async def _rests(self) -> bool:
        """True when each write has come back by its watch and led to nothing more."""
        manager, made = self.manager, len(self.requests.answers)
        if manager is None or self._is_working():
            return False
        caches = {one.name: one for one in manager.caches}
        for resource in WATCHED:
            cache = caches[str(Selection(resource))]
            held = {key_of(one): version_of(one) for one in (await self.client.list(resource)).items}
            if {key: version_of(cache[key]) for key in cache} != held:
                return False
        # A reconcile that began and ended while the lists were read may have written since.
        return manager is self.manager and not self._is_working() and made == len(self.requests.answers)

    def _is_working(self) -> bool:
        """True while a process runs that has something to do, or an event to write."""
        if self.manager is None or self.recorder is None:
            return False
        return not self.recorder.idle or any(one.queue.waiting or one.queue.running for one in self.manager.controllers)

    async def until_reason(self, kind: str, reason: str) -> OpenStackNodeImageRelease:
        """Wait, without letting time pass, for a condition with that reason."""
        return await wait_for(
            self.client, OpenStackNodeImageRelease, IMAGE, until=lambda found: condition(found, kind)[1] == reason
        )

    async def release(self, until: Callable[[OpenStackClusterStackRelease], bool]) -> OpenStackClusterStackRelease:
        return await wait_for(self.client, OpenStackClusterStackRelease, RELEASE, until=until)

    async def release_later(self, until: Callable[[OpenStackClusterStackRelease], bool]) -> None:
        """Let time pass until the release is as wanted."""
        async with asyncio.timeout(PATIENCE):
            while True:
                raw = await self.client.get(OPENSTACK_RELEASES, RELEASE, "default")
                if until(read(OpenStackClusterStackRelease, raw)):
                    return
                await self.at_rest()
                await self.clock.advance(POLL)

    async def passing(self) -> None:
        """Let time pass until this is cancelled."""
        while True:
            await self.at_rest()
            await self.clock.advance(POLL)

    async def recorded(self, *reasons: str) -> None:
        """Return when there are events of these reasons."""

        async def found() -> bool:
            return {one["reason"] for one in (await self.client.list(EVENTS, "default")).items} >= set(reasons)

        await until(found)

    def calls(self, method: str, end: str) -> int:
        """The number of requests to the cloud whose path ends so."""
        return sum(one == method and path.endswith(end) for one, path in self.cloud.calls)


def head(resource: Resource, name: str) -> Object:
    """The beginning of an object."""
    kind = {"apiVersion": resource.api_version, "kind": resource.kind}
    return {**kind, "metadata": {"name": name, "namespace": "default"}}


def condition(found: OpenStackNodeImageRelease | OpenStackClusterStackRelease, kind: str) -> tuple[str, str, str, str]:
    """Status, reason, severity and message of a condition."""
    one = next((one for one in found.status.conditions if one.type == kind), None)
    return (one.status, one.reason, one.severity, one.message) if one is not None else ("", "", "", "")


def is_active(found: OpenStackNodeImageRelease) -> bool:
    return found.status.ready


@asynccontextmanager
async def made_world(server: TestServer, folder: Path) -> AsyncIterator[World]:
    """A world of its own: a logical cluster of the server, and a cloud."""
    clock = FakeClock()
    name = f"openstack-{next(_numbers)}"
    await asyncio.to_thread(server.create_cluster, name)
    async with (
        Client.from_kubeconfig(server.kubeconfig_for(name)) as client,
        CloudServer(clock=clock) as cloud,
    ):
        await define(server, name, OpenStackClusterStackRelease, OpenStackNodeImageRelease, Leftover)
        yield World(client, cloud, folder, clock)
