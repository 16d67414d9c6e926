"""A control plane and managed clusters, all of them logical clusters of one server, reached through real sockets."""

from __future__ import annotations

import asyncio
import base64
import itertools
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import msgspec
from tests.domains.definitions import define

from hortus.domains.modules import settings
from hortus.domains.modules.flags import FLAGS
from hortus.domains.modules.kyma.composition import add_controllers
from hortus.domains.modules.kyma.controller import KymaController
from hortus.domains.modules.kyma.parts import clusters_of
from hortus.domains.modules.metrics import RequeueMetrics
from hortus.domains.modules.names import GROUP, Label
from hortus.domains.modules.registry import Component, ComponentDescriptor
from hortus.domains.modules.types import (
    KYMAS,
    MANIFESTS,
    MODULE_RELEASE_METAS,
    MODULE_TEMPLATES,
    InstallSource,
    Kyma,
    Manifest,
    ModuleReleaseMeta,
    ModuleTemplate,
)
from hortus.engine import Manager, StepError, has_condition
from hortus.engine.deputies import Deputies
from hortus.engine.flags import FlagSet
from hortus.engine.kubeconfigs import SECRETS, sealed
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.remote import RemotePool, RemoteSettings, SecretCredentials
from hortus.engine.rollouts import RolloutGate
from hortus.kube import Client, PatchKind, Resource, yaml
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey
from hortus.kube.watch import BOOKMARK, DELETED
from hortus.testing.apiserver import TestServer

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
HOME, INSIDE = "kcp-system", "kyma-system"
NAME = "default-id"
PATIENCE = 60.0
QUICK = (
    "--failure-base-delay=100ms",
    "--failure-max-delay=1s",
    "--kyma-requeue-busy-interval=200ms",
    "--kyma-requeue-warning-interval=1s",
    "--module-upgrade-rollout-max-delay=0s",
    "--mandatory-module-requeue-success-interval=1s",
    "--mandatory-module-deletion-requeue-success-interval=1s",
)
_numbers = itertools.count(1)


class FakeAgents:
    """Agents that work at once; `enabled` is set by tests."""

    class State(msgspec.Struct, frozen=True):
        ready: bool = True
        message: str = ""

    def __init__(self) -> None:
        self.enabled = False
        self.certificates: set[str] = set()
        self.installed = False
        self.ready = True
        self.error: StepError | None = None

    async def install(self, kyma: Kyma, remote: Client) -> State:
        if self.error is not None:
            raise self.error
        self.installed = True
        self.certificates.add(kyma.metadata.name)
        return self.State(ready=self.ready)

    async def delete_certificate(self, kyma: ObjectKey) -> bool:
        found = kyma.name in self.certificates
        self.certificates.discard(kyma.name)
        return found

    async def remove(self, remote: Client) -> bool:
        found, self.installed = self.installed, False
        return found

    def forget(self, kyma: object) -> None:
        return


class FakeRegistry:
    """A registry with every component version, but those of `missing`."""

    def __init__(self) -> None:
        self.missing: set[tuple[str, str]] = set()
        self.down = False
        self.asked: list[tuple[str, str]] = []
        self.images: tuple[str, ...] = ()
        self.pushed_again = ""
        """A text that gives every layer another digest."""

    async def component(self, name: str, version: str) -> Component:
        self.asked.append((name, version))
        if self.down or (name, version) in self.missing:
            raise StepError(f"module {name} {version}: not in the registry", reason="ModuleNotPublished")
        digest = "sha256:" + (f"{self.pushed_again}{name}{version}".encode().hex() + "0" * 64)[:64]
        source = InstallSource(repo="registry.example.org", name=name, ref=digest, type="oci-ref")
        return Component(
            digest=digest,  # type: ignore[arg-type]
            descriptor=ComponentDescriptor(name=name, version=version),
            install=source,
            default_cr=None,
            config=None,
            localized_images=self.images,
        )


class Requests:
    """The requests of the controllers, to the control plane and to the clusters."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, str, str]] = []
        self.on_answer: Callable[[str, str], None] = lambda method, host: None

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self.answers.append((method, host, code))
        self.on_answer(method, host)

    @property
    def writes(self) -> list[tuple[str, str, str]]:
        return [one for one in self.answers if one[0] != "GET"]


class KymaWorld:
    """One logical cluster as the control plane."""

    def __init__(self, server: TestServer, client: Client, name: str, opened: AsyncExitStack) -> None:
        self._opened = opened
        self._insides: dict[str, Client] = {}
        self.server = server
        self.client = client
        self.name = name
        self.requests = Requests()
        self.registry = FakeRegistry()
        self.agents = FakeAgents()
        self.clock: Clock = SystemClock()
        self.flags: list[str] = []
        self.trusted = "*"
        """The namespaces that controllers trust."""
        self.leftovers: LeftoverRecorder | None = None
        self.timeout = 20.0
        self.gate: Callable[[Manager], RolloutGate] | None = None
        self.controller: KymaController
        self.test_task = asyncio.current_task()

    @asynccontextmanager
    async def controllers(self) -> AsyncIterator[Manager]:
        """One process of controllers, killed at the end."""
        async with Client(self.client.access, observer=self.requests) as client:
            manager = Manager(client, clock=self.clock, grace=0.0)
            flags = ["--modules", "--oci-registry-host=registry.example.org", *QUICK, *self.flags]
            chosen = settings.from_flags(FlagSet(FLAGS).parse(flags))
            kubeconfigs = manager.cache(SECRETS, namespace=HOME, labels="none=of-these", transform=sealed)
            pool = RemotePool(
                SecretCredentials(client, kubeconfigs),
                settings=RemoteSettings(deny=(), connect_timeout=self.timeout, timeout=self.timeout),
                clock=self.clock,
                observer=self.requests,
            )
            manager.on_stop(pool.close)
            self.controller = add_controllers(
                manager,
                client=client,
                namespace=HOME,
                clusters=clusters_of(manager, pool, HOME, Deputies(client, self.trusted, clock=self.clock)),
                components=self.registry,
                agents=self.agents,
                leftovers=self.leftovers or LeftoverRecorder(None, ""),
                requeues=RequeueMetrics(manager.registry),
                gate=self.gate(manager) if self.gate is not None else RolloutGate(None),
                settings=chosen,
            )
            async with manager.running():
                yield manager

    async def requests_of_a_reconcile(self, *, until: int | None = None) -> int:
        """The number of requests that a reconcile makes now; with `until`, reconciles until one makes so many."""
        me, made = asyncio.current_task(), 0

        def count(method: str, host: str) -> None:
            nonlocal made
            made += asyncio.current_task() is me

        self.requests.on_answer = count
        async with asyncio.timeout(PATIENCE):
            while True:
                made = 0
                await self.controller.reconcile(ObjectKey(HOME, NAME))
                if until is None or made == until:
                    return made

    # Clusters and Kymas.

    async def cluster(self, name: str = "skr", *, kyma: str = NAME, secret: str = "") -> None:
        """A managed cluster, and the Secret that leads a Kyma to it."""
        await asyncio.to_thread(self.server.create_cluster, self.full(name))
        await self.access(name, kyma=kyma, secret=secret)

    async def access(
        self, name: str = "skr", *, kyma: str = NAME, secret: str = "", kubeconfig: Object | None = None
    ) -> None:
        """The Secret that leads a Kyma to a cluster, by its own kubeconfig or another one."""
        document = kubeconfig or self.server.kubeconfig_dict(self.full(name))
        await self.client.create(
            SECRETS,
            {
                "metadata": {
                    "name": secret or f"kubeconfig-{kyma}",
                    "namespace": HOME,
                    "labels": {Label.KYMA_NAME: kyma},
                },
                "data": {"config": base64.b64encode(yaml.dump(document).encode()).decode()},
            },
        )

    async def lead_to(self, kubeconfig: Object, *, kyma: str = NAME) -> None:
        """Makes the Secret of a Kyma hold another kubeconfig."""
        patch = {"data": {"config": base64.b64encode(yaml.dump(kubeconfig).encode()).decode()}}
        await self.client.patch(SECRETS, f"kubeconfig-{kyma}", patch, HOME)

    def full(self, name: str) -> str:
        return f"{self.name}-{name}"

    @asynccontextmanager
    async def inside(self, name: str = "skr") -> AsyncIterator[Client]:
        """A client of a managed cluster, one for the whole test: each would have a certificate and connections."""
        if name not in self._insides:
            path = await asyncio.to_thread(self.server.kubeconfig_for, self.full(name))
            self._insides[name] = await self._opened.enter_async_context(Client.from_kubeconfig(path))
        yield self._insides[name]

    async def kyma(
        self,
        name: str = NAME,
        *,
        channel: str = "regular",
        modules: Sequence[Object] = (),
        labels: dict[str, str] | None = None,
        annotations: dict[str, str] | None = None,
        **spec: Any,
    ) -> Object:
        return await self.create(
            KYMAS,
            {
                "metadata": {
                    "name": name,
                    "namespace": HOME,
                    "labels": {Label.INSTANCE_ID: f"instance-{name}", Label.RUNTIME_ID: name, **(labels or {})},
                    "annotations": {"skr-domain": f"{name}.kyma.example.org", **(annotations or {})},
                },
                "spec": {"channel": channel, "modules": list(modules), **spec},
            },
        )

    async def module(
        self,
        name: str,
        channels: dict[str, str],
        *,
        labels: dict[str, str] | None = None,
        selector: Object | None = None,
        data: bool = True,
        **template: Any,
    ) -> None:
        """A ModuleReleaseMeta with its ModuleTemplates."""
        for version in sorted(set(channels.values())):
            await self.template(name, version, labels=labels, data=data, **template)
        spec: Object = {
            "moduleName": name,
            "ocmComponentName": f"kyma-project.io/module/{name}",
            "channels": [{"channel": channel, "version": version} for channel, version in channels.items()],
        }
        if selector is not None:
            spec["kymaSelector"] = selector
        await self.create(MODULE_RELEASE_METAS, {"metadata": {"name": name, "namespace": HOME}, "spec": spec})

    async def mandatory(self, name: str, version: str, *, template: bool = True) -> None:
        if template:
            await self.template(name, version, mandatory=True)
        spec = {
            "moduleName": name,
            "ocmComponentName": f"kyma-project.io/module/{name}",
            "mandatory": {"version": version},
        }
        await self.create(MODULE_RELEASE_METAS, {"metadata": {"name": name, "namespace": HOME}, "spec": spec})

    async def template(
        self, name: str, version: str, *, labels: dict[str, str] | None = None, data: bool = True, **spec: Any
    ) -> None:
        sample = {"apiVersion": f"{GROUP}/v1alpha1", "kind": "Sample", "metadata": {"name": f"{name}-cr"}, "spec": {}}
        await self.create(
            MODULE_TEMPLATES,
            {
                "metadata": {"name": f"{name}-{version}", "namespace": HOME, "labels": labels or {}},
                "spec": {
                    "moduleName": name,
                    "version": version,
                    "descriptor": {},
                    **({"data": sample} if data else {}),
                    **spec,
                },
            },
        )

    async def move(self, name: str, channels: dict[str, str]) -> None:
        """Give the channels of a module these versions."""
        listed = [{"channel": channel, "version": version} for channel, version in channels.items()]
        await self.client.patch(MODULE_RELEASE_METAS, name, {"spec": {"channels": listed}}, HOME)

    async def user_edits(self, spec: Object, cluster: str = "skr") -> None:
        """The user changes the spec of the Kyma in the cluster."""
        async with self.inside(cluster) as client:
            await client.patch(KYMAS, "default", {"spec": spec}, INSIDE)

    async def set_manifest_state(self, name: str, state: str) -> None:
        """Stand in for the controller of Manifests."""
        await self.client.patch(MANIFESTS, name, {"status": {"state": state}}, HOME, PatchKind.MERGE, "status")

    async def delete_kyma(self, name: str = NAME) -> None:
        """Delete a Kyma, which may be gone already."""
        with suppress(NotFound):
            await self.client.delete(KYMAS, name, HOME)

    async def create(self, resource: Resource, obj: Object) -> Object:
        typed = {"apiVersion": resource.api_version, "kind": resource.kind, **obj}
        return await self.client.create(resource, typed)

    # Conditions to wait for.

    async def until(
        self,
        says: Callable[[Object], Any],
        resource: Resource = KYMAS,
        name: str = NAME,
        namespace: str = HOME,
        *,
        cluster: str = "",
    ) -> Object:
        """The object as soon as it exists and `says` holds of it."""
        if not cluster:
            return await _until(self.client, resource, name, namespace, lambda found: found and says(found))
        async with self.inside(cluster) as client:
            return await _until(client, resource, name, namespace, lambda found: found and says(found))

    async def until_gone(
        self, resource: Resource = KYMAS, name: str = NAME, namespace: str = HOME, *, cluster: str = ""
    ) -> None:
        """Returns when the object does not exist."""
        if not cluster:
            await _until(self.client, resource, name, namespace, _is_absent)
            return
        async with self.inside(cluster) as client:
            await _until(client, resource, name, namespace, _is_absent)

    async def manifest(self, module: str, says: Callable[[Object], Any] = bool) -> Object:
        """The Manifest of a module as soon as it exists and `says` holds of it."""
        label = f"{Label.MODULE_NAME}={module}"
        return await _until(self.client, MANIFESTS, "", HOME, lambda found: found and says(found), labels=label)

    async def until_no_manifest(self, module: str) -> None:
        """Returns when a module has no Manifest."""
        await _until(self.client, MANIFESTS, "", HOME, _is_absent, labels=f"{Label.MODULE_NAME}={module}")

    async def manifests(self) -> list[Object]:
        return list((await self.client.list(MANIFESTS, HOME)).items)


async def _until(
    client: Client, resource: Resource, name: str, namespace: str, says: Callable[[Object], Any], labels: str = ""
) -> Object:
    """The object as soon as `says` holds of it; `says` gets an empty dict where there is none."""
    last: Object = {}
    try:
        async with asyncio.timeout(PATIENCE):
            if resource.group == GROUP:
                await served(client, resource.plural)
            fields = f"metadata.name={name}" if name else ""
            place = namespace if resource.namespaced else ""
            watch = client.watch(resource, place, fields=fields, labels=labels, initial_events=True)
            async with watch as events:
                async for event in events:
                    if event.type == BOOKMARK:
                        if not last and says(last):
                            return last
                        continue
                    last = {} if event.type == DELETED else event.object
                    if says(last):
                        return last
    except TimeoutError:
        raise AssertionError(f"waited in vain for {resource.kind} {name or labels}; last seen: {last}") from None
    raise AssertionError("the watch ended")


def _is_absent(found: Object) -> bool:
    return not found


async def served(client: Client, plural: str) -> None:
    """Return when the cluster serves the kind."""
    name = f"{plural}.{GROUP}"
    async with client.watch(CRDS, fields=f"metadata.name={name}", initial_events=True) as events:
        async for event in events:
            if event.type not in (BOOKMARK, DELETED) and has_condition(event.object, "Established"):
                return


def state(obj: Object) -> str:
    return str((obj.get("status") or {}).get("state", ""))


def is_ready(obj: Object) -> bool:
    return state(obj) == "Ready"


def labels(obj: Object) -> dict[str, str]:
    return dict((obj.get("metadata") or {}).get("labels") or {})


def modules(obj: Object) -> dict[str, Object]:
    return {one["name"]: one for one in (obj.get("status") or {}).get("modules") or ()}


def conditions(obj: Object) -> dict[str, str]:
    return {one["type"]: one["status"] for one in (obj.get("status") or {}).get("conditions") or ()}


@asynccontextmanager
async def kyma_world(server: TestServer) -> AsyncIterator[KymaWorld]:
    """A fresh control plane with the CRDs and the namespace."""
    name = f"kcp-{next(_numbers)}"
    await asyncio.to_thread(server.create_cluster, name)
    async with AsyncExitStack() as opened, Client.from_kubeconfig(server.kubeconfig_for(name)) as client:
        await define(server, name, Kyma, Manifest, ModuleTemplate, ModuleReleaseMeta)
        await client.create(NAMESPACES, {"metadata": {"name": HOME}})
        yield KymaWorld(server, client, name, opened)
