"""The context of one reconcile of a ClusterAddon: what earlier steps have found."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hortus.domains.stacks.addons.rendering import AddonCharts
from hortus.domains.stacks.addons.service import AddonRun
from hortus.domains.stacks.capi import CapiCluster
from hortus.domains.stacks.context import StackContext
from hortus.domains.stacks.inventory import ResourceInventory
from hortus.domains.stacks.releases.release import StackRelease
from hortus.domains.stacks.types import AddonStage, ClusterAddon, ManagedResource
from hortus.engine.applysets import DiscoveredKinds
from hortus.kube import Client
from hortus.kube.objects import Object


class AddonContext(StackContext[ClusterAddon]):
    """One reconcile. Each attribute is set by the step that finds it."""

    cluster: CapiCluster
    cluster_object: Object
    """The Cluster as the API server has it."""
    client: Client
    """A client of the workload cluster."""
    kinds: DiscoveredKinds
    release: StackRelease
    served: tuple[str, ...]
    """The API versions that the workload cluster serves, for charts."""
    data: Object
    """The data of values templates."""
    charts: AddonCharts
    run: AddonRun
    inventory: ResourceInventory

    @property
    def title(self) -> str:
        return f"ClusterAddon {self.key}"

    @property
    def stages(self) -> tuple[AddonStage, ...]:
        """The stages as they are drafted."""
        return tuple(msgspec.convert(self.drafted("stages") or (), tuple[AddonStage, ...]))

    def set_stages(self, stages: Sequence[AddonStage]) -> None:
        """Draft the stages."""
        self.set_status("stages", [msgspec.to_builtins(one) for one in stages] or None)

    def set_resources(self, resources: Sequence[ManagedResource]) -> None:
        """Draft the list of objects."""
        self.set_status("resources", [msgspec.to_builtins(one) for one in resources] or None)

    async def save_resources(self, resources: Sequence[ManagedResource]) -> None:
        """Write the list of objects, before any of them is created."""
        self.set_resources(resources)
        await self.checkpoint()
