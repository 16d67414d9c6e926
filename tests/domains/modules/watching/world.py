"""A control plane and a managed cluster, both API servers on loopback, with the watcher between them.

The managed cluster calls its webhook as any does: by the Service's name, which leads to the agent of the test.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from prometheus_client import CollectorRegistry
from tests.waiting import until

from hortus.cli.flags import FLAGS
from hortus.domains.modules.types import KYMAS, Kyma, Watcher
from hortus.domains.modules.watching import rbac
from hortus.domains.modules.watching import settings as watcher_settings
from hortus.domains.modules.watching.agent.buffer import EventBuffer
from hortus.domains.modules.watching.agent.metrics import AgentMetrics
from hortus.domains.modules.watching.agent.server import Agent, running
from hortus.domains.modules.watching.agent.settings import from_environment
from hortus.domains.modules.watching.composition import WatcherParts, add_watcher
from hortus.domains.modules.watching.installation import InstallState
from hortus.domains.modules.watching.routing import SPACING
from hortus.domains.modules.watching.secrets import TlsSecret, read_tls
from hortus.domains.modules.watching.webhook import DEPLOYMENTS
from hortus.engine import Manager, Result, read
from hortus.engine.deputies import Deputies
from hortus.engine.flags import FlagSet
from hortus.engine.rbac import EVENTS as EVENTS_OF_OURS
from hortus.engine.rbac import policy_rules
from hortus.engine.remote import SECRETS
from hortus.kube import Client, Impersonation
from hortus.kube.clock import SystemClock
from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.testing import FakeClock, install
from hortus.testing.apiserver import running_apiserver

PATIENCE = 60.0
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
EVENTS = Resource("", "v1", "events", "Event")
RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(RBAC, "v1", "roles", "Role")
ROLE_BINDINGS = Resource(RBAC, "v1", "rolebindings", "RoleBinding")
ACCOUNT = "watcher"
KEY = ObjectKey("kcp-system", "kyma-1")
DIRECT = ("--cert-management=self", "--watcher-listener-address=127.0.0.1:1", "--watcher-hortus-agent")


class Requests:
    """The requests to one cluster, by method; `on_answer` is called with each."""

    def __init__(self) -> None:
        self.methods: Counter[str] = Counter()
        self.on_answer: Callable[..., None] = lambda method: None

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self.methods[method] += 1
        self.on_answer(method)


class Recorder:
    """Stands in for the Kyma controller: keeps the keys that it is asked to reconcile."""

    def __init__(self) -> None:
        self.keys: asyncio.Queue[ObjectKey] = asyncio.Queue()

    async def reconcile(self, key: ObjectKey) -> Result | None:
        self.keys.put_nowait(key)
        return None


class World:
    """Both clusters, their clients, and the parts of the watcher."""

    def __init__(self, folder: Path, control: Client, remote: Client, requests: Requests) -> None:
        self.folder = folder
        self.control = control
        self.remote = remote
        self.requests = requests
        self.control_requests = Requests()
        """Requests of the controllers to the control plane."""
        self.clock = FakeClock(now=time.time())
        self.registry = CollectorRegistry()
        self.recorder = Recorder()
        self.parts: WatcherParts
        self.agent_port = 0
        self.trusted = "*"
        """The namespaces that controllers trust."""

    async def prepare(self) -> None:
        """Namespaces, kinds, a Kyma on either side, and the Watcher of Kymas."""
        for client, names in ((self.control, ("kcp-system", "istio-system")), (self.remote, ("kyma-system",))):
            for name in names:
                await client.create(NAMESPACES, {"metadata": {"name": name}})
        await install(self.control, Kyma, Watcher)
        await install(self.remote, Kyma)
        await self.control.create(KYMAS, kyma("kyma-1", "kcp-system"))
        await self.remote.create(KYMAS, kyma("default", "kyma-system"))

    @asynccontextmanager
    async def watching(self, *flags: str) -> AsyncIterator[WatcherParts]:
        """The watcher of a control plane, with these flags."""
        values = FlagSet(FLAGS).parse(
            [
                "--skr-watcher-image-tag=1.0.0",
                "--kyma-skr-listener-bind-address=127.0.0.1:0",
                "--watcher-probe-interval=1h",
                *flags,
            ]
        )
        self.registry = CollectorRegistry()
        account = await self._account()
        manager = Manager(account, clock=self.clock, registry=self.registry, grace=0.0)
        kymas = manager.cache(KYMAS, namespace="kcp-system")
        self.parts = add_watcher(
            manager,
            client=account,
            kymas=kymas,
            deputies=Deputies(self.control, self.trusted, clock=self.clock),
            settings=watcher_settings.from_flags(values, {}),
        )
        manager.controller("kymas", self.recorder, sources=[*self.parts.sources])
        async with account, manager.running():
            yield self.parts

    async def _account(self) -> Client:
        """A client of an account that has the declared permissions and no other."""
        for namespace, permissions in (("kcp-system", (*rbac.CONTROL, EVENTS_OF_OURS)), ("istio-system", rbac.ISTIO)):
            subject = {"apiGroup": RBAC, "kind": "User", "name": ACCOUNT}
            role = {"apiGroup": RBAC, "kind": "Role", "name": ACCOUNT}
            metadata = {"name": ACCOUNT, "namespace": namespace}
            await self.control.apply(
                ROLES, {"metadata": metadata, "rules": policy_rules(permissions)}, field_manager="test"
            )
            binding = {"metadata": metadata, "roleRef": role, "subjects": [subject]}
            await self.control.apply(ROLE_BINDINGS, binding, field_manager="test")
        account = Impersonation(user=ACCOUNT, groups=("system:authenticated",))
        access = msgspec.structs.replace(self.control.access, impersonate=account)
        return Client(access, observer=self.control_requests)

    async def install(self) -> InstallState:
        """One reconcile of the Kyma, as far as the watcher goes."""
        found = read(Kyma, await self.control.get(KYMAS, KEY.name, KEY.namespace))
        return await self.parts.installer.install(found, self.remote)

    async def until(self, holds: Callable[[InstallState], bool]) -> InstallState:
        """Repeats the reconcile until its state is as wanted: the caches that it reads follow the two servers."""

        async def wanted() -> InstallState | None:
            state = await self.install()
            return state if holds(state) else None

        found = await until(wanted)
        assert found is not None
        return found

    async def installed(self) -> InstallState:
        """Installs the watcher, whose Deployment the cluster runs at once."""
        await self.until(lambda state: state.reason == "AgentNotReady")
        await self.run_deployment()
        return await self.until(lambda state: state.ready)

    async def run_deployment(self, ready: int = 1) -> None:
        patch = {"status": {"replicas": 1, "readyReplicas": ready}}
        await self.remote.patch(DEPLOYMENTS, "skr-webhook", patch, "kyma-system", subresource="status")

    @asynccontextmanager
    async def agent(self, *, listener: int = 0) -> AsyncIterator[Agent]:
        """The agent with the certificate and the environment that were installed.

        It reports to the port of the present listener, or to another one.
        """
        deployment = await self.remote.get(DEPLOYMENTS, "skr-webhook", "kyma-system")
        [container] = deployment["spec"]["template"]["spec"]["containers"]
        environment = {one["name"]: one.get("value", "") for one in container["env"]}
        environment |= await self.write_certificate()
        environment |= {
            "KCP_ADDR": f"127.0.0.1:{listener or await self.listener_port()}",
            "WEBHOOK_PORT": "0",
            "METRICS_PORT": "0",
            "BIND_HOST": "127.0.0.1",
            "BUFFER_DIR": str(self.folder / "buffer"),
        }
        settings = from_environment(environment)
        buffer = EventBuffer(settings.buffer_dir)
        try:
            metrics = AgentMetrics(buffer, CollectorRegistry())
            async with running(settings, metrics, buffer, clock=SystemClock()) as agent:
                self.agent_port = agent.webhook_port
                yield agent
        finally:
            buffer.close()
            self.agent_port = 0

    async def write_certificate(self) -> dict[str, str]:
        """Writes the files of the agent's Secret volume; returns the variables that name them."""
        secret = read_tls(await self.remote.get(SECRETS, "skr-webhook-tls", "kyma-system"))
        names = {"CA_CERT": "ca.crt", "TLS_CERT": "tls.crt", "TLS_KEY": "tls.key"}
        for name in names.values():
            (self.folder / name).write_bytes(secret.value(name))
        return {variable: str(self.folder / name) for variable, name in names.items()}

    async def listener_port(self) -> int:
        listener = self.parts.listener
        assert listener is not None
        return await until(lambda: listener.port)

    async def reconciled(self) -> ObjectKey:
        """The next Kyma that an event reconciles; time passes, since one Kyma is not reconciled twice in a second."""

        async def waits() -> bool:
            await self.clock.advance(SPACING)
            return not self.recorder.keys.empty()

        await until(waits)
        return self.recorder.keys.get_nowait()

    async def edit_remote(self, channel: str) -> None:
        """A user changes the Kyma in the managed cluster."""
        await self.remote.patch(KYMAS, "default", {"spec": {"channel": channel}}, "kyma-system")

    async def gateway(self) -> TlsSecret:
        return read_tls(await self.control.get(SECRETS, "klm-istio-gateway", "istio-system"))

    async def reported(self, reason: str) -> Object:
        """The first event with that reason, as soon as there is one."""
        async with asyncio.timeout(PATIENCE), self.control.watch(EVENTS, "kcp-system") as events:
            async for event in events:
                if event.type != "BOOKMARK" and event.object["reason"] == reason:
                    return event.object
        raise AssertionError("the watch ended")

    def metric(self, name: str, **labels: str) -> float:
        return self.registry.get_sample_value(name, labels) or 0.0


def kyma(name: str, namespace: str, **metadata: Any) -> Object:
    return {
        "apiVersion": KYMAS.api_version,
        "kind": "Kyma",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {
                "kyma-project.io/runtime-id": "runtime-1",
                "operator.kyma-project.io/watched-by": "kyma",
            },
            "annotations": {"skr-domain": "c-1.shoot.example.org"},
            **metadata,
        },
        "spec": {"channel": "regular"},
    }


def watcher(**spec: Any) -> Object:
    return {
        "apiVersion": "operator.kyma-project.io/v1beta2",
        "kind": "Watcher",
        "metadata": {"name": "watcher", "namespace": "kcp-system"},
        "spec": {
            "manager": "lifecycle-manager",
            "serviceInfo": {"name": "events", "namespace": "kcp-system", "port": 8082},
            "resourceToWatch": {"group": "operator.kyma-project.io", "version": "*", "resource": "kymas"},
            "labelsToWatch": {"operator.kyma-project.io/watched-by": "kyma"},
            "field": "spec",
            "gateway": {"selector": {"matchLabels": {"operator.kyma-project.io/watcher-gateway": "default"}}},
            **spec,
        },
    }


@asynccontextmanager
async def started_world(folder: Path) -> AsyncIterator[World]:
    made: list[World] = []

    async def resolve(cluster: str, namespace: str, service: str, port: int) -> tuple[str, int]:
        if not made or not made[0].agent_port:
            raise LookupError(f"service {service!r} has no endpoint")
        return "127.0.0.1", made[0].agent_port

    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(running_apiserver(clusters=["managed"], services=resolve))
        control = await stack.enter_async_context(Client.from_kubeconfig(server.kubeconfig))
        requests = Requests()
        remote = await stack.enter_async_context(
            Client.from_kubeconfig(server.kubeconfig_for("managed"), observer=requests)
        )
        world = World(folder, control, remote, requests)
        made.append(world)
        await world.prepare()
        yield world
