"""Start-up: a command loads the libraries it works with and no others, and Ctrl-C during it is silent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

LOADED = """
import os, sys
loaded = set(sys.modules)
from hortus.cli.main import main
for words in {lines!r}:
    sys.argv = ["hortus", *words]
    os.environ.update({variables!r})
    try:
        main()
    except SystemExit:
        pass
    found, loaded = set(sys.modules) - loaded, set(sys.modules)
    print(*found, file=os.fdopen(os.dup({writer}), "w"))
"""
NOTHING = {"hortus", "click"}
STATE = NOTHING | {"msgspec", "typing_extensions"}
CLIENT = STATE | {"asyncio", "ssl", "orjson", "yaml", "_yaml", "prometheus_client", "cython_runtime"}
CLIENT |= {"aiohttp", "aiohappyeyeballs", "aiosignal", "attr", "frozenlist", "idna", "multidict", "propcache", "yarl"}


def where(folder: Path) -> dict[str, str]:
    """No cluster, no state, no answers from elsewhere."""
    return {**os.environ, "KUBECONFIG": "", "HOME": str(folder), "XDG_STATE_HOME": str(folder), "COLUMNS": "100"}


Words = tuple[str, ...]


def loaded(folder: Path, *lines: Words, **variables: str) -> dict[Words, set[str]]:
    """The modules that each of these commands has loaded which those before it had not, in one interpreter."""
    reader, writer = os.pipe()
    program = LOADED.format(lines=lines, variables=variables, writer=writer)
    done = subprocess.run(
        [sys.executable, "-c", program],
        pass_fds=(writer,),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=where(folder),
        timeout=60,
    )
    os.close(writer)
    with os.fdopen(reader) as answer:
        found = [set(line.split()) for line in answer]
    assert "Traceback" not in done.stderr
    return dict(zip(lines, found, strict=True))


def packages(modules: set[str]) -> set[str]:
    """Their top-level packages outside the standard library, and asyncio and ssl."""
    found = {name.partition(".")[0] for name in modules} - (sys.stdlib_module_names - {"asyncio", "ssl"})
    # Modules that an editable installation and the coverage of tests load by themselves.
    return {name for name in found if not name.startswith(("_", "coverage"))}


def assert_at_most(found: dict[Words, set[str]], allowed: set[str]) -> None:
    assert {words: more for words, modules in found.items() if (more := packages(modules) - allowed)} == {}


def test_help_versions_and_wrong_words_load_click_alone(tmp_path: Path) -> None:
    lines = (
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
    )
    found = loaded(tmp_path, *lines)
    assert packages(found["--help",]) == NOTHING
    assert_at_most(found, NOTHING)


def test_completion_of_commands_and_options_loads_click_alone(tmp_path: Path) -> None:
    for line in ("hortus ro", "hortus get clusters --", "hortus simulate "):
        asked = {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
        found = loaded(tmp_path, (), _HORTUS_COMPLETE="bash_complete", **asked)
        assert packages(found[()]) == NOTHING, line


def test_commands_of_the_local_fleet_load_no_client_while_it_does_not_run(tmp_path: Path) -> None:
    assert_at_most(loaded(tmp_path, ("down",), ("status",)), STATE | {"asyncio", "ssl"})


def test_the_flags_of_the_controllers_are_listed_without_the_controllers(tmp_path: Path) -> None:
    for modules in loaded(tmp_path, ("run", "--help"), ("run", "-h")).values():
        assert not packages(modules) & {"aiohttp", "prometheus_client", "structlog", "cryptography"}
        assert not modules & {"hortus.engine.manager", "hortus.kube.client"}


def test_commands_about_clusters_load_a_client_and_neither_logging_nor_cryptography(tmp_path: Path) -> None:
    """An API server, which commands of `simulate` might load, is made of packages that are not among the client's."""
    lines = (
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
        ("simulate", "fleet", "--plan", "--clusters", "2", "--duration", "3s"),
        ("simulate", "rollout", "policy.yaml"),
        ("simulate", "mark"),
        ("simulate", "cleanup", "--load-id", "one"),
    )
    assert_at_most(loaded(tmp_path, *lines), CLIENT)


@pytest.mark.parametrize(
    ("words", "unused"),
    [
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
def test_a_command_loads_no_part_of_ours_that_it_does_not_use(tmp_path: Path, words: Words, unused: set[str]) -> None:
    modules = loaded(tmp_path, words)[words]
    assert "hortus.cli.shell" in modules
    assert not modules & unused


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
