"""The context of one reconcile of a ClusterAddon: what earlier steps have found."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hortus.domains.stacks.addons.applied import CHARTS, note
from hortus.domains.stacks.addons.reasons import AddonCondition
from hortus.domains.stacks.addons.rendering import AddonCharts
from hortus.domains.stacks.addons.service import AddonRun
from hortus.domains.stacks.capi import CapiCluster
from hortus.domains.stacks.context import StackContext
from hortus.domains.stacks.inventory import ResourceInventory
from hortus.domains.stacks.releases.release import StackRelease
from hortus.domains.stacks.types import AddonStage, ClusterAddon, ManagedResource
from hortus.engine import Wiring
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
    by_flux: bool = False
    """True where Flux applies the addons."""
    kept: dict[str, str]
    """Digests of the charts that the run leaves alone as long as they are the same."""
    digests: dict[str, str]
    """Digests of the charts that this reconcile has applied or left alone."""

    def __init__(self, wiring: Wiring[ClusterAddon], raw: Object) -> None:
        super().__init__(wiring, raw)
        self.kept, self.digests = {}, {}
        self.flux_sources: set[str] = set()
        """The OCIRepositories that HelmReleases were given in this reconcile."""

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

    def unready(self) -> None:
        """Draft the state of addons that are about to change."""
        self.set_status("ready", value=False)
        if self.is_true(AddonCondition.CHART_APPLIED):
            self.drop(AddonCondition.CHART_APPLIED)

    async def strike(self, chart: str) -> None:
        """Remove a chart from the note before its objects change."""
        if self.kept.pop(chart, None) is not None:
            class_name = self.object.metadata.annotations[CHARTS].partition(" ")[0]
            await self.patch({"metadata": {"annotations": {CHARTS: note(class_name, self.kept, self.kept)}}})

    async def save_resources(self, resources: Sequence[ManagedResource]) -> None:
        """Write the list of objects, before any of them is created."""
        self.set_resources(resources)
        await self.checkpoint()
