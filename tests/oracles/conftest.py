"""Go programs of ours that answer with the libraries of Kubernetes, built once and asked over pipes."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

HERE = Path(__file__).parent
_GO_PLACES = ("/usr/local/go/bin", "/usr/lib/go/bin")


class Oracle:
    """One running Go program: a JSON object in, a JSON object out."""

    def __init__(self, program: Path) -> None:
        self._process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, op: str, **question: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(orjson.dumps({"op": op, **question}) + b"\n")
        self._process.stdin.flush()
        answer: dict[str, Any] = orjson.loads(self._process.stdout.readline())
        return answer

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(10)
        if self._process.stdout is not None:
            self._process.stdout.close()


def _go() -> str:
    found = shutil.which("go") or shutil.which("go", path=os.pathsep.join(_GO_PLACES))
    if found is None:
        pytest.skip(
            "no Go toolchain found: the comparison with Kubernetes' Go libraries did not run; install Go to run it"
        )
    return found


def _built(name: str) -> Path:
    """The program of a folder beside this file, kept between runs for as long as its sources stay the same."""
    go = _go()
    folder = HERE / name
    sources = b"".join(path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix in (".go", ".mod", ".sum"))
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hortus-oracles"
    home.mkdir(parents=True, exist_ok=True)
    program = home / f"{name}-{hashlib.sha256(sources).hexdigest()[:16]}"
    with (home / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            fresh = program.with_suffix(".new")
            made = subprocess.run([go, "build", "-o", str(fresh), "."], cwd=folder, capture_output=True, text=True)
            assert made.returncode == 0, f"go build in {folder} failed:\n{made.stderr}"
            fresh.rename(program)
    return program


@pytest.fixture(scope="session")
def oracle() -> Iterator[Callable[[str], Oracle]]:
    """`oracle("apiextensions")` is the running program of that folder."""
    running: dict[str, Oracle] = {}

    def start(name: str) -> Oracle:
        if name not in running:
            running[name] = Oracle(_built(name))
        return running[name]

    yield start
    for program in running.values():
        program.close()
