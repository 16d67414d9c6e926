"""The way from one configuration to the next: pure functions from two configurations to a list of steps.

The order of the phases is that of Gardener's node agent.

A unit is restarted when something that its process has read is another one: its content, a drop-in, a file of
`filePaths`, or its wish to run. An equal configuration that is written in another order restarts nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from hortus.nodeagent.inplace import NO_UPDATE, InPlaceChanges
from hortus.nodeagent.osc import (
    CriConfig,
    OperatingSystemConfig,
    OscDropIn,
    OscUnit,
    RegistryUpstream,
    joined_units,
)
from hortus.nodeagent.steps import (
    AnyStep,
    AwaitKubelet,
    AwaitRegistries,
    CommandUnit,
    CopyFromImage,
    FinishUpdate,
    PatchContainerd,
    RebootstrapKubelet,
    ReloadUnits,
    RemoveFile,
    RemoveRegistry,
    RemoveUnit,
    RenewAgent,
    ResetCpuManager,
    RestartAgent,
    SyncTokens,
    UpdateOs,
    Verb,
    WriteFile,
    WriteRegistry,
    WriteUnit,
)

AGENT_UNIT = "gardener-node-agent.service"
CONTAINERD_UNIT = "containerd.service"
KUBELET_UNIT = "kubelet.service"
RUNTIMES = "/var/bin/containerruntimes"
CONTAINERD_DROP_IN = "30-env_config.conf"


class UnitDifference(msgspec.Struct, frozen=True):
    """The difference of one unit that is wanted."""

    name: str
    verb: Verb | None
    """None for a unit whose process has read nothing that changed."""
    removed_drop_ins: tuple[str, ...] = ()
    removed_content: bool = False

    def joined(self, other: UnitDifference) -> UnitDifference:
        """The difference of the same unit from two others."""
        return UnitDifference(
            self.name,
            self.verb or other.verb,
            _union(self.removed_drop_ins, other.removed_drop_ins),
            self.removed_content or other.removed_content,
        )


class Differences(msgspec.Struct, frozen=True):
    """The differences of two configurations for one host."""

    files: tuple[str, ...] = ()
    removed_files: tuple[str, ...] = ()
    units: tuple[UnitDifference, ...] = ()
    removed_units: tuple[OscUnit, ...] = ()
    containerd: bool = False
    registries: tuple[str, ...] = ()
    """New and changed ones."""
    removed_registries: tuple[str, ...] = ()
    in_place: InPlaceChanges = NO_UPDATE

    @property
    def empty(self) -> bool:
        return self == Differences()

    def joined(self, other: Differences) -> Differences:
        """The differences of two configurations from one that is wanted in their place."""
        units, removed = {each.name: each for each in self.units}, {each.name: each for each in self.removed_units}
        for unit in other.units:
            units[unit.name] = units[unit.name].joined(unit) if unit.name in units else unit
        for old in other.removed_units:
            removed[old.name] = joined_units(old, removed[old.name]) if old.name in removed else old
        return Differences(
            files=_union(self.files, other.files),
            removed_files=_union(self.removed_files, other.removed_files),
            units=tuple(units.values()),
            removed_units=tuple(removed.values()),
            containerd=self.containerd or other.containerd,
            registries=_union(self.registries, other.registries),
            removed_registries=_union(self.removed_registries, other.removed_registries),
            in_place=self.in_place.joined(other.in_place),
        )


def _union(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def units_of(osc: OperatingSystemConfig, path: str) -> dict[str, OscUnit]:
    """The units of a node: those of the configuration, and the drop-in of containerd where the node configures it.

    `path` is the agent's own variable PATH, which containerd gets after the folder of its runtimes.
    """
    if osc.containerd is None:
        return osc.merged_units()
    content = f'[Service]\nEnvironment="PATH={RUNTIMES}:{path}"\n'
    return osc.merged_units(OscUnit(CONTAINERD_UNIT, drop_ins=(OscDropIn(CONTAINERD_DROP_IN, content),)))


def _units_before(osc: OperatingSystemConfig, path: str) -> dict[str, OscUnit]:
    """The units of an applied configuration; the one that Gardener's agent keeps has the drop-in of containerd."""
    kept = any(
        drop_in.name == CONTAINERD_DROP_IN
        for unit in osc.spec.units
        if unit.name == CONTAINERD_UNIT
        for drop_in in unit.drop_ins
    )
    return osc.merged_units() if kept else units_of(osc, path)


def differences(
    old: OperatingSystemConfig | None,
    new: OperatingSystemConfig,
    *,
    hostname: str,
    path: str,
    in_place: InPlaceChanges = NO_UPDATE,
) -> Differences:
    """The differences between the configuration that the node has and the one it should have."""
    before = old or OperatingSystemConfig()
    files_before, files = before.files_for(hostname), new.files_for(hostname)
    changed = tuple(name for name, file in files.items() if files_before.get(name) != file)
    units_before, units = _units_before(before, path), units_of(new, path)
    # Registries stay where a configuration has no settings of containerd any more, as in Gardener's agent.
    registries_before = registries_of(before) if new.containerd is not None else {}
    registries = registries_of(new)
    return Differences(
        files=changed,
        removed_files=tuple(name for name in files_before if name not in files),
        units=tuple(_unit_differences(units_before, units, set(changed))),
        removed_units=tuple(unit for name, unit in units_before.items() if name not in units),
        containerd=_containerd_changed(before.spec.cri_config, new.spec.cri_config),
        registries=tuple(name for name, each in registries.items() if registries_before.get(name) != each),
        removed_registries=tuple(name for name in registries_before if name not in registries),
        in_place=in_place,
    )


def _unit_differences(
    before: Mapping[str, OscUnit], units: Mapping[str, OscUnit], changed_files: set[str]
) -> Iterator[UnitDifference]:
    for name, unit in units.items():
        old = before.get(name)
        reread = not changed_files.isdisjoint(unit.file_paths)
        if old == unit and not reread:
            continue
        removed = tuple(each for each in (old.by_name if old else ()) if each not in unit.by_name)
        content_gone = old is not None and old.content is not None and unit.content is None
        yield UnitDifference(name, _verb(old, unit, reread=reread), removed, content_gone)


def _verb(old: OscUnit | None, unit: OscUnit, *, reread: bool) -> Verb | None:
    if not unit.runs:
        return "stop" if old is None or old.runs else None
    if old is None or reread or not old.runs:
        return "restart"
    same = old.content == unit.content and old.by_name == unit.by_name
    return None if same and set(old.file_paths) == set(unit.file_paths) else "restart"


def _containerd_changed(old: CriConfig | None, new: CriConfig | None) -> bool:
    after = new.configured if new is not None else None
    if new is None or after is None:
        return False
    before = old.configured if old is not None else None
    if old is None or before is None:
        return True
    return (before.sandbox_image, before.plugins, old.cgroup_driver) != (
        after.sandbox_image,
        after.plugins,
        new.cgroup_driver,
    )


def registries_of(osc: OperatingSystemConfig) -> dict[str, RegistryUpstream]:
    return {each.upstream: each for each in osc.containerd.registries} if osc.containerd else {}


def plan_steps(found: Differences, new: OperatingSystemConfig, *, hostname: str) -> tuple[AnyStep, ...]:
    """The steps for these differences, in the order in which they are done."""
    return tuple(_steps(found, new, hostname))


def _steps(found: Differences, new: OperatingSystemConfig, hostname: str) -> Iterator[AnyStep]:
    files, registries = new.files_for(hostname), registries_of(new)
    if new.containerd is not None:
        yield PatchContainerd()
    from_images = [path for path in found.files if files[path].content.image_ref is not None]
    yield from (WriteFile(path) for path in found.files if path not in from_images)
    # Registries without a probe are written each time, as in Gardener's agent; that costs one comparison.
    plain = [name for name, each in registries.items() if not each.readiness_probe]
    probed = [name for name in found.registries if name not in plain]
    yield from (WriteRegistry(name) for name in plain)
    yield from (WriteRegistry(name, probe=True) for name in probed)
    yield from (CopyFromImage(path) for path in from_images)
    yield from (WriteUnit(each.name, each.removed_drop_ins, each.removed_content) for each in found.units)
    yield from (RemoveUnit(each.name, each.content is not None, tuple(each.by_name)) for each in found.removed_units)
    yield ReloadUnits()
    verbs, update = _verbs(found, new), found.in_place
    if verbs.pop(AGENT_UNIT, None):
        yield RestartAgent()
    if update.cpu_manager:
        yield ResetCpuManager()
    yield from (CommandUnit(name, verb) for name, verb in verbs.items())
    if update.changes_kubelet:
        yield AwaitKubelet()
    if probed:
        yield AwaitRegistries()
    yield from (RemoveRegistry(name) for name in found.removed_registries)
    yield from (RemoveFile(path) for path in found.removed_files)
    yield from _in_place_steps(update)
    if new.spec.in_place_updates is not None:
        yield FinishUpdate()


def _in_place_steps(update: InPlaceChanges) -> Iterator[AnyStep]:
    """The steps of an update in place that follow all others."""
    if update.os_version:
        yield UpdateOs(update.os_version)
    if update.service_account_key:
        yield SyncTokens()
    if update.authorities:
        yield RenewAgent()
        yield RebootstrapKubelet()
        yield AwaitKubelet()


def _verbs(found: Differences, new: OperatingSystemConfig) -> dict[str, Verb]:
    verbs: dict[str, Verb] = {each.name: each.verb for each in found.units if each.verb}
    reread = {CONTAINERD_UNIT: found.containerd, KUBELET_UNIT: found.in_place.changes_kubelet}
    stopped = {name for name, unit in new.merged_units().items() if not unit.runs}
    for name, changed in reread.items():
        if changed and name not in stopped:
            verbs.setdefault(name, "restart")
    # A unit of the system that loses its drop-ins has to read its own file again.
    verbs.update({each.name: "restart" for each in found.removed_units if each.content is None})
    return verbs


def waves(names: Iterable[str], units: Mapping[str, OscUnit]) -> list[list[str]]:
    """The units in the order that their own `After=` and `Before=` ask for: those of one wave may go together.

    A circle of units is one wave; systemd breaks it as it likes.
    """
    left = list(dict.fromkeys(names))
    earlier = _earlier(left, units)
    found: list[list[str]] = []
    while left:
        wave = [name for name in left if earlier[name].isdisjoint(left)] or left
        found.append(list(wave))
        left = [name for name in left if name not in wave]
    return found


def _earlier(names: list[str], units: Mapping[str, OscUnit]) -> dict[str, set[str]]:
    """The units that come before each of `names`."""
    earlier: dict[str, set[str]] = {name: set() for name in names}
    for name in names:
        unit = units.get(name)
        if unit is None:
            continue
        for key, other in _orders("\n".join([unit.content or "", *unit.by_name.values()])):
            if other == name:
                continue
            if key == "After":
                earlier[name].add(other)
            elif other in earlier:
                earlier[other].add(name)
    return earlier


def _orders(text: str) -> Iterator[tuple[str, str]]:
    """The `After=` and `Before=` of a unit file; an empty value takes back those before it, as systemd does."""
    held: dict[str, list[str]] = {"After": [], "Before": []}
    for line in text.replace("\\\n", " ").splitlines():
        key, equals, value = line.partition("=")
        if equals and key.strip() in held:
            held[key.strip()] = [*held[key.strip()], *value.split()] if value.strip() else []
    for key, others in held.items():
        yield from ((key, other) for other in others)
