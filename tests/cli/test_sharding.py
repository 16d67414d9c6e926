"""`hortus run --sharding` and `--replicas`: the flags, and processes that live and die together."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.running import environment, hortus

from hortus.apiserver.clusters import token_kubeconfig
from hortus.cli import sharding
from hortus.engine.flags import FlagError, FlagSet
from hortus.engine.hostflags import HOST_FLAGS
from hortus.engine.hosting import SHARD_GROUP, hosted
from hortus.engine.leases import LEASES
from hortus.engine.shards import GROUP_LABEL
from hortus.kube import Client, yaml
from hortus.testing.apiserver import running_apiserver

NAMESPACE = "default"
PATIENCE = 60.0


def _values(**given: Any) -> dict[str, Any]:
    return {"metrics-bind-address": ":8080", "health-probe-bind-address": "127.0.0.1:8081"} | {
        name.replace("_", "-"): value for name, value in given.items()
    }


@pytest.mark.parametrize(
    ("number", "given", "flags"),
    [
        (0, {}, ["--metrics-bind-address=:8080", "--health-probe-bind-address=127.0.0.1:8081"]),
        (2, {}, ["--metrics-bind-address=:8100", "--health-probe-bind-address=127.0.0.1:8101"]),
        (2, {"metrics_bind_address": "0"}, ["--metrics-bind-address=0", "--health-probe-bind-address=127.0.0.1:8101"]),
        (
            1,
            {"metrics_bind_address": "[::1]:0"},
            ["--metrics-bind-address=[::1]:0", "--health-probe-bind-address=127.0.0.1:8091"],
        ),
    ],
)
def test_replicas_on_one_machine_listen_apart(number: int, given: dict[str, str], flags: list[str]) -> None:
    assert sharding.addresses(_values(**given), number) == flags


async def test_a_lease_that_is_too_short_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(yaml.dump(token_kubeconfig("t", ca=b"", server="http://127.0.0.1:1", name="c")))
    words = [f"--kubeconfig={file}", "--sharding", "--shard-lease-duration=1s", "--leader-election-namespace=default"]
    with pytest.raises(FlagError, match=r"value 1s for flag --shard-lease-duration: must be 3s or more"):
        async with hosted(FlagSet(HOST_FLAGS).parse(words), election="test"):
            pass


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--replicas", "0"), "invalid value 0 for flag --replicas: must be 1 or more"),
        (("--replicas", "2", "--metrics-bind-address", "here"), "invalid value 'here' for flag --metrics-bind-address"),
    ],
)
def test_flags_that_cannot_be_used_end_the_command(words: tuple[str, ...], problem: str) -> None:
    done = hortus("run", *words)
    assert done.returncode == 2
    assert problem in done.stderr


async def test_replicas_share_and_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:
        command = [sys.executable, "-m", "hortus", "run", "--replicas", "2", "--kubeconfig", str(server.kubeconfig)]
        command += ["--gardener-kubeconfig-path", str(server.kubeconfig), "--leader-election-namespace", NAMESPACE]
        command += ["--metrics-bind-address", "0", "--health-probe-bind-address", "0"]
        listed = await client.list(LEASES, NAMESPACE)
        watch = client.watch(
            LEASES, NAMESPACE, resource_version=listed.resource_version, labels=f"{GROUP_LABEL}={SHARD_GROUP}"
        )
        with (tmp_path / "log").open("wb") as log:
            parent = subprocess.Popen(command, stdout=log, stderr=log, env=environment())
        members: set[str] = set()
        try:
            async with asyncio.timeout(PATIENCE):
                async for event in watch:
                    name = event.object["metadata"].get("name", "")
                    if event.type == "DELETED":
                        members.discard(name)
                        if not members:
                            break
                    elif event.type in ("ADDED", "MODIFIED"):
                        members.add(name)
                        if len(members) == 2 and parent.poll() is None:
                            parent.send_signal(signal.SIGKILL)
        except TimeoutError:
            pytest.fail(f"members left: {members}\n{(tmp_path / 'log').read_text()[-3000:]}")
        finally:
            await watch.aclose()
            parent.kill()
            await asyncio.to_thread(parent.wait, PATIENCE)
        assert members == set()
