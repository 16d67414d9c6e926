"""A command that dies after any of its calls is continued by the same command, to the same end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from tests.domains.killing import MOST_CALLS
from tests.domains.modules.forms.world import CONFIG_MAPS, HOME, OneCluster, one_cluster
from tests.domains.modules.registry.shelves import Shelf
from tests.scenarios.running import environment, typed

from hortus.domains.modules.direct.cluster import DirectCluster
from hortus.domains.modules.direct.installing import DirectInstaller
from hortus.domains.modules.direct.packages import ModulePackage
from hortus.kube import Client
from hortus.testing.apiserver import TestServer


def package(version: str, *names: str) -> ModulePackage:
    objects = "".join(
        f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: kyma-system}}\n" for name in names
    )
    return ModulePackage(name="pair", version=version, origin="a test", digest="", manifest=objects.encode())


class Death:
    """Ends the task that runs a command as soon as that has made so many calls."""

    def __init__(self) -> None:
        self.left = -1
        self.task: asyncio.Task[Any] | None = None
        self.struck = False

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        if self.left == 0 and self.task is not None:
            self.struck = True
            self.task.cancel()
        self.left -= 1


async def install(client: Client, version: str, *names: str, upgrade: bool = False) -> None:
    installer = DirectInstaller(DirectCluster(client), say=lambda text: None, seconds=30.0)
    wanted = package(version, *names)
    stored = await installer.check(wanted, upgrade=upgrade)
    await installer.plan(wanted, stored)
    await installer.install(wanted, stored, default_resource=True, wait=True)


async def upgrade(client: Client) -> None:
    await install(client, "1.1.0", "two", "three", upgrade=True)


async def remove(client: Client) -> None:
    cluster = DirectCluster(client)
    stored = await cluster.records.get("pair")
    if stored is not None:
        await cluster.open()
        await DirectInstaller(cluster, say=lambda text: None, seconds=30.0).remove(stored)


async def first(client: Client) -> None:
    await install(client, "1.0.0", "one", "two")


async def left(here: OneCluster) -> list[str]:
    listed = (await here.client.list(CONFIG_MAPS, HOME)).items
    names = sorted(one["metadata"]["name"] for one in listed)
    records = [one["data"]["record"] for one in listed if "record" in (one.get("data") or {})]
    return names + records


@pytest.mark.parametrize("work", [first, upgrade, remove])
async def test_killed_after_any_call_the_same_command_reaches_the_same_end(
    server: TestServer, shelf: Shelf, work: Callable[[Client], Awaitable[None]]
) -> None:
    expected: list[str] | None = None
    for calls in range(-1, MOST_CALLS):
        async with one_cluster(server, shelf) as here:
            if work is not first:
                await first(here.client)
            death = Death()
            async with Client(here.client.access, observer=death) as client:
                death.task = asyncio.ensure_future(work(client))
                death.left = calls
                await asyncio.gather(death.task, return_exceptions=True)
            if death.struck or calls < 0:
                await work(here.client)
            end = await left(here)
            expected = end if expected is None else expected
            assert end == expected, f"killed after call {calls + 1}"
            if calls >= 0 and not death.struck:
                assert calls > 4, "the enumeration ended before anything happened"
                return
    raise AssertionError(f"not over after {MOST_CALLS} calls")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_process_that_is_killed_while_it_waits_is_continued(
    here: OneCluster, tmp_path: Path, number: signal.Signals
) -> None:
    file = tmp_path / "manifest.yaml"
    file.write_text(
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: slow, namespace: kyma-system}\nspec:\n"
        "  accessModes: [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n"
    )
    words = ("module", "install", str(file), "--name=slow", "--module-version=1.0.0")
    command = [sys.executable, "-m", "hortus", "--kubeconfig", str(here.kubeconfig), *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("waiting until all objects are ready"):
                os.kill(process.pid, number)
        assert process.wait(60) == (130 if number is signal.SIGINT else -signal.SIGKILL)
    shown = typed("--kubeconfig", str(here.kubeconfig), "module", "status").stdout
    assert shown.splitlines()[1].split()[:3] == ["slow", "1.0.0", "Processing"]
    again = typed("--kubeconfig", str(here.kubeconfig), *words, "--no-wait")
    assert "module slow 1.0.0 is applied: 1 unchanged" in again.stdout, again.stderr
