"""docs/own-operator.md: what it types prints what it shows, and a made project is complete."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.docs import projects
from tests.docs.consoles import PATIENCE, ROOT, agree, run, steps
from tests.render.oracles import find_helm, require
from tests.scenarios.running import environment

from hortus.cli.new import TEMPLATE
from hortus.kube import yaml
from hortus.render.helm import Release, load_chart, render_chart

PAGE = ROOT / "docs" / "own-operator.md"
needs_kubectl = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return projects.wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def programs(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of a virtual environment with the wheel."""
    return projects.environment_with(tmp_path_factory.mktemp("installed") / ".venv", str(wheel))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project that the page's first command makes."""
    home = tmp_path_factory.mktemp("home")
    run(steps(PAGE)[:1], home, environment())
    return home / "work" / "greeter"


@needs_kubectl
@pytest.mark.timeout(2 * PATIENCE)
def test_what_the_page_types_prints_what_it_shows(programs: Path, tmp_path: Path) -> None:
    wanted = steps(PAGE)
    entered = next(number for number, step in enumerate(wanted) if step.command == "cd greeter")
    printed = run(wanted[:entered], tmp_path, environment())
    projects.prepare(tmp_path / "work" / "greeter", programs)
    printed += run(wanted[entered:], tmp_path, environment())
    for step, output in zip(wanted, printed, strict=True):
        log = tmp_path / "work" / "greeter" / "run.log"
        found = f"printed:\n{output}\n{log.read_text() if log.exists() else ''}"
        assert agree(step.output, output), f"$ {step.command}\nshown:\n{step.output}\n{found}"


def test_the_page_shows_what_is_in_the_project(project: Path) -> None:
    sources = [path.read_text() for path in project.rglob("*.py")]
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    sources.append((ROOT / "tests" / "testing" / "test_clusters.py").read_text())
    assert len(blocks) == 4
    for block in blocks:
        pieces = [piece.strip("\n") for piece in re.split(r"^ *\.\.\.$", block, flags=re.MULTILINE)]
        assert any(all(piece in source for piece in pieces) for source in sources), block


def test_the_wheel_makes_the_same_project(programs: Path, wheel: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [programs / "hortus", "new", "operator", "greeter"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=250,
        env=environment(PYTHONPATH=""),
    )
    assert done.returncode == 0, done.stderr
    assert f"  pip wheel --no-deps --wheel-dir wheels {wheel}\n" in done.stdout
    made = {path.relative_to(tmp_path / "greeter") for path in (tmp_path / "greeter").rglob("*") if path.is_file()}
    assert len([path for path in made if path.suffix != ".pyc"]) == len(list(TEMPLATE.rglob("*.tmpl"))) + 2


@pytest.mark.oracle
def test_helm_accepts_the_chart_and_renders_what_we_do(project: Path) -> None:
    helm = require(find_helm(), "helm")
    chart = project / "charts" / "greeter"
    linted = subprocess.run([helm, "lint", "--strict", str(chart)], capture_output=True, text=True, timeout=250)
    assert linted.returncode == 0, linted.stdout + linted.stderr
    words = [helm, "template", "greeter", str(chart), "--namespace", "operators"]
    printed = subprocess.run(words, capture_output=True, text=True, timeout=250, check=True).stdout
    ours = render_chart(load_chart(chart), {}, release=Release("greeter", "operators")).objects
    assert [one for one in yaml.load_all(printed) if one] == ours
    assert len(ours) == 10


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_a_project_installs_what_it_needs_by_itself(wheel: Path, project: Path, tmp_path: Path) -> None:
    """Exactly what an author types, with pip and the package index."""
    mine = shutil.copytree(project, tmp_path / "greeter")
    shutil.copy(wheel, mine / "wheels")
    for target in ("test", "check"):
        done = projects.make(mine, target, timeout=280)
        assert done.returncode == 0, done.stdout + done.stderr
