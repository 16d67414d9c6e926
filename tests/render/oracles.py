"""The real tools to compare with: `helm` and a small Go program around Go's own template libraries.

Each is looked for, and where a Go toolchain is present built once per machine into the user's cache. Tests that need
them are marked `oracle` and say so when they cannot run.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

HELM_VERSION = "v3.22.0"
_SOURCE = Path(__file__).resolve().parents[1] / "oracles" / "gotemplate"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "hortus" / "oracles"
_BUILD_SECONDS = 1500


def _go() -> str | None:
    found = shutil.which("go")
    usual = Path("/usr/local/go/bin/go")
    return found or (str(usual) if usual.exists() else None)


@contextmanager
def _locked() -> Iterator[None]:
    _CACHE.mkdir(parents=True, exist_ok=True)
    with (_CACHE / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build(target: Path, command: list[str], *, folder: Path | None = None) -> str | None:
    go = _go()
    if go is None:
        return None
    with _locked():
        if not target.exists():
            environment = {**os.environ, "GOBIN": str(target.parent), "GOFLAGS": "-mod=mod"}
            found = subprocess.run(
                [go, *command], cwd=folder, env=environment, capture_output=True, text=True, timeout=_BUILD_SECONDS
            )
            if found.returncode:
                return None
    return str(target)


def find_helm() -> str | None:
    """HORTUS_HELM, `helm` on the PATH, or one built from source; None where there is none."""
    given = os.environ.get("HORTUS_HELM") or shutil.which("helm")
    if given:
        return given
    target = _CACHE / f"helm-{HELM_VERSION}" / "helm"
    return str(target) if target.exists() else _build(target, ["install", f"helm.sh/helm/v3/cmd/helm@{HELM_VERSION}"])


def find_gotemplate() -> str | None:
    """The Go program of tests/oracles/gotemplate, rebuilt when its source is newer."""
    target = _CACHE / "gotemplate"
    source = max(path.stat().st_mtime for path in _SOURCE.iterdir())
    if target.exists() and target.stat().st_mtime < source and _go():
        target.unlink()
    return str(target) if target.exists() else _build(target, ["build", "-o", str(target), "."], folder=_SOURCE)


class GoTemplates:
    """Go's template libraries behind JSON lines."""

    def __init__(self, program: str) -> None:
        self._process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )

    def ask(self, **request: Any) -> tuple[str, str]:
        """Output and error for one request."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        output = base64.b64decode(answer.get("output") or b"").decode("utf-8", "surrogateescape")
        return output, answer.get("error", "")

    def close(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(10)


def require(found: str | None, what: str) -> str:
    """The program, or a skip that says what is missing."""
    if found is None:
        pytest.skip(f"no {what} and no Go toolchain to build it: the comparison with the real tool did not run")
    return found
