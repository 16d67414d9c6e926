"""A node that can be updated in place: its kubelet requests certificates, and its machine starts again."""

from __future__ import annotations

from pathlib import Path

from tests.nodeagent.world import Osc, World

from hortus.nodeagent.node import AwaitsOutside
from hortus.testing import FakeClock

KUBELET = "kubelet.service"
REAL, BOOTSTRAP = "/var/lib/kubelet/kubeconfig-real", "/var/lib/kubelet/kubeconfig-bootstrap"
PKI = "/var/lib/kubelet/pki/kubelet-client-current.pem"
CPU_STATE = "/var/lib/kubelet/cpu_manager_state"
RELEASE = 'PRETTY_NAME="Garden Linux {}"\n'


class Updatable(World):
    """A node whose kubelet requests a certificate when it is asked to, and whose machine may start again."""

    def __init__(self, root: Path, *, clock: FakeClock | None = None) -> None:
        super().__init__(root, clock=clock)
        self.staged = ""
        """The version of the operating system with which the machine starts the next time."""
        self.takes = True
        """False for a machine that comes back with the version that it had."""
        self.host.act = self._stage

    def _stage(self) -> None:
        self.staged = self.host.commands[-1][-1]

    async def _kubelet(self) -> str:
        for path in (REAL, PKI):
            if self.units.unit(KUBELET).active == "active" and not (self.root / path.lstrip("/")).exists():
                self.put(path, "new")
        return self.kubelet_problem

    def put(self, path: str, text: str) -> None:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def reboot(self) -> None:
        self.host.boots += 1
        if self.staged and self.takes:
            self.put("/etc/os-release", RELEASE.format(self.staged))
        started = list(self.units.restarts)
        for name, each in self.units.units.items():
            if each.active == "active":
                self.units.start(name)
        self.units.restarts[:] = started

    async def update(self, osc: Osc) -> None:
        """Starts the agent and the machine as often as it takes."""
        for _ in range(5):
            try:
                return await self.converge(osc)
            except AwaitsOutside:
                self.reboot()
        raise AssertionError("the machine starts again without end")
