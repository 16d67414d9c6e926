"""A systemd, a containerd, a machine and a Node in memory, for tests of what stands on them.

`FakeUnits` keeps the rules that the agent relies on: unit files count after `reload`, each start has an invocation of
its own, a restart of a unit without a loaded file fails.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from hortus.kube.clock import Clock
from hortus.nodeagent.changes import AGENT_UNIT
from hortus.nodeagent.seams import Files, NodeFault, UnitStatus


class _Unit(msgspec.Struct):
    active: str = "inactive"
    sub: str = "dead"
    invocation: str = ""
    enabled: str = "disabled"
    started: float = 0.0
    changed: float = 0.0
    kind: str = "simple"
    triggers: tuple[str, ...] = ()


def _ignore(_: str) -> None:
    return None


class FakeUnits:
    """Implements `UnitControl`. `observe` is called before and after each change."""

    def __init__(self, files: Files, clock: Clock, *, observe: Callable[[str], None] = _ignore) -> None:
        self._files = files
        self._clock = clock
        self.observe = observe
        self.units: dict[str, _Unit] = {}
        self.loaded: dict[str, bytes | None] = {}
        """The unit files as of the last reload."""
        self.restarts: list[str] = []
        """The units that were started, in order."""
        self.stops: list[str] = []
        self.results: dict[str, list[str]] = {}
        """Results that the next jobs of a unit have instead of `done`."""
        self.system: set[str] = set()
        """Units that the operating system brings."""
        self._invocations = 0

    async def status(self, names: Collection[str], *, details: bool = True) -> Mapping[str, UnitStatus]:
        found = {name: self._status(name) for name in names}
        if details:
            return found
        return {name: UnitStatus(load=each.load, active=each.active, sub=each.sub) for name, each in found.items()}

    def _status(self, name: str) -> UnitStatus:
        unit = self.units.get(name)
        loaded = name in self.system or self.loaded.get(name) is not None or unit is not None
        if unit is None:
            return UnitStatus(load="loaded" if loaded else "not-found")
        return UnitStatus(
            load="loaded",
            active=unit.active,
            sub=unit.sub,
            invocation=unit.invocation,
            enabled=unit.enabled,
            kind=unit.kind,
            started=unit.started,
            changed=unit.changed,
            triggers=unit.triggers,
        )

    async def reload(self) -> None:
        self.observe("reload")
        folder = "/etc/systemd/system"
        names = [name for name in self._files.names(folder) if not name.endswith(".d")]
        self.loaded = {name: self._files.read(f"{folder}/{name}") for name in names}
        self.observe("reloaded")

    async def enable(self, name: str) -> None:
        self.observe(f"enable {name}")
        self.unit(name).enabled = "enabled"
        self.observe(f"enabled {name}")

    async def disable(self, name: str) -> None:
        self.observe(f"disable {name}")
        self.unit(name).enabled = "disabled"
        self.observe(f"disabled {name}")

    async def restart(self, name: str) -> str:
        self.observe(f"restart {name}")
        result = self._result(name)
        if result == "done":
            self.start(name)
        elif result == "failed":
            self.start(name)
            self.unit(name).active = "failed"
        self.observe(f"restarted {name}")
        return result

    async def stop(self, name: str) -> str:
        self.observe(f"stop {name}")
        if self.unit(name).active == "active":
            self.stops.append(name)
        self.unit(name).active, self.unit(name).changed = "inactive", self._clock.now()
        self.observe(f"stopped {name}")
        return "done"

    def _result(self, name: str) -> str:
        planned = self.results.get(name)
        if planned:
            return planned.pop(0)
        if name not in self.system and self.loaded.get(name) is None:
            raise NodeFault(f"systemd does not know unit {name}")
        return "done"

    def unit(self, name: str) -> _Unit:
        return self.units.setdefault(name, _Unit())

    def start(self, name: str) -> None:
        """The unit is started, by whomever."""
        unit = self.unit(name)
        self._invocations += 1
        unit.invocation = f"{self._invocations:032x}"
        unit.active, unit.sub = "active", "running"
        unit.started = unit.changed = self._clock.now()
        self.restarts.append(name)

    def boot(self) -> None:
        """The agent's process begins again."""
        self.start(AGENT_UNIT)
        self.restarts.pop()


class FakeRuntime:
    """Implements `NodeRuntime`."""

    def __init__(self, *, images: Mapping[str, Mapping[str, bytes]] | None = None, version: str = "1.7.23") -> None:
        self.images = images or {}
        self.answer = version
        self.fault = ""
        """The failure of each call, while it is not empty."""

    async def version(self) -> str:
        self._check()
        return self.answer

    async def default_config(self) -> str:
        return "version = 2\n"

    async def file_from_image(self, image: str, path: str) -> bytes:
        self._check()
        try:
            return self.images[image][path]
        except KeyError:
            raise NodeFault(f"image {image} has no file {path}") from None

    def _check(self) -> None:
        if self.fault:
            raise NodeFault(self.fault)


class FakeMachine:
    """Implements `MachineControl`. `act` is called by each command, which may change the disk or begin another boot."""

    def __init__(self, *, observe: Callable[[str], None] = _ignore) -> None:
        self.boots = 1
        self.commands: list[tuple[str, ...]] = []
        self.outcomes: list[tuple[int, str]] = []
        """The exit codes and outputs of the next commands; those after them succeed."""
        self.act: Callable[[], None] = lambda: None
        self.observe = observe

    def boot(self) -> str:
        return f"boot-{self.boots}"

    async def run(self, command: Sequence[str], *, patience: float) -> tuple[int, str]:
        self.observe(f"run {command[0]}")
        self.commands.append(tuple(command))
        code, output = self.outcomes.pop(0) if self.outcomes else (0, "")
        if code == 0:
            self.act()
        self.observe(f"ran {command[0]}")
        return code, output


class FakeReports:
    """Implements `UpdateReports`: the labels and annotations of a Node, and its pods."""

    def __init__(self, files: Files, *, observe: Callable[[str], None] = _ignore) -> None:
        self._files = files
        self.observe = observe
        self.result = ""
        self.reason = ""
        self.updating = ""
        self.running: list[str] = []
        """The pods; one that is deleted is made again under another uid."""
        self.drained = False
        """True for a Node that the machine controller has drained for an update in place."""
        self.certificates = 0
        self.token_syncs = 0

    @property
    def has_failed(self) -> bool:
        return self.result == "failed"

    @property
    def awaits_result(self) -> bool:
        return self.has_failed or (self.drained and self.result != "successful")

    async def begin_os(self, version: str) -> None:
        self.observe("annotate")
        self.updating = version
        self.observe("annotated")

    async def fail(self, reason: str) -> None:
        self.observe("fail")
        self.result, self.reason = "failed", reason
        self.observe("failed")

    async def succeed(self) -> None:
        self.observe("succeed")
        self.result, self.reason, self.updating = "successful", "", ""
        self.observe("succeeded")

    async def pods(self) -> tuple[str, ...]:
        return tuple(self.running)

    async def delete(self, pods: Collection[str]) -> None:
        for pod in pods:
            self.observe(f"delete {pod}")
            self.running = [f"{each}-again" if each == pod else each for each in self.running]
            self.observe(f"deleted {pod}")

    def sync_tokens(self) -> None:
        self.token_syncs += 1

    async def renew_agent(self) -> None:
        self.certificates += 1
        self._files.write("/var/lib/gardener-node-agent/credentials/kubeconfig", b"new", mode=0o600)

    async def write_kubelet_bootstrap(self) -> None:
        self._files.write("/var/lib/kubelet/kubeconfig-bootstrap", b"bootstrap", mode=0o600)
