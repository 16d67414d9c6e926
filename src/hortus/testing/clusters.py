"""Controllers of a test on a cluster of its own: their CRDs installed, with exactly the permissions that they declare.

    async def test_a_greeting_gets_its_config_map(hortus_cluster: TestCluster) -> None:
        async with hortus_cluster.running(GreetingController) as running:
            await running.create(Greeting(metadata=ObjectMeta(name="hello"), spec=GreetingSpec(text="good day")))
            await running.wait_for(Greeting, "hello", until=condition_is("Ready"))

The controllers call the API server as an account whose role is made from their classes, so that a permission which is
missing in `permissions` fails the test here and no pod later. The test itself is the administrator.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, TypeVar, overload

import msgspec
import structlog

from hortus.engine.events import EventRecorder
from hortus.engine.kinds import KindController, add_kind
from hortus.engine.logging import add_scope
from hortus.engine.manager import Manager
from hortus.engine.manifests import OperatorManifests
from hortus.engine.outcomes import Result
from hortus.engine.typed import read, resource_of
from hortus.kube import Client, Impersonation
from hortus.kube.clock import Clock
from hortus.kube.errors import Forbidden, NotServed
from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.schema import Kind, crd, encode
from hortus.testing.waiting import PATIENCE, wait_for, wait_gone

K = TypeVar("K", bound=Kind)

CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
_USER = "controllers"
_TESTER = "test"
_PAUSE = 0.01
"""Seconds between two looks whether a kind is served: a server has no watch for that."""
_HINT = " (declare it in the controller's `permissions`)"


async def install(client: Client, *kinds: type[Kind]) -> None:
    """Install the CRDs of kinds and return when they are served."""
    for kind in kinds:
        await client.apply(CRDS, crd(kind), field_manager=_TESTER)
    for kind in kinds:
        while True:
            try:
                await client.list(resource_of(kind), limit=1)
                break
            except NotServed:
                await asyncio.sleep(_PAUSE)


class TestCluster:
    """A cluster for tests; the fixture `hortus_cluster` is one without any object of other tests."""

    __test__ = False

    def __init__(self, kubeconfig: Path) -> None:
        """`kubeconfig` is the administrator's, of any cluster: the controllers impersonate an account there."""
        self.kubeconfig = kubeconfig
        """A file, also for kubectl and for other programs."""

    def client(self) -> Client:
        """A client of the administrator; `async with` closes it."""
        return Client.from_kubeconfig(self.kubeconfig)

    @asynccontextmanager
    async def running(
        self,
        *controllers: type[KindController[Any]],
        clock: Clock | None = None,
        patience: float = PATIENCE,
    ) -> AsyncIterator[RunningControllers]:
        """Install the kinds of `controllers` and run these until the end of the block.

        `clock` is the time that they see. Raises AssertionError if they do not start within `patience` seconds.
        """
        async with AsyncExitStack() as stack:
            stack.enter_context(_plain_logs())
            admin = await stack.enter_async_context(self.client())
            operator = OperatorManifests(_USER, controllers, [(one.kind,) for one in controllers])
            await install(admin, *(one.kind for one in controllers))
            await _grant(admin, operator)
            account = Impersonation(user=_USER, groups=("system:authenticated",))
            access = msgspec.structs.replace(admin.access, impersonate=account)
            client = await stack.enter_async_context(Client(access))
            manager = Manager(client, clock=clock, grace=0.0)
            failures: dict[ObjectKey, str] = {}
            for controller in controllers:
                events = EventRecorder(client, component=controller.field_manager, clock=manager.clock)
                manager.add_server(events)
                add_kind(manager, _observed(controller, failures), client=client, events=events)
            try:
                async with asyncio.timeout(patience):
                    await stack.enter_async_context(manager.running())
            except TimeoutError:
                waiting = "; ".join(manager.caches.waiting_for)
                raise AssertionError(f"the controllers did not start within {patience:g} s: {waiting}") from None
            yield RunningControllers(admin, manager, failures, patience)


class RunningControllers:
    """Controllers that run, and the administrator's client next to them."""

    def __init__(self, client: Client, manager: Manager, failures: dict[ObjectKey, str], patience: float) -> None:
        self.client = client
        """The administrator's."""
        self.manager = manager
        self._failures = failures
        self._patience = patience

    async def create(self, obj: K, namespace: str = "default") -> K:
        """Create an object from its struct, in `namespace` unless its metadata names one."""
        resource, body = resource_of(type(obj)), encode(obj)
        if resource.namespaced:
            body["metadata"] = {"namespace": namespace, **body["metadata"]}
        return read(type(obj), await self.client.create(resource, body))

    async def patch(self, what: type[K], name: str, patch: Object, namespace: str = "default") -> K:
        """Merge `patch` into an object, as people do by kubectl."""
        resource = resource_of(what)
        return read(what, await self.client.patch(resource, name, patch, namespace if resource.namespaced else ""))

    async def delete(self, what: type[Kind], name: str, namespace: str = "default") -> None:
        """Delete an object and return when it is gone, with its finalizers."""
        resource = resource_of(what)
        await self.client.delete(resource, name, namespace if resource.namespaced else "")
        await self.wait_gone(what, name, namespace)

    @overload
    async def wait_for(
        self, what: type[K], name: str, namespace: str = "default", *, until: Callable[[K], bool] | None = None
    ) -> K: ...

    @overload
    async def wait_for(
        self, what: Resource, name: str, namespace: str = "default", *, until: Callable[[Object], bool] | None = None
    ) -> Object: ...

    async def wait_for(
        self, what: Any, name: str, namespace: str = "default", *, until: Callable[[Any], bool] | None = None
    ) -> Any:
        """See `hortus.testing.wait_for`; the AssertionError adds the failures of the last reconciles."""
        try:
            return await wait_for(self.client, what, name, namespace, until=until, patience=self._patience)
        except AssertionError as error:
            raise AssertionError(f"{error}{self._report()}") from None

    async def wait_gone(self, what: type[Kind] | Resource, name: str, namespace: str = "default") -> None:
        """See `hortus.testing.wait_gone`; the AssertionError adds the failures of the last reconciles."""
        try:
            await wait_gone(self.client, what, name, namespace, patience=self._patience)
        except AssertionError as error:
            raise AssertionError(f"{error}{self._report()}") from None

    def _report(self) -> str:
        lines = [f"the last reconcile of {key} failed: {text}" for key, text in self._failures.items()]
        return "".join(f"\n{line}" for line in [*lines, *self.manager.caches.waiting_for])


def _observed(controller: type[KindController[Any]], failures: dict[ObjectKey, str]) -> type[KindController[Any]]:
    """The controller, with the failure of each object's last reconcile kept in `failures`."""

    class Observed(controller):  # type: ignore[misc, valid-type]
        async def reconcile(self, key: ObjectKey) -> Result | None:
            try:
                result: Result | None = await super().reconcile(key)
            except Exception as error:
                cause = error.__cause__ or error
                failures[key] = f"{type(error).__name__}: {error}{_HINT if isinstance(cause, Forbidden) else ''}"
                raise
            failures.pop(key, None)
            return result

    return Observed


@contextmanager
def _plain_logs() -> Iterator[None]:
    """Logs of a project that configures none: with controller and object, and tracebacks without variables."""
    if structlog.is_configured():
        yield
        return
    renderer = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[add_scope, renderer], cache_logger_on_first_use=False)
    try:
        yield
    finally:
        structlog.reset_defaults()


async def _grant(client: Client, operator: OperatorManifests) -> None:
    """Give the account of the controllers the roles that `hortus manifests` prints for them."""
    for role in operator.roles(_USER):
        name = role["metadata"]["name"]
        if name in (_USER, f"{_USER}-leases"):
            await client.apply(_ROLES, role, field_manager=_TESTER)
            binding = {
                "metadata": {"name": name},
                "roleRef": {"apiGroup": _ROLES.group, "kind": _ROLES.kind, "name": name},
                "subjects": [{"apiGroup": _ROLES.group, "kind": "User", "name": _USER}],
            }
            await client.apply(_BINDINGS, binding, field_manager=_TESTER)
