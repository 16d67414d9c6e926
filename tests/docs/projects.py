"""A project of `hortus new operator` in a virtual environment of its own, made without a package index.

Hortus is installed there from a wheel of this tree. Its dependencies and the development tools, of which nothing is
tested here, come from the environment of these tests.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from tests.docs.consoles import ROOT
from tests.scenarios.running import environment

_MYPY = "#!{python}\nimport sys\nfrom mypy.__main__ import console_entry\nsys.exit(console_entry())\n"


def wheel(folder: Path) -> Path:
    """The wheel of this tree, built into `folder`."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True, timeout=100)
    (built,) = folder.glob("hortus-*.whl")
    return built


def environment_with(folder: Path, *wanted: str) -> Path:
    """A virtual environment in `folder` with these wheels or projects; returns its folder of programs."""
    venv.create(folder, with_pip=False)
    programs = folder / "bin"
    packages = sysconfig.get_path("purelib", vars={"base": str(folder)})
    # A line of a .pth file is a place of modules; the .pth files there, of editable installations, are not read.
    (Path(packages) / "tools.pth").write_text(sysconfig.get_path("purelib") + "\n")
    install(programs, *wanted)
    return programs


def install(programs: Path, *wanted: str) -> None:
    """Install these wheels or projects; Python compiles what it imports, as that is far less than a wheel holds."""
    command = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "install", "--quiet", "--no-index"]
    subprocess.run(
        [*command, "--no-deps", "--no-build-isolation", "--no-compile", *wanted],
        check=True,
        timeout=250,
        env=environment(PYTHONPATH=""),
    )


def prepare(project: Path, programs: Path) -> None:
    """Do what the project's Makefile does before its first target, in an environment that has Hortus."""
    (project / ".venv").symlink_to(programs.parent)
    install(programs, "-e", str(project))
    (programs / "ruff").symlink_to(shutil.which("ruff", path=str(Path(sys.executable).parent)) or "ruff")
    (programs / "mypy").write_text(_MYPY.format(python=programs / "python"))
    (programs / "mypy").chmod(0o755)
    (project / ".venv" / ".stamp").touch()


def make(project: Path, *words: str, timeout: float = 110) -> subprocess.CompletedProcess[str]:
    """`make` in a project, as its author types it."""
    return subprocess.run(
        ["make", *words], cwd=project, capture_output=True, text=True, timeout=timeout, env=environment(PYTHONPATH="")
    )
