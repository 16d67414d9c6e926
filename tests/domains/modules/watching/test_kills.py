"""A process that is killed at any request of an installation or a removal: the next one ends in the same state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Unpack

import pytest
from tests.domains.modules.watching.world import DIRECT, KEY, World, started_world, watcher
from tests.waiting import until

from hortus.domains.modules.types import WATCHERS
from hortus.domains.modules.watching.webhook import DEPLOYMENTS, identities
from hortus.engine.remote import SECRETS
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object
from hortus.kube.transport import JSON, Absorb, Answer, CallOptions, Reader, Transport

pytestmark = pytest.mark.timeout(300)
AT_MOST = 60
"""Requests of one step; more means that it never ends."""


class Killed(BaseException):
    """The process is gone."""


class Killer:
    """Kills what the test does, and nothing else, at its n-th request, before or after the server has it."""

    def __init__(self) -> None:
        self.left = -1
        self.after = False
        self.task: asyncio.Task[Any] | None = None

    def arm(self, requests: int, *, after: bool) -> None:
        self.left, self.after, self.task = requests, after, asyncio.current_task()

    def check(self, *, after: bool) -> None:
        if self.left < 0 or after is not self.after or asyncio.current_task() is not self.task:
            return
        self.left -= 1
        if self.left < 0:
            raise Killed


class _Mortal(Transport):
    """A transport whose calls a killer may end."""

    def __init__(self, inner: Transport, killer: Killer) -> None:
        self._inner = inner
        self._killer = killer

    def __getattribute__(self, name: str) -> Any:
        if name in ("_inner", "_killer", "call"):
            return object.__getattribute__(self, name)
        return getattr(object.__getattribute__(self, "_inner"), name)

    async def call(self, method: str, target: str, body: bytes | None = None, **options: Unpack[CallOptions]) -> Answer:
        self._killer.check(after=False)
        answer = await self._inner.call(method, target, body, **options)
        self._killer.check(after=True)
        return answer

    def stream(
        self, target: str, *, accept: str = JSON, idle_timeout: float | None = None, absorb: Absorb | None = None
    ) -> AbstractAsyncContextManager[Reader]:
        return self._inner.stream(target, accept=accept, idle_timeout=idle_timeout, absorb=absorb)


class KillableWorld:
    """A world, and the installer's clients in it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.killer = Killer()
        self.remote = self._mortal(world.remote)

    def _mortal(self, client: Client) -> Client:
        return Client.over(_Mortal(client._connection, self.killer))

    async def killed(self, step: Callable[[], Awaitable[object]], requests: int, *, after: bool) -> bool:
        """Runs `step` and returns whether it was killed at that request."""
        self.killer.arm(requests, after=after)
        try:
            await step()
        except Killed:
            return True
        finally:
            self.killer.left = -1
        return False

    def restart(self) -> None:
        """Another process knows nothing."""
        self.world.parts.installer.forget(KEY)

    async def until_certificate_gone(self) -> None:
        """Returns when the process has seen that the Secret is deleted."""
        authority = self.world.parts.installer._authority
        await until(lambda: authority.agent("kyma-1-webhook-tls") is None)

    async def objects(self) -> dict[str, Object]:
        """The objects in the cluster, without what differs from one certificate to the next."""
        found = {}
        for resource, namespace, name in identities("kyma-system"):
            obj = await self.world.remote.get(resource, name, namespace)
            if resource is DEPLOYMENTS:
                obj["spec"]["template"]["metadata"]["labels"].pop("operator.kyma-project.io/pod-restart-trigger")
            left_out = ("metadata", "status", "data")
            found[f"{resource.kind} {name}"] = {key: value for key, value in obj.items() if key not in left_out}
        return found


@pytest.fixture
async def killable(tmp_path: Path) -> AsyncIterator[KillableWorld]:
    async with started_world(tmp_path) as world:
        await world.control.create(WATCHERS, watcher())
        made = KillableWorld(world)
        world.remote = made.remote
        async with world.watching(*DIRECT):
            installer = world.parts.installer
            installer._client = made._mortal(installer._client)
            issuer: Any = installer._issuer
            issuer._client = installer._client
            await world.installed()
            yield made


@pytest.mark.parametrize("after", [False, True], ids=["before-the-request", "after-the-answer"])
async def test_an_installation_that_is_killed_at_any_request_ends_the_same(
    killable: KillableWorld, after: bool
) -> None:
    world, wanted = killable.world, await killable.objects()
    kills = 0
    for requests in range(AT_MOST):
        await world.parts.installer.remove(world.remote)
        await world.parts.installer.delete_certificate(KEY)
        killable.restart()
        await killable.until_certificate_gone()
        kills += await killable.killed(world.install, requests, after=after)
        killable.restart()
        await world.until(lambda state: state.reason == "AgentNotReady")
        found = await killable.objects()
        assert found == wanted
        if kills <= requests:
            break
    assert 10 < kills < AT_MOST


@pytest.mark.parametrize("after", [False, True], ids=["before-the-request", "after-the-answer"])
async def test_a_removal_that_is_killed_at_any_request_ends_the_same(killable: KillableWorld, after: bool) -> None:
    world = killable.world

    async def remove() -> None:
        await world.parts.installer.delete_certificate(KEY)
        await world.parts.installer.remove(world.remote)

    kills = 0
    for requests in range(AT_MOST):
        killable.restart()
        await world.until(lambda state: state.reason in ("AgentNotReady", "Installed"))
        kills += await killable.killed(remove, requests, after=after)
        killable.restart()
        await remove()
        for resource, namespace, name in identities("kyma-system"):
            with pytest.raises(NotFound):
                await world.remote.get(resource, name, namespace)
        with pytest.raises(NotFound):
            await world.control.get(SECRETS, "kyma-1-webhook-tls", "istio-system")
        await killable.until_certificate_gone()
        if kills <= requests:
            break
    assert 10 < kills < AT_MOST


async def test_the_killer_reaches_every_request_of_the_test(killable: KillableWorld) -> None:
    assert await killable.killed(lambda: killable.remote.list(DEPLOYMENTS, "kyma-system"), 0, after=False)
