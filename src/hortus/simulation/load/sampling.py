"""The cost of the processes of a system during a load: CPU, memory, traffic, and their metrics.

Processes of this machine are read from /proc, others from the standard `process_*` metrics. Counters are added up over
restarts: one that is smaller than before started from zero.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import aiohttp
import msgspec

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_LINE = re.compile(r"^([a-zA-Z_:][\w:]*)(\{.*\})? (\S+)(?: \d+)?$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_PATIENCE = aiohttp.ClientTimeout(total=3.0)


class Usage(msgspec.Struct):
    """The resources that one process has used since the begin; bytes and seconds."""

    pid: int = 0
    cpu: float = 0.0
    memory: float = 0.0
    """Now."""
    peak: float = 0.0
    io: float = 0.0
    """Read and written through all descriptors, sockets and files."""
    restarts: int = 0
    high: float = 0.0
    """The most memory since `mark`, which `peak` is since the begin."""
    _cpu: float = 0.0
    _io: float = 0.0

    def take(self, pid: int, cpu: float, memory: float, io: float) -> None:
        """The process's own counters now."""
        if pid != self.pid:
            self.restarts += bool(self.pid)
            self._cpu, self._io = (cpu, io) if not self.pid else (0.0, 0.0)
            self.pid = pid
        self.cpu += max(0.0, cpu - self._cpu)
        self.io += max(0.0, io - self._io)
        self._cpu, self._io = cpu, io
        self.memory, self.peak, self.high = memory, max(self.peak, memory), max(self.high, memory)

    def mark(self) -> Usage:
        """Returns a copy of what it is now, and starts a new search for the most memory."""
        self.high = self.memory
        return msgspec.structs.replace(self)

    def since(self, mark: Usage) -> Usage:
        """The use since `mark`."""
        return Usage(
            pid=self.pid,
            cpu=self.cpu - mark.cpu,
            memory=self.memory,
            peak=self.high,
            io=self.io - mark.io,
            restarts=self.restarts - mark.restarts,
        )


class ProcessTable:
    """The processes of the local fleet, and ourselves as `simulate`."""

    def __init__(self, processes: Callable[[], Mapping[str, int]]) -> None:
        self._processes = processes
        self.usage: dict[str, Usage] = {}

    def look(self) -> None:
        """Read them all; one that is just not there is left out."""
        for name, pid in {**self._processes(), "simulate": os.getpid()}.items():
            try:
                cpu, memory, io = _of(pid)
            except (OSError, ValueError, IndexError):
                continue
            self.usage.setdefault(name, Usage()).take(pid, cpu, memory, io)


def _of(pid: int) -> tuple[float, float, float]:
    """CPU seconds, resident bytes and bytes read and written so far. Raises OSError."""
    folder = Path(f"/proc/{pid}")
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    if fields[0] == "Z":
        raise OSError("it has ended")
    cpu = (int(fields[11]) + int(fields[12])) / _TICKS
    io = dict(line.split(": ") for line in (folder / "io").read_text().splitlines())
    return cpu, int(fields[21]) * _PAGE, float(int(io["rchar"]) + int(io["wchar"]))


class Counters:
    """Counters of one metrics page, added up since the first look."""

    def __init__(self) -> None:
        self.total: dict[tuple[str, str], float] = {}
        """By (name, labels as written)."""
        self._last: dict[tuple[str, str], float] = {}
        self._begun = False

    def take(self, text: str, names: tuple[str, ...]) -> None:
        """A page as it is now; only samples whose names are among `names` are kept."""
        now = {(name, labels): value for name, labels, value in samples(text) if name in names}
        for key, value in now.items():
            last = self._last.get(key, 0.0 if self._begun else value)
            self.total[key] = self.total.get(key, 0.0) + (value - last if value >= last else value)
        self._last, self._begun = now, True

    def copy(self) -> Counters:
        """The growth so far, which stays as it is."""
        found = Counters()
        found.total = dict(self.total)
        return found

    def since(self, mark: Counters) -> Counters:
        """The growth since `mark`, which is a copy of these counters."""
        found = Counters()
        found.total = {series: value - mark.total.get(series, 0.0) for series, value in self.total.items()}
        return found

    def sum(self, name: str, **labels: str) -> float:
        """The growth of all series of `name` with these labels."""
        return sum(
            value
            for (found, written), value in self.total.items()
            if found == name and all(dict(_LABEL.findall(written)).get(key) == want for key, want in labels.items())
        )

    def has(self, name: str) -> bool:
        """True when there is any such series."""
        return any(found == name for found, _ in self.total)

    def quantile(self, histogram: str, share: float) -> float | None:
        """A quantile of a Prometheus histogram's growth, straight within a bucket; None when nothing was counted."""
        buckets: dict[float, float] = {}
        for (name, written), value in self.total.items():
            if name == f"{histogram}_bucket":
                bound = float(dict(_LABEL.findall(written))["le"].replace("+Inf", "inf"))
                buckets[bound] = buckets.get(bound, 0.0) + value
        found = sorted(buckets.items())
        if not found or found[-1][1] <= 0:
            return None
        wanted, below, before = share * found[-1][1], 0.0, 0.0
        for bound, count in found:
            if count >= wanted:
                if bound == float("inf"):
                    return below
                return below + (bound - below) * (wanted - before) / max(count - before, 1e-9)
            below, before = bound, count
        return below


def samples(text: str) -> Iterator[tuple[str, str, float]]:
    """(name, labels as written, value) of each line of a page in Prometheus' text format."""
    for found in _LINE.finditer(text):
        try:
            yield found[1], found[2] or "", float(found[3])
        except ValueError:
            continue


QUEUE_TIME = "workqueue_queue_duration_seconds"
KEPT = (
    f"{QUEUE_TIME}_bucket",
    "rest_client_requests_total",
    "process_cpu_seconds_total",
    "controller_runtime_reconcile_total",
    "controller_runtime_reconcile_errors_total",
)
GAUGES = ("workqueue_depth", "process_resident_memory_bytes")


class MetricsPage:
    """One process's `/metrics`, at a URL or, as `unix:PATH`, at a socket of this machine."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.counters = Counters()
        self.gauges: dict[str, float] = {}
        self.misses = 0
        """The number of failed reads."""

    async def look(self) -> None:
        """Read it; one that does not answer is counted, not raised: it may just have been killed."""
        try:
            text = await self._read()
        except (aiohttp.ClientError, OSError, ValueError):
            self.misses += 1
            return
        self.counters.take(text, KEPT)
        self.gauges = {}
        for name, _, value in samples(text):
            if name in GAUGES:
                self.gauges[name] = self.gauges.get(name, 0.0) + value

    async def _read(self) -> str:
        path = self.url.removeprefix("unix:")
        connector = aiohttp.UnixConnector(path) if path != self.url else None
        url = "http://localhost/metrics" if connector else self.url
        async with aiohttp.ClientSession(connector=connector, timeout=_PATIENCE) as session, session.get(url) as answer:
            answer.raise_for_status()
            return await answer.text()
