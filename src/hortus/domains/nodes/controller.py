"""Roll-outs over the nodes of a cluster, one ClusterProfile each.

Objects it owns: annotations of Nodes (`hold`, `released`) in the clusters; annotations of ClusterProfiles about the
change of kind `node-configuration`. It adds the label `selected-for-update` to candidates for an update in place.
It watches: ClusterProfiles; in their clusters the Nodes and the Secrets of OperatingSystemConfigs; the gate.
All state is in these annotations, so another process goes on where one was killed.
It never: writes a Secret, changes a hold that somebody else wrote, holds a node that has no configuration yet.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hortus.domains.inventory.types import ClusterProfile
from hortus.domains.nodes.changes import NODE_CHANGE, NODES, PROBLEM, proposal
from hortus.domains.nodes.members import NodeMembers
from hortus.domains.nodes.service import NodesDecision
from hortus.domains.nodes.settings import NodeSettings
from hortus.engine import KindController, ReconcileContext, Result, StepError, Steps, Wiring, metadata_of
from hortus.engine.rollouts import RolloutGate, waits_for
from hortus.kube.errors import KubeError
from hortus.kube.objects import ObjectKey, key_of


class NodeRolloutController(KindController[ReconcileContext[ClusterProfile]]):
    """Has the nodes of a cluster follow their configurations in steps, once the cluster is admitted."""

    kind = ClusterProfile
    field_manager = "hortus-nodes"

    def __init__(self, wiring: Wiring[Any], members: NodeMembers, gate: RolloutGate, settings: NodeSettings) -> None:
        super().__init__(wiring)
        self._members = members
        self._gate = gate
        self._settings = settings

    def steps(self, context: ReconcileContext[ClusterProfile]) -> Steps:
        return (self._roll_out,)

    async def on_error(
        self, context: ReconcileContext[ClusterProfile], error: StepError | KubeError
    ) -> StepError | None:
        """The status of a ClusterProfile is another controller's."""
        return None

    def waiting(self) -> list[ObjectKey]:
        """All clusters: with a policy the nodes of each are held, and released without one."""
        return [key_of(one) for one in self.wiring.cache.raw.values()]

    async def _roll_out(self, context: ReconcileContext[ClusterProfile]) -> Result | None:
        nodes = self._members.nodes(context.key)
        if nodes is None or not self._gate.has_synced:
            return None  # the watches report it
        change, cluster, raw = proposal(nodes.version), context.key.name, context.raw
        asks = nodes.is_behind or bool(waits_for(raw, NODE_CHANGE))
        decision = nodes.decide(
            governed=self._gate.governs(NODE_CHANGE, NODES),
            admitted=asks and self._gate.ask(change, cluster).allowed,
            most=self._settings.most,
            patience=self._settings.patience,
            now=context.now,
        )
        # First, so that the problem of one version is never read as that of the next.
        await self._report(context, decision.problem if waits_for(raw, NODE_CHANGE) == change.to else "")
        await self._annotate(context.key, decision)
        if decision.is_done:
            await self._gate.settle(context, NODE_CHANGE, change.to)
        elif asks:
            await self._gate.admit(context, change, cluster)
        return Result(requeue_after=decision.after)

    async def _report(self, context: ReconcileContext[ClusterProfile], problem: str) -> None:
        if metadata_of(context.raw).annotations.get(PROBLEM, "") != problem:
            await context.patch({"metadata": {"annotations": {PROBLEM: problem or None}}})

    async def _annotate(self, key: ObjectKey, decision: NodesDecision) -> None:
        nodes = decision.annotations.keys() | decision.selected
        await asyncio.gather(
            *(
                self._members.annotate(
                    key, node, dict(decision.annotations.get(node, {})), select=node in decision.selected
                )
                for node in sorted(nodes)
            )
        )
