"""Does the steps of an update in place: the kubelet, the operating system, the credentials.

A kill at any point leads to the same end. The boot is noted before the update command, so that a later boot shows
whether the machine came up with the wanted version; credentials are replaced by ones with which a call has succeeded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn, Protocol, TypeVar

import msgspec
import structlog

from hortus.engine.outcomes import NEVER, Actor, StepError
from hortus.nodeagent import steps
from hortus.nodeagent.changes import KUBELET_UNIT
from hortus.nodeagent.health import until_well
from hortus.nodeagent.identity import KUBELET_BOOTSTRAP, KUBELET_OWN
from hortus.nodeagent.inplace import OS_RELEASE, RESULT, is_installed, os_version
from hortus.nodeagent.node import AwaitsOutside, Node, check_job
from hortus.nodeagent.osc import OperatingSystemConfig
from hortus.nodeagent.seams import Files, NodeFault
from hortus.nodeagent.steps import AnyStep, ChangeSet, InPlaceStep

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

CPU_STATE = "/var/lib/kubelet/cpu_manager_state"
KUBELET_PKI = "/var/lib/kubelet/pki"
KUBELET_PATIENCE = 300.0
_COMMAND_PATIENCE = 600.0
_RETRY_EVERY, _RETRY_PATIENCE = 30.0, 300.0
"""Seconds between two runs of an update command that has no network, and for how long they go on."""
_NETWORK = re.compile("network problems", re.I)
_MOST_OUTPUT = 200
"""Characters of a command's output that are shown to people."""
S = TypeVar("S", bound=AnyStep)


class StepRecord(Protocol):
    def __call__(self, old: AnyStep, new: S) -> S:
        """Writes `new` in the place of `old`, durably, and returns it."""


class InPlaceUpdate:
    """The steps of one configuration."""

    def __init__(self, node: Node, osc: OperatingSystemConfig, *, record: StepRecord) -> None:
        self._node = node
        self._osc = osc
        self._record = record

    async def do(self, step: InPlaceStep) -> AnyStep:
        """Does a step and returns it as recorded. Raises NodeFault, KubeError, StepError and AwaitsOutside."""
        match step:
            case steps.ResetCpuManager():
                check_job("stop", KUBELET_UNIT, await self._node.units.stop(KUBELET_UNIT))
                self._node.files.remove(CPU_STATE)
            case steps.AwaitKubelet():
                await self._await_kubelet()
            case steps.UpdateOs():
                return await self._update_os(step)
            case steps.SyncTokens():
                self._node.reports.sync_tokens()
            case steps.RebootstrapKubelet():
                return await self._rebootstrap(step)
            case _:
                raise AssertionError(f"no way to do {step}")
        return step

    async def note_failure(self, failures: Sequence[str], left: ChangeSet) -> None:
        """Labels the Node when a unit does not start with what is updated in place."""
        if any(isinstance(step, steps.AwaitKubelet) for step in left.steps) and any(
            KUBELET_UNIT in failure for failure in failures
        ):
            await self._node.reports.fail("; ".join(failures))

    # The kubelet

    async def _await_kubelet(self) -> None:
        problem = await until_well(self._node.clock, self._problem_of_kubelet, patience=KUBELET_PATIENCE)
        if problem:
            reason = f"the kubelet was not healthy {KUBELET_PATIENCE:g} s after its update in place: {problem}"
            await self._node.reports.fail(reason)
            raise NodeFault(f"{reason}; see journalctl -u kubelet")

    async def _problem_of_kubelet(self) -> str:
        if problem := await self._node.kubelet():
            return problem
        bootstrap, own = map(self._node.files.read, (KUBELET_BOOTSTRAP, KUBELET_OWN[0]))
        waits = bootstrap is not None and own is None
        return "it has no certificate of the new authority yet" if waits else ""

    async def _rebootstrap(self, step: steps.RebootstrapKubelet) -> AnyStep:
        files, units = self._node.files, self._node.units
        if not step.since:
            if files.read(KUBELET_OWN[0]) is not None:
                await self._node.reports.write_kubelet_bootstrap()
                files.remove(KUBELET_OWN[0])
            files.remove_tree(KUBELET_PKI)
            invocation = (await units.status([KUBELET_UNIT]))[KUBELET_UNIT].invocation
            step = self._record(step, steps.RebootstrapKubelet(since=invocation or "none"))
        if (await units.status([KUBELET_UNIT]))[KUBELET_UNIT].invocation in ("", step.since):
            check_job("restart", KUBELET_UNIT, await units.restart(KUBELET_UNIT))
            self._node.event("SystemDUnitRestart", f"restarted unit {KUBELET_UNIT} for credentials of a new authority")
        return step

    # The operating system

    async def _update_os(self, step: steps.UpdateOs) -> AnyStep:
        """Returns once the machine runs the wanted version; ends in any other case by an exception."""
        installed, boot = installed_version(self._node.files), self._node.host.boot()
        if is_installed(step.version, installed):
            return step
        if step.failed:
            if self._node.reports.has_failed:
                raise _failure(f"the update to {step.version} has failed")
            step = self._record(step, steps.UpdateOs(step.version))
        if step.boot and step.boot != boot:
            await self._fail(step, f"the machine started with {installed} again, and not with {step.version}")
        if not step.ran:
            await self._node.reports.begin_os(step.version)
            step = self._record(step, steps.UpdateOs(step.version, boot=boot))
            await self._run_command(step)
            step = self._record(step, msgspec.structs.replace(step, ran=True))
        raise AwaitsOutside(f"the machine has to start again, with version {step.version} of its operating system")

    async def _run_command(self, step: steps.UpdateOs) -> None:
        status = self._osc.status.in_place_updates
        update = status.os_update if status is not None else None
        if update is None or not update.command:
            await self._fail(step, "status.inPlaceUpdates.osUpdate.command is empty, and nothing else updates it")
        clock, command = self._node.clock, (update.command, *update.args)
        end = clock.monotonic() + _RETRY_PATIENCE
        while problem := await self._problem_of(command):
            if not _NETWORK.search(problem) or clock.monotonic() >= end:
                await self._fail(step, problem)
            _log.warning("the update command is tried again", problem=problem)
            await clock.sleep(_RETRY_EVERY)

    async def _problem_of(self, command: Sequence[str]) -> str:
        try:
            code, output = await self._node.host.run(command, patience=_COMMAND_PATIENCE)
        except NodeFault as error:
            return str(error)
        return f"{command[0]} ended with exit code {code}: {_end_of(output)}" if code else ""

    async def _fail(self, step: steps.UpdateOs, reason: str) -> NoReturn:
        await self._node.reports.fail(reason)
        self._record(step, steps.UpdateOs(step.version, failed=True))
        raise _failure(reason)

    # The end

    async def finish(self, step: steps.FinishUpdate) -> AnyStep:
        """Ends the drain of the Node, if there is one. Raises KubeError."""
        reports = self._node.reports
        if step.pods is None:
            if not reports.awaits_result:
                return step
            step = self._record(step, steps.FinishUpdate(await reports.pods()))
        await reports.delete(step.pods or ())
        await reports.succeed()
        self._node.event("InPlaceUpdateSucceeded", "the node was updated in place")
        return step


def installed_version(files: Files) -> str:
    """The version of the operating system that runs; empty when it has none."""
    return os_version((files.read(OS_RELEASE) or b"").decode(errors="replace"))


def _failure(reason: str) -> StepError:
    message = f"{reason}: publish another configuration, or take label {RESULT} off the Node to try it again"
    return StepError(message, reason="InPlaceUpdateFailed", actor=Actor.OPERATOR, after=NEVER)


def _end_of(output: str) -> str:
    """The last line of an output, with the sort of failure that the contract reads from any line."""
    lines = output.strip().splitlines() or ["no output"]
    kind = next((line for line in lines if _NETWORK.search(line)), lines[-1])
    return kind.strip()[:_MOST_OUTPUT]
