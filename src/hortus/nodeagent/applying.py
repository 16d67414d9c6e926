"""Does the steps of a change set on the node. Each finished step is taken out of the file before the next begins.

A kill at any point leaves a node on which the same steps lead to the same end: files are compared before they are
written, and a unit is restarted only while it still has the invocation that was recorded before the command.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TypeVar

import msgspec
import structlog

from hortus.nodeagent import steps
from hortus.nodeagent.changes import AGENT_UNIT, registries_of, units_of, waves
from hortus.nodeagent.node import UNITS_FOLDER, AgentRestart, Node, check_job, drop_in_path, unit_path
from hortus.nodeagent.osc import OperatingSystemConfig, OscFile, OscUnit
from hortus.nodeagent.registries import remove_registry, until_ready, write_registry
from hortus.nodeagent.seams import NodeFault, UnitStatus
from hortus.nodeagent.state import NodeMemory
from hortus.nodeagent.steps import AnyStep, ChangeSet, CommandUnit
from hortus.nodeagent.updating import InPlaceUpdate

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

UNIT_MODE = 0o600
_NEVER_STARTED = "none"
S = TypeVar("S", bound=AnyStep)


class NodeApplier:
    """Brings a node to one configuration."""

    def __init__(self, node: Node, state: NodeMemory, osc: OperatingSystemConfig, changes: ChangeSet) -> None:
        self._node = node
        self._state = state
        self._osc = osc
        self._left = changes
        self._units = units_of(osc, node.path)
        self._files = osc.files_for(node.hostname)
        self._registries = registries_of(osc)
        self._update = InPlaceUpdate(node, osc, record=self._record)

    @property
    def left(self) -> ChangeSet:
        """The steps that are not done."""
        return self._left

    async def run(self) -> None:
        """Does all steps. Raises NodeFault, and AgentRestart when the rest is for the next start."""
        probing = asyncio.create_task(self._probe_registries())
        try:
            while step := self._next():
                if isinstance(step, CommandUnit):
                    await self._command_units()
                elif isinstance(step, steps.AwaitRegistries):
                    await probing
                    self._finish(step)
                else:
                    self._finish(await self._do(step))
            await probing
        finally:
            probing.cancel()
            await asyncio.gather(probing, return_exceptions=True)

    def _next(self) -> AnyStep | None:
        """The first step; registries with a probe go on by themselves."""
        return next((step for step in self._left.steps if not _is_probed(step)), None)

    def _finish(self, step: AnyStep) -> None:
        self._left = self._left.without(step)
        self._state.remember_changes(self._left, durable=False)

    async def _do(self, step: AnyStep) -> AnyStep:
        """Returns the step as it stands in the file after it was done."""
        match step:
            case steps.PatchContainerd():
                await self._patch_containerd()
            case steps.WriteFile(path=path):
                await self._write_file(self._files[path])
            case steps.CopyFromImage(path=path):
                await self._copy_from_image(self._files[path])
            case steps.WriteRegistry(upstream=upstream):
                write_registry(self._node.files, self._registries[upstream])
            case steps.WriteUnit():
                await self._write_unit(self._units[step.name], step)
            case steps.RemoveUnit():
                await self._remove_unit(step)
            case steps.ReloadUnits():
                await self._node.units.reload()
            case steps.RestartAgent():
                await self._restart_agent(step)
            case steps.RemoveRegistry(upstream=upstream):
                remove_registry(self._node.files, upstream)
            case steps.RemoveFile(path=path):
                self._node.files.remove(path)
            case steps.RenewAgent():
                await self._node.reports.renew_agent()
                self._finish(step)
                raise AgentRestart("the own certificate comes from a new authority")
            case steps.FinishUpdate():
                return await self._update.finish(step)
            case steps.InPlaceStep():
                return await self._update.do(step)
            case _:
                raise AssertionError(f"no way to do {step}")
        return step

    # Files

    async def _write_file(self, file: OscFile) -> None:
        self._node.files.write(file.path, await self._content(file), mode=file.mode)

    async def _content(self, file: OscFile) -> bytes:
        content = file.content
        if content.inline is not None:
            return content.inline.decoded()
        assert content.secret_ref is not None, "a file without inline content has a secretRef"
        return await self._node.secret(content.secret_ref.name, content.secret_ref.data_key)

    async def _copy_from_image(self, file: OscFile) -> None:
        source = file.content.image_ref
        assert source is not None, "the step is for files from images"
        found = await self._node.runtime.file_from_image(source.image, source.file_path_in_image)
        self._node.files.write(file.path, found, mode=file.mode)

    async def _patch_containerd(self) -> None:
        # The library for TOML stays out of the memory of an agent at rest.
        from hortus.nodeagent import containerdconfig as config

        cri, files = self._osc.spec.cri_config, self._node.files
        assert cri is not None, "the step is for configurations with a container runtime"
        for folder in config.FOLDERS:
            files.make_folder(folder)
        found = files.read(config.CONFIG)
        text = found.decode() if found is not None else await self._node.runtime.default_config()
        changed = config.patched(text, cri, containerd=await self._containerd_version())
        files.write(config.CONFIG, changed.encode(), mode=files.mode(config.CONFIG) or config.CONFIG_MODE)

    async def _containerd_version(self) -> str:
        """The version of containerd; one that does not answer may be waiting for this very file."""
        try:
            return await self._node.runtime.version()
        except NodeFault as error:
            _log.warning("containerd did not report its version", error=str(error))
            return ""

    # Registries

    async def _probe_registries(self) -> None:
        await asyncio.gather(*(self._probe_registry(each) for each in self._left.steps if _is_probed(each)))

    async def _probe_registry(self, step: AnyStep) -> None:
        assert isinstance(step, steps.WriteRegistry), "only registries have a probe"
        registry = self._registries[step.upstream]
        await until_ready(registry, self._node.probe, self._node.clock)
        write_registry(self._node.files, registry)
        self._finish(step)

    # Units

    async def _write_unit(self, unit: OscUnit, step: steps.WriteUnit) -> None:
        files = self._node.files
        if unit.content is not None:
            files.write(unit_path(unit.name), unit.content.encode(), mode=UNIT_MODE)
        elif step.removed_content:
            files.remove(unit_path(unit.name))
        for name, content in unit.by_name.items():
            files.write(drop_in_path(unit.name, name), content.encode(), mode=UNIT_MODE)
        for name in step.removed_drop_ins:
            files.remove(drop_in_path(unit.name, name))
        if not unit.drop_ins:
            files.remove_tree(f"{UNITS_FOLDER}/{unit.name}.d")
        await self._enable(unit)

    async def _enable(self, unit: OscUnit) -> None:
        if unit.enable is not False or unit.name == AGENT_UNIT:
            await self._node.units.enable(unit.name)
        else:
            await self._node.units.disable(unit.name)

    async def _remove_unit(self, step: steps.RemoveUnit) -> None:
        files, units = self._node.files, self._node.units
        path = unit_path(step.name)
        if step.ours and files.read(path) is not None:
            await units.disable(step.name)
            check_job("stop", step.name, await units.stop(step.name))
            self._node.event("SystemDUnitStop", f"stopped unit {step.name}, which the configuration has no more")
            files.remove(path)
        for name in step.drop_ins:
            files.remove(drop_in_path(step.name, name))
        files.remove_empty(f"{UNITS_FOLDER}/{step.name}.d")

    async def _restart_agent(self, step: steps.RestartAgent) -> None:
        """Ends this process unless it is a later one than that which recorded the step."""
        found = await self._node.units.status([AGENT_UNIT])
        invocation = found[AGENT_UNIT].invocation
        if step.since and invocation != step.since:
            return
        if not invocation:
            # Not started by systemd: the next start cannot be recognized, so the step counts as done.
            self._finish(step)
        elif not step.since:
            self._record(step, steps.RestartAgent(since=invocation))
        raise AgentRestart("the own unit has changed")

    def _record(self, old: AnyStep, new: S) -> S:
        self._left = self._left.replaced(old, new)
        self._state.remember_changes(self._left, durable=True)
        return new

    async def _command_units(self) -> None:
        """Restarts and stops units, each wave at once. A unit that fails does not keep the others waiting."""
        found = await self._record_invocations()
        failures: list[str] = []
        for wave in waves(found, self._units):
            failures += filter(None, await asyncio.gather(*(self._command(found[name]) for name in wave)))
        if failures:
            await self._update.note_failure(failures, self._left)
            raise NodeFault("; ".join(failures))

    async def _record_invocations(self) -> dict[str, CommandUnit]:
        commands = {step.name: step for step in self._left.steps if isinstance(step, CommandUnit)}
        unrecorded = [name for name, step in commands.items() if not step.since]
        if unrecorded:
            states = await self._node.units.status(unrecorded)
            left = self._left
            for name in unrecorded:
                recorded = msgspec.structs.replace(commands[name], since=states[name].invocation or _NEVER_STARTED)
                left = left.replaced(commands[name], recorded)
                commands[name] = recorded
            self._left = left
            self._state.remember_changes(left, durable=True)
        return commands

    async def _command(self, step: CommandUnit) -> str:
        """Returns the failure of the command, empty without one."""
        units = self._node.units
        try:
            state = (await units.status([step.name]))[step.name]
            if not _is_done(step, state):
                result = await (units.restart(step.name) if step.verb == "restart" else units.stop(step.name))
                check_job(step.verb, step.name, result)
                reason = {"restart": "SystemDUnitRestart", "stop": "SystemDUnitStop"}[step.verb]
                self._node.event(reason, f"{_DONE[step.verb]} unit {step.name}")
        except NodeFault as error:
            self._node.event("SystemDUnitFailed", str(error), warning=True)
            return str(error)
        self._finish(step)
        return ""


_DONE: Mapping[str, str] = {"restart": "restarted", "stop": "stopped"}


def _is_probed(step: AnyStep) -> bool:
    return isinstance(step, steps.WriteRegistry) and step.probe


def _is_done(step: CommandUnit, state: UnitStatus) -> bool:
    """True when the command was done by a process that was killed before it could note that."""
    if step.verb == "stop":
        return state.active in ("inactive", "failed")
    return state.invocation not in ("", step.since) and state.active != "failed"
