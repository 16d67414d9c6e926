"""`hortus run` loads the libraries that controllers and the expressions of its ChangeKinds use, and no others."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.scenarios.running import environment
from tests.simulation.garden import started_garden

from hortus.domains import all_domains
from hortus.kube import yaml
from hortus.schema import crd
from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer

PATIENCE = 60.0
LIBRARIES = {
    "aiohappyeyeballs",
    "aiohttp",
    "aiosignal",
    "anyio",
    "attr",
    "cel_expr_python",
    "click",
    "frozenlist",
    "google",
    "greenlet",  # structlog loads it where it is installed, as for the tests of the dashboard
    "hortus",
    "idna",
    "msgspec",
    "multidict",
    "orjson",
    "prometheus_client",
    "propcache",
    "structlog",
    "typing_extensions",
    "uvloop",
    "watchfiles",
    "yaml",
    "yarl",
}
"""Top-level packages besides the standard library: HTTP, JSON, YAML, logs, metrics, CEL, files that change."""
PARTS = {f"hortus.{name}" for name in ("cli", "domains", "engine", "facade", "gardener", "kube", "schema", "terminal")}
MOST_MEMORY = 82.0
"""MiB. Measured: 79.2 with all controllers and nothing to do, 11 of them for CEL, which ChangeKinds are written in."""

_MAIN = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules))))
from hortus.cli.main import main
main()
"""


@pytest.fixture
def server() -> Iterator[TestServer]:
    with started_garden(GardenSettings()) as started:
        kinds = [kind for domain in all_domains() for kind in domain.kinds().values()]
        subprocess.run(
            ["kubectl", "--kubeconfig", str(started.kubeconfig), "apply", "-f", "-"],
            input="---\n".join(yaml.dump(crd(kind)) for kind in kinds),
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        yield started


def test_controllers_load_no_renderer_no_api_server_and_no_terminal(server: TestServer, tmp_path: Path) -> None:
    garden = tmp_path / "garden"
    garden.write_text(yaml.dump(server.kubeconfig_dict("garden")))
    setups = [domain.local_setup(tmp_path, "demo") for domain in all_domains()]
    for path, content in (file for setup in setups for file in setup.files.items()):
        path.write_bytes(content)
    words = [
        "run",
        f"--kubeconfig={server.kubeconfig}",
        f"--gardener-kubeconfig-path={garden}",
        "--gardener-project-name=demo",
        "--metrics-bind-address=127.0.0.1:0",
        "--health-probe-bind-address=127.0.0.1:0",
        *(flag for setup in setups for flag in setup.flags),
    ]
    command = [sys.executable, "-c", _MAIN, *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()) as run:
        try:
            assert run.stderr is not None
            assert any(json.loads(line)["msg"] == "started" for line in run.stderr)
            _await_change_kinds(server)
            memory = resident(run.pid)
            run.send_signal(signal.SIGTERM)
            printed, _ = run.communicate(timeout=PATIENCE)
        finally:
            run.kill()
    modules = json.loads(printed)
    tops = {name.partition(".")[0] for name in modules if not name.startswith("_")} - sys.stdlib_module_names
    print(f"{memory:.1f} MiB, {len(modules)} modules of {sorted(tops)}")
    assert tops - {"cython_runtime"} <= LIBRARIES
    assert {".".join(name.split(".")[:2]) for name in modules if name.startswith("hortus.")} <= PARTS
    assert memory < MOST_MEMORY


def _await_change_kinds(server: TestServer) -> None:
    """Return once all of them are compiled and reported; the test's own limit of time ends this."""
    words = ["kubectl", "--kubeconfig", str(server.kubeconfig), "wait", "changekinds", "--all", "--for=condition=Ready"]
    while subprocess.run([*words, "--timeout=60s"], capture_output=True, timeout=2 * PATIENCE).returncode:
        pass


def resident(pid: int) -> float:
    """MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS:"))) / 1024
