"""Small Go programs of ours that ask the published Go libraries, so that tests can compare with them.

A program is built once per test session, also when several pytest workers want it, and answers JSON lines on its
standard streams. Go fetches the libraries by its own module proxy; the versions are pinned in the program's go.mod.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

_USUAL_PLACE = Path("/usr/local/go/bin/go")


class GoProgram:
    """A running program: one JSON request in, one JSON answer out."""

    def __init__(self, binary: Path) -> None:
        self._process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, **request: Any) -> Any:
        """The answer to `request`; fails the test when the program itself is at its wits' end."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(orjson.dumps(request) + b"\n")
        self._process.stdin.flush()
        answer = orjson.loads(self._process.stdout.readline())
        assert not isinstance(answer, dict) or "panic" not in answer, answer
        return answer

    def close(self) -> None:
        self._process.communicate()


def go_program(name: str, factory: pytest.TempPathFactory) -> Iterator[GoProgram]:
    """Build and run the program tests/oracles/<name>; for use in a session fixture. Skips without a Go toolchain."""
    toolchain = shutil.which("go") or (str(_USUAL_PLACE) if _USUAL_PLACE.exists() else None)
    if toolchain is None:
        pytest.skip("no Go toolchain here (`go` on PATH): the comparison with the Go libraries is not made")
    program = GoProgram(_built(name, toolchain, _session_folder(factory)))
    yield program
    program.close()


def _session_folder(factory: pytest.TempPathFactory) -> Path:
    folder = factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


def _built(name: str, toolchain: str, folder: Path) -> Path:
    binary = folder / f"oracle-{name}"
    with (folder / f"oracle-{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not binary.exists():
            source = Path(__file__).parent / name
            command = [toolchain, "build", "-buildvcs=false", "-o", str(binary), "."]
            done = subprocess.run(command, cwd=source, capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"{' '.join(command)} in {source} failed:\n{done.stderr}"
    return binary
