"""A control plane and the clusters of Kymas, as logical clusters of one server, over real sockets."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import itertools
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Any

from tests.domains.clocks import MovedClock
from tests.domains.counting import Answer, note, requests_of
from tests.domains.definitions import define

from hortus.domains.modules import settings
from hortus.domains.modules.clusters import SECRET_SELECTOR, KymaClusters
from hortus.domains.modules.flags import FLAGS
from hortus.domains.modules.manifests.composition import add_controller
from hortus.domains.modules.manifests.controller import ManifestController
from hortus.domains.modules.metrics import RequeueMetrics
from hortus.domains.modules.names import MANAGED_BY_KYMA, Label
from hortus.domains.modules.types import KYMAS, MANIFESTS, InstallSource, Kyma, Manifest
from hortus.engine import Actor, Manager, StepError, find_condition
from hortus.engine.applysets import ClusterClient, readiness
from hortus.engine.deputies import Deputies
from hortus.engine.flags import FlagSet
from hortus.engine.kubeconfigs import SECRETS, sealed
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.leftovers.types import Leftover
from hortus.engine.remote import KubeconfigRef, RemotePool, RemoteSettings, SecretCredentials
from hortus.kube import Client, PatchKind, Resource, yaml
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.errors import Forbidden, NotFound
from hortus.kube.objects import Object, ObjectKey, parse_time
from hortus.kube.watch import WatchEvent
from hortus.simulation.garden.kinds import LOGICAL_CLUSTERS
from hortus.testing.apiserver import TestServer
from hortus.testing.waiting import wait_for

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
STATEFUL_SETS = Resource("apps", "v1", "statefulsets", "StatefulSet")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
SAMPLES = Resource("operator.kyma-project.io", "v1alpha1", "samples", "Sample")
HOME, MODULES = "kcp-system", "kyma-system"
PATIENCE = 60.0
QUICK = ("--failure-base-delay=100ms", "--failure-max-delay=1s")
_numbers = itertools.count(1)


class Layers:
    """A registry of layers by digest; `broken` ones cannot be read."""

    def __init__(self) -> None:
        self.layers: dict[str, bytes] = {}
        self.broken: dict[str, StepError] = {}
        self.reads = 0

    def push(self, *objects: Object) -> str:
        return self.push_text(yaml.dump_all(list(objects)).encode())

    def push_text(self, text: bytes) -> str:
        ref = f"sha256:{hashlib.sha256(text).hexdigest()}"
        self.layers[ref] = text
        return ref

    def break_down(self, ref: str) -> None:
        self.broken[ref] = StepError("the registry is down", reason="ModuleRegistryUnavailable", actor=Actor.PROVIDER)

    async def manifest(self, source: InstallSource) -> bytes:
        self.reads += 1
        if source.ref in self.broken:
            raise self.broken[source.ref]
        return self.layers[source.ref]


class Requests:
    """The requests of the controllers: method, host ("remote" for all clusters of Kymas) and code."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, str, str]] = []
        self.on_answer: Callable[..., None] = lambda method: None

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self.answers.append((method, host, code))
        note((method, host, code))
        self.on_answer(method)

    @property
    def writes(self) -> list[tuple[str, str, str]]:
        return [one for one in self.answers if one[0] != "GET"]


class BreakableWatches(RemotePool):
    """A pool whose watches can be made to fail, while clusters answer everything else."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.broken = asyncio.Event()

    def watcher(self, place: KubeconfigRef) -> Client:
        client = super().watcher(place)
        whole = client.watch

        async def watch(*args: Any, **options: Any) -> AsyncIterator[WatchEvent]:
            async with aclosing(whole(*args, **options)) as events:
                broken = step = asyncio.ensure_future(self.broken.wait())
                try:
                    while True:
                        step = asyncio.ensure_future(anext(events))  # type: ignore[assignment]
                        await asyncio.wait({step, broken}, return_when=asyncio.FIRST_COMPLETED)
                        if broken.done():
                            raise Forbidden("watches are refused")
                        yield await step  # type: ignore[misc]
                except StopAsyncIteration:
                    return
                finally:
                    for task in (step, broken):
                        task.cancel()
                    await asyncio.gather(step, broken, return_exceptions=True)

        client.watch = watch  # type: ignore[method-assign,assignment]
        return client


class ModuleWorld:
    """One logical cluster as the control plane, one as the cluster of the Kyma `one`."""

    def __init__(self, server: TestServer, client: Client, inside: Client, name: str) -> None:
        self.server = server
        self.client = client
        self.inside = inside
        self.name = name
        self.layers = Layers()
        self.requests = Requests()
        self.clock: Clock = SystemClock()
        self.flags: list[str] = []
        self.trusted = "*"
        """The namespaces that controllers trust."""
        self.pool: BreakableWatches | None = None
        self.reconciler: ManifestController | None = None

    @asynccontextmanager
    async def controllers(self) -> AsyncIterator[Manager]:
        """One process of controllers, killed at the end."""
        self.requests.answers.clear()
        async with Client(self.client.access, observer=self.requests) as client:
            manager = Manager(client, clock=self.clock, grace=0.0)
            values = FlagSet(FLAGS).parse(["--modules", "--oci-registry-host=registry.test", *QUICK, *self.flags])
            secrets = manager.cache(SECRETS, namespace=HOME, labels=SECRET_SELECTOR, transform=sealed)
            pool = self.pool = BreakableWatches(
                SecretCredentials(client, secrets),
                settings=RemoteSettings(deny=(), connect_timeout=20.0, timeout=20.0),
                clock=self.clock,
                observer=self.requests,
            )
            manager.on_stop(pool.close)
            deputies = Deputies(client, self.trusted, clock=self.clock)
            self.reconciler = add_controller(
                manager,
                client=client,
                namespace=HOME,
                clusters=KymaClusters(pool, secrets, deputies),
                layers=self.layers,
                deputies=deputies,
                leftovers=LeftoverRecorder(client, HOME),
                requeues=RequeueMetrics(manager.registry),
                settings=settings.from_flags(values),
            )
            async with manager.running():
                yield manager

    async def until_at_rest(self, name: str = "one-module") -> None:
        """Return when a reconcile of the Manifest, which its Kyma lists, makes no call."""
        assert self.reconciler is not None
        await self.list_in_status(name)
        await self.until_requests([], name)

    async def requests_of_a_reconcile(self, name: str = "one-module") -> list[Answer]:
        """The requests that a reconcile of the Manifest makes now."""
        assert self.reconciler is not None
        return await requests_of(self.reconciler.reconcile(ObjectKey(HOME, name)))

    async def until_requests(self, wanted: list[Answer], name: str = "one-module") -> None:
        """Return when a reconcile of the Manifest makes these requests and no others."""
        made: list[Answer] = []
        try:
            async with asyncio.timeout(PATIENCE):
                while (made := await self.requests_of_a_reconcile(name)) != wanted:
                    await asyncio.sleep(0)
        except TimeoutError:
            raise AssertionError(f"a reconcile still makes {made}") from None

    async def until_more_requests(self, number: int) -> None:
        """Return when the controllers have made that many requests."""
        made = asyncio.Event()
        self.requests.on_answer = lambda method: made.set()
        async with asyncio.timeout(PATIENCE):
            while len(self.requests.answers) < number:
                await made.wait()
                made.clear()

    async def event(self, reason: str) -> str:
        """The text of the first event with that reason, as soon as there is one."""
        async with (
            asyncio.timeout(PATIENCE),
            self.client.watch(EVENTS, HOME, initial_events=True) as events,
        ):
            async for event in events:
                if event.object.get("reason") == reason:
                    return str(event.object["note"])
        raise AssertionError("the watch ended")

    async def uid_inside(self) -> str:
        """The uid by which the cluster is known."""
        return str((await self.inside.get_raw("/api/v1/namespaces/kube-system"))["metadata"]["uid"])

    # Objects of the control plane.

    async def secret(self, kyma: str = "one", *, name: str = "", workload: str = "one") -> Object:
        document = self.server.kubeconfig_dict(f"{self.name}-{workload}")
        return await self.client.create(
            SECRETS,
            {
                "metadata": {
                    "name": name or f"kubeconfig-{kyma}",
                    "namespace": HOME,
                    "labels": {Label.KYMA_NAME: kyma},
                },
                "data": {"config": base64.b64encode(yaml.dump(document).encode()).decode()},
            },
        )

    async def kyma(self, name: str = "one") -> Object:
        return await self.client.create(
            KYMAS, typed(KYMAS, {"metadata": {"name": name, "namespace": HOME}, "spec": {"channel": "regular"}})
        )

    async def manifest(
        self, ref: str, name: str = "one-module", *, kyma: str = "one", spec: Any = None, **metadata: Any
    ) -> Object:
        source = {"repo": "registry.test", "name": "kyma-project.io/module/one", "ref": ref, "type": "oci-ref"}
        labels = {Label.KYMA_NAME: kyma, Label.MODULE_NAME: name, **metadata.pop("labels", {})}
        return await self.client.create(
            MANIFESTS,
            typed(
                MANIFESTS,
                {
                    "metadata": {"name": name, "namespace": HOME, "labels": labels, **metadata},
                    "spec": {"remote": False, "install": {"name": "raw-manifest", "source": source}, **(spec or {})},
                },
            ),
        )

    async def move(self, ref: str, name: str = "one-module") -> None:
        """Makes the Manifest install another layer."""
        patch = {"spec": {"install": {"source": {"ref": ref}}}}
        await self.client.patch(MANIFESTS, name, patch, HOME)

    async def until(self, says: Callable[[Object], Any], name: str = "one-module") -> Object:
        """The Manifest as soon as `says` holds of it."""
        return await wait_for(self.client, MANIFESTS, name, HOME, until=lambda obj: bool(says(obj)), patience=PATIENCE)

    async def until_inside(
        self, resource: Resource, name: str, namespace: str = MODULES, *, until: Callable[[Object], bool] | None = None
    ) -> Object:
        """An object of the Kyma's cluster as soon as it is there, and `until` holds of it."""
        return await wait_for(self.inside, resource, name, namespace, until=until, patience=PATIENCE)

    async def edit(self, resource: Resource, name: str, operations: list[Object]) -> Object:
        """Changes an object of the Kyma's cluster as its admin may."""
        return await self.inside.patch(resource, name, operations, MODULES, PatchKind.JSON)

    @asynccontextmanager
    async def second_cluster(self) -> AsyncIterator[Client]:
        """A second Kyma `two` with a cluster of its own."""
        await asyncio.to_thread(self.server.create_cluster, f"{self.name}-two")
        async with Client.from_kubeconfig(self.server.kubeconfig_for(f"{self.name}-two")) as inside:
            await inside.create(NAMESPACES, {"metadata": {"name": MODULES}})
            await self.secret("two", workload="two")
            await self.kyma("two")
            yield inside

    async def restored(self, inside: Client, name: str, resource: Resource = DEPLOYMENTS) -> None:
        """Return when a cluster has an object."""
        await wait_for(inside, resource, name, MODULES, patience=PATIENCE)

    async def unreachable(self) -> None:
        """Makes the cluster of the Kyma answer no more: its kubeconfig leads to a port where nothing listens."""
        document = self.server.kubeconfig_dict(f"{self.name}-one")
        document["clusters"][0]["cluster"]["server"] = "https://127.0.0.1:1"
        await self.lead_to(document)

    async def lead_to(self, kubeconfig: Object) -> None:
        """Makes the Secret of the Kyma hold another kubeconfig."""
        data = {"config": base64.b64encode(yaml.dump(kubeconfig).encode()).decode()}
        await self.client.patch(SECRETS, "kubeconfig-one", {"data": data}, HOME)

    @asynccontextmanager
    async def recreated(self) -> AsyncIterator[Client]:
        """The cluster of the Kyma made again: empty, at the same address, with another credential."""
        name = f"{self.name}-one"
        async with Client.from_kubeconfig(self.server.kubeconfig_for("root")) as root:
            await root.delete(LOGICAL_CLUSTERS, name)
            await gone(root, LOGICAL_CLUSTERS, name)
        await asyncio.to_thread(self.server.create_cluster, name)
        async with Client.from_kubeconfig(self.server.kubeconfig_for(name)) as inside:
            await inside.create(NAMESPACES, {"metadata": {"name": MODULES}})
            await self.lead_to(self.server.kubeconfig_dict(name))
            yield inside

    async def until_gone(self, name: str = "one-module", resource: Resource = MANIFESTS) -> None:
        await gone(self.client, resource, name, HOME)

    async def list_in_status(self, *names: str, kyma: str = "one") -> None:
        """Makes the Kyma list these Manifests."""
        modules = [
            {
                "name": name,
                "state": "Ready",
                "manifest": {"kind": "Manifest", "metadata": {"name": name, "namespace": HOME}},
            }
            for name in names
        ]
        await self.client.patch(KYMAS, kyma, {"status": {"modules": modules}}, HOME, subresource="status")

    def later(self, obj: Object, seconds: float) -> Clock:
        """A clock that shows a time so many seconds after the object was made, and goes on from there."""
        return MovedClock(parse_time(obj["metadata"]["creationTimestamp"]) + seconds - SystemClock().now())

    async def define_samples(self) -> None:
        """Defines the kind of module resources in the cluster of the Kyma as a former module, and waits until it is
        served."""
        definition = sample_definition()
        definition["metadata"]["labels"] = {Label.MANAGED_BY: MANAGED_BY_KYMA}
        made = await self.inside.create(CRDS, definition)
        if not readiness(made).ready:
            await ClusterClient(self.inside).until(CRDS, made, lambda obj: readiness(obj).ready)

    async def read(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """An object of the Kyma's cluster; None where there is none."""
        try:
            return await self.inside.get(resource, name, namespace)
        except NotFound:
            return None

    async def become_available(self, name: str, namespace: str = MODULES) -> None:
        """The Deployment's roll-out is complete."""
        await self.report_deployment(name, "True", "NewReplicaSetAvailable", "True", namespace)

    async def report_deployment(
        self, name: str, progressing: str, reason: str, available: str, namespace: str = MODULES
    ) -> None:
        conditions = [
            {"type": "Progressing", "status": progressing, "reason": reason, "message": ""},
            {"type": "Available", "status": available, "reason": "Reported", "message": ""},
        ]
        await self.inside.patch(
            DEPLOYMENTS, name, {"status": {"conditions": conditions}}, namespace, subresource="status"
        )


def typed(resource: Resource, obj: Object) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **obj}


async def gone(client: Client, resource: Resource, name: str, namespace: str = "") -> None:
    """Return when the object does not exist."""
    async with asyncio.timeout(PATIENCE):
        async with client.watch(resource, namespace, fields=f"metadata.name={name}", initial_events=True) as events:
            there = False
            async for event in events:
                if event.type == "BOOKMARK":
                    if not there:
                        return
                    continue
                there = event.type != "DELETED"
                if not there:
                    return


def state(obj: Object) -> str:
    return str((obj.get("status") or {}).get("state", ""))


def operation(obj: Object) -> str:
    return str(((obj.get("status") or {}).get("lastOperation") or {}).get("operation", ""))


def condition(obj: Object, kind: str) -> tuple[str, str]:
    """Status and message of a condition."""
    found = find_condition(obj, kind) or {}
    return found.get("status", ""), found.get("message", "")


def is_ready(obj: Object) -> bool:
    return state(obj) == "Ready"


def config_map(name: str, **data: str) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": MODULES}, "data": data}


def deployment(name: str = "operator", image: str = "example.org/operator:1.0.0") -> Object:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": MODULES},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "manager", "image": image}]},
            },
        },
    }


def sample_definition(upstream_text: bytes | None = None) -> Object:
    """A CRD of module resources that admits any object."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"{SAMPLES.plural}.{SAMPLES.group}"},
        "spec": {
            "group": SAMPLES.group,
            "scope": "Namespaced",
            "names": {"kind": SAMPLES.kind, "plural": SAMPLES.plural, "singular": "sample", "listKind": "SampleList"},
            "versions": [{"name": SAMPLES.version, "served": True, "storage": True, "schema": schema}],
        },
    }


def sample(name: str = "default-sample") -> Object:
    return {
        "apiVersion": SAMPLES.api_version,
        "kind": SAMPLES.kind,
        "metadata": {"name": name, "namespace": MODULES},
        "spec": {"resourceFilePath": "./module-data"},
    }


@asynccontextmanager
async def module_world(server: TestServer) -> AsyncIterator[ModuleWorld]:
    """A control plane with a Kyma `one` whose cluster has the namespace of modules."""
    name = f"modules-{next(_numbers)}"
    for cluster in (name, f"{name}-one"):
        await asyncio.to_thread(server.create_cluster, cluster)
    async with (
        Client.from_kubeconfig(server.kubeconfig_for(name)) as client,
        Client.from_kubeconfig(server.kubeconfig_for(f"{name}-one")) as inside,
    ):
        await define(server, name, Kyma, Manifest, Leftover)
        await client.create(NAMESPACES, {"metadata": {"name": HOME}})
        await inside.create(NAMESPACES, {"metadata": {"name": MODULES}})
        world = ModuleWorld(server, client, inside, name)
        await world.secret()
        await world.kyma()
        yield world
