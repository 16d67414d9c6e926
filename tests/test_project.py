"""Claims about the project as a whole."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import hortus

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources, whose laws a test may break."""
    copy = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


def lint(tree: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    return subprocess.run(
        command, cwd=tree, capture_output=True, text=True, timeout=100, env={"PYTHONPATH": str(tree / "src")}
    )


def test_the_package_has_a_version() -> None:
    assert hortus.__version__.count(".") == 2


def test_the_sources_keep_the_import_laws(tree: Path) -> None:
    done = lint(tree)
    assert done.returncode == 0, done.stdout


BREACHES = [
    ("kube.yaml", "import hortus.engine.queue", "Layers"),
    ("engine.queue", "import hortus.domains.access.types", "Layers"),
    ("engine.queue", "import hortus.render.helm", "Layers"),
    ("domains.access.service", "import hortus.simulation.faults", "Layers"),
    ("domains.access.service", "import hortus.cli.sharding", "Layers"),
    ("domains.access.service", "import hortus.domains.clusters.service", "Domains import of each other"),
    ("domains.access.types", "from hortus.domains.clusters import service", "Domains import of each other"),
    ("domains.access.service", "from hortus.domains.clusters import DOMAIN", "Domains import of each other"),
    ("domains.access.service", "import hortus.render.gotemplate.lexer", "Domains use the renderers"),
    ("apiserver.routing", "import hortus.engine.queue", "The API server stands on"),
    ("domains.access.service", "import hortus.apiserver.routing", "Only cli, simulation and testing"),
    ("cli.run", "import hortus.testing.clock", "Nothing in the product"),
]
"""A module below `hortus`, a line that it may not have, and the law that refuses it."""
ALLOWED = ("hortus.domains.credentials.types", "hortus.domains.clusters.types")


@pytest.fixture(scope="module")
def breached(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> subprocess.CompletedProcess[str]:
    """The linter's answer to sources with all breaches, and with imports of types that are none."""
    copy = shutil.copytree(tree, tmp_path_factory.mktemp("breached") / "tree")
    lines = [(module, line) for module, line, _ in BREACHES]
    for module, line in [*lines, *(("domains.access.service", f"import {name}") for name in ALLOWED)]:
        with (copy / "src" / "hortus" / f"{module.replace('.', '/')}.py").open("a") as source:
            source.write(f"\n{line}\n")
    return lint(copy)


@pytest.mark.parametrize(("module", "line", "law"), BREACHES)
def test_a_breach_of_an_import_law_fails_the_check(
    breached: subprocess.CompletedProcess[str], module: str, line: str, law: str
) -> None:
    assert breached.returncode == 1, breached.stdout
    summary, _, broken = breached.stdout.partition("Broken contracts")
    assert any(found.startswith(law) and " BROKEN" in found for found in summary.splitlines()), summary
    (reported,) = (part for part in re.split(r"\n\n(?=[A-Z][^\n]*\n-+\n)", broken) if part.startswith(law))
    _, imported, *names = line.split()
    target = f"{imported}.service" if names == ["import", "service"] else imported
    assert f" hortus.{module} -> {target} (" in reported, reported


def test_domains_may_import_the_types_of_each_other(breached: subprocess.CompletedProcess[str]) -> None:
    for name in ALLOWED:
        assert f"hortus.domains.access.service -> {name} (" not in breached.stdout


_OWN_TIME = (
    "apiserver/admission/expressions.py",
    "apiserver/connection.py",
    "apiserver/handling.py",
    "apiserver/resources/watching.py",
    "apiserver/turns.py",
    "cli/",
    "kube/clock.py",
    "kube/streams.py",
    "render/gotemplate/",
    "schema/rules.py",
    "simulation/fork/time.py",
    "terminal/",
    "testing/",
)
"""The parts that ask the machine for the time: programs that people watch, limits on the CPU time of a template or a
CEL expression, the API server's connections, watches, durations of requests and shares of its loop, the clock, the
silence of streams by their loop's clock, and the loop of virtual time, which waits for the machine where it waits for
the world outside."""
_READS_TIME = re.compile(
    r"time\.(time|monotonic|perf_counter|process_time|thread_time)(_ns)?|(datetime\.){1,2}(now|utcnow|today)"
    r"|.*loop(\(\))?\.time"
)


_OF_TIME = re.compile(r"\.\s*((time|monotonic|perf_counter|process_time|thread_time)(_ns)?|now|utcnow|today|sleep)\b")
"""An attribute that may read the time, or wait."""


def _calls(path: Path) -> Iterator[tuple[str, ast.Call, bool]]:
    """The calls of a file that may concern time: the name that is called, the call, and True when it is in a loop."""

    def walk(node: ast.AST, *, looped: bool) -> Iterator[tuple[str, ast.Call, bool]]:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names:
            yield ast.unparse(node.func), node, looped
        for child in ast.iter_child_nodes(node):
            yield from walk(child, looped=looped or isinstance(node, ast.While | ast.For | ast.AsyncFor))

    text = path.read_text()
    names = {found[1] for found in _OF_TIME.finditer(text)}
    return walk(ast.parse(text), looped=False) if names else iter(())


def test_time_comes_through_a_clock() -> None:
    source = ROOT / "src" / "hortus"
    found = [
        f"{path.relative_to(source)}:{call.lineno}"
        for path in sorted(source.rglob("*.py"))
        if path.name != "commands.py" and not str(path.relative_to(source)).startswith(_OWN_TIME)
        for name, call, _ in _calls(path)
        if _READS_TIME.fullmatch(name) or (name == "asyncio.sleep" and ast.unparse(call.args[0]) != "0")
    ]
    assert found == []


def test_no_test_waits_for_time_to_pass() -> None:
    """A sleep is part of a loop that waits for a condition, or a fake server's that never answers."""
    tests = ROOT / "tests"
    found = [
        f"{path.relative_to(tests)}:{call.lineno}"
        for path in sorted(tests.rglob("*.py"))
        if "benchmarks" not in path.parts
        for name, call, looped in _calls(path)
        if name in ("asyncio.sleep", "time.sleep") and not looped and ast.unparse(call.args[0]) not in ("0", "3600")
    ]
    # Real processes stand still for a while: leases, and the patience of etcd, run out by the machine's clock.
    places = {place.partition(":")[0] for place in found}
    assert places == {"domains/garden/migration/faults.py", "scenarios/test_outage.py"}, found


def test_the_source_distribution_has_what_a_wheel_is_built_from_and_nothing_else(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=100)
    (archive,) = tmp_path.iterdir()
    with tarfile.open(archive) as opened:
        files = [name.partition("/")[2] for name in opened.getnames()]
    tops = {"/".join(name.split("/")[:2]) for name in files}
    single = {"README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE", "pyproject.toml", "PKG-INFO", ".gitignore"}
    assert tops == single | {"src/hortus", "charts/hortus"}
    assert [name for name in files if "__pycache__" in name or name.endswith((".pyc", ".orig", ".rej"))] == []


def test_no_example_of_a_property_has_a_deadline() -> None:
    assert settings().deadline is None
    assert HealthCheck.too_slow in settings().suppress_health_check
