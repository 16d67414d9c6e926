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
from hortus.engine.rollouts.types import ChangeKind
from hortus.kube import yaml
from hortus.kube.objects import Object
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
    "click",
    "frozenlist",
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
"""Top-level packages besides the standard library: HTTP, JSON, YAML, logs, metrics, files that change."""
CEL = {"cel_expr_python", "google"}
"""Those for the expressions of ChangeKinds."""
PARTS = {f"hortus.{name}" for name in ("cli", "domains", "engine", "facade", "gardener", "kube", "schema", "terminal")}
MOST_MEMORY, WITH_CEL = 70.0, 82.0
"""MiB. Measured: 68.2 with all controllers and nothing to do, the garden's and agents' among them, and 78.4 when the
expressions of ChangeKinds are compiled; 89 when renderers, CEL, bcrypt and pydantic were loaded, before there were
agents."""

_MAIN = """
import atexit, json, sys
atexit.register(lambda: print(json.dumps(sorted(sys.modules))))
from hortus.cli.main import main
main()
"""


@pytest.fixture
def server() -> Iterator[TestServer]:
    """A garden and a management cluster, in one, with all kinds."""
    with started_garden(GardenSettings()) as started:
        _define(started, [crd(kind) for domain in all_domains() for kind in domain.kinds().values()])
        yield started


def _define(server: TestServer, definitions: list[Object]) -> None:
    _kubectl(server, "apply", "-f", "-", text="---\n".join(map(yaml.dump, definitions))).check_returncode()


def _refuse_change_kinds(server: TestServer) -> None:
    """Without one nothing is compiled."""
    definition = crd(ChangeKind)
    for version in definition["spec"]["versions"]:
        version["schema"]["openAPIV3Schema"]["x-kubernetes-validations"] = [{"rule": "false"}]
    _define(server, [definition])


def _kubectl(server: TestServer, *words: str, text: str = "") -> subprocess.CompletedProcess[str]:
    command = ["kubectl", "--kubeconfig", str(server.kubeconfig), *words]
    return subprocess.run(command, input=text, text=True, capture_output=True, timeout=2 * PATIENCE)


@pytest.mark.parametrize(
    ("compiles", "libraries", "most"), [(False, LIBRARIES, MOST_MEMORY), (True, LIBRARIES | CEL, WITH_CEL)]
)
def test_controllers_load_no_renderer_no_api_server_and_no_terminal(
    server: TestServer, tmp_path: Path, compiles: bool, libraries: set[str], most: float
) -> None:
    if not compiles:
        _refuse_change_kinds(server)
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
            if compiles:
                _await_change_kinds(server)
            memory = resident(run.pid)
            run.send_signal(signal.SIGTERM)
            printed, _ = run.communicate(timeout=PATIENCE)
        finally:
            run.kill()
    modules = json.loads(printed)
    tops = {name.partition(".")[0] for name in modules if not name.startswith("_")} - sys.stdlib_module_names
    print(f"{memory:.1f} MiB, {len(modules)} modules of {sorted(tops)}")
    assert tops - {"cython_runtime"} <= libraries
    assert {".".join(name.split(".")[:2]) for name in modules if name.startswith("hortus.")} <= PARTS
    assert memory < most


def _await_change_kinds(server: TestServer) -> None:
    """Return once all of them are compiled and reported; the test's own limit of time ends this."""
    ready = ["wait", "changekinds", "--all", "--for=condition=Ready", "--timeout=60s"]
    while _kubectl(server, *ready).returncode:
        pass


def resident(pid: int) -> float:
    """MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmRSS:"))) / 1024
