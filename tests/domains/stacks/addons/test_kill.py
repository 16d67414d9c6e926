"""A process that is killed at any of its requests is replaced without a trace: every await of a run is enumerated.

Each attempt has clusters of its own. The first process is killed at one answer, an attempt later at the next; a second
process ends the work. The state then is that of a work that nobody interrupted.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.domains.stacks.addons.releases import config_map
from tests.domains.stacks.addons.test_stages import AFTER, BEFORE, NEXT, ONE, applied, chart
from tests.domains.stacks.addons.world import CONFIG_MAPS, AddonWorld, addon_world, conditions

from hortus.domains.stacks.addons.applied import CHARTS
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer

MOST_ATTEMPTS = 120
PARTS = 4
parts = pytest.mark.parametrize("part", range(PARTS))
Work = Callable[[AddonWorld], Awaitable[object]]
GATE = {"key": "gate", "apiVersion": "v1", "kind": "ConfigMap", "name": "gate", "namespace": "default"}
OPEN = {"conditions": "gate.data.open == 'yes'", "objects": [GATE], "timeout": "10m"}


class Killer:
    """Ends a worker in the middle of a call: the server has answered, the caller does not know."""

    def __init__(self, here: AddonWorld) -> None:
        self.struck = asyncio.Event()
        self._here = here
        self._left = 0

    def aim(self, answers: int) -> None:
        """Strike at the answer after so many of the controllers."""
        self._left = answers
        self._here.requests.on_answer = self._answered

    def _answered(self, method: str, host: str) -> None:
        task = asyncio.current_task()
        # The branches of a reconcile are tasks of their own, which have no other name.
        if task is None or not task.get_name().startswith(("clusteraddon worker", "clusteraddon spare", "Task-")):
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


async def is_killed(here: AddonWorld, answers: int, work: Work) -> bool:
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


async def enumerate_kills(server: TestServer, folder: Path, part: int, prepare: Work, work: Work) -> None:
    """Kill the work at each of its answers, one attempt for each, and compare how each attempt ends.

    `part` of PARTS takes one answer in so many, so that the parts run at the same time.
    """
    expected = await _attempt(server, folder, prepare, work, answers=None)
    for answers in itertools.count(part, PARTS):
        found = await _attempt(server, folder, prepare, work, answers=answers)
        assert found[0] == expected[0], f"killed at answer {answers}"
        if not found[1]:
            assert answers >= LEAST[work], "too few answers: the killer missed the controller"
            return
        assert answers < MOST_ATTEMPTS


async def _attempt(
    server: TestServer, folder: Path, prepare: Work, work: Work, *, answers: int | None
) -> tuple[Object, bool]:
    """The state at the end, and whether a process was killed on the way."""
    async with addon_world(server, folder) as here:
        await prepare(here)
        killed = answers is not None and await is_killed(here, answers, work)
        async with here.controllers():
            await work(here)
            return await _state(here), killed


async def _state(here: AddonWorld) -> Object:
    """The objects that users see, without times and identities."""
    addon = await here.until(lambda obj: True)
    objects = await here.inside.list(CONFIG_MAPS, "kube-system", labels="clusterstack.x-k8s.io/instance=owned")
    status = addon["status"]
    return {
        "spec": {name: value for name, value in addon["spec"].items() if name != "clusterRef"},
        "annotations": {
            name: value
            for name, value in addon["metadata"]["annotations"].items()
            # A process that was killed has noted less, and the next upgrade applies it once more.
            if name not in ("fleet.hortus.dev/addon-waiting", CHARTS)
        },
        "finalizers": addon["metadata"]["finalizers"],
        "status": [status["ready"], status.get("stages"), status.get("resources"), conditions(addon)],
        "inside": {one["metadata"]["name"]: one.get("data") for one in objects.items},
    }


async def _world(here: AddonWorld) -> None:
    gate = applied("csi", waitForPreCondition=OPEN, waitForPostCondition=OPEN)
    here.shelf.staged(
        ONE,
        {"cni": chart("cni", "leaves"), "csi": chart("csi"), "old": chart("old")},
        {AFTER: [*applied("cni"), *gate, *applied("old")]},
    )
    here.shelf.staged(
        NEXT,
        {"cni": chart("cni", "comes", release="next"), "csi": chart("csi"), "old": chart("old")},
        {BEFORE: [*applied("cni"), *gate, {"name": "old", "action": "delete"}]},
        kubernetes="v1.34.1",
    )
    await here.inside.create(CONFIG_MAPS, config_map("gate", "default", open="yes"))
    await here.cluster(ONE)
    await here.kubeconfig()


async def _installed(here: AddonWorld) -> object:
    return await here.installed(ONE)


@parts
async def test_an_installation_survives_a_kill_at_every_await(server: TestServer, tmp_path: Path, part: int) -> None:
    await enumerate_kills(server, tmp_path, part, _world, _installed)


async def _installed_world(here: AddonWorld) -> None:
    await _world(here)
    async with here.controllers():
        await here.installed(ONE)
    await here.move(NEXT, version="v1.34.1")
    await here.hook(BEFORE)


async def _upgraded(here: AddonWorld) -> object:
    return await here.installed(NEXT)


@parts
async def test_an_upgrade_in_stages_survives_a_kill_at_every_await(
    server: TestServer, tmp_path: Path, part: int
) -> None:
    await enumerate_kills(server, tmp_path, part, _installed_world, _upgraded)


LEAST = {_installed: 20, _upgraded: 20}
"""Answers that the controller gets at least in each work."""
