"""One command grows a fleet: `hortus up` from the first line to kill -9, seen from outside."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest
from tests.scenarios.running import PATIENCE, UP, Up, hortus, is_alive, kubectl, typed, until, up

from hortus.kube import Client, Resource
from hortus.kube.errors import KubeError, Unauthorized

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
FAST: dict[str, Any] = {
    "simulation": {
        "schedule_delay": 0,
        "create_duration": 0.3,
        "delete_duration": 0.2,
        "progress_period": 0.1,
        "care_period": 0.1,
    }
}


SHORT_LIVED = {"simulation": {**FAST["simulation"], "kubeconfig_maximum": 12}}
"""A garden that grants twelve seconds whatever is asked for, so that a test sees a kubeconfig end."""
SHOOT = """
apiVersion: core.gardener.cloud/v1beta1
kind: Shoot
metadata: {name: later, namespace: garden-demo}
spec:
  region: eu-central-1
  cloudProfile: {name: aws}
  credentialsBindingName: demo-binding
  kubernetes: {version: 1.34.1}
  networking: {type: calico, nodes: 10.250.0.0/16}
  provider:
    type: aws
    workers: [{name: w, machine: {type: m6i.large}, minimum: 1, maximum: 1, zones: [eu-central-1a]}]
"""
CLUSTER = """
apiVersion: infrastructuremanager.kyma-project.io/v1
kind: GardenerCluster
metadata:
  name: later
  namespace: kcp-system
  labels: {kyma-project.io/shoot-name: later, kyma-project.io/runtime-id: later}
spec:
  shoot: {name: later}
  kubeconfig: {secret: {name: kubeconfig-later, namespace: kcp-system, key: config}}
"""


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with up(tmp_path_factory.mktemp("fleet") / "state", "--clusters", "1", config=SHORT_LIVED) as running:
        yield running


def test_it_says_where_everything_is_and_what_to_try(fleet: Up) -> None:
    output = fleet.expect(UP)
    server = until(lambda: fleet.status().server, "the server's address")
    for text in (f"at {server}", f"export KUBECONFIG={fleet.kubeconfig}", str(fleet.garden), "hortus tree demo-1"):
        assert text in output


def test_a_cluster_to_begin_with_becomes_ready_and_answers(fleet: Up) -> None:
    wait_for(fleet, "demo-1", "Ready")

    def printed() -> bytes:
        answer = typed("kubeconfig", "demo-1", "--state-dir", str(fleet.state))
        assert answer.returncode == 0, answer.stderr
        return answer.stdout.encode()

    def nodes() -> list[str]:
        path = answers_to(printed, fleet.state / "demo-1.yaml")
        return kubectl(path, "get", "nodes", "--no-headers").stdout.split()

    name, state, *_ = until(nodes, "nodes")
    assert (name.startswith("shoot--demo--demo-1-cpu-worker-0-z1-"), state) == (True, "Ready")


def answers_to(kubeconfig: Callable[[], bytes], path: Path) -> Path:
    """The file of a kubeconfig that its cluster has taken just now.

    On a busy machine one may end between the moment in which it is read and the call of kubectl: then its successor is
    there.
    """

    def taken() -> bool:
        path.write_bytes(kubeconfig())
        return "kube-system" in kubectl(path, "get", "ns").stdout

    until(taken, "a kubeconfig that is taken")
    return path


def test_a_cluster_of_ones_own_waits_for_its_shoot_and_its_old_kubeconfigs_end(fleet: Up) -> None:
    assert kubectl(fleet.kubeconfig, "apply", "-f", "-", stdin=CLUSTER).returncode == 0
    wait_for(fleet, "later", "Error")
    shown = kubectl(fleet.kubeconfig, "get", "gardenercluster", "-n", "kcp-system", "later", "-o", "yaml").stdout
    assert "reason: FailedToGetKubeconfig" in shown
    assert kubectl(fleet.garden, "apply", "-f", "-", stdin=SHOOT).returncode == 0
    wait_for(fleet, "later", "Ready")
    old = answers_to(lambda: kubeconfig_of(fleet, "later"), fleet.state / "old.yaml")
    refused = asyncio.run(refusal(old))
    assert "Unauthorized" in refused
    assert "Unauthorized" in kubectl(old, "get", "ns").stderr
    new = answers_to(lambda: kubeconfig_of(fleet, "later"), fleet.state / "new.yaml")
    assert new.read_bytes() != old.read_bytes()


async def refusal(kubeconfig: Path) -> str:
    """The cluster's answer once it refuses this kubeconfig."""
    namespaces = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
    async with Client.from_kubeconfig(kubeconfig) as client, asyncio.timeout(60):
        while True:
            try:
                await client.list(namespaces)
            except Unauthorized as refused:
                return str(refused)


def kubeconfig_of(fleet: Up, name: str) -> bytes:
    return base64.b64decode(secret(fleet, f"kubeconfig-{name}")["data"]["config"])


def test_tree_and_rotate_work_on_a_live_fleet(fleet: Up) -> None:
    wait_for(fleet, "demo-1", "Ready")
    before = secret(fleet, "kubeconfig-demo-1")
    rotated = typed("rotate", "demo-1", "--state-dir", str(fleet.state))
    assert rotated.returncode == 0, rotated.stderr
    assert "gardenercluster/demo-1 rotated in" in rotated.stdout
    assert secret(fleet, "kubeconfig-demo-1")["data"] != before["data"]
    tree = typed("tree", "demo-1", "--state-dir", str(fleet.state))
    assert tree.returncode == 0
    assert "✓ Cluster demo-1  answers to this kubeconfig" in tree.stdout


def test_status_reports_to_people_to_machines_and_by_its_exit_code(fleet: Up, tmp_path: Path) -> None:
    wait_for(fleet, "demo-1", "Ready")
    done = typed("status", "--state-dir", str(fleet.state), "-o", "json")
    assert done.returncode == 0
    answer = orjson.loads(done.stdout)
    assert answer["running"] and answer["healthy"] and answer["objects"]["GardenerCluster"].get("Ready")
    assert set(answer["processes"]) == {"apiserver", "simulation", "controllers", "dashboard"}
    by_root_option = typed("--state-dir", str(fleet.state), "status")
    assert by_root_option.returncode == 0
    assert "good" in by_root_option.stdout
    assert typed("status", "--state-dir", str(tmp_path)).returncode == 3


def test_the_dashboard_shows_the_health_of_the_controllers(fleet: Up) -> None:
    opened = hortus("ui", "--no-browser", "--state-dir", str(fleet.state))
    assert opened.returncode == 0, opened.stderr
    entry = urlsplit(opened.stdout.strip())
    host = {"Host": entry.netloc}  # browsers resolve the name to loopback, systems need not
    with closing(HTTPConnection("127.0.0.1", entry.port, timeout=PATIENCE)) as connection:
        connection.request("GET", f"{entry.path}?{entry.query}", headers=host)
        entered = connection.getresponse()
        cookie = (entered.getheader("Set-Cookie") or "").partition(";")[0]
        assert (entered.status, entered.read()) == (303, b"")
        connection.request("GET", "/health?output=json", headers={**host, "Cookie": cookie})
        document = orjson.loads(connection.getresponse().read())
    assert document["notes"] == []
    name, mark, *_ = document["blocks"][0]["rows"][0]
    assert (name, mark["text"]) == ("controllers", "answers")


def test_files_with_credentials_are_for_their_owner_alone(fleet: Up) -> None:
    assert stat.S_IMODE(fleet.state.stat().st_mode) == 0o700
    readable = [
        path.relative_to(fleet.state)
        for path in fleet.state.rglob("*")
        if path.is_file() and stat.S_IMODE(path.stat().st_mode) & 0o077 and "kubectl-cache" not in path.parts
    ]
    assert [path for path in readable if path.name not in ("demo-1.yaml", "old.yaml", "new.yaml")] == []


def test_a_second_run_on_the_same_state_names_the_process_that_uses_it(fleet: Up) -> None:
    second = typed("up", "--state-dir", str(fleet.state), "--port", "0")
    assert second.returncode == 1
    assert f"Hortus already runs on {fleet.state} (process {fleet.process.pid}, https://127.0.0.1:" in second.stderr
    assert f"`hortus down --state-dir {fleet.state}`" in second.stderr and "Traceback" not in second.stderr
    detached = hortus("up", "-d", "--state-dir", str(fleet.state), "--port", "0")
    assert detached.returncode == 1
    assert "already runs" in detached.stdout + detached.stderr


def test_a_taken_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        answer = typed("up", "--state-dir", str(tmp_path / "s"), "--port", port)
    assert answer.returncode == 1
    assert f"port {port} on 127.0.0.1 is taken by another program" in answer.stderr
    assert "--port 0" in answer.stderr


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"format": "99\n"}, "is of format '99', this Hortus reads format 1"),
        ({"state.db": ""}, "holds a database but no format file"),
    ],
)
def test_state_of_another_version_is_left_alone(tmp_path: Path, files: dict[str, str], message: str) -> None:
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    answer = typed("up", "--state-dir", str(tmp_path), "--port", "0")
    assert answer.returncode == 1
    assert message in answer.stderr
    assert "--state-dir DIR" in answer.stderr
    assert {name: (tmp_path / name).read_text() for name in files} == files


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("simulation: {tme_factor: 2}\n", "simulation: there is no setting tme_factor"),
        ("controllers: {minimal-rotation-tme: 2}\n", "minimal-rotation-tme"),
    ],
)
def test_a_configuration_that_does_not_fit_ends_it_with_the_place(tmp_path: Path, config: str, message: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(config)
    answer = hortus("up", "--state-dir", str(tmp_path / "s"), "--port", "0", "--config", str(path), "--ephemeral")
    assert answer.returncode == 1, answer.stdout
    assert message in answer.stderr
    assert "Traceback" not in answer.stdout + answer.stderr


def test_detached_and_ephemeral_it_is_gone_after_down(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    began = hortus("up", "-d", "--ephemeral", "--clusters", "0", "--port", "0", "--state-dir", state)
    assert began.returncode == 0, began.stdout + began.stderr
    assert "in memory: gone when it stops" in began.stdout
    assert kubectl(tmp_path / "state" / "kubeconfig", "create", "configmap", "gone").returncode == 0
    assert typed("status", "--state-dir", state).returncode == 0
    ended = typed("down", "--state-dir", state)
    assert (ended.returncode, "Stopped" in ended.stdout) == (0, True)
    assert typed("status", "--state-dir", state).returncode == 3
    assert not (tmp_path / "state" / "state.db").exists()
    again = typed("down", "--state-dir", state)
    assert (again.returncode, again.stdout) == (0, f"Hortus does not run on {state}.\n")


def test_a_fault_of_a_child_is_one_line_of_its_log(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("no kubeconfig")
    command = [sys.executable, "-m", "hortus.cli.up.processes", "controllers", "--state-dir", str(tmp_path)]
    theirs, ours = os.pipe()  # open to the end: the child is no orphan
    try:
        ended = subprocess.run(command, capture_output=True, stdin=theirs, timeout=250)
    finally:
        os.close(theirs)
        os.close(ours)
    assert ended.returncode == 1
    [line] = ended.stderr.splitlines()
    said = orjson.loads(line)
    assert (said["level"], said["process"]) == ("error", "controllers")
    assert "kubeconfig" in said["error"]


class Writer(threading.Thread):
    """Creates objects as fast as they are acknowledged, also while processes are killed."""

    def __init__(self, kubeconfig: Path) -> None:
        super().__init__(daemon=True)
        self._kubeconfig = kubeconfig
        self.acknowledged: list[str] = []
        self.stop = threading.Event()

    def run(self) -> None:
        asyncio.run(self._write())

    async def _write(self) -> None:
        number = 0
        while not self.stop.is_set():
            async with Client.from_kubeconfig(self._kubeconfig) as client:
                try:
                    while not self.stop.is_set():
                        number += 1
                        name = f"w-{os.getpid()}-{number}"
                        obj = {"metadata": {"name": name, "namespace": "default"}, "data": {"n": str(number)}}
                        await client.create(CONFIGMAPS, obj)
                        self.acknowledged.append(name)
                except (KubeError, OSError):
                    await asyncio.sleep(0.02)  # nobody listens while the server starts again


def kept(kubeconfig: Path) -> set[str]:
    listed = kubectl(kubeconfig, "get", "cm", "-o", "jsonpath={.items[*].metadata.name}")
    assert listed.returncode == 0, listed.stderr
    return set(listed.stdout.split())


def test_nothing_acknowledged_is_lost_when_processes_are_killed(tmp_path: Path) -> None:
    state, random = tmp_path / "state", Random(2)
    with up(state, "--clusters", "1", config=FAST) as first:
        writer = Writer(first.kubeconfig)
        writer.start()
        order = ["apiserver", "controllers", "simulation"]
        random.shuffle(order)
        for number, name in enumerate(order, 1):
            goal = len(writer.acknowledged) + random.randrange(1, 40)
            until(lambda goal=goal: len(writer.acknowledged) >= goal, "writes")
            pid = first.processes()[name]
            os.kill(pid, signal.SIGKILL)
            until(lambda pid=pid, name=name: first.processes().get(name) not in (None, pid), f"{name} again")
            first.expect("signal SIGKILL", times=number)
        until(lambda: first.status().healthy, "health")
        assert not first.status().problem
        children = list(first.processes().values())
        goal = len(writer.acknowledged) + random.randrange(1, 40)
        until(lambda: len(writer.acknowledged) >= goal, "writes")
        server = first.status().server
        first.process.kill()
        first.process.wait()
        with up(state, "--clusters", "1", config=FAST) as second:
            until(lambda: not any(is_alive(pid) for pid in children), "the end of the first children")
            writer.stop.set()
            writer.join(PATIENCE)
            assert not writer.is_alive()
            assert second.status().server == server
            lost = set(writer.acknowledged) - kept(second.kubeconfig)
            assert not lost
            wait_for(second, "demo-1", "Ready")
            answered = typed("tree", "demo-1", "--state-dir", str(state))
            assert answered.returncode == 0, answered.stdout
            assert second.end(signal.SIGINT) == 0
            assert "stopping" in second.output
            assert not any(is_alive(pid) for pid in second.processes().values())


def secret(fleet: Up, name: str) -> Any:
    return orjson.loads(kubectl(fleet.kubeconfig, "get", "secret", "-n", "kcp-system", name, "-o", "json").stdout)


def wait_for(fleet: Up, name: str, state: str) -> None:
    until(
        lambda: kubectl(fleet.kubeconfig, "get", "gardenercluster", "-n", "kcp-system", name).returncode == 0,
        f"GardenerCluster {name}",
    )
    waited = kubectl(
        fleet.kubeconfig,
        *("wait", f"gardenercluster/{name}", "-n", "kcp-system"),
        *(f"--for=jsonpath={{.status.state}}={state}", "--timeout=100s"),
    )
    assert waited.returncode == 0, waited.stderr
