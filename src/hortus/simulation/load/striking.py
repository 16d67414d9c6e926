"""Lets the faults of a plan strike: rules for the API server's requests, signals for processes.

Rules are replaced as a whole whenever one begins or ends, and each carries its own end: if this process is killed, the
fault still passes. A process that was stopped is started again however the track ends.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec
import orjson

from hortus.kube import Client
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError, NotFound
from hortus.simulation.disruptionrules import PATH, DisruptionRule, Drop, Rules
from hortus.simulation.load.faultkinds import (
    AGENTS,
    ClockStep,
    DroppedWatches,
    Fault,
    InjectedErrors,
    Kill,
    Latency,
    OnServer,
    Partition,
    Pause,
)
from hortus.simulation.load.plan import Strike, TrackPlan
from hortus.simulation.load.settings import ScenarioError

Processes = Callable[[], Mapping[str, int]]
"""The processes of the local fleet now, by name; empty where there are none."""


class Struck(msgspec.Struct, frozen=True):
    """A fault that struck, for the report."""

    at: float
    """Seconds after the begin of the run."""
    ends: float
    fault: str
    what: str


async def check_faults(track: TrackPlan, client: Client, processes: Processes) -> None:
    """Raises ScenarioError for faults that this system cannot be struck by."""
    events = track.track.faults.events if track.track.faults else ()
    if any(isinstance(event, Kill | Pause) for event in events) and not processes():
        raise ScenarioError(
            "kill and pause need the processes of `hortus up` on this machine, and the chosen cluster is not one of "
            "them: leave these faults out, or choose the local fleet with --state-dir DIR"
        )
    running = processes()
    for event in events:
        if isinstance(event, Kill | Pause) and event.process not in running:
            raise ScenarioError(
                f"process {event.process} does not run in the local fleet; there are: {', '.join(running)}"
            )
    if any(isinstance(event, OnServer) for event in events):
        try:
            await client.request("GET", PATH)
        except NotFound:
            raise ScenarioError(
                f"the API server at {client.host} is not one of `hortus up`, so its requests and clock cannot be "
                "struck; kill and pause need the local fleet, too"
            ) from None


class Striker:
    """Lets the strikes of all tracks happen. One for each run: rules are replaced as a whole."""

    def __init__(self, client: Client, processes: Processes, clock: Clock, *, began: float) -> None:
        self._client = client
        self._processes = processes
        self._clock = clock
        self.began = began
        self._rules: dict[tuple[str, Strike], Fault] = {}
        self._ends: dict[tuple[str, Strike], float] = {}
        self.struck: list[Struck] = []
        self.kills: Counter[str] = Counter()
        """The number of kills of each process here, so that nobody wonders why it ended."""
        self.requests = 0
        """The number of requests struck."""
        self._counted = -1

    async def run(self, track: TrackPlan) -> None:
        """All strikes of a track, until its duration is over."""
        faults = track.track.faults
        assert faults is not None
        began = self._clock.monotonic()
        await self._impose()
        try:
            async with asyncio.TaskGroup() as group:
                for strike in track.strikes:
                    group.create_task(self._one(track.letter, strike, faults.events[strike.event], began))
                await self._until(began + faults.duration)
        finally:
            for key in [key for key in self._rules if key[0] == track.letter]:
                del self._rules[key]
            await asyncio.shield(self._impose())

    async def _one(self, letter: str, strike: Strike, fault: Fault, began: float) -> None:
        await self._until(began + strike.at)
        now = self._clock.monotonic()
        self.struck.append(Struck(now - self.began, now - self.began + strike.ends - strike.at, *_words(fault)))
        if isinstance(fault, Kill):
            self._signal(fault.process, signal.SIGKILL)
        elif isinstance(fault, Pause):
            await self._pause(fault, began + strike.ends)
        elif isinstance(fault, DroppedWatches):
            drop = {"drop": msgspec.to_builtins(Drop(_agents(fault.clients), fault.resources))}
            await self._send("POST", drop)
        else:
            key = (letter, strike)
            self._rules[key], self._ends[key] = fault, began + strike.ends
            await self._impose()
            await self._until(began + strike.ends)
            self._rules.pop(key, None)
            await self._impose()

    async def _until(self, when: float) -> None:
        delay = when - self._clock.monotonic()
        if delay > 0:
            await self._clock.sleep(delay)

    async def _impose(self) -> None:
        """Tell the API server which rules are in force now."""
        now = self._clock.monotonic()
        rules, offset, seconds = [], 0.0, 0.0
        for key, fault in self._rules.items():
            left, strike = self._ends[key] - now, key[1]
            if left <= 0:
                continue
            if isinstance(fault, ClockStep):
                offset, seconds = offset + fault.by, max(seconds, left)
            elif isinstance(fault, Latency | InjectedErrors | Partition):
                rules.append(_rule(fault, left, strike.seed))
        await self._send("PUT", msgspec.to_builtins(Rules(tuple(rules), offset, seconds)))

    async def _send(self, method: str, body: Any) -> None:
        # A server that was killed has forgotten its rules, and learns those of then with the next change.
        with suppress(KubeError):
            answer = await self._client.request(method, PATH, orjson.dumps(body), timeout=5.0)
            self._count(orjson.loads(answer.body).get("struck"))

    def _count(self, struck: int | None) -> None:
        """The server's own count, which begins at 0 with its process."""
        if struck is None:
            return
        if self._counted >= 0:
            self.requests += struck - self._counted if struck >= self._counted else struck
        self._counted = struck

    async def _pause(self, fault: Pause, until: float) -> None:
        pid = self._signal(fault.process, signal.SIGSTOP)
        try:
            await self._until(until)
        finally:
            if pid:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def _signal(self, process: str, number: signal.Signals) -> int:
        pid = self._processes().get(process, 0)
        if pid:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
                self.kills[process] += number == signal.SIGKILL
        return pid


def _agents(clients: tuple[str, ...]) -> tuple[str, ...]:
    return () if "all" in clients else tuple(AGENTS[client] for client in clients)


def _rule(fault: Latency | InjectedErrors | Partition, seconds: float, seed: int) -> DisruptionRule:
    rule = DisruptionRule(
        str(fault.__struct_config__.tag),
        seconds,
        agents=_agents(fault.clients),
        verbs=fault.verbs,
        resources=fault.resources,
        share=fault.share,
        seed=seed,
    )
    if isinstance(fault, Latency):
        return msgspec.structs.replace(rule, delay=fault.delay, jitter=fault.jitter)
    if isinstance(fault, InjectedErrors):
        return msgspec.structs.replace(rule, code=fault.code, retry_after=fault.retryAfter)
    return msgspec.structs.replace(rule, hang=fault.hang)


def _words(fault: Fault) -> tuple[str, str]:
    """The fault's name, and what it does in short."""
    settings = msgspec.to_builtins(fault)
    name = settings.pop("fault")
    if isinstance(fault, Kill | Pause):
        return name, fault.process
    if isinstance(fault, ClockStep):
        return name, f"by {fault.by:g} s"
    details = {"latency": "delay", "error": "code"}.get(name)
    who = ", ".join(settings["clients"])
    return name, f"{who}: {settings[details]:g}" if details else who
