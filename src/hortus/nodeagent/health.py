"""Health of kubelet and containerd: a minute of failure leads to a restart, and the node's address is put back.

Decisions are pure: `Watchdog` takes the outcome of a check and the time, and returns what to do.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from enum import Enum
from typing import TypeVar

import structlog

from hortus.kube import Clock
from hortus.kube.errors import Conflict, KubeError, TransportError
from hortus.nodeagent.changes import CONTAINERD_UNIT, KUBELET_UNIT
from hortus.nodeagent.cluster import NodeAddress, NodeView, SeenNode
from hortus.nodeagent.node import Node
from hortus.nodeagent.seams import NodeFault
from hortus.nodeagent.wire import status_of

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

EVERY = 30.0
PATIENCE = 60.0
"""Seconds of failure after which the unit is restarted."""
KUBELET_HEALTH = "http://127.0.0.1:10248/healthz"
_KUBELET_TIMEOUT = 10.0
_OK = 200
_AGAIN = 5.0
P = TypeVar("P")
FLIP_WINDOW = 600.0
MOST_FLIPS = 5
"""Changes from NotReady to Ready within the window from which a warning is written."""
INTERNAL, EXTERNAL = "InternalIP", "ExternalIP"


class HealthVerdict(Enum):
    NOTHING = "nothing"
    FAILED = "failed"
    """The first failure of a row."""
    RESTART = "restart"
    RECOVERED = "recovered"


class Watchdog:
    """Remembers since when a part fails."""

    def __init__(self) -> None:
        self.since: float | None = None

    def judge(self, *, healthy: bool, now: float) -> HealthVerdict:
        if healthy:
            recovered, self.since = self.since is not None, None
            return HealthVerdict.RECOVERED if recovered else HealthVerdict.NOTHING
        if self.since is None:
            self.since = now
            return HealthVerdict.FAILED
        if now - self.since < PATIENCE:
            return HealthVerdict.NOTHING
        self.since = now
        return HealthVerdict.RESTART


class Flips:
    """Counts how often a Node became Ready within a window."""

    def __init__(self) -> None:
        self._ready: bool | None = None
        self._times: deque[float] = deque()

    def count(self, *, ready: bool, now: float) -> int:
        """Returns the number of flips with one that happens now; 0 when none does."""
        flipped = ready and self._ready is False
        self._ready = ready
        while self._times and now - self._times[0] >= FLIP_WINDOW:
            self._times.popleft()
        if not flipped:
            return 0
        self._times.append(now)
        return len(self._times)


def lost_address(
    node: SeenNode, known: Collection[NodeAddress], local: Callable[[str], bool]
) -> tuple[NodeAddress, ...] | None:
    """The addresses that the Node should have again: those that it had, where this host still has the internal one."""
    if any(each.type in (INTERNAL, EXTERNAL) for each in node.status.addresses):
        return None
    lost = [each for each in known if each.type == INTERNAL and local(each.address)]
    return (*node.status.addresses, *lost) if lost else None


async def kubelet_health(url: str = KUBELET_HEALTH) -> str:
    """The problem of the kubelet; empty when it is healthy."""
    try:
        status = await status_of(url, timeout=_KUBELET_TIMEOUT)
    except TransportError as error:
        return str(error)
    return "" if status == _OK else f"{url} was answered with HTTP status {status}"


async def until_well(clock: Clock, look: Callable[[], Awaitable[P]], *, patience: float) -> P:
    """Looks every 5 s until there is no problem; returns the problems of the last look, `patience` seconds later."""
    end = clock.monotonic() + patience
    while (problems := await look()) and clock.monotonic() < end:
        await clock.sleep(_AGAIN)
    return problems


async def containerd_health(node: Node) -> str:
    try:
        await node.runtime.version()
    except NodeFault as error:
        return str(error)
    return ""


class NodeHealth:
    """Checks both parts every 30 seconds. Restarts units, writes events, and writes the addresses of the Node."""

    def __init__(
        self,
        node: Node,
        view: NodeView,
        clock: Clock,
        *,
        kubelet: Callable[[], Awaitable[str]] = kubelet_health,
        local: Callable[[str], bool] | None = None,
    ) -> None:
        self._node = node
        self._view = view
        self._clock = clock
        self._kubelet = kubelet
        self._local = local or is_local
        self._watchdogs = {KUBELET_UNIT: Watchdog(), CONTAINERD_UNIT: Watchdog()}
        self._flips = Flips()
        self._known: tuple[NodeAddress, ...] = ()

    async def run(self) -> None:
        self._view.on_change(self._count_flip)
        while True:
            await self.check()
            await self._clock.sleep(EVERY)

    async def check(self) -> bool:
        """One round; returns True when both are healthy."""
        kubelet, containerd = await asyncio.gather(self._kubelet(), containerd_health(self._node))
        await asyncio.gather(self._judge(KUBELET_UNIT, kubelet), self._judge(CONTAINERD_UNIT, containerd))
        await self._repair_address()
        return not kubelet and not containerd

    async def problems(self) -> list[str]:
        """The problems of now, without any action."""
        return [each for each in await asyncio.gather(self._kubelet(), containerd_health(self._node)) if each]

    async def _judge(self, unit: str, problem: str) -> None:
        part = unit.removesuffix(".service")
        match self._watchdogs[unit].judge(healthy=not problem, now=self._clock.monotonic()):
            case HealthVerdict.FAILED:
                _log.warning("a part of the node is not healthy", unit=unit, error=problem)
                self._node.event(f"{part}Unhealthy", f"{part} is not healthy: {problem}", warning=True)
            case HealthVerdict.RECOVERED:
                self._node.event(f"{part}Healthy", f"{part} is healthy again")
            case HealthVerdict.RESTART:
                await self._restart(unit, f"not healthy for {PATIENCE:g} s: {problem}")

    async def _restart(self, unit: str, why: str) -> None:
        _log.warning("a unit is restarted", unit=unit, reason=why)
        self._node.event("SystemDUnitRestart", f"restarting unit {unit}: {why}", warning=True)
        try:
            result = await self._node.units.restart(unit)
        except NodeFault as error:
            result = str(error)
        if result not in ("done", "timeout"):
            self._node.event("SystemDUnitFailed", f"unit {unit} was not restarted: {result}", warning=True)

    def _count_flip(self) -> None:
        node = self._view.node
        condition = node.condition("Ready") if node is not None else None
        if condition is None:
            return
        flips = self._flips.count(ready=condition.status == "True", now=self._clock.monotonic())
        if flips >= MOST_FLIPS:
            message = (
                f"the node became Ready {flips} times within {FLIP_WINDOW / 60:g} minutes: see journalctl -u kubelet"
            )
            self._node.event("NodeReadinessFlaps", message, warning=True)

    async def _repair_address(self) -> None:
        node = self._view.node
        if node is None:
            return
        internal = tuple(each for each in node.status.addresses if each.type == INTERNAL)
        if internal:
            self._known = internal
            return
        wanted = lost_address(node, self._known, self._local)
        if wanted is None:
            return
        rows = [{"type": each.type, "address": each.address} for each in wanted]
        try:
            await self._view.patch_status(node, {"addresses": rows})
            self._node.event("NodeAddressRepaired", f"the Node has the address {self._known[0].address} again")
        except Conflict:
            return
        except KubeError as error:
            await self._restart(KUBELET_UNIT, f"the address of the Node could not be written: {error}")


def is_local(address: str) -> bool:
    """True for an address of this host's interfaces: the kernel binds to no other."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True
