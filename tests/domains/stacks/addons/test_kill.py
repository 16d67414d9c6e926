"""A process that is killed at any of its requests is replaced without a trace: every await of a run is enumerated.

Each attempt has clusters of its own. The first process is killed at one answer, an attempt later at the next; a second
process ends the work. The state then is that of a work that nobody interrupted.
`tests.domains.killing.sampled` says which requests are in which run.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from tests.domains.attempts import Attempts
from tests.domains.killing import sampled
from tests.domains.stacks.addons.releases import config_map
from tests.domains.stacks.addons.test_stages import AFTER, BEFORE, NEXT, ONE, applied, chart
from tests.domains.stacks.addons.world import CONFIG_MAPS, AddonWorld, addon_world, conditions

from hortus.domains.stacks.addons.applied import CHARTS
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer

GATE = {"key": "gate", "apiVersion": "v1", "kind": "ConfigMap", "name": "gate", "namespace": "default"}
OPEN = {"conditions": "gate.data.open == 'yes'", "objects": [GATE], "timeout": "10m"}


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


ATTEMPTS = Attempts("clusteraddon", _state, parts=1)


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


@sampled
async def test_an_installation_survives_a_kill_at_every_await(server: TestServer, tmp_path: Path, reads: int) -> None:
    await ATTEMPTS.assert_no_kill_shows(
        partial(addon_world, server, tmp_path), 0, _world, _installed, least=20, reads=reads
    )


async def _installed_world(here: AddonWorld) -> None:
    await _world(here)
    async with here.controllers():
        await here.installed(ONE)
    await here.move(NEXT, version="v1.34.1")
    await here.hook(BEFORE)


async def _upgraded(here: AddonWorld) -> object:
    return await here.installed(NEXT)


@sampled
async def test_an_upgrade_in_stages_survives_a_kill_at_every_await(
    server: TestServer, tmp_path: Path, reads: int
) -> None:
    world = partial(addon_world, server, tmp_path)
    await ATTEMPTS.assert_no_kill_shows(world, 0, _installed_world, _upgraded, least=20, reads=reads)
