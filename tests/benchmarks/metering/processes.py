"""Figures of the processes of `hortus up`: their own metrics, processor time and memory, and what they were before."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import aiohttp
from tests.benchmarks.fleet import Figures, cpu_seconds, peak_mib, resident_mib

from hortus.cli.up.state import StateDirectory, metrics_socket
from hortus.kube import Client

PROCESSES = ("controllers", "apiserver", "simulation")
RENDERERS = "renderers"
"""The worker processes of the controllers, taken together."""
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*?)\})? (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_READS = ("GET", "LIST", "WATCH", "")
"""A request that names no resource, such as one for metrics, has no verb."""

Series = dict[tuple[str, frozenset[tuple[str, str]]], float]


class Sample(NamedTuple):
    """All figures at one moment."""

    cpu: Mapping[str, float]
    server: Series
    controllers: Series


class Meters:
    """The processes of one `hortus up`."""

    def __init__(self, state: StateDirectory, client: Client) -> None:
        self._state = state
        self._client = client

    def pid(self, process: str) -> int:
        run = self._state.run()
        assert run is not None, "hortus up has ended"
        return run.processes[process]

    async def sample(self) -> Sample:
        cpu = {name: cpu_seconds(self.pid(name)) for name in PROCESSES}
        cpu[RENDERERS] = _seconds_of_children(self.pid("controllers"))
        server = (await self._client.request("GET", "/metrics", accept="text/plain")).body.decode()
        connector = aiohttp.UnixConnector(path=str(metrics_socket(self._state, 0)))
        async with aiohttp.ClientSession(connector=connector) as session, session.get("http://up/metrics") as answer:
            controllers = await answer.text()
        return Sample(cpu, _series(server), _series(controllers))

    def memory(self) -> Figures:
        return {f"{name}_rss_mib": resident_mib(self.pid(name)) for name in PROCESSES} | {
            "controllers_peak_mib": peak_mib(self.pid("controllers"))
        }


def _seconds_of_children(pid: int) -> float:
    """Processor time of the children of a process, of those that have ended too."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    ended = (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return ended + sum(cpu_seconds(int(child)) for child in found)


def _series(text: str) -> Series:
    return {(name, frozenset(_LABEL.findall(labels))): float(value) for name, labels, value in _SAMPLE.findall(text)}


def summed(series: Series, metric: str, by: str, **wanted: str) -> Counter[str]:
    """The samples of a metric, added by one label."""
    found: Counter[str] = Counter()
    for (name, labels), value in series.items():
        given = dict(labels)
        if name == metric and all(given.get(key) == one for key, one in wanted.items()):
            found[given.get(by, "")] += value  # type: ignore[assignment]
    return found


def calls(before: Sample, after: Sample) -> dict[str, float]:
    """Requests that the server answered in between, by verb."""
    name = "apiserver_request_total"
    return dict(summed(after.server, name, "verb") - summed(before.server, name, "verb"))


def sent(before: Sample, after: Sample) -> dict[str, float]:
    """Requests of the controllers in between, by method and target: the management cluster, or any other cluster."""
    found: Counter[str] = Counter()
    for series, sign in ((after.controllers, 1), (before.controllers, -1)):
        for (name, labels), value in series.items():
            if name == "rest_client_requests_total":
                given = dict(labels)
                target = "clusters" if given.get("host") == "remote" else "management"
                found[f"{target}_{given.get('method', '')}"] += int(sign * value)
    return {key: float(count) for key, count in sorted(found.items()) if count}


def table_of_calls(before: Sample, after: Sample, count: int) -> str:
    """Requests in between by verb and kind, for each Kyma, the most frequent first."""
    found: Counter[tuple[str, ...]] = Counter()
    for series, sign in ((after.server, 1), (before.server, -1)):
        for (name, labels), value in series.items():
            if name == "apiserver_request_total":
                given = dict(labels)
                found[tuple(given.get(key, "") for key in ("verb", "resource", "subresource", "code"))] += int(
                    sign * value
                )
    lines = (f"{amount / count:8.2f} {' '.join(key)}" for key, amount in found.most_common() if amount * 20 > count)
    return "\n".join(lines)


def writes(before: Sample, after: Sample) -> float:
    """Requests that wrote, of everybody, to whatever cluster."""
    return sum(count for verb, count in calls(before, after).items() if verb.upper() not in _READS)


def spent(before: Sample, after: Sample) -> dict[str, float]:
    """Processor time in between, in seconds, by process."""
    return {name: after.cpu[name] - before.cpu[name] for name in after.cpu}


def reconciles(before: Sample, after: Sample, controller: str) -> float:
    name = "controller_runtime_reconcile_total"
    found = summed(after.controllers, name, "controller")
    return found[controller] - summed(before.controllers, name, "controller")[controller]


def idle(sample: Sample, *controllers: str) -> bool:
    """Reports whether none of the controllers, or of all if none is named, has anything waiting or in work."""
    names = ("workqueue_depth", "controller_runtime_active_workers")
    found = [summed(sample.controllers, name, "controller") for name in names]
    return not any(one[name] for one in found for name in controllers or one)


def queue_latency(before: Sample, after: Sample, controller: str) -> Figures:
    """The bounds, in seconds, below which half and 99 of a hundred waits in a queue of that time were."""
    name = "workqueue_queue_duration_seconds_bucket"
    counts = summed(after.controllers, name, "le", name=controller)
    counts.subtract(summed(before.controllers, name, "le", name=controller))
    bounds = sorted((float(bound), count) for bound, count in counts.items())
    total = bounds[-1][1] if bounds else 0
    found = {}
    for share in (50, 99):
        found[f"{controller}_queue_p{share}_s_below"] = next(
            (bound for bound, count in bounds if count >= total * share / 100), 0.0
        )
    return {f"{controller}_queued": float(total), **found}


def percentiles(seconds: list[float], name: str) -> Figures:
    """Median, 99th percentile and the greatest."""
    found = sorted(seconds)
    if not found:
        return {f"{name}_count": 0.0}
    return {
        f"{name}_p50_s": found[len(found) // 2],
        f"{name}_p99_s": found[min(len(found) - 1, len(found) * 99 // 100)],
        f"{name}_most_s": found[-1],
    }
