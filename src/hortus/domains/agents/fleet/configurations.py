"""The AgentConfiguration controller: an AgentPlacement for each cluster that is to have the agent.

Conditions it owns: Ready, Reconciling, Stalled and Overlaps of AgentConfigurations, and all of their status.
Objects it owns: AgentPlacements, by spec.configuration; of two configurations that want the same agent in one cluster
the one that counts more takes the AgentPlacement over.
It watches: AgentConfigurations, ClusterProfiles, AgentPlacements, the Secrets of the namespace (as checksums).
It never: connects to a cluster, asks for a rollout, or keeps the value of a Secret.

A configuration that cannot be used leaves every cluster as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hortus.domains.agents.fleet.counting import PlacementState, counted, summary, worst_of
from hortus.domains.agents.fleet.distribution import is_distributable, undistributable
from hortus.domains.agents.fleet.known import KnownPlacements
from hortus.domains.agents.fleet.overlaps import OVERLAPS, overlaps
from hortus.domains.agents.fleet.reasons import PlacementReason
from hortus.domains.agents.fleet.rendering import RenderError, check_expression
from hortus.domains.agents.fleet.selection import (
    SelectedClusters,
    agent_of,
    in_order,
    placement_name,
    placement_of,
    selected,
    spec_of,
    winner,
)
from hortus.domains.agents.fleet.versions import missing, secret_names, version_of
from hortus.domains.agents.options import UnusableOptions, read_options
from hortus.domains.agents.types import (
    AGENT_PLACEMENTS,
    AgentConfiguration,
    AgentPlacement,
)
from hortus.domains.inventory.types import ClusterProfile
from hortus.engine import (
    TRUE,
    Actor,
    KindController,
    ReconcileContext,
    Result,
    StepError,
    Steps,
    TypedCache,
    Wiring,
    metadata_of,
    read,
)
from hortus.engine.applysets.parallel import each
from hortus.engine.kubeconfigs import KubeconfigSecret
from hortus.engine.outcomes import NEVER
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey
from hortus.kube.selectors import SelectorError

FINALIZER: Final = "agents.fleet.hortus.dev/placements"
_PARALLEL: Final = 16


class ConfigurationContext(ReconcileContext[AgentConfiguration]):
    """One reconcile. Each attribute is set by the step that finds it."""

    ordered: list[AgentConfiguration]
    """All configurations of the namespace that can win, the first counts most."""
    selected: SelectedClusters
    version: str


class AgentConfigurationController(KindController[ConfigurationContext]):
    """Reconciles one AgentConfiguration at a time."""

    kind = AgentConfiguration
    field_manager = "hortus-agents"

    def __init__(
        self,
        wiring: Wiring[Any],
        *,
        profiles: TypedCache[ClusterProfile],
        placements: KnownPlacements,
        secrets: TypedCache[KubeconfigSecret],
        report_period: float,
        operator_version: str,
    ) -> None:
        super().__init__(wiring)
        self._profiles = profiles
        self._placements = placements
        self._secrets = secrets
        self._period = report_period
        self._operator_version = operator_version
        self._reported: dict[ObjectKey, float] = {}

    def make_context(self, raw: Object) -> ConfigurationContext:
        return ConfigurationContext(self.wiring, raw)

    def steps(self, context: ConfigurationContext) -> Steps:
        return (self._pace, self._hold, self._select, self._withdraw, self._determine, self._place, self._report)

    def finalize_steps(self, context: ConfigurationContext) -> Steps:
        return (self._clear, self._release)

    async def gone(self, key: ObjectKey) -> None:
        self._reported.pop(key, None)

    # Steps.

    async def _pace(self, context: ConfigurationContext) -> Result | None:
        """Puts off a reconcile that only counts, soon after the last one. A changed object is never put off."""
        left = self._reported.get(context.key, -self._period) + self._period - self.wiring.clock.monotonic()
        seen = context.object.status.observed_generation == context.object.metadata.generation
        return Result(requeue_after=left) if seen and left > 0 else None

    async def _hold(self, context: ConfigurationContext) -> None:
        await context.ensure_finalizer(FINALIZER)

    async def _select(self, context: ConfigurationContext) -> None:
        context.ordered = self._ordered(context.key.namespace)
        clusters = {
            profile.name: profile.labels
            for profile in map(metadata_of, list(self._profiles.raw.values()))
            if profile.namespace == context.key.namespace and profile.deletion_timestamp is None
        }
        try:
            context.selected = selected(context.object, context.ordered, clusters)
            overlap = overlaps(context.object, context.ordered, clusters)
        except SelectorError as error:
            raise _unusable(context, str(error), "InvalidSelector") from error
        if overlap is None:
            context.draft.without_condition(OVERLAPS)
        else:
            context.condition(OVERLAPS, TRUE, reason=overlap.reason, message=overlap.message)

    async def _withdraw(self, context: ConfigurationContext) -> None:
        """Deletes the AgentPlacements of clusters that are to have no such agent any more."""
        agent = agent_of(context.object)
        wanted = {placement_name(agent, cluster) for cluster in context.selected.won}
        leaving = [
            placement
            for placement in self._own(context.key)
            if placement.metadata.name not in wanted and placement.spec.cluster not in context.selected.overruled
        ]
        await each(leaving, self._delete, limit=_PARALLEL)

    async def _determine(self, context: ConfigurationContext) -> None:
        """Finds the version that the clusters are to have."""
        configuration = context.object
        try:
            check_expression(configuration.spec.per_cluster)
        except RenderError as error:
            raise _unusable(context, str(error), "InvalidExpression") from error
        try:
            read_options(configuration.metadata, f"AgentConfiguration {context.key}")
        except UnusableOptions as error:
            raise StepError(str(error), reason="InvalidOptions", actor=Actor.USER, after=NEVER) from error
        names = secret_names(configuration)
        known: dict[str, Mapping[str, str]] = {}
        kept: list[str] = []
        for name in names:
            secret = self._secrets.get(ObjectKey(context.key.namespace, name))
            if secret is not None:
                known[name] = secret.data
                kept += [] if is_distributable(secret.labels) else [name]
        if lacking := missing(names, known):
            raise _unusable(
                context,
                f"spec.template names the Secret {', '.join(lacking)}, which is not in namespace "
                f"{context.key.namespace}: create it there, or name it in spec.localSecrets",
                "SecretMissing",
            )
        if kept:
            raise _unusable(context, undistributable(kept), PlacementReason.SECRET_KEPT)
        context.version = version_of(configuration, known, operator_version=self._operator_version)

    async def _place(self, context: ConfigurationContext) -> None:
        """Has each cluster's AgentPlacement ask for the version."""

        configuration, version, agent = context.object, context.version, agent_of(context.object)

        def is_placed(cluster: str) -> bool:
            known = self._placements.get(ObjectKey(context.key.namespace, placement_name(agent, cluster)))
            return known is not None and known.placement.spec == spec_of(configuration, cluster, version)

        async def place(cluster: str) -> None:
            wanted = placement_of(configuration, cluster, version)
            await self.wiring.client.apply(AGENT_PLACEMENTS, wanted, field_manager=self.field_manager)

        await each([one for one in context.selected.won if not is_placed(one)], place, limit=_PARALLEL)

    async def _report(self, context: ConfigurationContext) -> None:
        self._reported[context.key] = self.wiring.clock.monotonic()
        states = self._states(context)
        clusters = counted(states, selected=len(context.selected.won), overruled=len(context.selected.overruled))
        nodes = summary(states)
        context.set_status("observedGeneration", context.object.metadata.generation)
        context.set_status("version", context.version)
        context.set_status("clusters", msgspec.structs.asdict(clusters))
        context.set_status("nodes", msgspec.structs.asdict(nodes))
        context.set_status("worst", [msgspec.to_builtins(one) for one in worst_of(states)] or None)
        text = f"The agent runs in {clusters.ready} of {clusters.selected} clusters"
        if clusters.failed:
            worst = worst_of(states)[0]
            failure = f"{clusters.failed} failed, first {worst.name}: {worst.message}"
            context.reconciling("ClustersFailed", f"{text}; {failure}")
        elif clusters.ready == clusters.selected:
            context.ready("AllReady", f"{text}.")
        else:
            waits = f"; {clusters.waiting} wait for a rollout" if clusters.waiting else ""
            context.reconciling("Progressing", f"{text}{waits}.")

    async def _clear(self, context: ConfigurationContext) -> Result | None:
        """Deletes the AgentPlacements, but leaves those that another configuration takes over."""
        ordered = self._ordered(context.key.namespace)
        own = self._own(context.key)
        leaving = [placement for placement in own if self._heir(ordered, context.object, placement) is None]
        await each(leaving, self._delete, limit=_PARALLEL)
        if not own:
            return None
        context.reconciling("Removing", f"The agent is being removed from {len(own)} clusters.")
        return Result()

    async def _release(self, context: ConfigurationContext) -> None:
        await context.remove_finalizer(FINALIZER)

    # Parts.

    def report(self, context: ConfigurationContext, error: StepError) -> None:
        context.set_status("observedGeneration", context.object.metadata.generation)
        super().report(context, error)

    def _ordered(self, namespace: str) -> list[AgentConfiguration]:
        found = (read(AgentConfiguration, raw) for raw in self.wiring.cache.raw.values())
        return in_order(one for one in found if one.metadata.namespace == namespace)

    def _own(self, key: ObjectKey) -> list[AgentPlacement]:
        return [state.placement for state in self._placements.of(key)]

    def _heir(
        self, ordered: list[AgentConfiguration], configuration: AgentConfiguration, placement: AgentPlacement
    ) -> AgentConfiguration | None:
        profile = self._profiles.get(ObjectKey(placement.metadata.namespace, placement.spec.cluster))
        if profile is None or profile.metadata.deletion_timestamp is not None:
            return None
        return winner(ordered, agent_of(configuration), profile.metadata.labels)

    def _states(self, context: ConfigurationContext) -> list[PlacementState]:
        known = self._placements.of(context.key)
        return [state for state in known if state.placement.metadata.deletion_timestamp is None]

    async def _delete(self, placement: AgentPlacement) -> None:
        metadata = placement.metadata
        if metadata.deletion_timestamp is not None:
            return
        try:
            await self.wiring.client.delete(AGENT_PLACEMENTS, metadata.name, metadata.namespace, uid=metadata.uid)
        except NotFound:
            return


def _unusable(context: ConfigurationContext, problem: str, reason: str) -> StepError:
    return StepError(f"AgentConfiguration {context.key}: {problem}", reason=reason, actor=Actor.USER, after=NEVER)
