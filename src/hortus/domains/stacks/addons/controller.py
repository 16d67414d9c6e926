"""The ClusterAddon controller: the addons of a release in the workload cluster of one Cluster.

Conditions it owns: all of ClusterAddons. Objects it owns: those of the addons in the workload cluster, by
status.resources and the label clusterstack.x-k8s.io/instance.
It watches: ClusterAddons, Clusters, the Secrets with their kubeconfigs, whether their workload clusters can be reached,
and the objects that it gives to Flux.
It never: enters a workload cluster for a namespace that may not read its kubeconfig, uninstalls the addons of a Cluster
that is deleted or has left its topology, begins an upgrade of another Kubernetes version before Cluster API has asked
for it, or calls the source of releases for a ClusterAddon at rest.

Steps and texts: docs/stacks/addons.md.
"""

from __future__ import annotations

from typing import Any, Final

from hortus.domains.stacks.addons.applied import CHARTS, note, noted
from hortus.domains.stacks.addons.changes import STACK, proposal
from hortus.domains.stacks.addons.config import AddonConfigError, RuntimeHook
from hortus.domains.stacks.addons.context import AddonContext
from hortus.domains.stacks.addons.data import control_plane_version, template_data
from hortus.domains.stacks.addons.failures import unusable, workload_errors
from hortus.domains.stacks.addons.reasons import (
    AGAIN,
    APPLY_FAILED,
    ASSETS_NOT_DOWNLOADED,
    CHART_INVALID,
    CONFIG_INVALID,
    HOOK_SERVER_UNRESPONSIVE,
    ISSUE_WITH_ASSETS,
    SILENT_AGAIN,
    WAITS_FOR_ROLLOUT,
    AddonCondition,
)
from hortus.domains.stacks.addons.rendering import (
    AddonReleases,
    AddonRendering,
    ArchiveInvalid,
    RenderFailed,
    ValuesError,
)
from hortus.domains.stacks.addons.seeding import FormerObjects
from hortus.domains.stacks.addons.service import (
    PENDING_HOOKS,
    TARGET,
    AddonRun,
    Awaiting,
    begun,
    due_run,
    is_at_rest,
    is_begun,
    stage_annotation,
)
from hortus.domains.stacks.addons.stages import ADDON_NAMESPACE, StageRunner
from hortus.domains.stacks.addons.workload import StackWorkloads
from hortus.domains.stacks.capi import PAUSED_ANNOTATION, CapiCluster, kubeconfig_secret, read_cluster
from hortus.domains.stacks.conditions import Severity
from hortus.domains.stacks.context import ConditionError, StackController
from hortus.domains.stacks.flux.steps import FluxSteps
from hortus.domains.stacks.inventory import ResourceInventory
from hortus.domains.stacks.names import (
    ADDON_FINALIZER,
    STAGE_ANNOTATION,
    BadName,
    ReleaseName,
    parse_either,
    parse_tag,
    tag_of_class,
)
from hortus.domains.stacks.releases.errors import BadRelease, ReleaseError
from hortus.domains.stacks.types import ClusterAddon
from hortus.engine import Actor, Cache, Result, Steps, Wiring
from hortus.engine.applysets import DiscoveredKinds
from hortus.engine.conditions import FALSE, READY
from hortus.engine.deputies import Deputies, secret_reading
from hortus.engine.outcomes import NEVER
from hortus.engine.rollouts import RolloutGate
from hortus.kube.objects import Object, ObjectKey

_DONE: Final = Result()


class ClusterAddonController(StackController[AddonContext]):
    """Reconciles one ClusterAddon at a time."""

    kind = ClusterAddon
    field_manager = "hortus"

    def __init__(
        self,
        wiring: Wiring[Any],
        *,
        clusters: Cache,
        workloads: StackWorkloads,
        releases: AddonReleases,
        rendering: AddonRendering,
        gate: RolloutGate,
        flux: FluxSteps,
        deputies: Deputies,
    ) -> None:
        super().__init__(wiring)
        self._deputies = deputies
        self._gate = gate
        self._clusters = clusters
        self._workloads = workloads
        self._releases = releases
        self._rendering = rendering
        self._former = FormerObjects(releases, rendering)
        self._flux = flux
        self._runner = StageRunner(rendering, clock=wiring.clock, flux=flux.handover)
        self._management_kinds = DiscoveredKinds(wiring.client)

    def make_context(self, raw: Object) -> AddonContext:
        return AddonContext(self.wiring, raw)

    def steps(self, context: AddonContext) -> Steps:
        runner = self._runner
        return (
            self._find_cluster,
            self._hold,
            self._flux.choose,
            self._rest,
            self._permit,
            self._admit,
            self._connect,
            self._find_release,
            self._gather,
            self._flux.switch,
            self._install_single,
            self._open,
            self._choose,
            self._begin,
            runner.run_stages,
            runner.clean_up,
            self._finish,
        )

    def finalize_steps(self, context: AddonContext) -> Steps:
        return (self._release,)

    # Steps.

    async def _find_cluster(self, context: AddonContext) -> Result | None:
        if PAUSED_ANNOTATION in context.object.metadata.annotations:
            return _DONE
        reference = context.object.spec.cluster_ref
        key = ObjectKey(context.key.namespace, reference.name)
        found = self._clusters.get(key)
        if found is None:
            raise ConditionError(
                f"{context.title}: spec.clusterRef: Cluster {key} does not exist: create it, or delete this object",
                condition=AddonCondition.CLUSTER_READY,
                reason="ClusterNotFound",
                severity=Severity.ERROR,
                actor=Actor.USER,
                after=NEVER,
            )
        context.cluster_object, context.cluster = found, read_cluster(found)
        leaving = context.cluster.metadata.deletion_timestamp is not None
        # A classic Cluster has no class, and so no addons.
        return _DONE if not context.cluster.class_name or context.cluster.paused or leaving else None

    async def _hold(self, context: AddonContext) -> None:
        await context.ensure_finalizer(ADDON_FINALIZER)

    async def _rest(self, context: AddonContext) -> Result | None:
        applied = context.is_true(AddonCondition.CHART_APPLIED)
        if not is_at_rest(context.object, context.cluster.class_name, applied=applied):
            return None
        if not self._flux.rests(context):
            return None
        others = (READY, AddonCondition.FLUX_READY)
        if any(one.type not in others and one.status == FALSE for one in context.object.status.conditions):
            # It reports an obstacle to a class that the Cluster has left again; the Go system never takes some back.
            return None
        context.set_status("ready", value=not context.is_false(AddonCondition.FLUX_READY))
        return _DONE

    async def _permit(self, context: AddonContext) -> None:
        """Raises ConditionError unless the namespace may read the kubeconfig, which is worth all of the cluster."""
        reading = secret_reading(context.key.namespace, kubeconfig_secret(context.cluster.metadata.name))
        await context.require(self._deputies, reading, condition=AddonCondition.CLUSTER_READY)

    async def _connect(self, context: AddonContext) -> None:
        context.client = await self._workloads.connect(context.cluster.key)
        context.kinds = self._workloads.kinds(context.cluster.key, context.client)
        context.true(AddonCondition.CLUSTER_READY)

    async def _find_release(self, context: AddonContext) -> None:
        name = _release_of(context.cluster)
        try:
            context.release = await self._releases.fetch(name)
        except ReleaseError as error:
            bad = isinstance(error, BadRelease)
            raise ConditionError(
                str(error),
                condition=AddonCondition.RELEASE_DOWNLOADED,
                reason=ISSUE_WITH_ASSETS if bad else ASSETS_NOT_DOWNLOADED,
                severity=Severity.ERROR if bad else Severity.INFO,
                actor=Actor.PROVIDER,
                after=SILENT_AGAIN,
            ) from error
        context.true(AddonCondition.RELEASE_DOWNLOADED)

    async def _admit(self, context: AddonContext) -> Result | None:
        """Hold an upgrade back until a rollout admits the cluster."""
        wanted = proposal(context.object.spec.cluster_stack, context.cluster.class_name)
        begun_before = context.object.metadata.annotations.get(TARGET, "").endswith(f"/{context.cluster.class_name}")
        if wanted is not None and not begun_before:
            answer = await self._gate.admit(context, wanted, context.cluster.metadata.name)
            if not answer.allowed:
                context.false(AddonCondition.ADMITTED, WAITS_FOR_ROLLOUT, Severity.INFO, answer.reason)
                return _DONE
        else:
            await self._gate.withdraw(context, STACK)
        context.drop(AddonCondition.ADMITTED)
        return None

    async def _gather(self, context: AddonContext) -> None:
        """Read the objects and API versions that charts and their values are made of."""
        async with workload_errors(context):
            context.served = tuple(sorted(await context.kinds.api_versions()))
        context.inventory = ResourceInventory(
            context.object.status.resources,
            namespace=ADDON_NAMESPACE,
            kinds=context.kinds,
            save=context.save_resources,
        )
        context.data = await template_data(
            context.cluster, context.cluster_object, client=self.wiring.client, kinds=self._management_kinds
        )

    # One chart.

    async def _install_single(self, context: AddonContext) -> Result | None:
        if context.release.is_multi_stage:
            return None
        context.run = AddonRun("", context.cluster.class_name)
        context.unready()
        if CHARTS in context.object.metadata.annotations:
            await context.patch({"metadata": {"annotations": {CHARTS: None}}})
        try:
            objects = await self._rendering.single(context.release, context.data, context.served)
        except ArchiveInvalid as error:
            raise _bad_archive(context, error) from error
        except (ValuesError, RenderFailed, ReleaseError) as error:
            raise unusable(context, error, AddonCondition.CHART_APPLIED, APPLY_FAILED, after=AGAIN) from error
        if not context.inventory.listed:
            await self._former.seed(context)
        await self._runner.apply_only(context, objects)
        await self._runner.prune(context, objects)
        return await self._finish(context)

    # Stages.

    async def _open(self, context: AddonContext) -> None:
        try:
            context.charts = await self._rendering.staged(context.release)
        except AddonConfigError as error:
            condition, reason = AddonCondition.CONFIG_VALIDATED, CONFIG_INVALID
            raise unusable(context, error, condition, reason, after=NEVER, event=reason) from error
        except ArchiveInvalid as error:
            raise _bad_archive(context, error) from error
        context.true(AddonCondition.CONFIG_VALIDATED)

    async def _choose(self, context: AddonContext) -> Result | None:
        """Find the run that is due, which Cluster API may have to ask for."""
        cluster, addon = context.cluster, context.object
        pending = cluster.metadata.annotations.get(PENDING_HOOKS, "")
        found = due_run(addon, cluster.class_name, pending=pending, upgrades=_upgrades(context))
        if isinstance(found, Awaiting):
            context.set_status("ready", value=False)
            context.false(AddonCondition.HOOK_SERVER_READY, HOOK_SERVER_UNRESPONSIVE, Severity.INFO, found.message)
            return _DONE
        context.true(AddonCondition.HOOK_SERVER_READY)
        context.run, context.kept = found, noted(addon)
        if found.hook not in set(RuntimeHook):
            context.warn(
                "UnknownHook", f"{context.title}: spec.hook: {found.hook} is no hook with stages: it is removed"
            )
            await context.patch({"spec": {"hook": None}})
        if addon.metadata.annotations.get(TARGET) == str(found) and context.is_true(AddonCondition.CHART_APPLIED):
            # The run ended, and the process before its last write.
            return await self._conclude(context)
        return None

    async def _begin(self, context: AddonContext) -> None:
        """Note the stages of a run that has not begun."""
        stages = context.charts.config.of(context.run.hook)
        async with workload_errors(context):
            await context.inventory.load()  # before charts are named: the list keeps its order over restarts
        if not is_begun(context.object, context.run, stages):
            context.unready()
            context.drop(AddonCondition.EVALUATED_CEL)
            context.set_stages(begun(stages))
            await context.checkpoint()
        if context.object.metadata.annotations.get(TARGET) != str(context.run):
            if TARGET not in context.object.metadata.annotations:
                await self._former.seed(context)
            context.kept = await self._runner.unchanged(context, stages)
            kept = note(context.object.spec.cluster_stack, context.kept, context.kept)
            # After all else: until it is written the run counts as not begun.
            annotations, spec = {TARGET: str(context.run), CHARTS: kept}, {"hook": context.run.hook}
            await context.patch({"metadata": {"annotations": annotations}, "spec": spec}, goes_on=True)
        elif not context.object.spec.hook:
            await context.patch({"spec": {"hook": context.run.hook}}, goes_on=True)

    async def _finish(self, context: AddonContext) -> Result | None:
        context.true(AddonCondition.CHART_APPLIED)
        for condition in (AddonCondition.CHART_TEMPLATED, AddonCondition.CHART_FOUND, AddonCondition.EVALUATED_CEL):
            context.drop(condition)
        context.set_status("ready", value=True)
        context.set_stages(())
        context.set_resources(context.inventory.listed)
        await context.checkpoint()
        return await self._conclude(context)

    async def _conclude(self, context: AddonContext) -> Result:
        """Write the class and version that are installed: with them the hook is answered."""
        await self._gate.settle(context, STACK, context.run.class_name)
        digests = {**context.kept, **context.digests}
        annotations = {
            STAGE_ANNOTATION: stage_annotation(context.object),
            TARGET: str(context.run),
            CHARTS: note(context.run.class_name, digests, sorted(digests)),
        }
        await context.patch(
            {
                "metadata": {"annotations": annotations},
                "spec": {
                    "clusterStack": context.run.class_name,
                    "version": context.release.versions.addon.dash,
                    "hook": None,
                },
            }
        )
        return _DONE

    async def _release(self, context: AddonContext) -> None:
        await self._flux.abandon(context)
        await context.remove_finalizer(ADDON_FINALIZER)

    # Parts.


def _bad_archive(context: AddonContext, error: ArchiveInvalid) -> ConditionError:
    condition = AddonCondition.RELEASE_DOWNLOADED
    return unusable(context, error, condition, ISSUE_WITH_ASSETS, after=NEVER, event=CHART_INVALID)


def _release_of(cluster: CapiCluster) -> ReleaseName:
    try:
        return parse_tag(tag_of_class(cluster.class_name))
    except BadName as error:
        raise ConditionError(
            f"Cluster {cluster.key}: spec.topology.class is of no cluster stack: {error}",
            condition=AddonCondition.RELEASE_DOWNLOADED,
            reason=ISSUE_WITH_ASSETS,
            severity=Severity.INFO,
            actor=Actor.USER,
            after=NEVER,
        ) from None


def _upgrades(context: AddonContext) -> bool:
    """Reports whether the control plane has still to move to the version of the topology."""
    if version := control_plane_version(context.data):
        return version != context.cluster.version
    before, after = parse_either(context.object.spec.cluster_stack), parse_either(context.cluster.class_name)
    return before is None or after is None or before.kubernetes != after.kubernetes
