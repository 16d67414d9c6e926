"""A child of `hortus up` that is asked to stop ends, also while it waits for a server that never answers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.waiting import until

from hortus.cli.up.cloud import CLOUD_FILE
from hortus.cli.up.state import StateDirectory
from hortus.cli.up.supervisor import LOAD_FIRST, MODULE
from hortus.kube import yaml

Process = subprocess.Popen[bytes]
PATIENCE = 60.0
"""Seconds for a child to load and to connect, and to end on a machine with much else to do."""


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(PATIENCE)
        yield listening


@pytest.fixture
def state(tmp_path: Path, silent: socket.socket) -> Iterator[StateDirectory]:
    found = StateDirectory(tmp_path / "state")
    found.acquire()
    kubeconfig = yaml.dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "silent", "cluster": {"server": f"http://127.0.0.1:{silent.getsockname()[1]}"}}],
            "users": [{"name": "nobody", "user": {"token": "test"}}],
            "contexts": [{"name": "silent", "context": {"cluster": "silent", "user": "nobody"}}],
            "current-context": "silent",
        }
    )
    kubeconfigs = (found.controllers_kubeconfig, found.garden_kubeconfig, found.simulation_kubeconfig)
    for path in (*kubeconfigs, found.seed_kubeconfig):
        path.write_text(kubeconfig)
        path.chmod(0o600)
    yield found
    found.release()


def end_of_the_supervisor(child: Process) -> None:
    assert child.stdin is not None
    child.stdin.close()


def sigterm(child: Process) -> None:
    child.send_signal(signal.SIGTERM)


ENDS: dict[Callable[[Process], None], tuple[int, ...]] = {
    sigterm: (0,),
    end_of_the_supervisor: (0, -signal.SIGALRM),  # by itself, or on a busy machine after its grace
}


@pytest.mark.parametrize("stop", ENDS)
@pytest.mark.parametrize("name", ["apiserver", "simulation", "controllers"])
def test_a_child_stops_while_it_starts(
    state: StateDirectory, silent: socket.socket, name: str, stop: Callable[[Process], None]
) -> None:
    options = ["--store", f"etcd://127.0.0.1:{silent.getsockname()[1]}"] if name == "apiserver" else []
    command = [*MODULE, "hortus.cli.up.processes", name, "--state-dir", str(state.path), *options]
    with (state.logs / f"{name}.log").open("wb") as log:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log)
    try:
        with silent.accept()[0]:
            stop(child)
            assert child.wait(PATIENCE) in ENDS[stop]
    finally:
        child.kill()
        child.wait()
        assert child.stdin is not None
        child.stdin.close()


async def test_a_held_child_begins_with_a_line_of_its_supervisor(state: StateDirectory, silent: socket.socket) -> None:
    command = [*MODULE, "hortus.cli.up.processes", "simulation", "--state-dir", str(state.path), LOAD_FIRST]
    with (state.logs / "simulation.log").open("wb") as log:
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log)
    try:
        # Its own servers are the last that it makes before it asks others.
        await until((state.path / CLOUD_FILE).exists)
        silent.settimeout(0.5)
        with pytest.raises(TimeoutError):
            silent.accept()
        silent.settimeout(PATIENCE)
        assert child.stdin is not None
        child.stdin.write(b"\n")
        child.stdin.flush()
        with silent.accept()[0]:
            sigterm(child)
            assert child.wait(PATIENCE) == 0
    finally:
        child.kill()
        child.wait()
        assert child.stdin is not None
        child.stdin.close()


@pytest.mark.skipif(not Path("/proc/self/fdinfo").exists(), reason="needs Linux: flags of another process's files")
def test_a_child_hands_the_lock_of_the_state_directory_to_no_process_of_its_own(
    state: StateDirectory, silent: socket.socket
) -> None:
    assert state.lock is not None
    command = [*MODULE, "hortus.cli.up.processes", "controllers", "--state-dir", str(state.path)]
    command += ["--lock", str(state.lock)]
    with (state.logs / "controllers.log").open("wb") as log:
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=log, pass_fds=[state.lock]
        )
    try:
        with silent.accept()[0]:
            shown = Path(f"/proc/{child.pid}/fdinfo/{state.lock}").read_text().split()
            assert int(shown[shown.index("flags:") + 1], 8) & os.O_CLOEXEC
    finally:
        child.kill()
        child.wait()
        assert child.stdin is not None
        child.stdin.close()
