"""A process that is killed at any of its requests is replaced without a trace, also while addons go to Flux or back.

Every await of each work is enumerated: one in eight in `make test-all`, the others in `make soak`. Flux goes on
meanwhile. No object is created again, and none uninstalled.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from tests.domains.attempts import Attempts, one_of
from tests.domains.stacks.addons.test_stages import AFTER, BEFORE, NEXT, ONE, applied, chart
from tests.domains.stacks.addons.world import CONFIG_MAPS, conditions
from tests.domains.stacks.flux.test_handover import by_flux, by_hortus
from tests.domains.stacks.flux.world import FluxWorld, flux_world

from hortus.domains.stacks.addons.applied import CHARTS
from hortus.domains.stacks.flux.objects import REPOSITORIES
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer

Made = Callable[[], AbstractAsyncContextManager[FluxWorld]]


@pytest.fixture
def world(server: TestServer, tmp_path: Path) -> Made:
    @asynccontextmanager
    async def made() -> AsyncIterator[FluxWorld]:
        async with flux_world(server, tmp_path) as there, there.flux.running():
            yield there

    return made


async def _state(there: FluxWorld) -> Object:
    """The objects that users see, without times and identities."""
    addon = await there.here.until(lambda obj: True)
    status = addon["status"]
    inside = await there.here.inside.list(CONFIG_MAPS, "kube-system", labels="clusterstack.x-k8s.io/instance=owned")
    now = await there.identities()
    return {
        "spec": {name: value for name, value in addon["spec"].items() if name != "clusterRef"},
        # A process that was killed has noted fewer charts, and the next upgrade applies them once more.
        "annotations": {name: value for name, value in addon["metadata"]["annotations"].items() if name != CHARTS},
        "status": [status["ready"], status.get("stages"), status.get("resources"), conditions(addon)],
        # The port of the server of charts is one of each attempt.
        "releases": {name: one["spec"] for name, one in (await there.handed()).items()},
        "sources": sorted(await there.handed(REPOSITORIES)),
        "inside": {one["metadata"]["name"]: one.get("data") for one in inside.items},
        "again": [name for name, uid in there.before.items() if now.get(name, uid) != uid],
        "uninstalled": [name for action, name in there.flux.actions if action == "uninstall"],
    }


PARTS = 8
"""An attempt waits for Flux as well. `tests.domains.stacks.addons.test_kill` has each write of the same controller."""
ATTEMPTS = Attempts("clusteraddon", _state, parts=PARTS)


async def _chosen(there: FluxWorld) -> None:
    here = there.here
    here.shelf.staged(ONE, {"cni": chart("cni", "leaves"), "old": chart("old")}, {AFTER: applied("cni", "old")})
    here.shelf.staged(
        NEXT,
        {"cni": chart("cni", "comes", release="next"), "old": chart("old")},
        {BEFORE: [*applied("cni"), {"name": "old", "action": "delete"}]},
        kubernetes="v1.34.1",
    )
    await here.cluster(ONE)
    await here.kubeconfig()
    await there.choose("flux")


async def _by_flux(there: FluxWorld) -> object:
    return await there.here.until(lambda obj: by_flux(obj, ONE))


@one_of(PARTS)
async def test_an_installation_by_flux_survives_a_kill_at_every_await(world: Made, part: int) -> None:
    await ATTEMPTS.assert_no_kill_shows(world, part, _chosen, _by_flux, least=12)


async def _upgrading(there: FluxWorld) -> None:
    await _chosen(there)
    async with there.controllers():
        await _by_flux(there)
    there.before = await there.identities()
    await there.here.move(NEXT, version="v1.34.1")
    await there.here.hook(BEFORE)


async def _upgraded(there: FluxWorld) -> object:
    return await there.here.until(lambda obj: by_flux(obj, NEXT))


@one_of(PARTS)
async def test_an_upgrade_by_flux_survives_a_kill_at_every_await(world: Made, part: int) -> None:
    await ATTEMPTS.assert_no_kill_shows(world, part, _upgrading, _upgraded, least=12)


async def _going(there: FluxWorld) -> None:
    await _chosen(there)
    await there.choose("hortus")
    async with there.controllers():
        await there.here.installed(ONE)
    there.before = await there.identities()
    await there.choose("flux")


@one_of(PARTS)
async def test_a_handover_to_flux_survives_a_kill_at_every_await(world: Made, part: int) -> None:
    await ATTEMPTS.assert_no_kill_shows(world, part, _going, _by_flux, least=12)


async def _coming(there: FluxWorld) -> None:
    await _chosen(there)
    async with there.controllers():
        await _by_flux(there)
    there.before = await there.identities()
    await there.choose("hortus")


async def _by_hortus(there: FluxWorld) -> object:
    return await there.here.until(lambda obj: by_hortus(obj, ONE))


@one_of(PARTS)
async def test_a_way_back_from_flux_survives_a_kill_at_every_await(world: Made, part: int) -> None:
    await ATTEMPTS.assert_no_kill_shows(world, part, _coming, _by_hortus, least=12)
