"""The pytest plugin in a project outside of this repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

OUTSIDE = """
import sys


def loaded():
    return sorted(name for name in sys.modules if name.partition(".")[0] in ("hortus", "msgspec", "aiohttp", "uvloop"))


def test_a_test_without_the_fixtures_loads_the_plugin_alone():
    assert loaded() == ["hortus", "hortus.facade", "hortus.testing", "hortus.testing.plugin"]


def test_a_clock_loads_no_server(hortus_clock):
    assert hortus_clock.now() == 1672574400.0
    assert "aiohttp" not in sys.modules


def test_a_cluster_is_reached_by_its_kubeconfig(hortus_cluster):
    from hortus.kube import kubeconfig

    assert "/clusters/test-" in kubeconfig.load(hortus_cluster.kubeconfig).access().server
"""


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)


def test_the_plugin_costs_nothing_until_a_fixture_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "test_outside.py").write_text(OUTSIDE)
    done = run(tmp_path, "-q", "-W", "error", "-o", "asyncio_default_fixture_loop_scope=function")
    assert done.returncode == 0, done.stdout
    assert "3 passed" in done.stdout


def test_pytest_lists_the_fixtures_with_what_they_are(tmp_path: Path) -> None:
    listed = run(tmp_path, "--fixtures").stdout
    for line in (
        "hortus_apiserver [session scope] -- ",
        "    An API server in memory, for all tests of the session",
        "hortus_cluster -- ",
        "    A cluster of that server for one test, empty at its start",
        "hortus_clock -- ",
        "    A clock that stands still until the test moves it",
    ):
        assert line in listed


@pytest.mark.parametrize("fixture", ["hortus_apiserver", "hortus_cluster", "hortus_clock"])
def test_a_project_may_have_a_fixture_of_the_same_name(tmp_path: Path, fixture: str) -> None:
    own = f"import pytest\n@pytest.fixture\ndef {fixture}():\n    return 5\n"
    (tmp_path / "test_own.py").write_text(f"{own}def test_own({fixture}):\n    assert {fixture} == 5\n")
    done = run(tmp_path, "-q")
    assert done.returncode == 0, done.stdout
