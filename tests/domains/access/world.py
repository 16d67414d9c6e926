"""A management cluster and real logical clusters behind GardenerClusters, with the controller on a clock of the test's.

The kubeconfigs of the clusters lie there as the credentials domain leaves them; everything goes through real sockets.
What a test waits for, it waits for by a watch on the server, never by time.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client import CollectorRegistry
from tests.domains.definitions import define

from hortus.cli.flags import SHARED_FLAGS
from hortus.domains.access import manifests, service, settings
from hortus.domains.access.composition import add_controller
from hortus.domains.access.manifests import KINDS
from hortus.domains.access.types import CLUSTER_ACCESSES, ClusterAccess
from hortus.domains.clusters.types import RUNTIMES, Runtime
from hortus.domains.credentials.types import GARDENER_CLUSTERS, GardenerCluster, Label
from hortus.engine import Manager, find_condition, read
from hortus.engine.deputies import Deputies
from hortus.engine.flags import FlagSet
from hortus.engine.kubeconfigs import read_secret, sealed
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.remote import SECRETS, RemotePool, RemoteSettings, SecretCredentials
from hortus.kube import Access, Client, Resource, yaml
from hortus.kube.clock import Clock, SystemClock
from hortus.kube.errors import Forbidden
from hortus.kube.kubeconfig import from_untrusted
from hortus.kube.objects import Object, ObjectKey
from hortus.testing import FakeClock
from hortus.testing.apiserver import TestServer

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
EVENTS = Resource("", "v1", "events", "Event")
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
PATIENCE = 60.0
READ_CONFIG = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}

_numbers = itertools.count()


class Requests:
    """The requests of the controller, to the management cluster and to the clusters."""

    def __init__(self) -> None:
        self.answers: list[tuple[str, str, str]] = []
        self.on_answer: Callable[[str, str], None] = lambda method, host: None

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self.answers.append((method, host, code))
        self.on_answer(method, host)

    @property
    def writes(self) -> int:
        return sum(method != "GET" for method, _, _ in self.answers)


class World:
    def __init__(self, server: TestServer, client: Client) -> None:
        number = next(_numbers)
        self.server = server
        self.client = client
        """For the test's own hands."""
        self.access: Access = client.access
        """As whom the controller comes."""
        self.namespace = f"test-{number}"
        self.workload = f"w-{number}"
        """The logical cluster behind the GardenerCluster `tulip`."""
        self.clock = FakeClock(now=time.time())
        self.real_time = False
        """True where the controller takes the system's clock, for clusters that do not answer."""
        self.requests = Requests()
        self.allowed = "system-namespaces"
        """Powers: most requests here are the shortest ones, for the whole cluster."""
        self.flags: list[str] = []
        self.trusted = "*"
        """The namespaces that the controller trusts."""
        self.leftovers = False
        """True where Leftovers are served, in the same namespace."""
        self.registry = CollectorRegistry()
        self._seen: dict[tuple[str, str, str], Object] = {}
        self._news = asyncio.Condition()
        self._ended: Counter[ObjectKey] = Counter()
        self.controller: Any = None

    # Actions of the test.

    async def cluster(self, name: str = "tulip", workload: str = "", namespace: str = "", **metadata: Any) -> Object:
        """A GardenerCluster whose kubeconfig leads to a logical cluster of its own."""
        workload, namespace = workload or self.workload, namespace or self.namespace
        await asyncio.to_thread(self.server.create_cluster, workload)
        reference = {"name": f"kubeconfig-{name}", "namespace": namespace, "key": "config"}
        made = await self.client.create(
            GARDENER_CLUSTERS,
            {
                "apiVersion": GARDENER_CLUSTERS.api_version,
                "kind": GARDENER_CLUSTERS.kind,
                "metadata": {"name": name, "namespace": namespace, **metadata},
                "spec": {"shoot": {"name": name}, "kubeconfig": {"secret": reference}},
            },
        )
        await self.client.create(SECRETS, self.kubeconfig_secret(made, workload))
        return made

    def kubeconfig_secret(self, cluster: Object, workload: str) -> Object:
        """The admin's kubeconfig, as the credentials domain writes it."""
        metadata = cluster["metadata"]
        owner = {"name": metadata["name"], "uid": metadata["uid"]}
        document = yaml.dump(self.server.kubeconfig_dict(workload)).encode()
        return {
            "metadata": {
                "name": f"kubeconfig-{metadata['name']}",
                "namespace": metadata["namespace"],
                "labels": {Label.SHOOT_NAME: metadata["name"]},
                "ownerReferences": [
                    {"apiVersion": GARDENER_CLUSTERS.api_version, "kind": GARDENER_CLUSTERS.kind, **owner}
                ],
            },
            "data": {"config": base64.b64encode(document).decode()},
        }

    def request(self, name: str = "reader", *, namespace: str = "", **spec: Any) -> Object:
        wanted: Object = {
            "clusterRef": {"name": "tulip"},
            "client": "broker",
            "secret": {"name": f"access-{name}"},
            **spec,
        }
        if "roleRef" not in wanted:
            wanted.setdefault("rules", [READ_CONFIG])
        return {
            "apiVersion": CLUSTER_ACCESSES.api_version,
            "kind": CLUSTER_ACCESSES.kind,
            "metadata": {"name": name, "namespace": namespace or self.namespace},
            "spec": wanted,
        }

    async def ask(self, name: str = "reader", *, namespace: str = "", **spec: Any) -> Object:
        return await self.client.create(CLUSTER_ACCESSES, self.request(name, namespace=namespace, **spec))

    async def change(self, resource: Resource, name: str, patch: Object) -> Object:
        return await self.client.patch(resource, name, patch, self.namespace)

    async def delete(self, name: str = "reader") -> None:
        await self.client.delete(CLUSTER_ACCESSES, name, self.namespace)

    @asynccontextmanager
    async def inside(self, workload: str = "") -> AsyncIterator[Client]:
        """The workload cluster, as its admin."""
        path = await asyncio.to_thread(self.server.kubeconfig_for, workload or self.workload)
        async with Client.from_kubeconfig(path) as client:
            yield client

    async def as_client(self, secret: Object, ask: Callable[[Client], Any]) -> bool:
        """True when the client with the kubeconfig in `secret` may do what `ask` does."""
        async with Client(from_untrusted(content(secret)).access()) as client:
            try:
                await ask(client)
            except Forbidden:
                return False
            return True

    async def rules_held(self, secret: Object, namespace: str = "default") -> list[Object]:
        """The rules that hold for the kubeconfig in a namespace, as of `kubectl auth can-i --list`."""
        review = Resource(
            "authorization.k8s.io", "v1", "selfsubjectrulesreviews", "SelfSubjectRulesReview", namespaced=False
        )
        async with Client(from_untrusted(content(secret)).access()) as client:
            body = {"apiVersion": review.api_version, "kind": review.kind, "spec": {"namespace": namespace}}
            answer = await client.create(review, body)
        return [
            rule
            for rule in answer["status"]["resourceRules"]
            if not set(rule["apiGroups"]) & {"authorization.k8s.io", "authentication.k8s.io"}
        ]

    async def objects_inside(self, workload: str = "") -> list[str]:
        """The objects of requests in the workload cluster."""
        async with self.inside(workload) as client:
            found = [
                f"{resource.kind} {obj['metadata'].get('namespace', '')}/{obj['metadata']['name']}"
                for resource in KINDS
                for obj in (await client.list(resource, labels="access.hortus.dev/request")).items
            ]
        return sorted(found)

    # Conditions to wait for.

    async def until(self, kind: str, name: str, says: Callable[[Object], Any], namespace: str = "") -> Object:
        """The object as soon as the watch shows that it exists and `says` holds of it."""
        key = (kind, namespace or self.namespace, name)
        await self._shown_when(key, lambda: key in self._seen and says(self._seen[key]))
        return self._seen[key]

    async def until_gone(self, kind: str = "ClusterAccess", name: str = "reader", namespace: str = "") -> None:
        """Returns when the watch shows no such object."""
        key = (kind, namespace or self.namespace, name)
        await self._shown_when(key, lambda: key not in self._seen)

    async def _shown_when(self, key: tuple[str, str, str], holds: Callable[[], Any]) -> None:
        async with self._news:
            try:
                async with asyncio.timeout(PATIENCE):
                    await self._news.wait_for(holds)
            except TimeoutError:
                raise AssertionError(f"waited in vain; last seen: {_shown(self._seen.get(key))}") from None

    async def until_reason(self, reason: str, name: str = "reader", namespace: str = "") -> Object:
        """The Ready condition of a request once it has this reason for the present generation."""

        def says(obj: Object) -> bool:
            found = ready(obj)
            return found.get("reason") == reason and found["observedGeneration"] == obj["metadata"]["generation"]

        return ready(await self.until("ClusterAccess", name, says, namespace))

    async def until_secret(
        self, says: Callable[[Object], Any] = bool, name: str = "access-reader", namespace: str = ""
    ) -> Object:
        return await self.until("Secret", name, says, namespace)

    async def until_event(self, reason: str, name: str = "reader") -> Object:
        """The first event about a request that has this reason."""

        def found() -> list[Object]:
            events = [obj for (kind, place, _), obj in self._seen.items() if (kind, place) == ("Event", self.namespace)]
            return [one for one in events if one["reason"] == reason and one["involvedObject"]["name"] == name]

        async with self._news, asyncio.timeout(PATIENCE):
            await self._news.wait_for(found)
            return found()[0]

    async def until_inside(
        self, resource: Resource, name: str, namespace: str, says: Callable[[Object], Any]
    ) -> Object:
        """An object of the workload cluster as soon as it exists and `says` holds of it."""
        async with (
            self.inside() as client,
            asyncio.timeout(PATIENCE),
            client.watch(resource, namespace, name=name, initial_events=True) as events,
        ):
            async for event in events:
                if event.type in ("ADDED", "MODIFIED") and says(event.object):
                    return event.object
        raise AssertionError("the watch ended")

    async def rest(self, name: str = "reader") -> None:
        """Return when the controller has looked at the request once more, and so has nothing else to do with it."""
        key = ObjectKey(self.namespace, name)
        for _ in range(2):  # One may be under way that began before.
            before = self._ended[key]
            self.controller.enqueue_all([key])
            async with self._news, asyncio.timeout(PATIENCE):
                await self._news.wait_for(lambda: self._ended[key] > before)  # noqa: B023 - awaited at once

    async def time_left(self, name: str = "reader") -> float:
        """Seconds until the kubeconfig of a request is to be replaced."""
        access = read(ClusterAccess, await self.client.get(CLUSTER_ACCESSES, name, self.namespace))
        secret = read_secret(await self.client.get(SECRETS, access.spec.secret.name, self.namespace))
        due = service.due_of(access, secret, self.clock.now())
        return 0.0 if due.now else due.after

    # The controller under test.

    @asynccontextmanager
    async def controlled(self) -> AsyncIterator[Manager]:
        """The controller at work, as a process that starts now and stops at the end."""
        async with Client(self.access, observer=self.requests) as client:
            self.registry = CollectorRegistry()
            clock: Clock = SystemClock() if self.real_time else self.clock
            manager = Manager(client, clock=clock, registry=self.registry, grace=5.0)
            values = FlagSet((*SHARED_FLAGS, *settings.FLAGS)).parse(
                ["--watch-namespace=", f"--access-allow={self.allowed}", *self.flags]
            )
            kubeconfigs = manager.cache(SECRETS, labels=Label.SHOOT_NAME, transform=sealed)
            pool = RemotePool(
                SecretCredentials(client, kubeconfigs),
                # The clock of the test goes on while a call is under way.
                settings=RemoteSettings(deny=(), connect_timeout=PATIENCE, timeout=PATIENCE, deadline=1e9),
                clock=clock,
                observer=self.requests,
            )
            manager.on_stop(pool.close)
            reconciler = add_controller(
                manager,
                client=client,
                pool=pool,
                kubeconfigs=kubeconfigs,
                deputies=Deputies(client, self.trusted, clock=clock),
                leftovers=LeftoverRecorder(client if self.leftovers else None, self.namespace),
                settings=settings.from_flags(values),
            )
            reconcile = reconciler.reconcile

            async def counted(key: ObjectKey) -> Any:
                try:
                    return await reconcile(key)
                finally:
                    self._ended[key] += 1
                    self._telling = asyncio.ensure_future(self._tell())

            reconciler.reconcile = counted  # type: ignore[method-assign]
            [self.controller] = manager._controllers
            async with manager.running():
                yield manager

    async def _tell(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def follow(self, resource: Resource) -> None:
        """Keep what the server says of one kind at hand, in all namespaces."""
        async with self.client.watch(resource, initial_events=True) as events:
            async for event in events:
                metadata = event.object["metadata"]
                key = (resource.kind, metadata.get("namespace", ""), metadata.get("name", ""))
                async with self._news:
                    if event.type == "DELETED":
                        self._seen.pop(key, None)
                    elif event.type != "BOOKMARK":
                        self._seen[key] = event.object
                    self._news.notify_all()
                # A state that the next event ends is seen by those who wait for it.
                await asyncio.sleep(0)


@asynccontextmanager
async def world(server: TestServer) -> AsyncIterator[World]:
    """A namespace of its own on `server`, with nobody at work yet."""
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        here = World(server, client)
        await client.create(NAMESPACES, {"metadata": {"name": here.namespace}})
        await define(server, "root", GardenerCluster, Runtime, ClusterAccess)
        kinds: Sequence[Resource] = (CLUSTER_ACCESSES, SECRETS, EVENTS)
        followers = [asyncio.create_task(here.follow(resource)) for resource in kinds]
        try:
            yield here
        finally:
            for follower in followers:
                follower.cancel()
            await asyncio.gather(*followers, return_exceptions=True)
            for access in (await client.list(CLUSTER_ACCESSES, here.namespace)).items:
                # Objects that a test leaves must not keep the next one's controller busy.
                patch = {"metadata": {"finalizers": None}}
                await client.patch(CLUSTER_ACCESSES, access["metadata"]["name"], patch, here.namespace)
                await client.delete(CLUSTER_ACCESSES, access["metadata"]["name"], here.namespace)


def _shown(obj: Object | None) -> Object | None:
    return None if obj is None else {part: obj.get(part) for part in ("metadata", "spec", "status")}


def mark_of(access: Object) -> str:
    return manifests.mark_of(read(ClusterAccess, access))


def name_of(access: Object) -> str:
    return manifests.name_of(read(ClusterAccess, access))


def ready(access: Object) -> Object:
    return find_condition(access, "Ready") or {}


def content(secret: Object, key: str = "config") -> bytes:
    return base64.b64decode(secret["data"][key])


__all__ = ["RUNTIMES", "World", "content", "mark_of", "name_of", "ready", "world"]
