"""The children of `hortus up` begin in an order in which each finds what it starts from, and load before that."""

from __future__ import annotations

import asyncio
import io
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from rich.console import Console

from hortus.cli.up.progress import Display
from hortus.cli.up.session import Session, UpOptions
from hortus.cli.up.state import StateDirectory
from hortus.cli.up.supervisor import ChildFailed, ChildReport

CHILD = """
import json, pathlib, sys

def say(state, message=""):
    print(json.dumps({"state": state, "message": message}), flush=True)

if "--load-first" in sys.argv:
    say("progress", "is held")
    sys.stdin.readline()
    say("progress", "begins")
if sys.argv[2] == "simulation":
    state = pathlib.Path(sys.argv[sys.argv.index("--state-dir") + 1], "gate").read_text()
    say(state, "by the test")
    if state == "failed":
        sys.exit(1)
say("ready")
sys.stdin.read()
"""
"""Stands in for each child. The simulation reports the state that is written to the gate, a named pipe."""


class Parts:
    """A session whose children are stand-ins, with the reports that came from them."""

    def __init__(self, state: StateDirectory) -> None:
        display = Display(Console(file=io.StringIO()), state=state.path, ephemeral=False)
        display.report = self._heard  # type: ignore[method-assign]
        self.session = Session(UpOptions(state.path, 0, 0), state, display)
        self.reports: list[tuple[str, str]] = []
        self.gate = state.path / "gate"
        self._grown = asyncio.Event()
        os.mkfifo(self.gate)

    def _heard(self, name: str, said: ChildReport) -> None:
        self.reports.append((name, said.message or said.state))
        self._grown.set()

    async def until(self, name: str, state: str) -> None:
        async with asyncio.timeout(60):
            while (name, state) not in self.reports:
                self._grown.clear()
                await self._grown.wait()

    @property
    def running(self) -> set[str]:
        return {child.name for child in self.session._children if child.pid is not None}


@pytest.fixture
async def parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Parts]:
    (tmp_path / "child.py").write_text(CHILD)
    monkeypatch.setattr("hortus.cli.up.session.MODULE", (sys.executable, str(tmp_path / "child.py")))
    state = StateDirectory(tmp_path / "state")
    state.acquire()
    made = Parts(state)
    yield made
    for child in reversed(made.session._children):
        await child.stop()
    state.release()


async def test_the_controllers_begin_once_the_simulation_is_prepared(parts: Parts) -> None:
    starting = asyncio.create_task(parts.session._start(1))
    await parts.until("simulation", "begins")
    assert ("controllers", "begins") not in parts.reports
    parts.gate.write_text("prepared")
    await starting
    assert parts.running == {"apiserver", "simulation", "controllers", "dashboard"}
    begun = [report for report in parts.reports if report[1] != "is held"]
    assert begun[:3] == [("apiserver", "ready"), ("simulation", "begins"), ("simulation", "by the test")]
    others = {("controllers", "begins"), ("controllers", "ready"), ("dashboard", "ready")}
    assert set(begun[3:]) == {("simulation", "ready"), *others}


async def test_the_others_load_while_the_server_starts(
    tmp_path: Path, parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This server is ready when both others are held."""
    for name in ("simulation", "controllers"):
        os.mkfifo(tmp_path / name)
    script = CHILD.replace('say("progress", "is held")', f"pathlib.Path({str(tmp_path)!r}, sys.argv[2]).write_text('')")
    script += f"""
if sys.argv[2] == "apiserver":
    for name in ("simulation", "controllers"):
        pathlib.Path({str(tmp_path)!r}, name).read_text()
"""
    (tmp_path / "child.py").write_text(
        script.replace('say("ready")\nsys.stdin.read()\n', "") + 'say("ready")\ninput()\n'
    )
    starting = asyncio.create_task(parts.session._start(1))
    await parts.until("simulation", "begins")
    parts.gate.write_text("prepared")
    await asyncio.wait_for(starting, 60)
    assert parts.reports[0] == ("apiserver", "ready")


async def test_the_controllers_do_not_start_after_a_simulation_that_fails(parts: Parts) -> None:
    starting = asyncio.create_task(parts.session._start(1))
    await parts.until("simulation", "begins")
    parts.gate.write_text("failed")
    with pytest.raises(ChildFailed, match="by the test"):
        await starting
    assert not {("controllers", "begins"), ("controllers", "ready")} & set(parts.reports)
