"""A process that is killed at any of its requests is replaced without a trace: every await of a call is enumerated.

Each attempt has a control plane and a cluster of its own. The first process is killed at one answer, an attempt later
at the next; a second process ends the work. The state then is that of a work that nobody interrupted.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest
from tests.domains.modules.kyma.test_modules import ready_with
from tests.domains.modules.kyma.world import (
    CRDS,
    HOME,
    INSIDE,
    NAME,
    KymaWorld,
    conditions,
    is_ready,
    kyma_world,
    modules,
)

from hortus.domains.modules.kyma import deletion
from hortus.domains.modules.names import GROUP
from hortus.domains.modules.types import KYMAS, MODULE_RELEASE_METAS, MODULE_TEMPLATES
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer

MOST_ATTEMPTS = 150
PARTS = 4
parts = pytest.mark.parametrize("part", range(PARTS))
Work = Callable[[KymaWorld], Awaitable[object]]
State = Callable[[KymaWorld], Awaitable[Object]]


class Killer:
    """Ends a worker in the middle of a call: the server has answered, the caller does not know."""

    def __init__(self, here: KymaWorld) -> None:
        self.struck = asyncio.Event()
        self._here = here
        self._left = 0

    def aim(self, answers: int) -> None:
        """Strike at the answer after so many of the controller of Kymas."""
        self._left = answers
        self._here.requests.on_answer = self._answered

    def _answered(self, method: str, host: str) -> None:
        task = asyncio.current_task()
        # The branches of a reconcile are tasks of their own, which have no other name.
        if task is None or not task.get_name().startswith(("kyma worker", "kyma spare", "Task-")):
            return
        if task is self._here.test_task:
            return
        if self._left:
            self._left -= 1
            return
        self.struck.set()
        # By somebody else's cancellation alone a worker would not end.
        task.cancel()
        raise asyncio.CancelledError


async def is_killed(here: KymaWorld, answers: int, work: Work) -> bool:
    """Run a process that is killed at an answer; False when the work is done before that."""
    killer = Killer(here)
    killer.aim(answers)
    async with here.controllers():
        done = asyncio.ensure_future(work(here))
        struck = asyncio.create_task(killer.struck.wait(), name="struck")
        await asyncio.wait((done, struck), return_when=asyncio.FIRST_COMPLETED)
        finished = done.done()
        for task in (done, struck):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
    here.requests.on_answer = lambda method, host: None
    return not finished


async def assert_no_kill_shows(server: TestServer, part: int, prepare: Work, work: Work, state: State) -> None:
    """Kill the work at each of its answers, one attempt for each, and compare how each attempt ends.

    `part` of PARTS takes one answer in so many, so that the parts run at the same time.
    """
    expected = await _attempt(server, prepare, work, state, answers=None)
    for answers in itertools.count(part, PARTS):
        found = await _attempt(server, prepare, work, state, answers=answers)
        assert found[0] == expected[0], f"killed at answer {answers}"
        if not found[1]:
            assert answers >= LEAST[work], "too few answers: the killer missed the controller"
            return
        assert answers < MOST_ATTEMPTS


async def _attempt(
    server: TestServer, prepare: Work, work: Work, state: State, *, answers: int | None
) -> tuple[Object, bool]:
    """The state at the end, and whether a process was killed on the way."""
    async with kyma_world(server) as here:
        await prepare(here)
        killed = answers is not None and await is_killed(here, answers, work)
        async with here.controllers():
            await work(here)
            return await state(here), killed


async def _world(here: KymaWorld) -> None:
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0", "fast": "1.3.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True}])


async def _installed(here: KymaWorld) -> object:
    await ready_with(here)
    return await _shown(here, "1.2.0")


async def _shown(here: KymaWorld, version: str) -> object:
    """Both Kymas once they show the module Ready in a version."""

    def says(found: Object) -> bool:
        return is_ready(found) and modules(found).get("istio", {}).get("version") == version

    await here.until(says)
    return await here.until(says, KYMAS, "default", INSIDE, cluster="skr")


async def _state(here: KymaWorld) -> Object:
    """The objects that users see, without times and identities."""
    kyma = await here.client.get(KYMAS, NAME, HOME)
    (manifest,) = await here.manifests()
    async with here.inside() as client:
        remote = await client.get(KYMAS, "default", INSIDE)
        catalog = [
            one["metadata"]["name"]
            for kind in (MODULE_TEMPLATES, MODULE_RELEASE_METAS)
            for one in (await client.list(kind)).items
        ]
    metadata = manifest["metadata"]
    return {
        "state": kyma["status"]["state"],
        "channel": kyma["status"]["activeChannel"],
        "modules": modules(kyma)["istio"] | {"manifest": None},
        "conditions": conditions(kyma),
        "finalizers": kyma["metadata"]["finalizers"],
        "manifest": [metadata["name"], metadata["labels"], metadata["annotations"], manifest["spec"]],
        "remote": [remote["spec"], remote["status"]["state"], conditions(remote), remote["metadata"]["labels"]],
        "catalog": catalog,
    }


@parts
async def test_an_installation_survives_a_kill_at_every_await(server: TestServer, part: int) -> None:
    await assert_no_kill_shows(server, part, _world, _installed, _state)


async def _moved(here: KymaWorld) -> object:
    await here.user_edits({"channel": "fast"})
    manifest = await here.manifest("istio", lambda found: found["spec"]["version"] == "1.3.0")
    await here.set_manifest_state(manifest["metadata"]["name"], "Ready")
    return await _shown(here, "1.3.0")


async def _installed_world(here: KymaWorld) -> None:
    await _world(here)
    async with here.controllers():
        await _installed(here)


@parts
async def test_a_channel_move_survives_a_kill_at_every_await(server: TestServer, part: int) -> None:
    await assert_no_kill_shows(server, part, _installed_world, _moved, _state)


async def _deleted(here: KymaWorld) -> object:
    await here.delete_kyma()
    return await here.until(lambda found: not found)


async def _rest(here: KymaWorld) -> Object:
    async with here.inside() as client:
        crds = [one["metadata"]["name"] for one in (await client.list(CRDS)).items]
    return {"manifests": await here.manifests(), "crds": [name for name in crds if name.endswith(GROUP)]}


@parts
async def test_a_deletion_survives_a_kill_at_every_await(
    server: TestServer, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "PAUSE", 0.0)
    await assert_no_kill_shows(server, part, _installed_world, _deleted, _rest)


LEAST = {_installed: 12, _moved: 4, _deleted: 20}
"""Answers that the controller gets at least in each work."""
