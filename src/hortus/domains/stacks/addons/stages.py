"""The stages of a run: conditions before and after, charts applied and deleted; at the end the rest of the old release.

Each stage has a phase in the status. A phase is written before its work begins, and its work may be repeated, so a run
that was broken off goes on with the phase that it had reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from hortus.domains.stacks.addons.applied import digest_of, installed
from hortus.domains.stacks.addons.config import AddonStageSpec, StageAction, StageCondition
from hortus.domains.stacks.addons.context import AddonContext
from hortus.domains.stacks.addons.expressions import NotYet, check
from hortus.domains.stacks.addons.failures import condition_error, unusable, workload_errors
from hortus.domains.stacks.addons.reasons import (
    AGAIN,
    APPLY_FAILED,
    CHART_MISSING,
    DELETE_FAILED,
    RENDER_FAILED,
    VALUES_FAILED,
    AddonCondition,
    CelReason,
)
from hortus.domains.stacks.addons.rendering import AddonRendering, RenderFailed, ValuesError
from hortus.domains.stacks.addons.service import StagePhase
from hortus.domains.stacks.conditions import Severity
from hortus.domains.stacks.context import ConditionError
from hortus.domains.stacks.flux.handover import FluxHandover, handed
from hortus.domains.stacks.flux.registry import ONE_CHART
from hortus.domains.stacks.inventory import policy_of_stacks
from hortus.domains.stacks.names import FIELD_MANAGER, OWNED
from hortus.engine import Actor
from hortus.engine.applysets import ApplyReport, ApplySet, ClusterClient, Inventory, Parent
from hortus.engine.outcomes import NEVER
from hortus.kube import Clock, durations
from hortus.kube.objects import Object, format_time, parse_time
from hortus.render.helm import ChartSource

ADDON_NAMESPACE: Final = "kube-system"
"""The namespace of objects that name none."""
WAITING: Final = "fleet.hortus.dev/addon-waiting"
"""Annotation of a ClusterAddon: the stage and phase that waits for a condition with a timeout, and since when."""


class StageRunner:
    """Runs the stages of ClusterAddons."""

    def __init__(self, rendering: AddonRendering, *, clock: Clock, flux: FluxHandover | None = None) -> None:
        """`flux` applies the charts of Clusters that ask for it."""
        self._rendering = rendering
        self._clock = clock
        self._flux = flux

    # Steps, in their order.

    async def run_stages(self, context: AddonContext) -> None:
        """Go through the stages that are not done. Raises ConditionError for the first that has to wait."""
        for index, spec in enumerate(context.charts.config.of(context.run.hook)):
            await self._run(context, index, spec)

    async def clean_up(self, context: AddonContext) -> None:
        """Delete the objects that no chart of the release has any more. Raises ConditionError."""
        staying: list[Object] = []
        names = context.charts.config.applied_charts(context.run.hook)
        for name in names:
            objects = await self.rendered(context, name)
            staying += objects
            if self._flux is not None and context.by_flux and await self._is_installed(context, name, objects):
                await self._hand_over(context, name, objects)
        if self._flux is not None and context.by_flux:
            await self._flux.keep_only(context, names)
        await self.prune(context, staying)

    async def unchanged(self, context: AddonContext, stages: Sequence[AddonStageSpec]) -> dict[str, str]:
        """The digests of the charts that a run would apply as the cluster has them already."""
        known = installed(context.object)
        deleted = {stage.name for stage in stages if stage.action is StageAction.DELETE}
        found = {}
        for name in dict.fromkeys(stage.name for stage in stages if stage.name not in deleted):
            chart = context.charts.charts.get(name)
            if name not in known or chart is None:
                continue
            with suppress(ValuesError, RenderFailed):  # its stage reports it
                objects = await self._rendering.chart(context.release, name, chart, context.data, context.served)
                if digest_of(objects) == known[name]:
                    found[name] = known[name]
        return found

    # One stage.

    async def _run(self, context: AddonContext, index: int, spec: AddonStageSpec) -> None:
        phase = context.stages[index].phase
        if phase in (StagePhase.PENDING, StagePhase.BEFORE, ""):
            if spec.before is not None:
                await self._await(context, index, spec.before, StagePhase.BEFORE)
            self._draft(context, index, StagePhase.ACTING)
            phase = StagePhase.ACTING.value
        if phase == StagePhase.ACTING:
            await self._act(context, spec)
            if spec.after is not None:
                await self._enter(context, index, StagePhase.AFTER)
            phase = StagePhase.AFTER.value
        if phase == StagePhase.AFTER:
            if spec.after is not None:
                await self._await(context, index, spec.after, StagePhase.AFTER)
                await self._enter(context, index, StagePhase.DONE)
            else:
                # Written with what follows; until then the work may be repeated.
                self._draft(context, index, StagePhase.DONE)

    async def _act(self, context: AddonContext, spec: AddonStageSpec) -> None:
        applies = spec.action is StageAction.APPLY
        objects = await self.rendered(context, spec.name, with_values=applies)
        digest = digest_of(objects)
        if applies and context.kept.get(spec.name) == digest and context.inventory.has_synced(objects):
            async with workload_errors(context):
                await context.inventory.name(objects)
            context.digests[spec.name] = digest
            return
        await context.checkpoint()
        if self._flux is not None and context.by_flux:
            await self._act_by_flux(context, spec, objects)
            return
        await context.strike(spec.name)
        if not applies:
            await self._delete(context, objects)
            return
        await self.apply(context, objects)
        context.digests[spec.name] = digest

    async def _act_by_flux(self, context: AddonContext, spec: AddonStageSpec, objects: Sequence[Object]) -> None:
        if spec.action is StageAction.APPLY:
            await self._hand_over(context, spec.name, objects)
            return
        if self._flux is not None:
            await self._flux.release(context, (spec.name,))
        await self._delete(context, objects)

    async def _enter(self, context: AddonContext, index: int, phase: StagePhase) -> None:
        self._draft(context, index, phase)
        await context.checkpoint()

    def _draft(self, context: AddonContext, index: int, phase: StagePhase) -> None:
        stages = list(context.stages)
        stages[index] = msgspec.structs.replace(stages[index], phase=phase.value)
        context.set_stages(stages)

    async def _await(self, context: AddonContext, index: int, condition: StageCondition, phase: StagePhase) -> None:
        """Raises ConditionError while a condition does not hold."""
        before = phase is StagePhase.BEFORE
        otherwise = CelReason.PRE_CONDITION if before else CelReason.POST_CONDITION
        try:
            async with workload_errors(context):
                await check(condition, context.client, context.kinds, otherwise=otherwise)
        except NotYet as error:
            self._draft(context, index, phase)
            late = await self._overdue(context, index, condition, phase)
            name = context.stages[index].name
            side = "waitForPreCondition" if before else "waitForPostCondition"
            message = f"stage {name}, {side}: {late}{error}"
            reason, severity = (CelReason.TIMED_OUT, Severity.ERROR) if late else (error.reason, error.severity)
            raise _waiting(message, reason, severity) from error
        context.drop(AddonCondition.EVALUATED_CEL)

    async def _overdue(self, context: AddonContext, index: int, condition: StageCondition, phase: StagePhase) -> str:
        """The text that says for how long a condition has been awaited, once that is longer than its timeout."""
        if condition.timeout is None:
            return ""
        place = f"{context.run}/{index}/{phase.value}"
        noted, _, since = context.object.metadata.annotations.get(WAITING, "").partition(" ")
        if noted != place:
            await context.patch({"metadata": {"annotations": {WAITING: f"{place} {format_time(context.now)}"}}})
            return ""
        if context.now - parse_time(since) < condition.timeout:
            return ""
        return f"it does not hold after {durations.from_seconds(condition.timeout)}: "

    # Charts.

    async def rendered(self, context: AddonContext, name: str, *, with_values: bool = True) -> list[Object]:
        """The objects of one chart of the release. Raises ConditionError."""
        chart = context.charts.charts.get(name)
        if chart is None:
            raise _missing(context, name)
        context.drop(AddonCondition.CHART_FOUND)
        found = await self._rendered(context, name, chart, context.data if with_values else None)
        context.drop(AddonCondition.CHART_TEMPLATED)
        return found

    async def _rendered(
        self, context: AddonContext, name: str, chart: ChartSource, data: Object | None
    ) -> list[Object]:
        try:
            return await self._rendering.chart(context.release, name, chart, data, context.served)
        except (ValuesError, RenderFailed) as error:
            reason = VALUES_FAILED if isinstance(error, ValuesError) else RENDER_FAILED
            # Values are made of objects that may be complete later.
            raise unusable(context, error, AddonCondition.CHART_TEMPLATED, reason, after=AGAIN, event=reason) from error

    # Flux.

    async def _is_installed(self, context: AddonContext, name: str, objects: Sequence[Object]) -> bool:
        if name in (handed(context.object) or ()):
            return True
        async with workload_errors(context):
            members = await context.inventory.members(objects)
            return not members.keys().isdisjoint(await context.inventory.load())

    async def _hand_over(self, context: AddonContext, name: str, objects: Sequence[Object]) -> None:
        chart = context.charts.charts[name]
        await self.hand_over(
            context, name, chart, objects, await self._rendering.chart_values(name, chart, context.data)
        )

    async def hand_over(
        self, context: AddonContext, key: str, chart: ChartSource, objects: Sequence[Object], values: Mapping[str, Any]
    ) -> None:
        """Hand a chart to Flux, its objects listed before. Raises ConditionError until they are applied."""
        if self._flux is None:
            raise RuntimeError("Flux is not offered, which an earlier step has to see")
        async with workload_errors(context):
            await context.inventory.name(objects)
            members = await context.inventory.members(objects)
            stored = await context.inventory.load()
            await context.inventory.store({**members, **stored})
        try:
            await self._flux.apply(context, key, chart, values)
        except ConditionError as error:
            context.inventory.mark(members, error.message)
            context.set_resources(context.inventory.listed)
            raise
        context.inventory.mark(members)
        context.set_resources(context.inventory.listed)

    # Objects.

    async def apply(self, context: AddonContext, objects: Sequence[Object]) -> None:
        """Apply the objects of a chart; nothing is deleted. Raises ConditionError."""
        async with workload_errors(context):
            await context.inventory.name(objects)
            report = await self._set(context, context.inventory).apply(objects, whole=True)
        context.inventory.note(report)
        context.set_resources(context.inventory.listed)
        if not report.complete:
            raise _not_applied(report)

    async def apply_only(self, context: AddonContext, objects: Sequence[Object]) -> None:
        """Apply the one chart of a release without stages, or have Flux do so. Raises ConditionError."""
        if self._flux is None or not context.by_flux:
            await self.apply(context, objects)
            return
        chart = await self._rendering.only_chart(context.release)
        values = await self._rendering.only_values(context.release, context.data)
        await self.hand_over(context, ONE_CHART, chart, objects, values)
        await self._flux.keep_only(context, (ONE_CHART,))

    async def prune(self, context: AddonContext, staying: Sequence[Object]) -> None:
        """Delete all objects of the inventory but those given. Raises ConditionError."""
        async with workload_errors(context):
            kept = await context.inventory.members(staying)
            stored = await context.inventory.load()
        await self._remove(context, {member: stored[member] for member in stored if member not in kept})

    async def _delete(self, context: AddonContext, objects: Sequence[Object]) -> None:
        async with workload_errors(context):
            leaving = await context.inventory.members(objects)
        await self._remove(context, leaving)

    async def _remove(self, context: AddonContext, leaving: Inventory) -> None:
        if not leaving:
            context.drop(AddonCondition.CHART_DELETED)
            return
        parent = RemovalParent(leaving)
        async with workload_errors(context):
            report = await self._set(context, parent).delete()
            stored = await context.inventory.load()
            gone = [member for member in leaving if member not in parent.left]
            await context.inventory.store({member: stored[member] for member in stored if member not in gone})
        context.set_resources(context.inventory.listed)
        if not report.complete:
            raise condition_error(AddonCondition.CHART_DELETED, DELETE_FAILED, report.message())
        context.drop(AddonCondition.CHART_DELETED)

    def _set(self, context: AddonContext, parent: Parent) -> ApplySet:
        return ApplySet(
            ClusterClient(context.client),
            parent,
            kinds=context.kinds,
            field_manager=FIELD_MANAGER,
            # The rest of the old release is deleted in a step of its own, once all of the release is there.
            policy=policy_of_stacks(prune=False),
            clock=self._clock,
        )


class RemovalParent:
    """A set that consists of members to be deleted, which are remembered elsewhere."""

    identity = OWNED
    namespace = ADDON_NAMESPACE
    shared_kinds: tuple[str, ...] = ()

    def __init__(self, leaving: Inventory) -> None:
        self.left: Inventory = leaving
        """Members that still exist."""

    async def load(self) -> Inventory:
        return self.left

    async def store(self, inventory: Inventory) -> None:
        self.left = inventory

    async def remove(self) -> None:
        self.left = {}


def _not_applied(report: ApplyReport) -> ConditionError:
    return condition_error(AddonCondition.CHART_APPLIED, APPLY_FAILED, report.message(), after=report.retry_after)


def _waiting(message: str, reason: CelReason, severity: Severity) -> ConditionError:
    return condition_error(AddonCondition.EVALUATED_CEL, reason, message, severity=severity)


def _missing(context: AddonContext, name: str) -> ConditionError:
    known: Iterable[str] = sorted(context.charts.charts)
    return ConditionError(
        f"release {context.release.name.tag}: {context.release.addon_chart_file} has no chart {name}, which a stage of "
        f"{context.run.hook} names; it has {', '.join(known) or 'none'}: publish a release with the chart",
        condition=AddonCondition.CHART_FOUND,
        reason=CHART_MISSING,
        severity=Severity.INFO,
        actor=Actor.PROVIDER,
        # A release does not change; another class of the Cluster is a change.
        after=NEVER,
    )
