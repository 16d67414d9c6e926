"""Plans that are long, interrupted or cut short: what is seen meanwhile, and how they end."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
from tests.cli.terminals import terminal
from tests.scenarios.running import hortus

from hortus.cli.plan.progress import PlanProgress
from hortus.cli.plan.running import _Budget
from hortus.simulation.fork import VirtualLoop
from hortus.terminal import CommandError

LONG = "3000d"
"""A horizon that no test waits for."""


def test_a_terminal_shows_the_progress_and_an_interrupt_ends_a_plan_at_once(state: Path, tmp_path: Path) -> None:
    words = ("plan", "--state-dir", str(state), "--until", LONG)
    with terminal(*words, width=120, height=10, TMPDIR=str(tmp_path)) as screen:
        shown = screen.until(
            lambda lines: "after the change" in lines[0] and "virtual time" in lines[0], "the progress"
        )
        assert "lists read" in shown[0]
        began = time.monotonic()
        screen.type("\x03")
        assert screen.ended() == 130
        assert time.monotonic() - began < 10.0
    assert [line for line in screen.lines if line != "^C"] == [
        "interrupted: there is no plan, and the fleet is as it was"
    ]
    assert [*tmp_path.glob("hortus-plan-*")] == [], "a folder of the plan is left"


def test_an_interrupt_while_the_fleet_is_read_ends_a_plan_at_once(state: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = (state / "kubeconfig").read_text()
        server = orjson.loads((state / "run.json").read_bytes())["server"]
        file = tmp_path / "silent.yaml"
        file.write_text(config.replace(server, f"https://127.0.0.1:{silent.getsockname()[1]}"))
        words = ("plan", "--state-dir", str(state), "--kubeconfig", str(file))
        with terminal(*words, width=120, height=10, TMPDIR=str(tmp_path)) as screen:
            screen.until(lambda lines: "reading the fleet" in lines[0], "the progress")
            called, _ = silent.accept()
            with called:
                screen.type("\x03")
                assert screen.ended() == 130
        assert "interrupted: there is no plan, and the fleet is as it was" in screen.lines


def test_the_output_is_json_alone_and_nothing_is_drawn_where_no_terminal_is(state: Path) -> None:
    done = hortus("plan", "--state-dir", str(state), "-o", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["ended"] == "Rest"


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop()
    yield made
    made.close()


def test_a_budget_that_is_spent_before_the_change_is_refused_with_the_fix(loop: VirtualLoop) -> None:
    with _Budget(loop, 1.0) as budget, pytest.raises(CommandError) as refused:
        loop.run_until_complete(budget.kept(asyncio.Event().wait()))
    assert str(refused.value) == (
        "the budget of 1s was spent before the change was made: the fleet was still being read, or did not come to "
        "rest; give more with --budget"
    )


def test_an_interrupt_after_the_change_is_no_budget_that_was_spent_before_it(loop: VirtualLoop) -> None:
    async def work() -> None:
        budget.begin()
        await budget.spent.wait()
        raise asyncio.CancelledError

    with _Budget(loop, 0.01) as budget, pytest.raises(asyncio.CancelledError):
        loop.run_until_complete(budget.kept(work()))


def test_a_line_of_progress_says_what_there_is() -> None:
    progress = PlanProgress()
    assert progress.line() == "starting, 0s"
    progress.phase, progress.lists, progress.passed = "after the change", lambda: 1, lambda: 7260.0
    progress.writes = lambda: 2
    assert progress.line() == "after the change, 0s; 1 list read; 2h 1m of virtual time; 2 writes"
