"""The program `hortus-watcher-agent` as a process: its size, its errors, and a kill while the control plane is away."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.domains.modules.watching.agent.world import PATIENCE, World, review

PROGRAM = (sys.executable, "-c", "from hortus.domains.modules.watching.agent.main import main; main()")
MOST_MEMORY = 60 * 1024
"""KiB."""


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    made = World(tmp_path)
    await made.control.start()
    try:
        yield made
    finally:
        await made.control.stop()


@asynccontextmanager
async def agent(environment: Mapping[str, str]) -> AsyncIterator[tuple[Process, int]]:
    """The process and the port of its webhook."""
    whole = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    process = await asyncio.create_subprocess_exec(*PROGRAM, env=whole, stdout=PIPE, stderr=PIPE)
    assert process.stderr is not None
    assert process.stdout is not None
    try:
        port = await asyncio.wait_for(_port(process.stderr), PATIENCE)
        yield process, port
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def _port(stream: asyncio.StreamReader) -> int:
    text = ""
    async for line in stream:
        text += line.decode()
        found = re.search(r"webhook_port\W+(\d+)", text)
        if found:
            return int(found[1])
    raise AssertionError(f"the agent ended: {text}")


async def test_events_survive_a_kill_and_arrive_in_order(world: World) -> None:
    """Acknowledged to the API server means reported, whatever happens to the agent and the control plane."""
    await world.control.stop()
    async with agent(world.environment) as (process, port):
        for name in ("first", "second", "third"):
            assert (await world.review(port, review(name=name)))[0] == 200
        process.send_signal(signal.SIGKILL)
        await process.wait()
    await world.control.start()
    async with agent(world.environment):
        names = [(await world.control.next())[1]["watched"]["Name"] for _ in range(3)]
    assert names == ["first", "second", "third"]


async def test_the_agent_is_small_and_loads_no_part_of_the_control_plane(world: World) -> None:
    async with agent(world.environment) as (process, port):
        for number in range(50):
            await world.review(port, review(name=f"n{number}"))
        await world.control.next()
        status = Path(f"/proc/{process.pid}/status").read_text()
        memory = int(re.search(r"VmRSS:\s+(\d+) kB", status)[1])  # type: ignore[index]
        process.send_signal(signal.SIGTERM)
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0
    assert memory < MOST_MEMORY, f"{memory} KiB"


def test_the_agent_imports_no_controller_cache_renderer_or_certificate_library() -> None:
    listing = (
        "import sys, hortus.domains.modules.watching.agent.main; print(*sorted(m for m in sys.modules "
        "if m.startswith(('hortus.', 'cryptography.x509'))))"
    )
    found = set(
        subprocess.run([sys.executable, "-c", listing], capture_output=True, text=True, check=True).stdout.split()
    )
    engine = {name for name in found if name.startswith("hortus.engine.")}
    assert engine == {
        "hortus.engine.backoff",
        "hortus.engine.exposition",
        "hortus.engine.health",
        "hortus.engine.logging",
        "hortus.engine.redaction",
        "hortus.engine.scope",
        "hortus.engine.serving",
        "hortus.engine.serving.listening",
    }
    assert not {name for name in found if name.startswith(("hortus.render", "hortus.schema", "hortus.apiserver"))}
    assert "cryptography.x509" not in found


def test_missing_variables_are_named_all_at_once(tmp_path: Path) -> None:
    done = subprocess.run(
        PROGRAM,
        env={"TLS_CERT": "x", "TLS_KEY": "y", "KCP_CONTRACT": "v2", "WEBHOOK_PORT": "http"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (
        1,
        "error: CA_CERT is not set; KCP_ADDR is not set; WEBHOOK_PORT is 'http': must be a number from 0 to 65535\n",
    )


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    names = ("CA_CERT", "TLS_CERT", "TLS_KEY")
    environment = {name: str(tmp_path / name) for name in names} | {"KCP_ADDR": "h:1", "KCP_CONTRACT": "v2"}
    done = subprocess.run(PROGRAM, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"error: {tmp_path}/CA_CERT: No such file or directory\n")
