"""Brings a node to a configuration: decide, remember, do, remember.

The decision is a value (`changes_for`), which `hortus-node-agent plan` prints and `converge` does. The same decision
comes out after a kill, because the first thing that is done with it is to write it down.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import msgspec

from hortus.nodeagent.applying import NodeApplier
from hortus.nodeagent.changes import (
    KUBELET_UNIT,
    Differences,
    UnitDifference,
    differences,
    plan_steps,
    units_of,
)
from hortus.nodeagent.inplace import NO_UPDATE, OS_RELEASE, InPlaceChanges, in_place_changes, os_changes
from hortus.nodeagent.node import Node, drop_in_path, unit_path
from hortus.nodeagent.osc import OperatingSystemConfig, OscError, OscFile, OscUnit, decode
from hortus.nodeagent.seams import Files, UnitStatus
from hortus.nodeagent.state import NodeMemory
from hortus.nodeagent.steps import AnyStep, ChangeSet, CommandUnit, ResetCpuManager, Verb
from hortus.nodeagent.validation import problems


class InvalidConfiguration(Exception):
    """The configuration is not applied; the message lists the fields."""


def checksum_of(text: bytes) -> str:
    """The checksum that annotations of the Secret and the Node carry."""
    return hashlib.sha256(text).hexdigest()


def checked(text: bytes, *, before: OperatingSystemConfig | None) -> OperatingSystemConfig:
    """The configuration in `text`, which keeps all rules. Raises InvalidConfiguration."""
    try:
        osc = decode(text)
    except OscError as error:
        raise InvalidConfiguration(f"osc.yaml: {error}") from None
    found = problems(osc, before=before)
    if found:
        raise InvalidConfiguration("osc.yaml: " + "; ".join(found))
    return osc


async def changes_for(node: Node, state: NodeMemory, osc: OperatingSystemConfig, checksum: str) -> ChangeSet:
    """The steps that remain until the node is as `osc` says."""
    applied = state.applied()
    remaining, damaged = state.changes(checksum)
    if remaining is not None:
        return remaining
    update = update_of(applied.value, osc, node.files, damaged=applied.damaged)
    found = differences(applied.value, osc, hostname=node.hostname, path=node.path, in_place=update)
    # Configurations that were begun after the applied one have left parts of themselves on the node.
    begun = [each for each in state.begun() if each != osc]
    for other in begun:
        update = update_of(other, osc, node.files)
        found = found.joined(differences(other, osc, hostname=node.hostname, path=node.path, in_place=update))
    chosen = plan_steps(found, osc, hostname=node.hostname)
    if applied.damaged or damaged or begun:
        # Nothing says any more which units were restarted: those that have read what is on the disk stay.
        chosen = await _without_needless(node, osc, chosen)
    return ChangeSet(checksum, chosen)


async def remembered_changes(node: Node, state: NodeMemory, osc: OperatingSystemConfig, checksum: str) -> ChangeSet:
    """The steps that remain, as they stand in the file from now on."""
    changes = await changes_for(node, state, osc, checksum)
    state.remember_changes(changes, durable=True)
    return changes


def update_of(
    old: OperatingSystemConfig | None, osc: OperatingSystemConfig, files: Files, *, damaged: bool = False
) -> InPlaceChanges:
    """The update in place that leads from `old` to `osc`; a new node has none, since nothing runs on it."""
    release = (files.read(OS_RELEASE) or b"").decode(errors="replace")
    if old is not None:
        return in_place_changes(old, osc, release)
    wanted = osc.spec.in_place_updates
    return os_changes(wanted, release) if damaged and wanted is not None else NO_UPDATE


async def converge(node: Node, state: NodeMemory, text: bytes, checksum: str) -> OperatingSystemConfig:
    """Does what remains of a configuration. Raises InvalidConfiguration, NodeFault, AgentRestart, and for an update in
    place KubeError, StepError and AwaitsOutside."""
    osc = checked(text, before=state.applied().value)
    changes = await remembered_changes(node, state, osc, checksum)
    state.remember_begun(text)
    await NodeApplier(node, state, osc, changes).run()
    state.remember_applied(text)
    return osc


async def _without_needless(node: Node, osc: OperatingSystemConfig, chosen: tuple[AnyStep, ...]) -> tuple[AnyStep, ...]:
    units, files = units_of(osc, node.path), osc.files_for(node.hostname)
    restarts = [step.name for step in chosen if isinstance(step, CommandUnit) and step.verb == "restart"]
    if any(isinstance(step, ResetCpuManager) for step in chosen):
        # That step stops the kubelet, which has to start again.
        restarts.remove(KUBELET_UNIT)
    states = await node.units.status(restarts)
    kept = {name for name in restarts if name in units and has_read(units[name], files, node.files, states[name])}
    return tuple(step for step in chosen if not (isinstance(step, CommandUnit) and step.name in kept))


def has_read(unit: OscUnit, files: dict[str, OscFile], disk: Files, state: UnitStatus) -> bool:
    """True for a unit that was started when everything it reads was on the disk as it is wanted."""
    if not state.runs or not state.started:
        return False
    wanted = {drop_in_path(unit.name, name): content.encode() for name, content in unit.by_name.items()}
    if unit.content is not None:
        wanted[unit_path(unit.name)] = unit.content.encode()
    for path in unit.file_paths:
        inline = files[path].content.inline if path in files else None
        if inline is None:
            return False
        wanted[path] = inline.decoded()
    return all(
        disk.read(path) == content and (disk.modified(path) or 0.0) < state.started for path, content in wanted.items()
    )


class Drift(msgspec.Struct, frozen=True):
    """The places where the node is not as the applied configuration says; each is a reason and a path."""

    found: tuple[tuple[str, str], ...] = ()

    @property
    def paths(self) -> set[str]:
        return {path for _, path in self.found}


def drift_of(osc: OperatingSystemConfig, disk: Files, *, hostname: str, path: str) -> Drift:
    """Compares the disk with the applied configuration. Contents from Secrets and images are not compared."""
    found: list[tuple[str, str]] = []
    for file in osc.files_for(hostname).values():
        content = file.content.inline.decoded() if file.content.inline is not None else None
        found += _mismatch("File", file.path, content, file.mode, disk)
    for unit in units_of(osc, path).values():
        if unit.content is not None:
            found += _mismatch("Unit", unit_path(unit.name), unit.content.encode(), None, disk)
        for name, text in unit.by_name.items():
            found += _mismatch("DropIn", drop_in_path(unit.name, name), text.encode(), None, disk)
    return Drift(tuple(found))


_MISSING = {"File": "FileMissing", "Unit": "UnitFileMissing", "DropIn": "DropInMissing"}


def _mismatch(kind: str, path: str, content: bytes | None, mode: int | None, disk: Files) -> Iterable[tuple[str, str]]:
    present = disk.read(path)
    if present is None:
        yield _MISSING[kind], path
    elif content is not None and present != content:
        yield f"{kind}Mismatch", path
    elif mode is not None and disk.mode(path) != mode:
        yield f"{kind}ModeMismatch", path


async def repair_of(node: Node, osc: OperatingSystemConfig, drift: Drift, checksum: str) -> ChangeSet:
    """The steps that put the drifted places back. A unit restarts only when it was started with a drifted file."""
    units, files = units_of(osc, node.path), osc.files_for(node.hostname)
    touched = {name: _reads(unit) & drift.paths for name, unit in units.items() if _reads(unit) & drift.paths}
    states = await node.units.status(list(touched))
    found = Differences(
        files=tuple(path for path in files if path in drift.paths),
        units=tuple(
            UnitDifference(name, _repair_verb(units[name], paths, node.files, states[name]))
            for name, paths in touched.items()
        ),
    )
    return ChangeSet(checksum, plan_steps(found, osc, hostname=node.hostname))


def _reads(unit: OscUnit) -> set[str]:
    return {unit_path(unit.name), *(drop_in_path(unit.name, each) for each in unit.by_name), *unit.file_paths}


def _repair_verb(unit: OscUnit, paths: set[str], disk: Files, state: UnitStatus) -> Verb | None:
    if not unit.runs:
        return None if state.active in ("inactive", "failed") else "stop"
    if not state.runs:
        return "restart"
    return "restart" if any(_changed_at(path, disk) <= state.started for path in paths) else None


def _changed_at(path: str, disk: Files) -> float:
    """The time of the drift; that of the folder for a file that is gone."""
    return disk.modified(path) or disk.modified(path.rpartition("/")[0]) or 0.0
