"""Run tests in other environments than the one of the locks.

`lowest` takes the oldest version that pyproject.toml allows of each dependency; `pythons` takes every other Python that
is declared there and can be found on this machine: `python3.12` on the PATH, or one of pyenv's. A version that is not
found is named and left out. `costs` runs all tests, or the files it is given, with Python 3.12 and weighs what they
cost and reach (tests/selection/rule.py).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
QUICK = (
    "tests/kube",
    "tests/schema",
    "tests/cli/test_arguments.py",
    "tests/cli/test_commands.py",
    "tests/cli/test_configuration.py",
    "tests/cli/test_state.py",
    "tests/cli/test_store.py",
    "tests/engine/test_controller.py",
    "tests/engine/test_manager.py",
    "tests/engine/test_process.py",
    "tests/engine/test_flags.py",
    "tests/engine/test_tracing.py",
    "tests/engine/applysets",
    "tests/engine/remote",
    "tests/apiserver/test_server.py",
    "tests/apiserver/authn",
    "tests/apiserver/admission",
    "tests/domains/credentials",
    "tests/domains/access",
    "tests/production/test_install.py",
    "tests/production/test_chart.py",
    "tests/render/helm/test_renderer.py",
    "tests/scenarios/test_up.py",
)
"""Each dependency is used here, most of them by a server and a client."""
_RECORDS = ROOT / ".costs"
"""The costs of tests: a folder for the last run of all tests, and one for each run of some files since."""
_BOUND = re.compile(r"([A-Za-z0-9._-]+)>=([0-9.]+)$")
_CLASSIFIER = re.compile(r"Programming Language :: Python :: (3\.\d+)$")


def project() -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def lowest() -> list[str]:
    """The oldest version of each dependency and of each extra's, as requirements. Raises ValueError."""
    found = project()
    extras = found["optional-dependencies"]
    declared = [*found["dependencies"], *(one for group in extras.values() for one in group)]
    pins = []
    for requirement in declared:
        bound = _BOUND.match(requirement)
        if bound is None:
            raise ValueError(f"{requirement}: a dependency has one bound, name>=version")
        pins.append(f"{bound[1]}=={bound[2]}")
    return pins


def pythons() -> Iterator[tuple[str, str]]:
    """The declared versions of Python but the one that runs this, each with its program, or an empty text."""
    for line in project()["classifiers"]:
        found = _CLASSIFIER.match(line)
        if found and found[1] != f"{sys.version_info.major}.{sys.version_info.minor}":
            yield found[1], _program(found[1])


def _program(version: str) -> str:
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    candidates = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"), reverse=True)]
    for candidate in candidates:
        # A shim of pyenv is on the PATH also where it starts nothing.
        if candidate and subprocess.run([candidate, "--version"], capture_output=True).returncode == 0:
            return str(candidate)
    return ""


def _prepared(name: str, python: str) -> Path:
    """A virtual environment of the locks next to the usual one; returns its Python."""
    venv = f".venv-{name}"
    subprocess.run(["make", f"VENV={venv}", f"PYTHON={python}", f"{venv}/.dev-stamp"], cwd=ROOT, check=True)
    return ROOT / venv / "bin" / "python"


def _tested(title: str, python: Path) -> bool:
    print(f"testing with {title}", flush=True)
    command = [python, "-m", "pytest", "-q", "-n", os.environ.get("WORKERS", "2"), "-m", "not soak", *QUICK]
    return subprocess.run(command, cwd=ROOT).returncode == 0


def _weighed(files: list[str]) -> bool:
    """Runs `files`, or all tests, and writes tests/selection/measured.json. Tests that fail are weighed like others."""
    python = _prepared("3.12", dict(pythons())["3.12"])
    subprocess.run([python, "-m", "tests.selection", "enable"], cwd=ROOT, check=True)
    if not files:
        shutil.rmtree(_RECORDS, ignore_errors=True)
    target = _RECORDS / f"{len(list(_RECORDS.glob('*'))):03}"
    workers = ["-n", os.environ.get("WORKERS", "2"), "--dist", "loadfile", "--no-loadscope-reorder"]
    command = [python, "-m", "pytest", *workers, "--progress", "-m", "not soak", "--record", str(target)]
    subprocess.run([*command, *(files or ["tests"])], cwd=ROOT)
    return subprocess.run([python, "-m", "tests.selection", *sorted(_RECORDS.iterdir())], cwd=ROOT).returncode == 0


def main() -> int:
    if sys.argv[1:2] == ["costs"]:
        return 0 if _weighed(sys.argv[2:]) else 1
    if sys.argv[1:] == ["lowest"]:
        python = _prepared("lowest", sys.executable)
        pins = lowest()
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *pins], check=True)
        return 0 if _tested(" ".join(pins), python) else 1
    if sys.argv[1:] == ["pythons"]:
        passed = True
        for version, program in pythons():
            if program:
                passed &= _tested(f"Python {version}", _prepared(version, program))
            else:
                print(f"no Python {version} here: not tested with it")
        return 0 if passed else 1
    print("say lowest, pythons or costs")
    return 2


if __name__ == "__main__":
    sys.exit(main())
