"""Claims about the project as a whole."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_the_package_tells_its_version() -> None:
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
    path = tree / "src" / "hortus" / module
    text = path.read_text()
    path.write_text(f"{text}\n{line}\n")
    try:
        done = lint(tree)
    finally:
        path.write_text(text)
    assert done.returncode == 1, done.stdout
    assert any(found.startswith(law) and " BROKEN" in found for found in done.stdout.splitlines()), done.stdout


def test_domains_may_import_the_types_of_each_other(tree: Path) -> None:
    path = tree / "src" / "hortus" / "domains" / "access" / "service.py"
    text = path.read_text()
    path.write_text(f"{text}\nimport hortus.domains.credentials.types\nimport hortus.domains.clusters.types\n")
    try:
        done = lint(tree)
    finally:
        path.write_text(text)
    assert done.returncode == 0, done.stdout
