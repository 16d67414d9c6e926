"""Flux's own kustomize-controller in a Shoot to which the extension has given its source and Kustomization.

The test plays source-controller: it serves the artifact and reports it, since a module of that program cannot be
fetched from every module proxy.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from tests.domains.garden.flux.shoots import FluxShoot, flux_shoot, topic
from tests.domains.garden.flux.test_config import SYNC, whole, with_
from tests.domains.garden.world import SeedWorld, install
from tests.oracles.programs import built_program, why_not
from tests.render.serving import Site, serving
from tests.waiting import until

from hortus.domains.garden.flux.names import CONFIG_MAPS, GIT_REPOSITORIES, KUSTOMIZATIONS
from hortus.kube import Resource, yaml
from hortus.kube.objects import Object
from hortus.render.archive import Tree, pack_tgz
from hortus.render.artifacts import digest_of
from hortus.simulation.garden.seed.definitions import definition

pytestmark = pytest.mark.soak

PROGRAM = "kustomizecontroller"
BUCKETS = Resource("source.toolkit.fluxcd.io", "v1", "buckets", "Bucket")
"""A kind that the program watches, and that the sample manifests do not define."""


class Artifacts:
    """Serves one state of a repository at a time."""

    def __init__(self) -> None:
        self.data = b""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=self.data)


@asynccontextmanager
async def kustomize_controller(shoot: FluxShoot, folder: Path) -> AsyncIterator[Path]:
    """Run the program against the cluster of a Shoot; gives its log."""
    binary = built_program(PROGRAM)
    assert binary is not None
    log = folder / "kustomize-controller.log"
    arguments = (
        *("--metrics-addr=0", "--health-addr=127.0.0.1:0", "--log-level=debug", "--watch-all-namespaces=true"),
        *("--enable-leader-election=false", "--http-retry=2", "--interval-jitter-percentage=0"),
    )
    environment = {
        **os.environ,
        "KUBECONFIG": str(shoot.seed.server.kubeconfig_for(shoot.id)),
        "RUNTIME_NAMESPACE": "flux-system",
        "TMPDIR": str(folder),
    }
    with log.open("wb") as written:
        process = await asyncio.create_subprocess_exec(
            binary, *arguments, env=environment, stdout=written, stderr=written
        )
        try:
            yield log
        finally:
            process.kill()
            await process.wait()


async def publish(shoot: FluxShoot, artifacts: Artifacts, site: Site, value: str) -> str:
    """Report a state of the repository as source-controller does; returns its revision."""
    made: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "default"}}
    content = yaml.dump({**made, "data": {"value": value, "shoot": "${SHOOT_INFO_NAME}"}}).encode()
    artifacts.data = pack_tgz(Tree({"clusters/production/web.yaml": content}))
    source = await shoot.there(GIT_REPOSITORIES, "flux-system")
    revision = f"main@sha1:{digest_of(value.encode()).removeprefix('sha256:')[:40]}"
    artifact = {
        "path": "gitrepository/flux-system/flux-system/web.tar.gz",
        "url": f"http://{site.host}/web.tar.gz",
        "revision": revision,
        "digest": digest_of(artifacts.data),
        "lastUpdateTime": "2026-01-01T00:00:00Z",
        "size": len(artifacts.data),
    }
    ready = {"type": "Ready", "status": "True", "reason": "Succeeded", "message": f"stored artifact for {revision}"}
    status = {
        "observedGeneration": source["metadata"]["generation"],
        "artifact": artifact,
        "conditions": [{**ready, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
    }
    await shoot.client.patch(GIT_REPOSITORIES, "flux-system", {"status": status}, "flux-system", subresource="status")
    return revision


@pytest.mark.skipif(built_program(PROGRAM) is None, reason=why_not(PROGRAM))
async def test_flux_applies_what_the_extension_has_configured(seed: SeedWorld, tmp_path: Path) -> None:
    substitute = {"substituteFrom": [{"kind": "ConfigMap", "name": "shoot-info"}]}
    sync = with_(SYNC, spec__prune=True, spec__postBuild=substitute)
    artifacts = Artifacts()
    async with serving(artifacts.handle) as site, flux_shoot(seed) as shoot, seed.running(topic()):
        await shoot.extend(whole(sync=sync))
        await install(shoot.client, [definition(BUCKETS)])
        await shoot.run()
        await publish(shoot, artifacts, site, "1")
        async with kustomize_controller(shoot, tmp_path):
            await shoot.operated(kind="Create")
            await shoot.condition("FluxKustomizationReady", "True")
            assert (await shoot.there(CONFIG_MAPS, "web", "default"))["data"] == {"value": "1", "shoot": "foo"}
            revision = await publish(shoot, artifacts, site, "2")

            async def follows() -> bool:
                return (await shoot.there(CONFIG_MAPS, "web", "default"))["data"]["value"] == "2"

            await until(follows)

            async def reported() -> bool:
                found = await shoot.condition("FluxKustomizationReady", "True")
                return revision in found["message"]

            await until(reported)
            await shoot.configure(whole(sync=with_(sync, spec__path="clusters/none")))
            failed = await shoot.condition("FluxKustomizationReady", "False")
            assert "clusters/none" in failed["message"]
            moved = with_(sync, metadata__name="other")
            await shoot.configure(whole(sync=moved))
            await shoot.gone(KUSTOMIZATIONS, "flux-system")

            async def moved_on() -> bool:
                found = await shoot.condition("FluxKustomizationReady", "True")
                return "flux-system/other" in found["message"]

            await until(moved_on)
            assert await shoot.get(CONFIG_MAPS, "web", "default") is not None
