from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from random import Random

import pytest
import structlog
import uvloop
from tests.engine.fake_api import FakeApi

from hortus.engine.leases import Elector
from hortus.engine.manager import Manager
from hortus.engine.process import GC_THRESHOLDS, run, run_manager, stop_on_signals
from hortus.engine.within import within
from hortus.testing import FakeClock, TestCluster


async def test_the_first_signal_asks_and_the_second_ends_at_once() -> None:
    asked: list[str] = []
    died = asyncio.Event()
    with stop_on_signals(lambda: asked.append("stop"), die=lambda code: died.set()):
        os.kill(os.getpid(), signal.SIGTERM)
        while not asked:
            await asyncio.sleep(0)
        assert not died.is_set()
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.wait_for(died.wait(), 60)
    assert asked == ["stop"]


async def test_a_manager_runs_until_a_signal_and_exits_with_0() -> None:
    manager = Manager(FakeApi(), random=Random(0))
    running = asyncio.create_task(run_manager(manager))
    await asyncio.wait_for(manager.wait_started(), 60)
    os.kill(os.getpid(), signal.SIGTERM)
    try:
        assert await asyncio.wait_for(running, 60) == 0
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


ORPHAN = """
import asyncio, time
from hortus.engine import process

async def main():
    process.stop_with_supervisor(lambda: time.sleep(1000), within=0.05)
    print("runs", flush=True)
    await asyncio.Event().wait()

process.run(main)
"""
"""Does not stop when it is asked to, and lets nothing else have a turn."""


def test_a_process_that_does_not_stop_ends_soon_after_its_supervisor() -> None:
    command = [sys.executable, "-c", ORPHAN]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as orphan:
        try:
            assert orphan.stdin is not None and orphan.stdout is not None
            assert orphan.stdout.readline() == b"runs\n"
            orphan.stdin.close()
            assert orphan.wait(60) == -signal.SIGALRM
        finally:
            orphan.kill()


async def test_lost_leadership_is_exit_code_1() -> None:
    clock, api = FakeClock(), FakeApi()
    elector = Elector(api, name="l", namespace="n", clock=clock)
    manager = Manager(api, clock=clock, election=elector)
    running = asyncio.create_task(run_manager(manager))
    await clock.settle()
    try:
        await clock.stall(60)
        assert await asyncio.wait_for(running, 60) == 1
    finally:
        gc.unfreeze()


@pytest.fixture
def logging_is_put_back() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    structlog.reset_defaults()
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.mark.usefixtures("logging_is_put_back")
def test_run_uses_uvloop_and_a_patient_collector() -> None:
    before = gc.get_threshold()

    async def main() -> bool:
        return isinstance(asyncio.get_running_loop(), uvloop.Loop)

    try:
        assert run(main) is True
        assert gc.get_threshold() == GC_THRESHOLDS
    finally:
        gc.set_threshold(*before)


_FAILING = """
import structlog
from hortus.engine import run
{before}
async def main():
    password = "hunter2-hunter2"
    try:
        raise RuntimeError("no")
    except RuntimeError:
        structlog.get_logger("greeter").exception("failed")
run(main)
"""


@pytest.mark.parametrize(
    ("before", "shown"),
    [
        ("", '"msg":"failed"'),
        ("structlog.configure(processors=[structlog.processors.JSONRenderer()])", '"event": "failed"'),
    ],
)
def test_run_configures_logs_without_variables_unless_the_program_has_done_so(before: str, shown: str) -> None:
    code = _FAILING.format(before=before)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown in done.stderr + done.stdout
    assert "hunter2" not in done.stderr + done.stdout


_HOSTED = """
import sys, structlog
from hortus.engine import HOST_FLAGS, hosted, run
from hortus.engine.flags import FlagSet
async def main():
    async with hosted(FlagSet(HOST_FLAGS).parse(sys.argv[1:]), election="greeter"):
        structlog.get_logger("greeter").info("hosted")
run(main)
"""


@pytest.mark.parametrize(("encoder", "shown"), [("json", '"msg":"hosted"'), ("console", "] hosted ")])
def test_a_hosted_program_logs_as_its_flags_ask(hortus_cluster: TestCluster, encoder: str, shown: str) -> None:
    flags = [f"--kubeconfig={hortus_cluster.kubeconfig}", f"--zap-encoder={encoder}"]
    flags += ["--metrics-bind-address=0", "--health-probe-bind-address=0"]
    done = subprocess.run([sys.executable, "-c", _HOSTED, *flags], capture_output=True, text=True, check=True)
    assert shown in done.stderr


_ENDLESS = """
import asyncio, sys, time
from hortus.engine import HOST_FLAGS, hosted, run
from hortus.engine.flags import FlagSet
from hortus.engine.manager import DEFAULT_GRACE
from hortus.kube.objects import ObjectKey

class Endless:
    began = asyncio.Event()

    async def reconcile(self, key):
        self.began.set()
        await asyncio.Event().wait()

async def main():
    async with hosted(FlagSet(HOST_FLAGS).parse(sys.argv[1:]), election="endless", grace=0.1) as host:
        controller = host.manager.controller("endless", Endless(), sources=[])
        async with host.manager.running():
            controller.queue.add(ObjectKey("default", "one"))
            await Endless.began.wait()
            asked = time.monotonic()
    print("ended", time.monotonic() - asked < DEFAULT_GRACE)

run(main)
"""


def test_a_hosted_program_cuts_reconciles_off_after_its_own_grace(hortus_cluster: TestCluster) -> None:
    flags = [f"--kubeconfig={hortus_cluster.kubeconfig}"]
    flags += ["--metrics-bind-address=0", "--health-probe-bind-address=0"]
    command = [sys.executable, "-c", _ENDLESS, *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=100)
    assert done.stdout == "ended True\n"


def test_importing_the_engine_does_nothing() -> None:
    code = (
        "import gc, logging; before = gc.get_threshold(); import hortus.engine; "
        "print(gc.get_threshold() == before, logging.getLogger().handlers)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True []"


@pytest.mark.parametrize(
    ("hard", "wanted", "found"),
    [(4096, 1000, 1000), (4096, 20_000, 4096 - 500), (600, 20_000, 300)],
)
def test_a_process_opens_as_many_connections_as_it_may_open_files(hard: int, wanted: int, found: int) -> None:
    limits = f"resource.setrlimit(resource.RLIMIT_NOFILE, (256, {hard}))"
    code = f"import resource; {limits}; from hortus.engine.process import files_within; print(files_within({wanted}))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert answer.stdout.splitlines()[-1] == str(found)


async def test_a_step_within_its_time_gives_its_result_and_errors() -> None:
    clock = FakeClock()

    async def answer() -> int:
        return 5

    async def fail() -> int:
        raise ValueError("x")

    assert await within(clock, 1, answer()) == 5
    with pytest.raises(ValueError, match="x"):
        await within(clock, 1, fail())
    assert clock.sleepers == 0


async def test_a_step_beyond_its_time_is_cut_off_and_a_cancelled_caller_is_not_mistaken_for_that() -> None:
    clock = FakeClock()
    late = asyncio.create_task(within(clock, 5, clock.sleep(60)))
    cancelled = asyncio.create_task(within(clock, 50, clock.sleep(60)))
    await clock.advance(5)
    cancelled.cancel()
    await clock.settle()
    assert isinstance(late.exception(), TimeoutError)
    assert cancelled.cancelled()
    assert clock.sleepers == 0
