"""The real tools to compare with: `helm` and a small Go program around Go's own template libraries.

`make oracles` builds each into the user's cache; a test builds nothing, which takes longer than a test may. Tests that
need them are marked `oracle` and say so when they cannot run.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.oracles.programs import built_program, cache, toolchain

HELM_VERSION = "v3.22.0"


def _helm() -> Path:
    return cache() / f"helm-{HELM_VERSION}" / "helm"


def build_helm() -> str | None:
    """Build helm from source; None where that fails: it is not ours."""
    go = toolchain()
    assert go is not None, "no Go toolchain"
    environment = {**os.environ, "GOBIN": str(_helm().parent), "GOFLAGS": "-mod=mod"}
    subprocess.run([go, "install", f"helm.sh/helm/v3/cmd/helm@{HELM_VERSION}"], env=environment, check=False)
    return find_helm()


def find_helm() -> str | None:
    """HORTUS_HELM, `helm` on the PATH, or the one that `make oracles` has built; None where there is none."""
    given = os.environ.get("HORTUS_HELM") or shutil.which("helm")
    return given or (str(_helm()) if _helm().exists() else None)


def find_gotemplate() -> str | None:
    """The Go program of tests/oracles/gotemplate, None where `make oracles` has not built it."""
    built = built_program("gotemplate")
    return None if built is None else str(built)


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
        pytest.skip(f"no {what}, so the comparison with the real tool is not made: run `make oracles`")
    return found
