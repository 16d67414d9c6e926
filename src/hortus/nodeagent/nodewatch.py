"""Requests that people and Gardener make through the Node: restarts of units, another Secret, another host name."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

import structlog

from hortus.kube import Clock, yaml
from hortus.kube.errors import KubeError
from hortus.nodeagent.changes import AGENT_UNIT
from hortus.nodeagent.cluster import NodeView, SeenNode
from hortus.nodeagent.node import AgentRestart, Node
from hortus.nodeagent.seams import NodeFault

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

RESTART = "worker.gardener.cloud/restart-systemd-services"
SECRET_LABEL = "worker.gardener.cloud/gardener-node-agent-secret-name"  # noqa: S105 - a label
HOSTNAME_EVERY = 30.0
CONFIG_MODE = 0o600


def units_in(text: str) -> list[str]:
    """The units that the annotation names, each once."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    return list(dict.fromkeys(name if "." in name else f"{name}.service" for name in names))


class NodeRequests:
    """Follows the Node. Removes the annotation when the units were restarted, the agent itself after that."""

    def __init__(self, node: Node, view: NodeView, *, secret_name: str, config: str) -> None:
        """`config` is the path of the own configuration file, which is rewritten for another Secret."""
        self._node = node
        self._view = view
        self._secret_name = secret_name
        self._config = config
        self._changed = asyncio.Event()

    async def run(self) -> None:
        """Follow the Node until cancelled. Raises AgentRestart."""
        self._view.on_change(self._changed.set)
        await self._view.synced()
        self._changed.set()
        while True:
            await self._changed.wait()
            self._changed.clear()
            node = self._view.node
            if node is not None:
                self._follow_secret(node)
                await self._restart_units(node)

    async def _restart_units(self, node: SeenNode) -> None:
        names = units_in(node.metadata.annotations.get(RESTART, ""))
        if not names:
            return
        for name in names:
            if name != AGENT_UNIT:
                await self._restart(name)
        try:
            await self._view.patch_metadata(node, annotations={RESTART: None})
        except KubeError as error:
            _log.warning("the annotation was not removed", error=str(error))
            return
        if AGENT_UNIT in names:
            raise AgentRestart("the Node asks for it")

    async def _restart(self, name: str) -> None:
        try:
            result = await self._node.units.restart(name)
        except NodeFault as error:
            result = str(error)
        if result in ("done", "timeout"):
            self._node.event("SystemDUnitRestart", f"restarted unit {name}, as the Node asks")
        else:
            _log.error("a unit was not restarted", unit=name, error=result)
            self._node.event("SystemDUnitFailed", f"unit {name} was not restarted: {result}", warning=True)

    def _follow_secret(self, node: SeenNode) -> None:
        """Rewrites the own configuration when the node belongs to another Secret now, and ends."""
        name = node.metadata.labels.get(SECRET_LABEL, "")
        if not name or name == self._secret_name:
            return
        content = self._node.files.read(self._config)
        document = yaml.load(content or b"{}")
        document.setdefault("controllers", {}).setdefault("operatingSystemConfig", {})["secretName"] = name
        self._node.files.write(self._config, yaml.dump(document).encode(), mode=CONFIG_MODE)
        raise AgentRestart(f"the configuration comes from Secret {name} now")


async def until_renamed(clock: Clock, hostname: str, named: Callable[[], str]) -> None:
    """Raises AgentRestart when the host has another name than `hostname`."""
    while True:
        await clock.sleep(HOSTNAME_EVERY)
        if (found := named()) != hostname:
            raise AgentRestart(f"the host is called {found} now")


def host_name() -> str:
    """The host name as labels carry it."""
    return socket.gethostname().lower()
