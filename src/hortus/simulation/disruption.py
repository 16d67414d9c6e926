"""Faults in the path of requests: what the API server of `hortus up` lets happen to its clients on purpose.

The server hands each request that is known and allowed to `Disruption.answer`, which serves it, late or not at all, as
the rules of the moment say. Rules come over HTTP, at a path of the management cluster that only its administrators may
reach: they strike the clusters of all. They end by themselves, so a tool that was killed leaves no fault behind. Its
own requests at that path are never struck.

    PUT /simulation/faults     {"rules": [...], "offset": seconds}   replaces all; answers what is in force
    POST /simulation/faults    {"drop": {...}}                       cuts open watches; answers how many
    GET /simulation/faults
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import Any

import msgspec
from aiohttp import web

from hortus.apiserver.http import Reply, RequestInfo, read_body
from hortus.apiserver.tenants import ROOT_CLUSTER
from hortus.kube.clock import Clock, Timer
from hortus.kube.errors import ApiError, BadRequest, MethodNotAllowed, from_status
from hortus.simulation.disruptionrules import PATH, DisruptionRule, Drop, Rules

LONGEST = 7 * 86400.0
"""Seconds that a rule may last, and that the clock may be wrong by."""
Answer = Callable[[], Awaitable[Reply | web.StreamResponse]]


class _Order(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    drop: Drop


class SteppedClock:
    """A clock whose wall time can be put wrong; monotonic time and sleeping stay right."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.offset = 0.0
        """Seconds; positive is into the future."""

    def now(self) -> float:
        return self._clock.now() + self.offset

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def sleep(self, seconds: float) -> None:
        await self._clock.sleep(seconds)

    def call_later(self, seconds: float, callback: Callable[[], object]) -> Timer:
        return self._clock.call_later(seconds, callback)


class _Active:
    """A rule in force."""

    def __init__(self, rule: DisruptionRule, ends: float) -> None:
        self.rule = rule
        self.ends = ends
        self.random = Random(rule.seed)  # noqa: S311 - to be repeated
        self.struck = 0
        self.over = asyncio.Event()
        self.timer: Timer | None = None


class Disruption:
    """All faults of one server. Without rules a request costs one comparison more."""

    def __init__(self, clock: SteppedClock) -> None:
        self._clock = clock
        self._active: list[_Active] = []
        self._offset_timer: Timer | None = None
        self._watches: dict[int, tuple[str, str, web.BaseRequest]] = {}
        """Agent, resource and request of each open watch."""
        self.struck = 0
        """The number of requests disturbed so far."""

    async def answer(self, request: web.BaseRequest, info: RequestInfo, serve: Answer) -> Reply | web.StreamResponse:
        """Serve the request, or let happen to it what the rules say. Raises ApiError, ConnectionResetError."""
        if info.cluster == ROOT_CLUSTER and info.path == PATH and not info.resource:
            return await self._control(request, info)
        agent = request.headers.get("User-Agent", "").partition("/")[0]
        if self._active:
            await self._strike(request, info, agent)
        if info.verb != "watch":
            return await serve()
        self._watches[id(request)] = (agent, info.resource, request)
        try:
            return await serve()
        finally:
            del self._watches[id(request)]

    async def _strike(self, request: web.BaseRequest, info: RequestInfo, agent: str) -> None:
        for active in list(self._active):
            rule = active.rule
            if not rule.strikes(agent, info.verb, info.resource) or active.random.random() >= rule.share:
                continue
            active.struck += 1
            self.struck += 1
            if rule.effect == "latency":
                await self._clock.sleep(max(0.0, rule.delay + active.random.uniform(-rule.jitter, rule.jitter)))
            elif rule.effect == "error":
                raise _refusal(rule)
            else:
                if rule.hang:
                    await active.over.wait()
                _cut(request)
                raise ConnectionResetError("cut by a fault")

    async def _control(self, request: web.BaseRequest, info: RequestInfo) -> Reply:
        if info.method not in ("GET", "PUT", "POST"):
            raise MethodNotAllowed("faults are read with GET, replaced with PUT; POST cuts watches")
        try:
            if info.method == "PUT":
                self.replace(msgspec.json.decode(await read_body(request), type=Rules))
            elif info.method == "POST":
                order = msgspec.json.decode(await read_body(request), type=_Order)
                return Reply(msgspec.json.encode({"dropped": self.drop(order.drop)}))
        except msgspec.MsgspecError as error:
            raise BadRequest(f"faults: {error}") from None
        return Reply(msgspec.json.encode(self._state()))

    def replace(self, rules: Rules) -> None:
        """Replace all rules by these. Raises BadRequest."""
        for rule in rules.rules:
            if rule.effect not in ("latency", "error", "partition") or not 0 < rule.seconds <= LONGEST:
                raise BadRequest(f"faults: {rule.effect!r} for {rule.seconds:g} s is not a fault there is")
        if abs(rules.offset) > LONGEST or rules.offset_seconds > LONGEST:
            raise BadRequest(f"faults: a clock may be wrong by {LONGEST:g} s at most, for as long at most")
        for active in list(self._active):
            self._end(active)
        now = self._clock.monotonic()
        self._active = [_Active(rule, now + rule.seconds) for rule in rules.rules]
        for active in self._active:
            active.timer = self._clock.call_later(active.rule.seconds, partial(self._end, active))
            if active.rule.effect == "partition":
                self.drop(Drop(active.rule.agents, active.rule.resources))
        self._step(rules.offset, rules.offset_seconds)

    def _step(self, offset: float, seconds: float) -> None:
        if self._offset_timer is not None:
            self._offset_timer.cancel()
            self._offset_timer = None
        self._clock.offset = offset if seconds > 0 else 0.0
        if self._clock.offset:
            self._offset_timer = self._clock.call_later(seconds, lambda: self._step(0.0, 0.0))

    def drop(self, drop: Drop) -> int:
        """Cut open watches; returns how many."""
        meant = [
            request
            for agent, resource, request in self._watches.values()
            if (not drop.agents or agent in drop.agents) and (not drop.resources or resource in drop.resources)
        ]
        for request in meant:
            _cut(request)
        return len(meant)

    def _end(self, active: _Active) -> None:
        """The rule is over: it was replaced, or its time has come."""
        if active.timer is not None:
            active.timer.cancel()
        if active in self._active:
            self._active.remove(active)
        active.over.set()

    def _state(self) -> dict[str, Any]:
        now = self._clock.monotonic()
        rules = [
            {"effect": one.rule.effect, "seconds": round(one.ends - now, 3), "struck": one.struck}
            for one in self._active
        ]
        return {"rules": rules, "offset": self._clock.offset, "struck": self.struck, "watches": len(self._watches)}


def _refusal(rule: DisruptionRule) -> ApiError:
    patience = rule.retry_after or (1.0 if rule.code == 429 else None)
    status = {"kind": "Status", "message": f"a fault on purpose: this request was answered with {rule.code}"}
    return from_status(rule.code, status, retry_after=patience)


def _cut(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()
