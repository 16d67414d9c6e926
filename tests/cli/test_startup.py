"""Start-up: a command loads the libraries it works with and no others, and Ctrl-C during it is silent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

LIST = """
import atexit, os, sys
given = os.fdopen(3, "w")
def show():
    loaded = {name.partition(".")[0] for name in sys.modules}
    print(*loaded - (sys.stdlib_module_names - {"asyncio", "ssl"}), file=given)
atexit.register(show)
sys.argv[0] = "hortus"
from hortus.cli.main import main
main()
"""
NOTHING = {"hortus", "click"}
STATE = NOTHING | {"msgspec", "typing_extensions"}
CLIENT = STATE | {"asyncio", "ssl", "orjson", "yaml", "_yaml", "prometheus_client", "cython_runtime"}
CLIENT |= {"aiohttp", "aiohappyeyeballs", "aiosignal", "attr", "frozenlist", "idna", "multidict", "propcache", "yarl"}


def where(folder: Path) -> dict[str, str]:
    """No cluster, no state, no answers from elsewhere."""
    return {**os.environ, "KUBECONFIG": "", "HOME": str(folder), "XDG_STATE_HOME": str(folder), "COLUMNS": "100"}


def loaded(folder: Path, *words: str, **more: str) -> set[str]:
    """The top-level packages outside the standard library, asyncio and ssl, that this command has loaded at its end."""
    reader, writer = os.pipe()
    program = f"import os; os.dup2({writer}, 3)\n{LIST}"
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        pass_fds=(writer,),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=where(folder) | more,
        timeout=60,
    )
    os.close(writer)
    with os.fdopen(reader) as answer:
        found = set(answer.read().split())
    assert "Traceback" not in done.stderr
    # Modules that an editable installation and the coverage of tests load by themselves.
    return {name for name in found if not name.startswith(("_", "coverage"))}


@pytest.mark.parametrize(
    "words",
    [
        ("--help",),
        ("--version",),
        ("version",),
        ("completion", "bash"),
        ("up", "--help"),
        ("get", "-h"),
        ("tree", "-h"),
        ("install", "-h"),
        ("adopt", "shoots", "-h"),
        ("simulate", "load", "-h"),
        ("simulate", "rollout", "-h"),
        ("manifests", "-h"),
        ("new", "operator", "-h"),
        ("nonsense",),
    ],
)
def test_help_versions_and_wrong_words_load_click_alone(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert loaded(tmp_path, *words) == NOTHING


def test_completion_of_commands_and_options_loads_click_alone(tmp_path: Path) -> None:
    for line in ("hortus ro", "hortus get clusters --", "hortus simulate "):
        asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
        assert loaded(tmp_path, _HORTUS_COMPLETE="bash_complete", **asked) == NOTHING, line


@pytest.mark.parametrize("words", [("down",), ("status",)])
def test_commands_of_the_local_fleet_load_no_client_while_it_does_not_run(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert loaded(tmp_path, *words) <= STATE | {"asyncio", "ssl"}


@pytest.mark.parametrize(
    "words",
    [
        ("get", "clusters"),
        ("tree", "one"),
        ("kubeconfig", "one"),
        ("rotate", "one"),
        ("why", "one"),
        ("suspend", "one"),
        ("resume", "one"),
        ("reconcile", "one"),
        ("retire", "one"),
        ("access", "one"),
        ("canary",),
        ("adopt", "shoots", "--all"),
        ("adopt", "compare", "one"),
        ("adopt", "kyma", "--all"),
    ],
)
def test_commands_about_clusters_load_a_client_and_neither_logging_nor_cryptography(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert loaded(tmp_path, *words) <= CLIENT


@pytest.mark.parametrize("words", [("run", "--help"), ("run", "-h")])
def test_the_flags_of_the_controllers_are_listed_without_the_controllers(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert not loaded(tmp_path, *words) & {"aiohttp", "prometheus_client", "structlog", "cryptography"}


@pytest.mark.parametrize(
    "words",
    [
        ("simulate", "fleet", "--plan", "--clusters", "2", "--duration", "3s"),
        ("simulate", "rollout", "policy.yaml"),
        ("simulate", "mark"),
        ("simulate", "cleanup", "--load-id", "one"),
    ],
)
def test_simulate_loads_no_api_server_and_no_cryptography(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert loaded(tmp_path, *words) <= CLIENT


PARTS = """
import sys
sys.argv[1:] = {words!r}
from hortus.cli.main import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(
    ("words", "unused"),
    [
        (("run", "--help"), {"hortus.engine.manager", "hortus.kube.client"}),
        (
            ("access", "one"),
            {"hortus.engine.manager", "hortus.engine.applysets.applying", "hortus.schema.merge.merging"},
        ),
        (("adopt", "shoots", "--all"), {"hortus.engine.manager", "hortus.engine.remote.pool"}),
        (("simulate", "mark"), {"hortus.apiserver.server", "hortus.schema.merge"}),
        (("check",), {"hortus.engine.manager", "hortus.cli.program"}),
        (("status",), {"hortus.engine.manager"}),
    ],
)
def test_a_command_loads_no_part_of_ours_that_it_does_not_use(
    tmp_path: Path, words: tuple[str, ...], unused: set[str]
) -> None:
    program = PARTS.format(words=list(words))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=where(tmp_path), timeout=60
    )
    found = set(done.stderr.split())
    assert "hortus.cli.shell" in found
    assert not found & unused


def test_the_process_of_the_simulated_garden_loads_no_api_server() -> None:
    program = "import sys, hortus.cli.up.garden; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert not {name for name in done.stdout.split() if name.startswith("hortus.apiserver")}


INTERRUPT = """
import importlib.abc, os, signal, sys
class Interrupt(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv[1:] = {words!r}
from hortus.cli.main import main
main()
"""


@pytest.mark.parametrize(
    ("module", "words"),
    [
        ("click", ["--help"]),
        ("hortus.cli.shell", ["--help"]),
        ("hortus.terminal.output", ["get", "clusters"]),
        ("hortus.cli.objects", ["get", "clusters"]),
        ("aiohttp", ["get", "clusters"]),
        ("hortus.cli.install.chart", ["install", "--export"]),
        ("rich.console", ["up"]),
    ],
)
def test_an_interrupt_while_modules_load_is_silent(tmp_path: Path, module: str, words: list[str]) -> None:
    # With a cluster to connect to, commands load all they need for it.
    config = tmp_path / ".kube" / "config"
    config.parent.mkdir()
    config.write_text(
        "{current-context: one, contexts: [{name: one, context: {cluster: one, user: one}}], "
        "clusters: [{name: one, cluster: {server: 'https://127.0.0.1:1'}}], users: [{name: one, user: {}}]}"
    )
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT.format(module=module, words=words)],
        capture_output=True,
        text=True,
        env=where(tmp_path),
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "")
