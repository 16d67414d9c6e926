"""The condition SystemdUnitsReady of the Node: the units of the applied configuration, judged once a minute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import msgspec
import structlog

from hortus.kube import Clock
from hortus.kube.errors import KubeError
from hortus.kube.objects import format_time
from hortus.nodeagent.changes import units_of
from hortus.nodeagent.cluster import NodeCondition, NodeView
from hortus.nodeagent.node import Node
from hortus.nodeagent.osc import OscUnit
from hortus.nodeagent.seams import NodeFault, UnitStatus
from hortus.nodeagent.state import NodeMemory

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

CONDITION = "SystemdUnitsReady"
HEALTHY, PROGRESSING, UNHEALTHY = "AllUnitsHealthy", "ProgressingUnits", "UnhealthyUnits"


class UnitVerdict(NamedTuple):
    problem: str = ""
    progressing: bool = False


def is_enabled(unit: OscUnit) -> bool:
    """A unit that says nothing is enabled when it has something to run with."""
    return unit.enable if unit.enable is not None else bool(unit.content or unit.drop_ins)


def judged(unit: OscUnit, status: UnitStatus, *, now: float, stuck: float) -> UnitVerdict:
    """The verdict on one unit; `stuck` is the time in seconds that a start or stop may take."""
    enabled = is_enabled(unit) and unit.command != "stop"
    if status.active in ("activating", "deactivating"):
        if status.sub == "auto-restart" or not status.changed or now - status.changed <= stuck:
            return UnitVerdict(progressing=True)
        return UnitVerdict(f"is {status.active} for more than {stuck:g} s")
    if not enabled:
        return UnitVerdict("is active although it is disabled" if status.active == "active" else "")
    if status.active == "failed":
        return UnitVerdict("has failed")
    if status.load != "loaded":
        return UnitVerdict(f"is not loaded ({status.load})")
    if status.active == "inactive" and status.kind != "oneshot" and not status.triggers:
        return UnitVerdict("is inactive although it is enabled")
    return UnitVerdict()


def condition_of(verdicts: Mapping[str, UnitVerdict]) -> NodeCondition:
    """The condition without its times."""
    unhealthy = [f"{name} {each.problem}" for name, each in sorted(verdicts.items()) if each.problem]
    if unhealthy:
        return NodeCondition(CONDITION, "False", UNHEALTHY, "; ".join(unhealthy))
    progressing = sorted(name for name, each in verdicts.items() if each.progressing)
    if progressing:
        return NodeCondition(CONDITION, "True", PROGRESSING, f"starting or stopping: {', '.join(progressing)}")
    return NodeCondition(CONDITION, "True", HEALTHY, "all units are healthy")


class UnitCheck:
    """Writes the condition when it changes; a kubelet keeps it, since it does not own that type."""

    def __init__(
        self, node: Node, view: NodeView, memory: NodeMemory, clock: Clock, *, period: float, stuck: float
    ) -> None:
        self._node = node
        self._view = view
        self._memory = memory
        self._clock = clock
        self._period = period
        self._stuck = stuck
        self._units: tuple[object, dict[str, OscUnit]] = (None, {})

    async def run(self) -> None:
        await self._view.synced()
        while True:
            try:
                await self.check()
            except (NodeFault, KubeError) as error:
                _log.warning("the units were not checked", error=str(error))
            await self._clock.sleep(self._period)

    async def check(self) -> None:
        node = self._view.node
        units = self._applied_units()
        if node is None or not units:
            return
        statuses = await self._statuses(units)
        now = self._clock.now()
        verdicts = {name: judged(unit, statuses[name], now=now, stuck=self._stuck) for name, unit in units.items()}
        wanted, found = condition_of(verdicts), node.condition(CONDITION)
        if found is not None and msgspec.structs.replace(found, last_transition_time="") == wanted:
            return
        since = found.last_transition_time if found is not None and found.status == wanted.status else format_time(now)
        row = {
            "type": CONDITION,
            "status": wanted.status,
            "reason": wanted.reason,
            "message": wanted.message,
            "lastTransitionTime": since,
            "lastHeartbeatTime": format_time(now),
        }
        await self._view.patch_status(node, {"conditions": [row]})

    def _applied_units(self) -> dict[str, OscUnit]:
        """The units of the applied configuration, decoded when its file changes."""
        stamp = self._memory.applied_stamp()
        if stamp != self._units[0]:
            osc = self._memory.applied().value
            self._units = (stamp, units_of(osc, self._node.path) if osc is not None else {})
        return self._units[1]

    async def _statuses(self, units: Mapping[str, OscUnit]) -> dict[str, UnitStatus]:
        """One call for all units, and details of those alone that are not simply active."""
        found = dict(await self._node.units.status(list(units), details=False))
        others = [name for name, each in found.items() if (each.load, each.active) != ("loaded", "active")]
        found.update(await self._node.units.status(others))
        return found
