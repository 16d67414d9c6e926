"""`hortus run` as a process: its file of flags and its kubeconfigs change under it, and it stops when asked."""

from __future__ import annotations

import json
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.scenarios.running import environment
from tests.simulation.garden import started_garden

from hortus.domains.credentials.types import GardenerCluster
from hortus.kube import yaml
from hortus.schema import crd
from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer

PATIENCE = 60.0


class Process:
    """A running `hortus run`, seen through its log."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self._lines: queue.Queue[dict[str, Any]] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._lines.put(json.loads(line))

    def says(self, message: str) -> dict[str, Any]:
        """The next line with this message."""
        while True:
            line = self._lines.get(timeout=PATIENCE)
            if line["msg"] == message:
                return line


def replace(path: Path, text: str) -> None:
    """Writes a file as a mounted ConfigMap changes: a reader sees the one text or the other."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


@contextmanager
def running(*words: str, **variables: str) -> Iterator[Process]:
    command = [sys.executable, "-m", "hortus", "run", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment(**variables)) as process:
        try:
            yield Process(process)
        finally:
            process.kill()


@pytest.fixture
def server() -> Iterator[TestServer]:
    with started_garden(GardenSettings()) as started:
        applied = subprocess.run(
            ["kubectl", "--kubeconfig", str(started.kubeconfig), "apply", "-f", "-"],
            input=yaml.dump(crd(GardenerCluster)),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert applied.returncode == 0, applied.stderr
        yield started


def test_it_takes_over_what_changes_in_its_files_and_stops_when_asked(server: TestServer, tmp_path: Path) -> None:
    management, garden, config = (tmp_path / name for name in ("management", "garden", "config.yaml"))
    kubeconfig = yaml.load(server.kubeconfig.read_text())
    management.write_text(yaml.dump(kubeconfig))
    garden.write_text(yaml.dump(server.kubeconfig_dict("garden")))
    values = {"gardener-project-name": "demo", "watch-namespace": "default", "metrics-bind-address": "0"}
    config.write_text(yaml.dump(values))
    flags = (f"--kubeconfig={management}", f"--gardener-kubeconfig-path={garden}", f"--config={config}")
    with running(*flags, HORTUS_HEALTH_PROBE_BIND_ADDRESS="0") as process:
        process.says("started")
        replace(config, yaml.dump({**values, "zap-log-level": "debug", "gardener-ratelimiter-qps": 9}))
        assert process.says("took over the configuration")["flags"] == ["gardener-ratelimiter-qps", "zap-log-level"]
        replace(config, yaml.dump({**values, "zap-log-level": "loud"}))
        assert "'loud'" in process.says("the configuration is wrong, keeping the one before")["error"]
        replace(config, yaml.dump({**values, "watch-namespace": "elsewhere"}))
        assert process.says("these flags take effect at the next start")["flags"] == ["watch-namespace"]
        replace(garden, yaml.dump(server.kubeconfig_dict("garden")))
        assert process.says("took the new kubeconfig")["path"] == str(garden)
        process.process.send_signal(signal.SIGTERM)
        assert process.process.wait(PATIENCE) == 0


def test_another_server_in_the_gardens_file_ends_it_for_another_start(server: TestServer, tmp_path: Path) -> None:
    garden = tmp_path / "garden"
    garden.write_text(yaml.dump(server.kubeconfig_dict("garden")))
    flags = (f"--kubeconfig={server.kubeconfig}", f"--gardener-kubeconfig-path={garden}", "--metrics-bind-address=0")
    with running(*flags, "--health-probe-bind-address=0", "--watch-namespace=default") as process:
        process.says("started")
        replace(garden, yaml.dump(server.kubeconfig_dict("root")))
        process.says("the kubeconfig names another server now")
        assert process.process.wait(PATIENCE) == 0


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("watch-namespce: x", "watch-namespce is not the name of a flag; did you mean watch-namespace?"),
        ("minimal-rotation-time: 2", "invalid value 2.0 for flag --minimal-rotation-time: must be more than 0"),
        ("zap-log-level: loud", "--zap-log-level 'loud' must be"),
    ],
)
def test_a_wrong_file_is_refused_at_the_start_with_the_path(config: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(config)
    command = [sys.executable, "-m", "hortus", "run", f"--config={file}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=environment())
    assert done.returncode == 2
    assert message in done.stderr
