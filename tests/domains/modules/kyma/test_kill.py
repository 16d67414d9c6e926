"""A process that is killed at any of its requests is replaced without a trace: every await of a call is enumerated.

Each attempt has a control plane and a cluster of its own. The first process is killed at one answer, an attempt later
at the next; a second process ends the work. The state then is that of a work that nobody interrupted.
`tests.domains.killing.sampled` says which requests are in which run.
"""

from __future__ import annotations

from functools import partial

from tests.domains.attempts import Attempts
from tests.domains.killing import sampled
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

from hortus.domains.modules.names import GROUP, Annotation
from hortus.domains.modules.types import KYMAS, MANIFESTS, MODULE_RELEASE_METAS, MODULE_TEMPLATES
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer


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


ATTEMPTS = Attempts("kyma", _state, parts=1)


@sampled
async def test_an_installation_survives_a_kill_at_every_await(server: TestServer, reads: int) -> None:
    await ATTEMPTS.assert_no_kill_shows(partial(kyma_world, server), 0, _world, _installed, least=12, reads=reads)


async def _moved(here: KymaWorld) -> object:
    await here.user_edits({"channel": "fast"})
    manifest = await here.manifest("istio", lambda found: found["spec"]["version"] == "1.3.0")
    await here.set_manifest_state(manifest["metadata"]["name"], "Ready")
    return await _shown(here, "1.3.0")


async def _installed_world(here: KymaWorld) -> None:
    await _world(here)
    async with here.controllers():
        await _installed(here)


@sampled
async def test_a_channel_move_survives_a_kill_at_every_await(server: TestServer, reads: int) -> None:
    await ATTEMPTS.assert_no_kill_shows(partial(kyma_world, server), 0, _installed_world, _moved, least=4, reads=reads)


async def _left(here: KymaWorld) -> Object:
    """Both Kymas, and the Manifests, where the module has none any more."""
    kyma = await here.client.get(KYMAS, NAME, HOME)
    async with here.inside() as client:
        remote = await client.get(KYMAS, "default", INSIDE)
    return {
        "manifests": await here.manifests(),
        "finalizers": kyma["metadata"]["finalizers"],
        "remote spec": remote["spec"],
        **{
            name: [one["status"]["state"], conditions(one), modules(one)]
            for name, one in (("kyma", kyma), ("remote", remote))
        },
    }


async def _taken_off(here: KymaWorld) -> object:
    await here.user_edits({"modules": []})
    await here.until_no_manifest("istio")

    def says(found: Object) -> bool:
        return is_ready(found) and not modules(found)

    await here.until(says)
    return await here.until(says, KYMAS, "default", INSIDE, cluster="skr")


@sampled
async def test_a_removal_survives_a_kill_at_every_await(server: TestServer, reads: int) -> None:
    await ATTEMPTS.assert_no_kill_shows(
        partial(kyma_world, server), 0, _installed_world, _taken_off, least=3, reads=reads, state=_left
    )


async def _unmanaged(here: KymaWorld) -> object:
    await here.user_edits({"modules": [{"name": "istio", "managed": False}]})
    if await here.manifests():
        manifest = await here.manifest(
            "istio", lambda found: found["metadata"]["annotations"].get(Annotation.IS_UNMANAGED) == "true"
        )
        # The controller of Manifests deletes it.
        await here.client.delete(MANIFESTS, manifest["metadata"]["name"], HOME)
    await here.until_no_manifest("istio")

    def says(found: Object) -> bool:
        return is_ready(found) and modules(found)["istio"]["state"] == "Unmanaged"

    await here.until(says)
    return await here.until(says, KYMAS, "default", INSIDE, cluster="skr")


@sampled
async def test_an_unmanaged_module_survives_a_kill_at_every_await(server: TestServer, reads: int) -> None:
    await ATTEMPTS.assert_no_kill_shows(
        partial(kyma_world, server), 0, _installed_world, _unmanaged, least=3, reads=reads, state=_left
    )


async def _deleted(here: KymaWorld) -> object:
    await here.delete_kyma()
    return await here.until_gone()


async def _rest(here: KymaWorld) -> Object:
    async with here.inside() as client:
        crds = [one["metadata"]["name"] for one in (await client.list(CRDS)).items]
    return {"manifests": await here.manifests(), "crds": [name for name in crds if name.endswith(GROUP)]}


@sampled
async def test_a_deletion_survives_a_kill_at_every_await(server: TestServer, reads: int) -> None:
    await ATTEMPTS.assert_no_kill_shows(
        partial(kyma_world, server), 0, _installed_world, _deleted, least=20, reads=reads, state=_rest
    )
