"""The other parts of the domain as the controllers of Kymas use them."""

from __future__ import annotations

from typing import Protocol

import msgspec

from hortus.domains.modules.registry import Component
from hortus.domains.modules.types import Kyma
from hortus.domains.modules.watching.webhook import identities
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import ObjectKey


class Components(Protocol):
    """The registry of modules."""

    async def component(self, name: str, version: str) -> Component:
        """A version of a component. Raises StepError."""


class AgentState(Protocol):
    """The watcher of one cluster."""

    @property
    def ready(self) -> bool:
        """The status of the condition SKRWebhook."""

    @property
    def message(self) -> str:
        """The state, for people."""


class Agents(Protocol):
    """The watcher in clusters, and its certificates."""

    @property
    def enabled(self) -> bool:
        """True where clusters get agents."""

    async def install(self, kyma: Kyma, remote: Client) -> AgentState:
        """Install the agent in the cluster of a Kyma. Raises StepError, KubeError."""

    async def delete_certificate(self, kyma: ObjectKey) -> bool:
        """Delete certificate and Secret of a Kyma's agent; returns whether any was there. Raises KubeError."""

    async def remove(self, remote: Client) -> bool:
        """Delete every object of the watcher; returns whether any was there. Raises KubeError."""

    def forget(self, kyma: ObjectKey) -> None:
        """Drop what is remembered of a Kyma that is gone, or another replica's."""


class _Absent(msgspec.Struct, frozen=True):
    ready: bool = True
    message: str = "no agents are installed"


class AbsentAgents:
    """Clusters without agents. What an earlier process installed is removed with the Kyma."""

    enabled = False

    def __init__(self, namespace: str) -> None:
        """`namespace` is that of the agent in clusters."""
        self._namespace = namespace

    async def install(self, kyma: Kyma, remote: Client) -> AgentState:
        return _Absent()

    async def delete_certificate(self, kyma: ObjectKey) -> bool:
        return False

    async def remove(self, remote: Client) -> bool:
        found = False
        for resource, namespace, name in identities(self._namespace):
            try:
                await remote.delete(resource, name, namespace)
                found = True
            except NotFound:
                continue
        return found

    def forget(self, kyma: ObjectKey) -> None:
        return
