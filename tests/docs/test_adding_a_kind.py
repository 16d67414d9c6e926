"""The domain that docs/adding-a-kind.md adds: its diff applies to the present sources, and what comes out works."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.consoles import PATIENCE, ROOT, agree, run, steps
from tests.docs.diffs import applied
from tests.scenarios.running import environment

from hortus.kube import yaml

PAGE = ROOT / "docs" / "adding-a-kind.md"
DIFF = ROOT / "docs" / "examples" / "rosters.diff"
GROUP = "fleet.example.org"
_GENERATED = shutil.ignore_patterns("__pycache__")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources with the diff applied."""
    copy = tmp_path_factory.mktemp("tree")
    shutil.copytree(ROOT / "src", copy / "src", ignore=_GENERATED)
    for path, text in applied(DIFF.read_text(), ROOT):
        (copy / path).parent.mkdir(parents=True, exist_ok=True)
        (copy / path).write_text(text)
    for file in ("pyproject.toml", "Makefile", "Dockerfile", ".dockerignore"):
        shutil.copy(ROOT / file, copy)
    for folder in ("tools", "charts", "deploy", "locks", "docs/runbooks"):
        shutil.copytree(ROOT / folder, copy / folder)
    shutil.copytree(ROOT / "tests", copy / "tests", ignore=_GENERATED, dirs_exist_ok=True)
    if (ROOT / ".mypy_cache").is_dir():
        # The reader's checkout has one too; without it mypy reads all of the project once more.
        shutil.copytree(ROOT / ".mypy_cache", copy / ".mypy_cache")
    return copy


def python(tree: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=tree,
        capture_output=True,
        text=True,
        timeout=250,
        env=environment(PYTHONPATH=str(tree / "src")),
    )


def test_the_domain_passes_its_own_tests(tree: Path) -> None:
    tested = python(tree, "pytest", "-q", "-p", "no:cacheprovider", "tests/domains/rosters")
    assert tested.returncode == 0, tested.stdout
    assert "5 passed" in tested.stdout


@pytest.mark.timeout(300)
def test_the_domain_passes_make_check(tree: Path) -> None:
    """All of the checks, as the page has its reader run them; what they would install is there already."""
    noted = subprocess.run([sys.executable, "tools/imports.py", "update"], cwd=tree, capture_output=True, text=True)
    assert noted.returncode == 0, noted.stderr
    stamps = ("-o", ".venv/.run-stamp", "-o", ".venv/.dev-stamp", "-o", ".venv/bin/python")
    done = subprocess.run(
        ["make", *stamps, f"BIN={Path(sys.executable).parent}", "check"],
        cwd=tree,
        capture_output=True,
        text=True,
        timeout=280,
        env=environment(PYTHONPATH=str(tree / "src")),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "reads: in order" in done.stdout


def test_the_domain_adds_files_to_its_own_folders_alone() -> None:
    paths = [path for path, _ in applied(DIFF.read_text(), ROOT)]
    assert {path.rpartition("/")[0] for path in paths} == {"src/hortus/domains/rosters", "tests/domains/rosters"}
    assert not [path for path in paths if (ROOT / path).exists()]


def test_its_kind_rules_and_alert_are_in_the_chart(tree: Path) -> None:
    chart = tree / "charts" / "hortus" / "files"
    done = python(tree, "tools.chart")
    assert done.returncode == 0, done.stderr
    assert yaml.load((chart / "crds" / "rosters.fleet.example.org.yaml").read_text())["spec"]["group"] == GROUP
    rules = yaml.load((chart / "rules.yaml").read_text())
    assert {"apiGroups": [GROUP], "resources": ["rosters/status"], "verbs": ["patch"]} in rules["management"]
    assert {"apiGroups": [GROUP], "resources": ["rosters"], "verbs": ["get", "list", "watch"]} in rules["view"]
    groups = {group["name"]: group["rules"] for group in yaml.load((chart / "alerts.yaml").read_text())["groups"]}
    assert [alert["alert"] for alert in groups["hortus.rosters"]] == ["HortusRosterFails"]
    assert (tree / "docs" / "runbooks" / "HortusRosterFails.md").exists()


def test_its_flag_and_command_are_served(tree: Path) -> None:
    assert "--roster-ctrl-workers-cnt int\n" in python(tree, "hortus", "run", "--help").stdout
    assert "Print the names on a roster" in python(tree, "hortus", "--help").stdout


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
@pytest.mark.timeout(PATIENCE + 20)
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
