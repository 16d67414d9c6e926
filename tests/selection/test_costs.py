"""A test costs what it and the processes that it starts take."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.selection.costs import processor_time

ROOT = Path(__file__).resolve().parents[2]
_BUSY = "import time, sys\nwhile time.process_time() < 0.2: pass\nprint('done', flush=True)\nsys.stdin.read()"


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", _BUSY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process


def test_a_child_counts_while_it_runs_and_after_its_end(busy: subprocess.Popen[str]) -> None:
    began = processor_time()
    assert busy.stdout is not None
    busy.stdout.readline()
    running = processor_time() - began
    busy.communicate()
    ended = processor_time() - began
    # The kernel counts a living process in hundredths of a second.
    assert 0.15 < running <= ended + 0.05


def test_a_run_shows_failures_at_once_and_where_the_time_went(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(
        "import pytest\n\n@pytest.mark.parametrize('n', range(120))\ndef test_one(n):\n    assert n != 7\n"
    )
    words = ["-n", "0", "--progress", "-p", "tests.selection.plugin", "-p", "no:cacheprovider", "--rootdir", tmp_path]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, tmp_path], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    failed, summary = "FAILED test_some.py::test_one[7]", "where the time went"
    assert done.stdout.index(failed) < done.stdout.index(" 50% ") < done.stdout.index(summary), done.stdout
    assert "1 failed, 119 passed" in done.stdout
