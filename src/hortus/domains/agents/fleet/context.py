"""One reconcile of an AgentPlacement: the facts that its steps hand on, and the inventory in its status."""

from __future__ import annotations

from typing import Final

from hortus.domains.agents.fleet.members import NotedClient
from hortus.domains.agents.fleet.workloads import AgentWorkloads
from hortus.domains.agents.types import AGENT_PLACEMENTS, AgentConfiguration, AgentPlacement, InstanaAgent
from hortus.domains.inventory.types import ClusterProfile
from hortus.engine import ReconcileContext
from hortus.engine.applysets import Inventory, set_id
from hortus.engine.applysets.inventory import decode, encode
from hortus.engine.remote import KubeconfigRef
from hortus.kube.objects import Object

FINALIZER: Final = "agents.fleet.hortus.dev/objects"


class PlacementContext(ReconcileContext[AgentPlacement]):
    """One reconcile. Each attribute is set by the step that finds it."""

    configuration: AgentConfiguration
    profile: ClusterProfile
    place: KubeconfigRef
    identity: str
    """The mark of the set's members in the cluster."""
    client: NotedClient
    workloads: AgentWorkloads | None = None
    """The workloads as the watches show them; None while they do not."""
    secrets: dict[str, Object]
    """The Secrets to distribute, by name."""
    agent: InstanaAgent
    objects: list[Object]
    """All objects of the agent in the cluster."""

    @property
    def title(self) -> str:
        return f"AgentPlacement {self.key}"

    @property
    def inventory(self) -> list[str]:
        """The lines of the inventory, as drafted."""
        return list(self.drafted("inventory") or ())


class PlacementInventory:
    """The parent of an agent's objects: it remembers them in the status of the AgentPlacement."""

    shared_kinds: tuple[str, ...] = ()

    def __init__(self, context: PlacementContext) -> None:
        self._context = context
        self.identity = identity_of(context.object)
        self.namespace = context.object.spec.agent_namespace

    async def load(self) -> Inventory:
        return decode("".join(f"{line}\n" for line in self._context.inventory))

    async def store(self, inventory: Inventory) -> None:
        lines = encode(inventory).splitlines()
        if lines != self._context.inventory:
            self._context.set_status("inventory", lines or None)
            await self._context.checkpoint()

    async def remove(self) -> None:
        await self.store({})


def identity_of(placement: AgentPlacement) -> str:
    """The mark of the members of an AgentPlacement's set."""
    metadata = placement.metadata
    return set_id(
        name=metadata.name, namespace=metadata.namespace, kind=AGENT_PLACEMENTS.kind, group=AGENT_PLACEMENTS.group
    )
