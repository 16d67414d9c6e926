"""A node agent at rest: resident memory, processor time, and its requests to the API server.

The agent is the program itself, against the embedded API server in another process, a real systemd and a real
containerd. The kubelet is a server that answers /healthz. The figures are those of docs/nodeagent/README.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
from tests.nodeagent.cluster import pooled, settings_text
from tests.nodeagent.realcontainerd import real_containerd
from tests.nodeagent.realsystemd import booted
from tests.nodeagent.world import file, osc_of, service, unit
from tests.waiting import until

from hortus.kube import yaml
from hortus.nodeagent.serving import PlainReply, served
from hortus.nodeagent.settings import Endpoint
from hortus.testing.apiserver import running_apiserver

_TICKS = os.sysconf("SC_CLK_TCK")
_UNITS = 12
_PORT = 27519
_SECONDS = 100.0
_AT_REST = ("PATCH", "WATCH")
_KUBELET_PORT = 10248
_PLACE = (
    "mount --make-rprivate / && mount -t tmpfs tmpfs /run && mkdir /run/containerd"
    ' && mount --bind "$1" /run/containerd && shift && exec "$@"'
)
"""The agent asks the socket at its place, where it sees that of the containerd of this run."""
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


async def requests(port: int) -> Counter[str]:
    """The requests to the API server that the agent counts, by method; WATCH opens a watch."""
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = re.findall(r'^rest_client_requests_total{method="(\w+)"\S* (\d+)', await answer.text(), re.M)
    found: Counter[str] = Counter()
    for method, count in lines:
        found[method] += int(count)
    return found


@contextlib.asynccontextmanager
async def healthy_kubelet() -> AsyncIterator[None]:
    """A server in the place of a kubelet that is healthy."""
    endpoint = Endpoint(bind_address="127.0.0.1", port=_KUBELET_PORT)
    async with served(endpoint, {"/healthz": lambda: PlainReply(200, "ok")}):
        yield


async def measured(seconds: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        runtimes = Path(folder, "containerd")
        runtimes.mkdir()
        async with (
            running_apiserver() as server,
            pooled(server) as pool,
            booted(Path(folder)) as (systemd, root),
            real_containerd(runtimes),
            healthy_kubelet(),
        ):
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
                "unshare", "--mount", "sh", "-c", _PLACE, "sh", str(runtimes),
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
    made = more - calls
    return {
        "resident MiB": memory,
        "of it no file's MiB": anonymous,
        "percent of a core": 100 * spent / took,
        "patches in 100 s": 100 * made["PATCH"] / took,
        "watches in 100 s": 100 * made["WATCH"] / took,
        "other requests in 100 s": 100 * sum(made[each] for each in made if each not in _AT_REST) / took,
    }


def run() -> dict[str, float]:
    return asyncio.run(measured(_SECONDS))
