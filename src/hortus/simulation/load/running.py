"""Runs a plan against a system, phase by phase, and measures it.

    plan -> executors (operations), striker (faults), followers (watches), sampler (processes, metrics) -> report

However a run ends, by itself, by its gates or by Ctrl-C, everything that was measured is reported and every fault is
taken back.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import msgspec

from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError
from hortus.kube.objects import format_time
from hortus.simulation.guard import require_mark
from hortus.simulation.load import checks
from hortus.simulation.load.conditions import parse_until
from hortus.simulation.load.gates import Gate
from hortus.simulation.load.measuring import Recorder
from hortus.simulation.load.operations import Crew, Executor, Ground, gather_crew
from hortus.simulation.load.phases import Meter
from hortus.simulation.load.plan import LoadPlan, TrackPlan
from hortus.simulation.load.report import Findings, PhaseReport, RunReport, judged, measured
from hortus.simulation.load.sampling import Counters, MetricsPage, ProcessTable
from hortus.simulation.load.series import Series
from hortus.simulation.load.settings import ScenarioError
from hortus.simulation.load.striking import Processes, Striker, check_faults
from hortus.simulation.load.templates import LoadTemplate

SAMPLE = 1.0
"""Seconds between two looks at processes and counters."""
_SCRAPE = 5
"""Samples between two readings of metrics pages."""
_FIRST_LIST = 30.0
"""Seconds within which watches must have begun."""


class System(msgspec.Struct, frozen=True):
    """The system under load."""

    management: Client
    garden: Client | None
    processes: Processes
    """The processes of the local fleet, by name; of `hortus up`."""
    metrics: Mapping[str, str]
    """URLs of metrics pages by process, or `unix:PATH`."""
    control: Client | None = None
    """For faults, where the management client's certificate would not outlast a clock that is wrong."""


class RunProgress(msgspec.Struct, frozen=True):
    """The progress of a run."""

    seconds: float
    phase: int
    phases: int
    doing: str
    planned: int
    created: int
    ready: int
    living: int
    failed: int
    operations: dict[str, int]
    faults: int
    """The number of strikes so far."""
    usage: dict[str, tuple[float, float]]
    """Cores in use and bytes resident by process."""


Listener = Callable[[RunProgress], None]


def new_load_id() -> str:
    """Six letters and digits that begin with a letter; short, as names of shoots are."""
    return "l" + "".join(secrets.choice("abcdefghijkmnpqrstuvwxyz23456789") for _ in range(4))


class LoadRun:
    """One run of one plan; used once."""

    def __init__(
        self,
        plan: LoadPlan,
        templates: Mapping[str, LoadTemplate],
        system: System,
        *,
        load_id: str,
        clock: Clock,
        gates: tuple[Gate, ...] = (),
        listener: Listener = lambda progress: None,
    ) -> None:
        self._plan = plan
        self._templates = templates
        self._system = system
        self._clock = clock
        self._gates = gates
        self._listener = listener
        self._load_id = load_id
        self._random = Random()  # noqa: S311 - jitter of retries
        self._recorder = Recorder()
        self._series = Series()
        self._table = ProcessTable(system.processes)
        self._pages = {name: MetricsPage(url) for name, url in system.metrics.items()}
        self._server = Counters()
        self._crews: dict[str, Crew] = {}
        self._began = clock.monotonic()
        self._started = clock.now()
        self._last_ready = self._began
        self._cores: dict[str, tuple[float, float]] = {}
        self._phase, self._doing = 0, "preparing"
        self._interrupted = False
        self._ready_at_end = 0
        self._ended: list[PhaseReport] = []
        self._striker = Striker(system.control or system.management, system.processes, clock, began=self._began)

    async def run(self, stop: asyncio.Event) -> RunReport:
        """Everything, until the plan is over or `stop` is set. Raises ScenarioError, NotMarked, KubeError before."""
        await self._prepare()
        async with self._watching():
            # Samples begin when the watches do, so that their first lists do not count.
            self._began = self._striker.began = self._clock.monotonic()
            self._last_ready = self._began
            self._table.look()
            await self._scrape()
            sampler = asyncio.create_task(self._sample())
            try:
                await self._unless(stop, self._phases())
                await self._unless(stop, self._finish())
            finally:
                sampler.cancel()
                await asyncio.gather(sampler, return_exceptions=True)
            await self._scrape()
            self._look()
            return self._report()

    async def _prepare(self) -> None:
        system = self._system
        await require_mark(system.management, "management")
        if any(part.garden for template in self._templates.values() for part in template.parts) and system.garden:
            await require_mark(system.garden, "garden")
        for track in self._plan.tracks:
            await check_faults(track, system.control or system.management, system.processes)
            work = track.track.load or track.track.fleet
            if work is not None:
                ground = self._ground()
                until = parse_until(work.until) if work.until else None
                template = self._templates[work.template]
                self._crews[track.letter] = await gather_crew(ground, template, work.namespace, until, track.letter)

    def _ground(self) -> Ground:
        return Ground(
            self._system.management,
            self._system.garden,
            self._load_id,
            self._plan.scenario.project,
            self._clock,
            self._random,
            self._recorder,
        )

    @asynccontextmanager
    async def _watching(self) -> AsyncIterator[None]:
        followers = [follower for crew in self._crews.values() for follower in crew.followers()]
        tasks = [asyncio.create_task(follower.run()) for follower in followers]
        try:
            try:
                async with asyncio.timeout(_FIRST_LIST):
                    for follower in followers:
                        await follower.synced.wait()
            except TimeoutError:
                host = self._system.management.host
                problem = f"{host}: no list of the objects to watch within {_FIRST_LIST:.0f} s; is it overloaded?"
                raise ScenarioError(problem) from None
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _unless(self, stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
        """Do `work` unless somebody says stop; what it raised is raised."""
        if stop.is_set():
            work.close()
            return
        task, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
            self._interrupted = self._interrupted or not task.done()
        finally:
            for one in (task, stopped):
                if not one.done():
                    one.cancel()
            results = await asyncio.gather(task, stopped, return_exceptions=True)
        if isinstance(results[0], Exception):
            raise results[0]

    async def _phases(self) -> None:
        """All phases, or those up to the first that breaks one of its gates."""
        meter = Meter(self._recorder, self._table.usage, self._pages, self._server, self._striker.kills)
        for number, (phase, stage) in enumerate(zip(self._plan.scenario.phases, self._plan.stages, strict=True), 1):
            self._phase = number
            self._doing = ", ".join(track.track.kind for track in stage)
            mark = meter.mark(self._clock.monotonic() - self._began)
            async with asyncio.TaskGroup() as group:
                for track in stage:
                    group.create_task(self._track(track))
            ended = self._clock.monotonic() - self._began
            await self._scrape()
            self._look()
            name = phase.name or str(number)
            self._ended.append(meter.report(mark, ended, name, self._doing, phase.parsed_gates))
            if not self._ended[-1].passed:
                return

    async def _track(self, track: TrackPlan) -> None:
        work = track.track.load or track.track.fleet
        if work is not None:
            executor = Executor(self._ground(), self._crews[track.letter], concurrency=work.concurrency)
            try:
                await executor.run(track.operations, timeout=work.timeout)
            finally:
                self._last_ready = max(self._last_ready, executor.last_ready)
        elif track.track.faults is not None:
            await self._striker.run(track)
        elif track.track.rest is not None:
            await self._clock.sleep(track.track.rest)

    async def _finish(self) -> None:
        """Let things come to rest, then compare what is there with what should be."""
        self._doing = "settling"
        known = frozenset(failure.object for failure in self._recorder.failures)
        for track in self._plan.tracks:
            crew = self._crews.get(track.letter)
            work = track.track.load or track.track.fleet
            if crew is not None and work is not None:
                await checks.settle(crew, timeout=work.timeout, known=known)
        self._doing = "comparing"
        for name, usage in self._table.usage.items():
            if (unasked := usage.restarts - self._striker.kills[name]) > 0:
                self._recorder.fail(name, f"the process ended by itself, {unasked} times")
        for crew in self._crews.values():
            self._ready_at_end += await checks.verify(crew, self._recorder, known=known)

    async def _sample(self) -> None:
        number = 0
        while True:
            self._look()
            self._listener(self._progress())
            await self._clock.sleep(SAMPLE)
            number += 1
            if number % _SCRAPE == 0:
                await self._scrape()

    async def _scrape(self) -> None:
        for page in self._pages.values():
            await page.look()
        try:
            answer = await self._system.management.request("GET", "/metrics", accept="text/plain", timeout=20.0)
        except KubeError:
            return
        self._server.take(answer.body.decode(errors="replace"), ("apiserver_request_total",))

    def _look(self) -> None:
        """One sample of everything that can be had without a call."""
        at = self._clock.monotonic() - self._began
        before = {name: usage.cpu for name, usage in self._table.usage.items()}
        passed = at - self._series.times[-1] if self._series.times else 0.0
        self._table.look()
        values = {"created": float(self._recorder.done["create"]), "ready": float(self._ready())}
        values["calls"] = float(sum(found.count for found in self._recorder.calls.values()))
        for name, usage in self._table.usage.items():
            values[f"memory {name}"] = usage.memory
            values[f"cpu seconds {name}"] = usage.cpu
            cores = (usage.cpu - before.get(name, usage.cpu)) / passed if passed else 0.0
            self._cores[name] = (cores, usage.memory)
        for name, page in self._pages.items():
            if "workqueue_depth" in page.gauges:
                values[f"queue {name}"] = page.gauges["workqueue_depth"]
            if name not in self._table.usage and "process_resident_memory_bytes" in page.gauges:
                values[f"memory {name}"] = page.gauges["process_resident_memory_bytes"]
                values[f"cpu seconds {name}"] = page.counters.sum("process_cpu_seconds_total")
        self._series.add(at, values)

    def _ready(self) -> int:
        return sum(crew.subject.follower.ready for crew in self._crews.values())

    def _progress(self) -> RunProgress:
        return RunProgress(
            seconds=self._clock.monotonic() - self._began,
            phase=self._phase,
            phases=len(self._plan.stages),
            doing=self._doing,
            planned=self._plan.objects,
            created=self._recorder.done["create"],
            ready=self._ready(),
            living=sum(len(crew.living) for crew in self._crews.values()),
            failed=self._recorder.failed,
            operations=dict(self._recorder.done),
            faults=len(self._striker.struck),
            usage=dict(self._cores),
        )

    def _report(self) -> RunReport:
        pages = {name: page.counters for name, page in self._pages.items()}
        findings = Findings(self._recorder, self._series, self._table.usage, dict(self._striker.kills), pages)
        report = RunReport(
            scenario=self._plan.scenario.name,
            description=self._plan.scenario.description,
            server=self._system.management.host,
            load_id=self._load_id,
            seed=self._plan.seed,
            started=format_time(self._started),
            seconds=self._clock.monotonic() - self._began,
            busy=self._last_ready - self._began,
            interrupted=self._interrupted,
            planned=self._plan.objects,
            ready=self._ready_at_end if not self._interrupted else self._ready(),
            living=sum(len(crew.living) for crew in self._crews.values()),
            struck_requests=self._striker.requests,
            faults=tuple(self._striker.struck),
            phases=tuple(self._ended),
            phases_planned=len(self._plan.stages),
            **measured(findings, self._server),
        )
        return judged(report, self._gates, self._recorder)
