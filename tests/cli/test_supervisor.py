"""A child is kept running whatever goes wrong in keeping it, and a keeper that ends is noticed."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from rich.console import Console

from hortus.cli.up.progress import Display
from hortus.cli.up.session import Session, UpOptions
from hortus.cli.up.state import RunFile, StateDirectory
from hortus.cli.up.status import Status, lines
from hortus.cli.up.supervisor import Child, ChildFailed, ChildReport

READY = 'print(\'{"state":"ready"}\', flush=True)'
CHILD = f"input(); {READY}; input()"
"""It waits for the line by which it is started, and then until it is stopped."""

STOPPED = f"""
import select, signal, sys

def stopped(*_):
    ended = select.select([sys.stdin], [], [], 0.3)[0]
    sys.exit(f"its standard input {{'has ended' if ended else 'is open'}}")

signal.signal(signal.SIGTERM, stopped)
input(); {READY}; signal.pause()
"""


class Heard:
    """The reports of a child, and a wait for the next report that says something."""

    def __init__(self) -> None:
        self.reports: list[ChildReport] = []
        self._grown = asyncio.Event()
        self.error: Exception | None = None

    def __call__(self, name: str, said: ChildReport) -> None:
        self.reports.append(said)
        self._grown.set()
        if self.error is not None:
            raise self.error

    async def until(self, text: str, *, times: int = 1) -> None:
        async with asyncio.timeout(60):
            while sum(text in f"{said.state}: {said.message}" for said in self.reports) < times:
                self._grown.clear()
                await self._grown.wait()


@pytest.fixture
async def child(tmp_path: Path) -> AsyncIterator[Child]:
    (tmp_path / "logs").mkdir()
    child = Child("child", [sys.executable, "-c", CHILD], log=tmp_path / "logs" / "child.log")
    yield child
    await child.stop()


def kill(child: Child) -> None:
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)


async def test_a_child_that_cannot_be_spawned_is_tried_again(child: Child, tmp_path: Path) -> None:
    heard = Heard()
    await child.start(heard)
    (tmp_path / "logs").rename(tmp_path / "away")
    kill(child)
    await heard.until("progress: cannot be kept: [Errno 2]")
    (tmp_path / "away").rename(tmp_path / "logs")
    await heard.until("ready", times=2)
    assert child.pid is not None


async def test_a_line_too_long_to_read_costs_that_life_and_leaves_no_second_process(tmp_path: Path) -> None:
    marks = tmp_path / "pids"
    script = f"import os; open({str(marks)!r}, 'a').write(str(os.getpid()) + ' '); input(); {READY}; "
    script += f"len(open({str(marks)!r}).read().split()) > 1 or print('x' * 200_000, flush=True); input()"
    child, heard = Child("child", [sys.executable, "-c", script], log=None), Heard()
    await child.start(heard)
    await heard.until("progress: cannot be kept")
    await heard.until("ready", times=2)
    first, second = map(int, marks.read_text().split())
    assert second == child.pid
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    await child.stop()


async def test_a_child_that_is_stopped_is_no_orphan(tmp_path: Path) -> None:
    """The end of its standard input would give it less time than SIGTERM does."""
    log = tmp_path / "child.log"
    child = Child("child", [sys.executable, "-c", STOPPED], log=log)
    await child.start(Heard())
    await child.stop()
    assert log.read_text() == "its standard input is open\n"


async def test_the_end_of_a_keeper_does_not_go_unnoticed(child: Child) -> None:
    heard = Heard()
    await child.start(heard)
    kept = asyncio.create_task(child.kept())
    heard.error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    kill(child)
    with pytest.raises(ChildFailed, match=r"is not kept running any more: .*No space left"):
        await asyncio.wait_for(kept, 60)


async def test_a_run_file_that_cannot_be_written_is_reported_once_and_written_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = StateDirectory(tmp_path / "state")
    state.acquire()
    output = io.StringIO()
    display = Display(Console(file=output, width=200), state=state.path, ephemeral=False)
    session = Session(UpOptions(state.path, 1, 0), state, display)
    written = asyncio.Event()
    failures = [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))]

    def write(run: RunFile) -> None:
        if failures:
            raise failures.pop()
        written.set()

    monkeypatch.setattr(state, "write_run", write)
    monkeypatch.setattr("hortus.cli.up.session.RECORD_AGAIN", 0.001)
    session._record(1)
    async with asyncio.timeout(60):
        await written.wait()
    assert "`hortus status` is out of date: cannot write run.json: No space left on device" in output.getvalue()
    state.release()


def test_output_that_cannot_be_written_is_no_reason_to_end(tmp_path: Path) -> None:
    with Path("/dev/full").open("w", buffering=1) as full:
        display = Display(Console(file=full), state=tmp_path, ephemeral=False)
        display.report("apiserver", ChildReport("progress", "ended"))
        display.trouble("still there")
        with pytest.raises(OSError, match="No space left"):
            full.flush()
        os.dup2(os.open(os.devnull, os.O_WRONLY), full.fileno())


@pytest.mark.parametrize("given", [False, True])
def test_the_command_that_goes_on_names_the_directory_unless_it_is_the_default_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: bool
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    state = tmp_path / ("a fleet" if given else "hortus")
    command = f"`hortus up --state-dir '{state}'`" if given else "`hortus up`"
    output = io.StringIO()
    Display(Console(file=output, width=200), state=state, ephemeral=False).up(1.0, {})
    assert f"; {command} goes on where it stopped" in output.getvalue()
    stopped = Status(running=False, healthy=False, state=str(state))
    assert dict(lines(stopped))["running"] == f"no; start it with {command}"
