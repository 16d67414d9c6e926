"""`hortus up` on a disk that is full: its processes are kept, and room can be made through the API."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.scenarios.running import PATIENCE, UP, Up, environment, until

from hortus.apiserver.store._reserve import RESERVE_BYTES
from hortus.kube import Client, Resource
from hortus.kube.errors import KubeError

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
MIB = 1024 * 1024


def unshare() -> list[str]:
    """The command that gives a program file systems of its own."""
    command = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    if not shutil.which("unshare") or subprocess.run([*command, "true"], capture_output=True).returncode:
        pytest.skip("no small disk can be made here (unshare); tests/apiserver/store/test_full_disk.py injects one")
    return command


@contextmanager
def on_a_small_disk(folder: Path) -> Iterator[Up]:
    """A fleet whose state directory is on a disk of 128 MiB that only it sees."""
    folder.mkdir(mode=0o700)
    script = 'mount -t tmpfs -o size=128m,mode=0700 none "$0" && exec "$@"'
    words = ["up", "--state-dir", str(folder / "state"), "--port", "0", "--clusters", "1"]
    command = [*unshare(), "sh", "-c", script, str(folder), sys.executable, "-m", "hortus", *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment())
    inside = Path(f"/proc/{process.pid}/root{folder}")
    running = Up(inside / "state", process)
    try:
        running.expect(UP)
        yield running
    finally:
        running.end()
        assert process.stdout is not None
        process.stdout.close()


def fill(fleet: Up, folder: Path) -> Path:
    """Leaves nothing free but the API server's reserve: where that is released, deletions need its space.

    The API server stands still meanwhile. Otherwise it finds the disk full too, releases the reserve, and the ballast
    takes that as well.
    """
    ballast = folder / "ballast"
    with standing_still(running(fleet, "apiserver")), ballast.open("wb", buffering=0) as file:
        if (fleet.state / "state.db.reserve").stat().st_size == RESERVE_BYTES:
            with pytest.raises(OSError, match="No space left"):
                while True:
                    file.write(bytes(MIB))
    return ballast


@contextmanager
def standing_still(pid: int) -> Iterator[None]:
    """Stops all threads of a process for a while."""
    os.kill(pid, signal.SIGSTOP)
    try:
        until(lambda: threads(pid) == {"T"}, f"process {pid} stands still")
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def threads(pid: int) -> set[str]:
    """The states of the threads of a process."""
    stats = Path(f"/proc/{pid}/task").glob("*/stat")
    try:
        return {one.read_text().rpartition(")")[2].split()[0] for one in stats}
    except (FileNotFoundError, ProcessLookupError):
        return {"one has just ended"}


async def write_until_refused(client: Client) -> int:
    """The number of objects of 100 kB that the disk had space for; the log of a full disk continues for a while."""
    for number in range(2000):
        obj = {"metadata": {"name": f"m{number}", "namespace": "full"}, "data": {"x": "z" * 100_000}}
        try:
            await client.create(CONFIGMAPS, obj)
        except KubeError as refused:
            assert "only deletions are taken" in str(refused) or "full" in str(refused)
            return number
    raise AssertionError("the disk did not become full")


def test_processes_are_kept_and_objects_deleted_while_the_disk_is_full(tmp_path: Path) -> None:
    with on_a_small_disk(tmp_path / "disk") as fleet:

        async def use_up() -> int:
            async with Client.from_kubeconfig(fleet.kubeconfig) as client:
                await client.create(NAMESPACES, {"metadata": {"name": "full"}})
                return await write_until_refused(client)

        ballast = fill(fleet, fleet.state.parent)
        count = asyncio.run(use_up())
        fill(fleet, fleet.state)  # what the log has given back in the meantime
        for name in ("controllers", "apiserver"):
            killed = fleet.output.count("signal SIGKILL")
            os.kill(running(fleet, name), signal.SIGKILL)
            fleet.expect("signal SIGKILL", times=killed + 1)
        fleet.expect("API server        ", times=3)

        async def make_room() -> None:
            async with Client.from_kubeconfig(fleet.kubeconfig) as client:
                async with asyncio.timeout(PATIENCE):
                    while await left(client):
                        await delete(client)

        async def left(client: Client) -> bool:
            try:
                return bool((await client.list(CONFIGMAPS, "full", metadata_only=True)).items)
            except KubeError:
                return True  # the API server is being started

        async def delete(client: Client) -> None:
            for number in range(count):
                try:
                    await client.delete(CONFIGMAPS, f"m{number}", "full")
                except KubeError:
                    continue

        asyncio.run(make_room())
        (fleet.state / "ballast").unlink()
        ballast.unlink()
        until(lambda: fleet.status().healthy, "health")
        assert set(fleet.processes()) == {"apiserver", "simulation", "controllers", "dashboard"}

        async def write_again() -> None:
            async with Client.from_kubeconfig(fleet.kubeconfig) as client:
                await client.create(CONFIGMAPS, {"metadata": {"name": "again", "namespace": "full"}})

        asyncio.run(write_again())


def running(fleet: Up, name: str) -> int:
    """The process id of a child, from the process table: run.json may not have been written."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode().split("\0")
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == fleet.process.pid and name in words and "hortus.cli.up.processes" in words:
            return int(folder.name)
    raise AssertionError(f"no process {name}")
