"""The domain that docs/adding-a-kind.md adds: its diff applies to the present sources, and what comes out works."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.consoles import ROOT, agree, run, steps
from tests.docs.diffs import applied
from tests.scenarios.running import environment

PAGE = ROOT / "docs" / "adding-a-kind.md"
DIFF = ROOT / "docs" / "examples" / "rosters.diff"


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with the diff applied."""
    copy = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "src", copy / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for path, text in applied(DIFF.read_text(), ROOT):
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_text(text)
    shutil.copy(ROOT / "pyproject.toml", copy)
    return copy


def python(tree: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=tree,
        capture_output=True,
        text=True,
        timeout=100,
        env=environment(PYTHONPATH=str(tree / "src")),
    )


def test_the_domain_passes_its_own_tests_and_the_linter(tree: Path) -> None:
    tested = python(tree, "pytest", "-q", "-p", "no:cacheprovider", "tests/domains/rosters")
    assert tested.returncode == 0, tested.stdout
    assert "5 passed" in tested.stdout
    linted = python(tree, "ruff", "check", "--no-cache", "src/hortus/domains/rosters", "tests")
    assert linted.returncode == 0, linted.stdout


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_it_is_part_of_hortus_up_and_of_the_command_line(tree: Path, tmp_path: Path) -> None:
    wanted = steps(PAGE)
    printed = run(wanted, tmp_path, environment(PYTHONPATH=str(tree / "src")))
    for step, output in zip(wanted, printed, strict=True):
        assert agree(step.output, output), f"$ {step.command}\nshown:\n{step.output}\nprinted:\n{output}"


@pytest.mark.parametrize("number", range(len(re.findall(r"^```python$", PAGE.read_text(), re.MULTILINE))))
def test_the_page_shows_what_is_in_the_diff(tree: Path, number: int) -> None:
    """Blocks are pieces of one file, `...` standing for what is left out between them."""
    block = list(_blocks())[number]
    sources = [path.read_text() for path in sorted(tree.rglob("*.py")) if "rosters" in str(path) or "cli" in str(path)]
    pieces = [piece.strip("\n") for piece in re.split(r"^ *\.\.\.$", block, flags=re.MULTILINE)]
    assert any(all(piece in source for piece in pieces) for source in sources), block


def _blocks() -> Iterator[str]:
    yield from re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
