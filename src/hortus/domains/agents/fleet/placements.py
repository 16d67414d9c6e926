"""The AgentPlacement controller: the objects of one agent in one cluster.

Conditions it owns: Ready, Reconciling, Stalled and AgentsReport of AgentPlacements, and all of their status.
Objects it owns: those of the agent in the cluster, by status.inventory and the label of their apply set.
It watches: AgentPlacements, their configurations and ClusterProfiles; DaemonSets and Deployments of agents in clusters,
and the namespaces of those that are being removed.
It never: changes a cluster before the rollout gate admits it, fights an operator in the cluster, takes an object that
is somebody else's (`adoption`), or holds up the other clusters when one fails.

A cluster at rest costs no request: what the watches show is enough to report it. Objects that are not watched are
compared once in `resync` seconds, and at once when a workload was changed by somebody else.
"""

from __future__ import annotations

from collections.abc import Collection
from random import Random
from typing import Any, Final, NamedTuple

import msgspec

from hortus.domains.agents.builders import (
    UnknownWorkload,
    UnusableOptions,
    build_agent,
    etcd_copies,
    options_of,
    reserved_name,
)
from hortus.domains.agents.discovery.asked import AskedFacts
from hortus.domains.agents.discovery.facts import facts_of
from hortus.domains.agents.discovery.optional import with_options
from hortus.domains.agents.fleet.changes import AGENT_CHANGE, proposal
from hortus.domains.agents.fleet.context import FINALIZER, PlacementContext, PlacementInventory, identity_of
from hortus.domains.agents.fleet.distribution import decoded, read_secrets
from hortus.domains.agents.fleet.members import AgentMembers, place_of
from hortus.domains.agents.fleet.reasons import FAILURES
from hortus.domains.agents.fleet.reasons import PlacementReason as Reason
from hortus.domains.agents.fleet.removal import PlacementRemoval
from hortus.domains.agents.fleet.rendering import RenderError, cluster_values, render
from hortus.domains.agents.fleet.workloads import DAEMON_SETS, AgentWorkloads, Generations, without_owner
from hortus.domains.agents.names import AGENTS_REPORT
from hortus.domains.agents.operating.pages import AgentPods, StatusPages, selectors_of
from hortus.domains.agents.types import INSTANA_AGENTS, AgentConfiguration, AgentPlacement
from hortus.domains.inventory.types import ClusterProfile, is_hibernated
from hortus.engine import Actor, KindController, Result, StepError, Steps, TypedCache, Wiring
from hortus.engine.applysets import ForeignObject, ObjectAction
from hortus.engine.backoff import spread
from hortus.engine.deputies import Deputies, secret_reading
from hortus.engine.outcomes import NEVER
from hortus.engine.rollouts import RolloutGate
from hortus.kube.errors import KubeError, NotFound, TransportError, Unauthorized
from hortus.kube.objects import Object, ObjectKey

_WAIT: Final = 30.0
"""Seconds until objects are applied again that wait for others."""


class _Look(NamedTuple):
    """The last comparison of a cluster with its objects."""

    version: str
    generation: int
    """Generation of the AgentPlacement."""
    facts: int
    """Checksum of what the inventory knew of the cluster."""
    workloads: Generations
    until: float
    """Monotonic time of the next comparison."""
    shown: set[tuple[str, str]]
    """The workloads that the watches have shown as they were left; of the others they are behind."""

    def is_disturbed(self, found: Generations) -> bool:
        """Reports whether somebody else has changed or deleted a workload since."""
        for workload, generation in self.workloads.items():
            live = found.get(workload, 0)
            if live > generation or (live < generation and workload in self.shown):
                return True
            if live == generation:
                self.shown.add(workload)
        return False


class AgentPlacementController(KindController[PlacementContext]):
    """Reconciles one AgentPlacement at a time."""

    kind = AgentPlacement
    field_manager = "hortus-agents"

    def __init__(
        self,
        wiring: Wiring[Any],
        *,
        configurations: TypedCache[AgentConfiguration],
        profiles: TypedCache[ClusterProfile],
        members: AgentMembers,
        deputies: Deputies,
        operator_version: str,
        gate: RolloutGate,
        removal: PlacementRemoval,
        pages: StatusPages,
        resync: float,
        report_period: float,
        etcd_namespaces: Collection[str] = (),
        random: Random | None = None,
    ) -> None:
        super().__init__(wiring)
        self._configurations = configurations
        self._profiles = profiles
        self._members = members
        self._deputies = deputies
        self._operator_version = operator_version
        self._gate = gate
        self._removal = removal
        self._pages = pages
        self._resync = resync
        self._period = report_period
        self._etcd_namespaces = etcd_namespaces
        self._random = random or Random()  # noqa: S311 - jitter, not secrecy
        self._looks: dict[ObjectKey, _Look] = {}
        self._reported: dict[ObjectKey, float] = {}

    def make_context(self, raw: Object) -> PlacementContext:
        return PlacementContext(self.wiring, raw)

    def steps(self, context: PlacementContext) -> Steps:
        return (
            self._find,
            self._hold,
            self._reach,
            self._rest,
            self._permit,
            self._admit,
            self._render,
            self._yield_to_operator,
            self._build,
            self._apply,
            self._settle,
            self._finish,
        )

    def finalize_steps(self, context: PlacementContext) -> Steps:
        return (self._forget, self._removal.remove, self._removal.release)

    async def gone(self, key: ObjectKey) -> None:
        self._drop(key)
        self._members.leave(key)

    def disturb(self, key: ObjectKey) -> None:
        """Has the cluster compared again, as after another one answers in its place."""
        self._looks.pop(key, None)

    # Steps.

    async def _find(self, context: PlacementContext) -> None:
        spec, namespace = context.object.spec, context.key.namespace
        configuration = self._configurations.get(ObjectKey(namespace, spec.configuration))
        if configuration is None:
            raise _stays(
                context,
                f"spec.configuration: AgentConfiguration {spec.configuration} does not exist: create it again, or "
                "delete this object to remove the agent",
                Reason.CONFIGURATION_MISSING,
                Actor.OPERATOR,
            )
        profile = self._profiles.get(ObjectKey(namespace, spec.cluster))
        if profile is None:
            raise _stays(
                context,
                f"spec.cluster: ClusterProfile {spec.cluster} does not exist: this object is deleted with it",
                Reason.CLUSTER_MISSING,
                Actor.NOBODY,
            )
        context.configuration, context.profile = configuration, profile
        context.identity = identity_of(context.object)

    async def _hold(self, context: PlacementContext) -> None:
        await context.ensure_finalizer(FINALIZER)

    async def _reach(self, context: PlacementContext) -> Result | None:
        context.set_status("observedGeneration", context.object.metadata.generation)
        place = place_of(context.profile)
        if place is None:
            self._members.leave(context.key)
            self._pages.forget(context.key)
            raise _stays(
                context,
                f"ClusterProfile {context.object.spec.cluster} has no access provider of Hortus: give the cluster a "
                "kubeconfig (docs/inventory.md)",
                Reason.NO_ACCESS,
                Actor.OPERATOR,
            )
        if is_hibernated(context.profile):
            self._members.leave(context.key)
            self._drop(context.key)
            context.reconciling(Reason.HIBERNATED, "The cluster is hibernated; the agent follows when it wakes up.")
            return Result()
        context.place = place
        if context.key not in self._members.keys_at(place):
            await self._permit(context)
        self._members.enter(context.key, place)
        context.workloads = self._members.workloads(context.key, context.identity)
        return None

    async def _rest(self, context: PlacementContext) -> Result | None:
        """Ends the reconcile where nothing is to be applied."""
        look, now = self._looks.get(context.key), self.wiring.clock.monotonic()
        if look is None or context.workloads is None or look.until <= now:
            return None
        if look[:3] != self._look(context, {}, 0.0)[:3] or look.is_disturbed(context.workloads.generations):
            return None
        return self._report(context, look)

    async def _permit(self, context: PlacementContext) -> None:
        """Refuses a cluster whose kubeconfig the objects of this namespace may not have."""
        place = context.place
        await self._deputies.require(context.key.namespace, secret_reading(place.namespace, place.name))

    async def _admit(self, context: PlacementContext) -> Result | None:
        """Holds a change back until a rollout admits the cluster, which keeps its present version until then."""
        placement = context.object
        if placement.status.version == placement.spec.version:
            await self._gate.withdraw(context, AGENT_CHANGE)
            return None
        answer = await self._gate.admit(context, proposal(placement), placement.spec.cluster)
        if answer.allowed:
            return None
        if placement.status.version:
            return self._report(context, None, waits=answer.reason)
        context.reconciling(Reason.WAITS, f"The agent is not installed yet: {answer.reason}.")
        return Result()

    async def _render(self, context: PlacementContext) -> None:
        context.secrets = await read_secrets(
            self._deputies.client(context.key.namespace), context, operator_version=self._operator_version
        )
        try:
            context.agent = render(context.configuration, cluster_values(context.profile))
        except RenderError as error:
            raise _stays(context, str(error), Reason.RENDER_FAILED, Actor.USER) from error
        if problem := reserved_name(context.agent):
            raise _stays(context, f"spec.template: {problem}", Reason.RENDER_FAILED, Actor.USER)
        wanted = context.agent.spec.agent
        if not (wanted.key or wanted.keys_secret):
            raise _stays(
                context,
                "spec.template has no agent key, without which nothing is built: name its Secret in agent.keysSecret",
                Reason.NOTHING_TO_RUN,
                Actor.USER,
            )

    async def _yield_to_operator(self, context: PlacementContext) -> None:
        """Refuses a cluster whose own operator keeps an agent of that name."""
        context.client = self._members.client_of(context.place)
        spec = context.object.spec
        try:
            await context.client.client.get(INSTANA_AGENTS, spec.agent_name, spec.agent_namespace, metadata_only=True)
        except NotFound:
            return
        raise StepError(
            f"the cluster has an InstanaAgent {spec.agent_namespace}/{spec.agent_name}, whose operator keeps the same "
            "objects: stop that operator and delete the InstanaAgent with --cascade=orphan, or leave this cluster out",
            reason=Reason.OPERATED,
            actor=Actor.OPERATOR,
            after=self._resync,
        )

    async def _build(self, context: PlacementContext) -> None:
        agent = context.agent
        secrets = {name: decoded(secret) or {} for name, secret in context.secrets.items()}
        client, keys = context.client.client, secrets.get(agent.spec.agent.keys_secret)
        try:
            facts = await facts_of(
                AskedFacts(client),
                agent,
                operator_version=self._operator_version,
                keys=keys,
                etcd_namespaces=self._etcd_namespaces,
            )
            facts = await with_options(facts, client, agent, secrets, now=context.now)
            built = [*build_agent(agent, facts), *etcd_copies(agent, facts)]
        except UnusableOptions as error:
            raise StepError(str(error), reason=Reason.RENDER_FAILED, actor=Actor.USER, after=self._resync) from error
        except UnknownWorkload as error:
            raise StepError(
                f"DaemonSet {agent.metadata.namespace}/{agent.metadata.name}: {error}",
                reason=Reason.OTHER_WORKLOAD,
                actor=Actor.OPERATOR,
                after=self._resync,
            ) from error
        context.objects = [_namespace(agent.metadata.namespace), *context.secrets.values(), *map(without_owner, built)]

    async def _apply(self, context: PlacementContext) -> None:
        inventory = PlacementInventory(context)
        members = self._members.set_of(context.object, inventory, context.client)
        report = await members.apply(context.objects, whole=True)
        failed = report.failures
        silent = [one.error for one in failed if isinstance(one.error, TransportError | Unauthorized)]
        if silent:
            raise silent[0]
        if any(isinstance(one.error, ForeignObject) for one in failed):
            raise StepError(report.message(), reason=Reason.TAKEN, actor=Actor.USER, after=self._resync)
        if failed:
            raise StepError(
                report.message(), reason=Reason.REFUSED, actor=Actor.PROVIDER, after=report.retry_after
            ) from failed[0].error
        if report.of(ObjectAction.WAITING):
            raise StepError(report.message(), reason=Reason.HELD, actor=Actor.PROVIDER, after=_WAIT)

    async def _settle(self, context: PlacementContext) -> None:
        """Reports the version that is in place, first of all in the status: a rollout counts it by that."""
        version = context.object.spec.version
        if context.drafted("version") != version:
            context.set_status("version", version)
            context.reconciling(Reason.ROLLING, "The objects are in place; pods are being started or replaced.")
            self._reported[context.key] = self.wiring.clock.monotonic()
            await context.checkpoint()
        await self._gate.settle(context, AGENT_CHANGE, version)

    async def _finish(self, context: PlacementContext) -> Result:
        pause = spread(self._resync, 0.1, random=self._random)
        context.workloads = self._members.workloads(context.key, context.identity)
        look = self._look(context, context.client.generations, self.wiring.clock.monotonic() + pause)
        self._looks[context.key] = look
        if options_of(context.agent).runtime_status:
            selectors = selectors_of(context.objects, DAEMON_SETS.kind)
            self._pages.follow(
                context.key, AgentPods(context.client.client, context.agent.metadata.namespace, selectors)
            )
        else:
            self._pages.forget(context.key)
        return self._report(context, look)

    async def _forget(self, context: PlacementContext) -> None:
        self._drop(context.key)

    # Parts.

    def _report(self, context: PlacementContext, look: _Look | None, *, waits: str = "") -> Result:
        """Drafts the state of the workloads; numbers alone are written once in `REPORT_PERIOD`."""
        now, workloads = self.wiring.clock.monotonic(), context.workloads
        after = max(look.until - now, 1.0) if look is not None else None
        if workloads is None:
            # The watches are just being opened, and report the cluster as soon as they show it whole.
            return Result(requeue_after=after)
        current = look is None or look.workloads.items() <= workloads.generations.items()
        self._report_pages(context, available=current and workloads.available)
        if current and workloads.available:
            text = f"The agent runs on {workloads.nodes.available} of {workloads.nodes.desired} nodes."
            context.ready(Reason.RUNNING, f"{text} A change waits: {waits}." if waits else text)
        else:
            left = self._reported.get(context.key, -self._period) + self._period - now
            if left > 0:
                return Result(requeue_after=left)
            self._reported[context.key] = now
            context.reconciling(Reason.ROLLING, _rolling(workloads))
        context.set_status("nodes", msgspec.structs.asdict(workloads.nodes))
        context.set_status("sensors", msgspec.structs.asdict(workloads.sensors))
        return Result(requeue_after=after)

    def _report_pages(self, context: PlacementContext, *, available: bool) -> None:
        """Drafts the condition of the agents' status pages, where an option asks for them."""
        found = self._pages.report(context.key, available=available)
        if found is not None and found.status is not None:
            context.condition(found.type, found.status, reason=found.reason, message=found.message)
        elif context.key not in self._pages:
            context.draft.without_condition(AGENTS_REPORT)

    def _look(self, context: PlacementContext, workloads: Generations, until: float) -> _Look:
        placement = context.object
        facts = hash(repr(cluster_values(context.profile)))
        shown = context.workloads.generations if context.workloads is not None else {}
        seen = {workload for workload, generation in workloads.items() if shown.get(workload) == generation}
        return _Look(placement.spec.version, placement.metadata.generation, facts, dict(workloads), until, seen)

    def _drop(self, key: ObjectKey) -> None:
        self._looks.pop(key, None)
        self._reported.pop(key, None)
        self._pages.forget(key)

    # Failures.

    async def on_error(self, context: PlacementContext, error: StepError | KubeError) -> StepError | None:
        self._looks.pop(context.key, None)
        if isinstance(error, StepError):
            return error
        away = isinstance(error, TransportError | Unauthorized)
        return StepError(
            f"cluster {context.object.spec.cluster}: {error}",
            reason=Reason.UNREACHABLE if away else Reason.REQUEST_REFUSED,
            actor=Actor.PROVIDER,
            after=getattr(error, "retry_after", None),
        )

    def report(self, context: PlacementContext, error: StepError) -> None:
        context.set_status("observedGeneration", context.object.metadata.generation)
        if error.reason in FAILURES:
            context.stalled(error.reason, error.message)
        else:
            super().report(context, error)


def _rolling(workloads: AgentWorkloads) -> str:
    nodes, sensors = workloads.nodes, workloads.sensors
    return (
        f"The agent is available on {nodes.available} of {nodes.desired} nodes, {nodes.updated} of them up to date; "
        f"{sensors.available} of {sensors.desired} pods of the sensor are available."
    )


def _stays(context: PlacementContext, problem: str, reason: str, actor: Actor) -> StepError:
    """The failure that lasts until something changes here."""
    return StepError(f"{context.title}: {problem}", reason=reason, actor=actor, after=NEVER)


def _namespace(name: str) -> Object:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
