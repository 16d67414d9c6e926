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


def lint_with(tree: Path, module: str, lines: str) -> subprocess.CompletedProcess[str]:
    """The result of the linter with `lines` at the end of a module below `hortus`."""
    path = tree / "src" / "hortus" / module
    text = path.read_text()
    path.write_text(f"{text}\n{lines}\n")
    try:
        return lint(tree)
    finally:
        path.write_text(text)


def test_the_package_has_a_version() -> None:
    assert hortus.__version__.count(".") == 2


def test_the_sources_keep_the_import_laws(tree: Path) -> None:
    done = lint(tree)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("module", "line", "law"),
    [
        ("kube/yaml.py", "import hortus.engine.queue", "Layers"),
        ("engine/queue.py", "import hortus.domains.access.types", "Layers"),
        ("engine/queue.py", "import hortus.render.helm", "Layers"),
        ("domains/access/service.py", "import hortus.simulation.faults", "Layers"),
        ("domains/access/service.py", "import hortus.cli.sharding", "Layers"),
        ("domains/access/service.py", "import hortus.domains.clusters.service", "Domains import of each other"),
        ("domains/access/types.py", "from hortus.domains.clusters import service", "Domains import of each other"),
        ("domains/access/service.py", "from hortus.domains.clusters import DOMAIN", "Domains import of each other"),
        ("domains/access/service.py", "import hortus.render.gotemplate.lexer", "Domains use the renderers"),
        ("apiserver/routing.py", "import hortus.engine.queue", "The API server stands on"),
        ("domains/access/service.py", "import hortus.apiserver.routing", "Only cli, simulation and testing"),
        ("cli/run.py", "import hortus.testing.clock", "Nothing in the product"),
    ],
)
def test_a_breach_of_an_import_law_fails_the_check(tree: Path, module: str, line: str, law: str) -> None:
    done = lint_with(tree, module, line)
    assert done.returncode == 1, done.stdout
    assert any(found.startswith(law) and " BROKEN" in found for found in done.stdout.splitlines()), done.stdout


def test_domains_may_import_the_types_of_each_other(tree: Path) -> None:
    lines = "import hortus.domains.credentials.types\nimport hortus.domains.clusters.types"
    done = lint_with(tree, "domains/access/service.py", lines)
    assert done.returncode == 0, done.stdout


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


def _calls(path: Path) -> Iterator[tuple[str, ast.Call, bool]]:
    """The calls of a file: the name that is called, the call, and True when it is in a loop."""

    def walk(node: ast.AST, *, looped: bool) -> Iterator[tuple[str, ast.Call, bool]]:
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node, looped
        for child in ast.iter_child_nodes(node):
            yield from walk(child, looped=looped or isinstance(node, ast.While | ast.For | ast.AsyncFor))

    return walk(ast.parse(path.read_text()), looped=False)


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
