"""A node in a folder: real files, a systemd and a containerd in memory, and kills at each change."""

from __future__ import annotations

import base64
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hortus.kube import yaml
from hortus.nodeagent.converging import checksum_of, converge
from hortus.nodeagent.disk import Disk
from hortus.nodeagent.fakes import FakeMachine, FakeReports, FakeRuntime, FakeUnits
from hortus.nodeagent.kubeletfile import KUBELET_FILE
from hortus.nodeagent.node import AgentRestart, Node
from hortus.nodeagent.osc import OscRegistryHost
from hortus.nodeagent.state import FOLDER, SCRATCH, NodeMemory
from hortus.testing import FakeClock

Osc = dict[str, Any]
PATH = "/usr/local/bin:/usr/bin:/bin"
IMAGE = "registry.example.org/kubelet:v1"
_MOST_STARTS = 20


class Killed(BaseException):
    """The process ended here, without any of its `except` or `finally` being meant to save something."""


class World:
    """One node; `strike` says at which change of it the agent is killed."""

    def __init__(self, root: Path, *, clock: FakeClock | None = None) -> None:
        self.root = root
        self.clock = clock or FakeClock()
        self.seen: list[str] = []
        """The changes of the node, in order."""
        self.strike = -1
        self.failure: tuple[str, OSError] | None = None
        """The start of a change at which the disk fails, and how."""
        self.events: list[tuple[str, str]] = []
        self.secrets: dict[tuple[str, str], bytes] = {}
        self.answering: set[str] = set()
        """The URLs of hosts that answer; all, when empty."""
        self.files = Disk(root, scratch=SCRATCH, observe=self._observe)
        self.units = FakeUnits(self.files, self.clock, observe=self._observe)
        self.runtime = FakeRuntime(images={IMAGE: {"/bin/kubelet": b"kubelet 1"}})
        self.host = FakeMachine(observe=self._observe)
        self.reports = FakeReports(self.files, observe=self._observe)
        self.kubelet_problem = ""
        self.units.boot()

    async def _kubelet(self) -> str:
        return self.kubelet_problem

    def _observe(self, change: str) -> None:
        if self.failure is not None and change.startswith(self.failure[0]):
            raise self.failure[1]
        if len(self.seen) == self.strike:
            self.strike = -1
            raise Killed(change)
        self.seen.append(change)

    async def _secret(self, name: str, key: str) -> bytes:
        return self.secrets[name, key]

    async def _probe(self, host: OscRegistryHost) -> bool:
        return not self.answering or host.url in self.answering

    def _event(self, reason: str, message: str, *, warning: bool = False) -> None:
        self.events.append((reason, message))

    @property
    def node(self) -> Node:
        return Node(
            files=self.files,
            units=self.units,
            runtime=self.runtime,
            host=self.host,
            reports=self.reports,
            kubelet=self._kubelet,
            secret=self._secret,
            probe=self._probe,
            clock=self.clock,
            event=self._event,
            hostname="node-1",
            path=PATH,
        )

    @property
    def state(self) -> NodeMemory:
        return NodeMemory(self.files)

    async def converge(self, osc: Osc) -> None:
        """Starts the agent as often as it ends itself or is killed."""
        text = text_of(osc)
        for _ in range(_MOST_STARTS):
            try:
                await converge(self.node, self.state, text, checksum_of(text))
            except (AgentRestart, Killed):
                self.units.boot()
            else:
                return
        raise AssertionError("the agent restarts without end")

    def tree(self) -> dict[str, tuple[int, bytes]]:
        """The files of the node by path: mode and content."""
        found = {}
        for path in sorted(self.root.rglob("*")):
            if path.is_file():
                name = "/" + str(path.relative_to(self.root))
                found[name] = (stat.S_IMODE(path.stat().st_mode), path.read_bytes())
        return found

    def unit_states(self) -> dict[str, tuple[str, str]]:
        return {name: (unit.active, unit.enabled) for name, unit in sorted(self.units.units.items())}


def text_of(osc: Osc) -> bytes:
    return yaml.dump(osc).encode()


def osc_of(
    files: list[Osc] | None = None,
    units: list[Osc] | None = None,
    *,
    containerd: Mapping[str, Any] | None = None,
    **status: Any,
) -> Osc:
    spec: Osc = {"type": "gardenlinux", "purpose": "reconcile", "units": units or [], "files": files or []}
    if containerd is not None:
        spec["criConfig"] = {"name": "containerd", "cgroupDriver": "systemd", "containerd": dict(containerd)}
    return {
        "apiVersion": "extensions.gardener.cloud/v1alpha1",
        "kind": "OperatingSystemConfig",
        "metadata": {"name": "pool-original"},
        "spec": spec,
        "status": status,
    }


def file(path: str, data: str, **more: Any) -> Osc:
    return {"path": path, "content": {"inline": {"encoding": "", "data": data}}, **more}


def unit(name: str, content: str | None = None, **more: Any) -> Osc:
    return {"name": name, **({"content": content} if content is not None else {}), **more}


def kubelet_file(**settings: Any) -> Osc:
    """The configuration of the kubelet, as an OperatingSystemConfig has it."""
    document = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", **settings}
    return {
        "path": KUBELET_FILE,
        "permissions": 0o600,
        "content": {"inline": {"encoding": "b64", "data": base64.b64encode(yaml.dump(document).encode()).decode()}},
    }


def in_place(osc: Osc, kubelet: str, system: str, settings: Mapping[str, Any] | None = None, **rotation: str) -> Osc:
    """`osc` for a pool with updates in place; `rotation` has times of initiation by credential."""
    osc["spec"]["inPlaceUpdates"] = {"operatingSystemVersion": system, "kubelet": kubelet}
    if rotation:
        times = {name: {"lastInitiationTime": time} for name, time in rotation.items()}
        osc["spec"]["inPlaceUpdates"]["credentialsRotation"] = times
    osc["spec"]["files"] = [*osc["spec"]["files"], kubelet_file(**(settings or {}))]
    return osc


def service(command: str = "/bin/true", **lines: str) -> str:
    head = "".join(f"{key}={value}\n" for key, value in lines.items())
    return f"[Unit]\n{head}[Service]\nExecStart={command}\n"


__all__ = [
    "FOLDER",
    "IMAGE",
    "PATH",
    "Killed",
    "Osc",
    "World",
    "file",
    "in_place",
    "kubelet_file",
    "osc_of",
    "service",
    "text_of",
    "unit",
]
