"""Connection options stand anywhere."""

from __future__ import annotations

import pytest

from hortus.cli.arguments import hoisted


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (["get", "clusters"], ["get", "clusters"]),
        (["get", "clusters", "--kubeconfig", "f"], ["--kubeconfig", "f", "get", "clusters"]),
        (["get", "--context=c", "clusters", "-w"], ["--context=c", "get", "clusters", "-w"]),
        (["get", "--", "--kubeconfig", "f"], ["get", "--", "--kubeconfig", "f"]),
        (["get", "--kubeconfig"], ["--kubeconfig"]),
        (["run", "--kubeconfig", "f"], ["run", "--kubeconfig", "f"]),
        (["--context", "c", "run", "--kubeconfig", "f"], ["--context", "c", "run", "--kubeconfig", "f"]),
        (["up", "--state-dir", "d", "-d"], ["--state-dir", "d", "up", "-d"]),
        (["--help"], ["--help"]),
    ],
)
def test_connection_options_are_moved_to_the_front(given: list[str], expected: list[str]) -> None:
    assert hoisted(given, commands_of_their_own=("run",)) == expected
