"""A node agent at rest: resident memory, processor time, and its requests to the API server.

The agent is the program itself, against the embedded API server in another process and a real systemd; there is no
kubelet and no containerd, whose health is asked in vain and reported by events. The figures are those of
docs/nodeagent/README.md.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import aiohttp
from tests.nodeagent.cluster import pooled, settings_text
from tests.nodeagent.realsystemd import booted
from tests.nodeagent.world import file, osc_of, service, unit
from tests.waiting import until

from hortus.kube import yaml
from hortus.testing.apiserver import running_apiserver

_TICKS = os.sysconf("SC_CLK_TCK")
_UNITS = 12
_PORT = 27519
_SECONDS = 100.0
_SETTLED = 20.0
"""Seconds after which an agent that has applied its configuration is at rest."""


def resident(process: int) -> tuple[float, float]:
    """Resident memory in MiB, all of it and the part that is no file's."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return int(lines["VmRSS"].split()[0]) / 1024, int(lines["RssAnon"].split()[0]) / 1024


def processor(process: int) -> float:
    """Processor time in seconds, with that of children that ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / _TICKS


async def requests(port: int) -> int:
    """The requests to the API server that the agent counts, watches among them."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
        return sum(
            int(found) for found in re.findall(r"^rest_client_requests_total\S* (\d+)", await answer.text(), re.M)
        )


async def measured(seconds: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        async with running_apiserver() as server, pooled(server) as pool, booted(Path(folder)) as (systemd, root):
            await pool.token("t0")
            await pool.register("node-1")
            units = [unit(f"part-{number}.service", service("/bin/sleep 100000")) for number in range(_UNITS)]
            files = [file(f"/etc/hortus-test/{number}", "x" * 2000) for number in range(40)]
            checksum = await pool.publish(osc_of(files, units))
            state = root / "var/lib/gardener-node-agent"
            (state / "credentials").mkdir(parents=True)
            (state / "config-1.yaml").write_text(
                settings_text().replace("port: 0}\ncontrollers", f"port: {_PORT}}}\ncontrollers")
            )
            (state / "credentials/kubeconfig").write_text(yaml.dump(server.token_kubeconfig_dict()))
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "hortus.nodeagent.main", "--root", str(root), "--bus", systemd.address,
                "--hostname", "node-1", stderr=asyncio.subprocess.DEVNULL,
            )  # fmt: skip
            try:

                async def applied() -> bool:
                    return await pool.checksum_at("node-1") == checksum

                await until(applied)
                await asyncio.sleep(_SETTLED)
                began, before = time.monotonic(), processor(process.pid)
                calls = await requests(_PORT)
                await asyncio.sleep(seconds)
                more = await requests(_PORT)
                spent, took = processor(process.pid) - before, time.monotonic() - began
                memory, anonymous = resident(process.pid)
            finally:
                process.terminate()
                await process.wait()
    return {
        "resident MiB": memory,
        "of it no file's MiB": anonymous,
        "percent of a core": 100 * spent / took,
        "requests in 100 s": 100 * (more - calls) / took,
    }


def run() -> dict[str, float]:
    return asyncio.run(measured(_SECONDS))
