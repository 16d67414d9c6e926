"""Controllers that are killed after any of their writes leave nothing that the next ones do not put in order."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.domains.inventory.test_profiles import sources
from tests.domains.inventory.world import FLEET, HOME, InventoryWorld, condition, is_joined, owns_sources, properties
from tests.scenarios.running import environment

from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.domains.inventory.types import CLUSTER_PROFILES, ProfileLabel, Property
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube.objects import Object

TWINS, RUNTIMES_MADE = 4, 12


async def _killed_after(here: InventoryWorld, writes: int) -> None:
    """Run controllers until they have made this many writes, or rest."""
    done = asyncio.Event()
    async with here.controllers():
        here.requests.on_write = lambda: done.set() if len(here.requests.writes) >= writes else None
        try:
            await asyncio.wait_for(done.wait(), 1.5)
        except TimeoutError:
            return


@pytest.mark.parametrize("writes", [1, 2, 3, 4])
async def test_killed_while_sources_of_one_cluster_are_joined(here: InventoryWorld, writes: int) -> None:
    await here.workload("a")
    await here.secret("alpha", "a")
    await here.secret("beta", "a")
    await _killed_after(here, writes)
    await here.shoot("rt-1")
    await here.runtime("blue", "rt-1")
    await here.gardener_cluster("rt-1", "a")
    for _ in range(3):
        await _killed_after(here, writes)
    async with here.controllers():
        profile = await here.profile(
            "rt-1", lambda found: is_joined(found) and len(sources(found)) == 4 and Property.NODES in properties(found)
        )
        assert {one.partition("@")[0] for one in sources(profile)} == {
            f"Runtime/{HOME}/blue",
            f"GardenerCluster/{HOME}/rt-1",
            f"Secret/{HOME}/alpha",
            f"Secret/{HOME}/beta",
        }
        for name in ("alpha", "beta"):
            await here.no_profile(name)
    await here.client.delete(RUNTIMES, "blue", HOME)
    await here.client.delete(GARDENER_CLUSTERS, "rt-1", HOME)
    await _killed_after(here, 1)
    for name in ("alpha", "beta"):
        await here.client.delete(SECRETS, name, HOME)
    async with here.controllers():
        await here.no_profile("rt-1")
        assert await here.names() == []


async def test_kill_9_of_hortus_run_leaves_one_profile_for_each_cluster(here: InventoryWorld, tmp_path: Path) -> None:
    """Each process ends as soon as it was seen to have written so many profiles, in the middle of the others."""
    for number in range(TWINS):
        await here.workload(f"w{number}")
        for name in (f"first-{number}", f"second-{number}"):
            await here.secret(name, f"w{number}")
    for number in range(RUNTIMES_MADE):
        await here.runtime(f"blue-{number}", f"rt-{number}")
    seen = ProfileLog()
    following = asyncio.create_task(seen.follow(here))
    for writes in (1, 3, 9):
        async with hortus_run(here, tmp_path):
            await seen.until_more(writes)
    async with hortus_run(here, tmp_path):
        await seen.until(lambda: seen.whole == len(seen.profiles) == TWINS + RUNTIMES_MADE)
    assert {name.partition("-")[0] for name in seen.deleted} <= {"first", "second"}, "only twins are ever deleted"
    for number in range(TWINS):
        [profile] = [one for one in seen.profiles.values() if _origins(one) & _twins(number)]
        assert _origins(profile) == _twins(number)
    versions = {name: one["metadata"]["resourceVersion"] for name, one in seen.profiles.items()}
    async with hortus_run(here, tmp_path):
        await here.secret("mark", "w0")
        await seen.until(lambda: any(f"Secret/{HOME}/mark" in _origins(one) for one in seen.profiles.values()))
    following.cancel()
    changed = [name for name, one in seen.profiles.items() if one["metadata"]["resourceVersion"] != versions.get(name)]
    assert len(changed) == 1, "another process writes the profile of the new source and no other"


class ProfileLog:
    """The profiles as a watch shows them."""

    def __init__(self) -> None:
        self.profiles: dict[str, Object] = {}
        self.deleted: list[str] = []
        self._events = 0
        self._news = asyncio.Condition()

    async def follow(self, here: InventoryWorld) -> None:
        async with here.client.watch(CLUSTER_PROFILES, FLEET, initial_events=True) as events:
            async for event in events:
                if event.type == "BOOKMARK":
                    continue
                name = event.object["metadata"]["name"]
                if event.type == "DELETED":
                    self.profiles.pop(name, None)
                    self.deleted.append(name)
                else:
                    self.profiles[name] = event.object
                async with self._news:
                    self._events += 1
                    self._news.notify_all()

    async def until(self, holds: Callable[[], object]) -> None:
        async with asyncio.timeout(90), self._news:
            await self._news.wait_for(holds)

    async def until_more(self, events: int) -> None:
        """Return after so many further events, or when all profiles are whole."""
        last = self._events + events
        await self.until(lambda: self._events >= last or self.whole == TWINS + RUNTIMES_MADE)

    @property
    def whole(self) -> int:
        """The number of profiles that have all that they will ever have."""
        return sum(map(_is_whole, self.profiles.values()))


@asynccontextmanager
async def hortus_run(here: InventoryWorld, folder: Path) -> AsyncIterator[None]:
    """The controllers as in production, killed at the end."""
    path = str(here.server.kubeconfig_for(here.name))
    command = [sys.executable, "-m", "hortus", "run", "--inventory", "--allow-local-clusters"]
    command += ["--kubeconfig", path, "--gardener-kubeconfig-path", path, "--gardener-project-name", "test"]
    command += ["--watch-namespace", HOME, "--metrics-bind-address", "0", "--health-probe-bind-address", "0"]
    with (folder / "log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(*command, stdout=log, stderr=log, env=environment())
    try:
        yield
        assert process.returncode is None, (folder / "log").read_text()[-3000:]
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGKILL)
        await process.wait()


def _origins(profile: Object) -> set[str]:
    return {one.partition("@")[0] for one in sources(profile)}


def _twins(number: int) -> set[str]:
    return {f"Secret/{HOME}/first-{number}", f"Secret/{HOME}/second-{number}"}


def _is_whole(profile: Object) -> bool:
    if not owns_sources(profile):
        return False  # the sources were handed over, and are not applied yet
    if not _origins(profile) <= {one for number in range(TWINS) for one in _twins(number)}:
        return condition(profile, "CredentialsFresh") == ("Unknown", "NoKubeconfig")
    status, conditions = profile.get("status") or {}, ("Joined", "ControlPlaneHealthy", "CredentialsFresh")
    return (
        len(sources(profile)) == 2
        and all(condition(profile, kind)[0] == "True" for kind in conditions)
        and {Property.NODES, Property.UID} <= properties(profile).keys()
        and {"version", "accessProviders"} <= status.keys()
        and ProfileLabel.KUBERNETES in profile["metadata"]["labels"]
    )
