"""Conformance of isolation: nodes without a route pull all images from a strict mirror and try nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import orjson
import pytest
from tests.domains.garden.airgap.isolated import ABSENT, THERE

ROOT = Path(__file__).resolve().parents[4]
ISOLATED = ("unshare", "--map-root-user", "--net")


def namespaces_missing() -> str:
    """The reason for which this machine has no namespace for the test; empty where it has."""
    if not sys.platform.startswith("linux"):
        return "network namespaces are of Linux"
    for program in ("unshare", "ip"):
        if shutil.which(program) is None:
            return f"there is no {program}"
    done = subprocess.run([*ISOLATED, "ip", "link", "set", "lo", "up"], capture_output=True, text=True, check=False)
    return f"this machine allows no network namespace: {done.stderr.strip()}" if done.returncode else ""


REASON = namespaces_missing()


@pytest.mark.skipif(bool(REASON), reason=REASON or "namespaces are allowed")
def test_a_strict_mirror_leaves_no_attempt_to_call_elsewhere() -> None:
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    command = [*ISOLATED, sys.executable, "-m", "tests.domains.garden.airgap.isolated"]
    done = subprocess.run(command, capture_output=True, text=True, env=variables, cwd=ROOT, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found = orjson.loads(done.stdout)
    assert found[f"strict {THERE}"] == [True, 0]
    assert found[f"strict {ABSENT}"] == [False, 0]
    assert found[f"open {THERE}"] == [True, 0]
    pulled, tried = found[f"open {ABSENT}"]
    assert not pulled
    assert tried > 0, "the counter must see what goes elsewhere"
