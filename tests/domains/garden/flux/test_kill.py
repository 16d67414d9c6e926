"""A controller that is killed at any of its writes is replaced without a trace, in the seed and in the Shoot."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.domains.garden.flux.shoots import TYPE, FluxShoot, flux_shoot, manifests, topic
from tests.domains.garden.flux.test_config import OCI, SYNC, whole, with_
from tests.domains.garden.world import SeedWorld
from tests.domains.killing import MOST_CALLS, Killer, killed_at

from hortus.domains.garden.flux.names import GIT_REPOSITORIES, KUSTOMIZATIONS, OCI_REPOSITORIES, SECRETS
from hortus.kube import Resource
from hortus.kube.objects import Object

FEW = {"components": ["source-controller", "kustomize-controller"]}
BEFORE = whole(flux=FEW, additionalSecretResources=[{"name": "vault", "targetName": "one"}])
AFTER = whole(
    OCI,
    with_(SYNC, metadata__name="other"),
    flux=FEW,
    additionalSecretResources=[{"name": "vault", "targetName": "two"}],
)
SAMPLE = (0, 6, 15)
"""Writes at which `make test` kills; the rest is for `make soak`."""


class Requests:
    """The requests of a controller."""

    def __init__(self) -> None:
        self.on_answer: Callable[..., None] = lambda method: None

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        self.on_answer(method)


async def killed(seed: SeedWorld, folder: Path, writes: int, work: Awaitable[object]) -> None:
    """Run a process for `work` that is killed at a write, and another one end it."""
    own, remote = Requests(), Requests()
    killer = Killer(f"extension-{TYPE}", own, remote, reads=False, remote=True)
    done = asyncio.ensure_future(work)
    made = topic(observer=remote, manifests=str(folder))
    await killed_at(killer, writes, seed.running(made, resources=False, observer=own), done)
    killer.rest()
    async with seed.running(topic(manifests=str(folder)), resources=False):
        await done


async def names(shoot: FluxShoot, resource: Resource) -> list[str]:
    return sorted(one["metadata"]["name"] for one in (await shoot.client.list(resource, "flux-system")).items)


async def left(shoot: FluxShoot) -> dict[str, list[str]]:
    kinds = (GIT_REPOSITORIES, OCI_REPOSITORIES, KUSTOMIZATIONS, SECRETS)
    return {resource.kind: await names(shoot, resource) for resource in kinds}


@pytest.mark.parametrize(
    "writes",
    [
        pytest.param(writes, marks=() if writes in SAMPLE else pytest.mark.soak)
        for writes in range(MOST_CALLS)
        if writes < 40
    ],
)
async def test_a_kill_at_any_write_leaves_nothing_behind(seed: SeedWorld, tmp_path: Path, writes: int) -> None:
    def few(name: str, obj: Object) -> Object | None:
        return obj if name in FEW["components"] and obj["kind"] != "Service" else None

    folder = manifests(tmp_path, few)
    async with flux_shoot(seed) as shoot:
        await shoot.refer("ref-project-vault", {"token": "1"})
        await shoot.extend(BEFORE)
        await killed(seed, folder, writes, bootstrap(shoot))
        found: dict[str, Any] = await shoot.operated(kind="Create")
        assert found["status"]["state"] == {"fluxBootstrapped": True}
        assert await left(shoot) == {
            "GitRepository": ["flux-system"],
            "OCIRepository": [],
            "Kustomization": ["flux-system"],
            "Secret": ["one"],
        }
        await shoot.configure(AFTER)
        await killed(seed, folder, writes, shoot.operated(kind="Reconcile"))
        assert await left(shoot) == {
            "GitRepository": [],
            "OCIRepository": ["flux-system"],
            "Kustomization": ["other"],
            "Secret": ["two"],
        }


async def bootstrap(shoot: FluxShoot) -> None:
    await shoot.run(*FEW["components"])
    await shoot.report("GitRepository")
    await shoot.report("Kustomization")
    await shoot.operated()
