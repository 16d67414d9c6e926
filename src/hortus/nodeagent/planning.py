"""`hortus-node-agent plan`: the steps that a configuration would take on this node, without taking one."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from hortus.nodeagent import steps
from hortus.nodeagent.changes import (
    AGENT_UNIT,
    CONTAINERD_DROP_IN,
    CONTAINERD_UNIT,
    KUBELET_UNIT,
    RUNTIMES,
    differences,
    plan_steps,
    units_of,
    waves,
)
from hortus.nodeagent.converging import update_of
from hortus.nodeagent.node import drop_in_path, own_path, unit_path
from hortus.nodeagent.osc import OperatingSystemConfig, OscFile, OscUnit
from hortus.nodeagent.registries import hosts_path
from hortus.nodeagent.seams import Files
from hortus.nodeagent.steps import AnyStep
from hortus.nodeagent.updating import CPU_STATE


class PlannedStep(msgspec.Struct, frozen=True, rename="camel"):
    """One line of a plan: `action` is create, update, keep, remove, enable, restart, stop, reload or wait."""

    action: str
    subject: str
    detail: str = ""
    diff: str = ""


class NodePlan(NamedTuple):
    steps: tuple[PlannedStep, ...]
    untouched: tuple[str, ...]
    """The units that go on running."""


def planned(
    old: OperatingSystemConfig | None,
    new: OperatingSystemConfig,
    files: Files,
    *,
    hostname: str,
    path: str,
    remaining: tuple[AnyStep, ...] | None,
) -> NodePlan:
    """The plan from `old` to `new`; `remaining` are the steps of an interrupted one to the same configuration, `path`
    is the agent's variable PATH."""
    chosen = remaining
    if chosen is None:
        update = update_of(old, new, files)
        changes = differences(old, new, hostname=hostname, path=path, in_place=update)
        chosen = plan_steps(changes, new, hostname=hostname)
    units = units_of(new, path)
    found = tuple(_lines(chosen, files, new.files_for(hostname), units))
    commanded = {step.subject for step in found if step.action in ("restart", "stop")}
    return NodePlan(found, tuple(name for name, unit in units.items() if unit.runs and name not in commanded))


def path_of(files: Files) -> str:
    """The variable PATH that containerd has from the agent; that of this process where it has none."""
    found = files.read(drop_in_path(CONTAINERD_UNIT, CONTAINERD_DROP_IN)) or b""
    line = re.search(rf'^Environment="PATH={RUNTIMES}:(.*)"$', found.decode(errors="replace"), re.M)
    return line[1] if line else own_path()


def _lines(
    chosen: tuple[AnyStep, ...], files: Files, wanted: Mapping[str, OscFile], units: Mapping[str, OscUnit]
) -> Iterator[PlannedStep]:
    is_update = any(isinstance(step, steps.InPlaceStep) for step in chosen)
    commands = {step.name: step for step in chosen if isinstance(step, steps.CommandUnit)}
    for step in chosen:
        match step:
            case steps.WriteFile(path=path):
                inline = wanted[path].content.inline
                yield _written(files, path, inline.decoded() if inline is not None else None, wanted[path].mode)
            case steps.CopyFromImage(path=path):
                yield PlannedStep("update" if files.read(path) is not None else "create", path, "from an image")
            case steps.WriteRegistry(upstream=upstream, probe=probe):
                yield PlannedStep("update", hosts_path(upstream), "once its hosts answer" if probe else "")
            case steps.PatchContainerd():
                yield PlannedStep("update", "/etc/containerd/config.toml", "the settings of the configuration only")
            case steps.WriteUnit():
                yield from _unit_lines(units[step.name], step, files)
            case steps.RemoveUnit(name=name, ours=ours):
                yield PlannedStep("remove" if ours else "update", unit_path(name), "" if ours else "its drop-ins only")
                if ours:
                    yield PlannedStep("stop", name)
            case steps.RemoveFile(path=path):
                yield PlannedStep("remove", path)
            case steps.RemoveRegistry(upstream=upstream):
                yield PlannedStep("remove", hosts_path(upstream))
            case steps.ReloadUnits():
                yield PlannedStep("reload", "systemd")
            case steps.RestartAgent():
                yield PlannedStep("restart", AGENT_UNIT, "this agent, which goes on afterwards")
            case steps.AwaitRegistries():
                yield PlannedStep("wait", "registries")
            case steps.InPlaceStep():
                yield _in_place_line(step)
            case steps.FinishUpdate() if is_update:
                yield PlannedStep("remove", "pods of this node", "those that outlived the drain")
    for number, wave in enumerate(waves(commands, units), start=1):
        yield from (PlannedStep(commands[name].verb, name, f"wave {number}") for name in wave)


def _in_place_line(step: steps.InPlaceStep) -> PlannedStep:
    match step:
        case steps.ResetCpuManager():
            return PlannedStep("remove", CPU_STATE, "with the kubelet stopped")
        case steps.AwaitKubelet():
            return PlannedStep("wait", KUBELET_UNIT, "until it is healthy")
        case steps.UpdateOs(version=version):
            return PlannedStep("update", "operating system", f"to {version}, with a start of the machine")
        case steps.SyncTokens():
            return PlannedStep("update", "tokens", "those of this agent's configuration that have changed")
        case steps.RenewAgent():
            return PlannedStep("update", "certificate of this agent", "with a start of the agent")
        case _:
            return PlannedStep("restart", KUBELET_UNIT, "for a certificate of the new authority")


def _unit_lines(unit: OscUnit, step: steps.WriteUnit, files: Files) -> Iterator[PlannedStep]:
    if unit.content is not None:
        yield _written(files, unit_path(unit.name), unit.content.encode(), None)
    for name, content in unit.by_name.items():
        yield _written(files, drop_in_path(unit.name, name), content.encode(), None)
    for name in step.removed_drop_ins:
        yield PlannedStep("remove", drop_in_path(unit.name, name))


def _written(files: Files, path: str, content: bytes | None, mode: int | None) -> PlannedStep:
    """A file that is compared with the disk; None is content that only the cluster has."""
    present = files.read(path)
    detail = f"mode {mode:04o}" if mode is not None else ""
    if content is None:
        return PlannedStep("update" if present is not None else "create", path, "from a Secret")
    if present == content and (mode is None or files.mode(path) == mode):
        return PlannedStep("keep", path)
    if present is None:
        return PlannedStep("create", path, detail)
    return PlannedStep("update", path, detail, _difference(present, content, path))


def _difference(old: bytes, new: bytes, path: str) -> str:
    """A unified diff; empty for a file that is no text."""
    try:
        before, after = old.decode().splitlines(), new.decode().splitlines()
    except UnicodeDecodeError:
        return ""
    return "\n".join(difflib.unified_diff(before, after, path, path, lineterm="", n=1))


def shown(plan: NodePlan) -> str:
    """The plan for people."""
    width = max((len(step.action) for step in plan.steps), default=0)
    lines = []
    for step in plan.steps:
        if step.action == "keep":
            continue
        lines.append(f"{step.action:<{width}}  {step.subject}" + (f"  ({step.detail})" if step.detail else ""))
        lines += [f"    {line}" for line in step.diff.splitlines()[2:]]
    restarts = sum(step.action == "restart" for step in plan.steps)
    goes_on = f"; these go on running: {', '.join(plan.untouched)}" if plan.untouched else ""
    lines.append(f"{'1 unit restarts' if restarts == 1 else f'{restarts} units restart'}{goes_on}")
    return "\n".join(lines) + "\n"
