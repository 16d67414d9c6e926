"""The shape of both controllers: build, apply, prune, report; and the way out when an agent is deleted.

Subclasses say what is built and reported. Conditions they own: all of their kind. Objects they own: those that the
builders make, the ConfigMap `<name>-dependents` that remembers them, and no others: what somebody else made under such
a name is neither applied over, as the Go operator does, nor deleted (`hortus.domains.agents.ownership`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, Generic, TypeVar

from hortus.domains.agents.builders import UnknownWorkload, UnusableOptions, common_labels, owner_of
from hortus.domains.agents.discovery.world import AgentWorld
from hortus.domains.agents.names import AGENTS_REPORT
from hortus.domains.agents.operating import verdicts
from hortus.domains.agents.operating.applying import AgentApplier
from hortus.domains.agents.operating.context import AgentContext
from hortus.domains.agents.operating.dependents import Dependent, history_key
from hortus.domains.agents.operating.errors import AgentError, AgentPhase, AgentReason, ObjectFailure
from hortus.domains.agents.operating.metrics import OperatingMetrics
from hortus.domains.agents.operating.objects import FIELD_MANAGER, AgentObjects
from hortus.domains.agents.operating.pages import AgentPods, StatusPages, selectors_of
from hortus.domains.agents.operating.records import DependentsRecord, FixedInventory, Spared, known
from hortus.domains.agents.operating.verdicts import AGENTS_AVAILABLE, AgentCondition, Words
from hortus.domains.agents.ownership import AgentMarking, identity_of
from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote
from hortus.engine import NEVER, TRUE, Actor, KindController, Result, StepError, Steps, Wiring
from hortus.engine.deputies import Deputies
from hortus.engine.typed import NotReadable, metadata_of
from hortus.kube.errors import Conflict, KubeError
from hortus.kube.objects import Object, ObjectKey
from hortus.schema import ObjectMeta

AGENT_FINALIZER: Final = "v3.agent.instana.io/finalizer"
HELD_AGAIN: Final = 30.0
"""Seconds until an agent is reconciled again whose objects finalizers hold: their labels may be gone, and the watch."""

LOOKED_AT: Final = 86400.0
"""Seconds between two looks at a certificate of our own: it is renewed a month before its end."""

A = TypeVar("A", InstanaAgent, InstanaAgentRemote)


class AgentController(KindController[AgentContext[Any]], Generic[A]):
    """Base of both controllers."""

    field_manager = FIELD_MANAGER
    words: Words

    def __init__(
        self,
        wiring: Wiring[Any],
        *,
        applier: AgentApplier,
        objects: AgentObjects,
        world: AgentWorld,
        metrics: OperatingMetrics,
        pages: StatusPages,
        deputies: Deputies,
    ) -> None:
        super().__init__(wiring)
        self._deputies = deputies
        self._applier = applier
        self._objects = objects
        self._world = world
        self._metrics = metrics
        self._pages = pages

    def steps(self, context: AgentContext[Any]) -> Steps:
        return (self._hold, self._build, self._provide, self._report, self._look_again)

    def finalize_steps(self, context: AgentContext[Any]) -> Steps:
        return (self._retire, self._release)

    def make_context(self, raw: Object) -> AgentContext[Any]:
        return AgentContext(self.wiring, raw)

    # To be written by each controller.

    @abstractmethod
    def defaulted(self, agent: A) -> A:
        """The object with the defaults of this reconcile."""

    @abstractmethod
    async def build(self, context: AgentContext[Any], agent: A) -> None:
        """Set the facts and all objects. `agent` has its defaults. Raises KubeError, UnknownWorkload."""

    @abstractmethod
    def problems(self, context: AgentContext[Any], agent: A) -> dict[str, str]:
        """Reasons for which the agent is not built as its spec asks, with their messages."""

    @abstractmethod
    def describe(self, context: AgentContext[Any]) -> None:
        """Draft the fields of the status that the kinds do not share."""

    @abstractmethod
    def availability(self, context: AgentContext[Any]) -> Iterable[AgentCondition]:
        """The conditions of workloads."""

    @abstractmethod
    def siblings(self, agent: A) -> Iterable[ObjectMeta]:
        """The other living agents of the kind and namespace."""

    def sharers(self, agent: A) -> Iterable[ObjectMeta]:
        """The siblings that keep what they share with an agent that is deleted."""
        return ()

    def marking(self, agent: A) -> AgentMarking:
        """The marks of the agent's objects."""
        return AgentMarking(agent, binding_of=self._objects.binding_of)

    async def hand_on(self, agent: A) -> None:
        """Leave to the other agents of the kind what they share with one that is deleted."""

    # Steps.

    async def _hold(self, context: AgentContext[Any]) -> None:
        if problem := self.taken(context.object):
            raise StepError(problem, reason=AgentReason.NAME_TAKEN, actor=Actor.USER, after=NEVER)
        await context.ensure_finalizer(AGENT_FINALIZER)

    def taken(self, agent: A) -> str:
        """The reason for which this object must not be served; empty for none."""
        return ""

    async def _build(self, context: AgentContext[Any]) -> None:
        agent = self.defaulted(context.object)
        try:
            await self.build(context, agent)
        except UnknownWorkload as error:
            message = f"{self.kind.FACTS.name} {context.key}: {error}"
            raise StepError(message, reason=AgentReason.UNKNOWN_WORKLOAD, actor=Actor.USER) from error
        except UnusableOptions as error:
            raise StepError(str(error), reason=AgentReason.BAD_OPTIONS, actor=Actor.USER, after=NEVER) from error
        context.is_built = True

    async def _provide(self, context: AgentContext[Any]) -> Result | None:
        agent = context.object
        key = history_key(self._world.operator_version, agent.metadata.generation)
        parent = self._parent(agent, key=key, wanted=context.wanted)
        objects = [*context.wanted, *context.besides]
        siblings = [identity_of(self.kind.FACTS.name, one) for one in self.siblings(agent)]
        if await self._applier.provide(objects, parent, self.marking(agent), siblings):
            return None
        await self._report(context)
        return Result(requeue_after=HELD_AGAIN)

    async def _report(self, context: AgentContext[Any]) -> None:
        self._summarize(context)

    async def _look_again(self, context: AgentContext[Any]) -> Result | None:
        """Come back for a certificate of our own, which time alone makes due."""
        return Result(requeue_after=LOOKED_AT) if context.facts.own_certificate is not None else None

    async def _retire(self, context: AgentContext[Any]) -> Result | None:
        agent = context.object
        self._pages.forget(context.key)
        await self.hand_on(self.defaulted(agent))
        marking, spared = self.marking(agent), self._spared(agent)
        found = await self._recorded(agent) | self.kept_in_caches(agent)
        leaving = [one for one in found if not spared(one)]
        parent = FixedInventory(marking.identity, agent.metadata.namespace, leaving)
        if await self._applier.delete(parent, marking):
            return None
        self._summarize(context)
        return Result(requeue_after=HELD_AGAIN)

    def kept_in_caches(self, agent: A) -> set[Dependent]:
        """Objects of the agent that no record names, since somebody deleted that."""
        return set()

    async def _release(self, context: AgentContext[Any]) -> None:
        context.is_released = True
        await context.remove_finalizer(AGENT_FINALIZER)

    # The record.

    def record(self, agent: A) -> Object:
        """The ConfigMap that remembers what the agent had, without data."""
        metadata = agent.metadata
        return {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                **record_name(ObjectKey(metadata.namespace, metadata.name))._asdict(),
                "labels": common_labels(agent, self.component, self._world.operator_version),
                "ownerReferences": [owner_of(agent)],
            },
        }

    component = "instana-agent"

    def _parent(self, agent: A, *, key: str = "", wanted: Sequence[Object] = ()) -> DependentsRecord:
        return DependentsRecord(
            self.wiring.client,
            self._objects,
            self.record(agent),
            marking=self.marking(agent),
            spared=self._spared(agent),
            key=key,
            wanted=wanted,
        )

    async def _recorded(self, agent: A) -> set[Dependent]:
        """The objects that the agent's own record names; none where the record is somebody else's."""
        try:
            return await self._parent(agent).read()
        except AgentError as error:
            if error.reason == AgentReason.TAKEN:
                return set()
            raise

    def _spared(self, agent: A) -> Spared:
        """Reports for an object that leaves the set whether it stays: the spec names it, or another agent has it."""
        base = agent.spec.agent
        named = {base.keys_secret, base.tls.secret_name}
        others = [record_name(ObjectKey(one.namespace, one.name)) for one in self.sharers(agent)]
        claimed = {one for record in others for one in known(self._objects, record)}
        namespace = agent.metadata.namespace

        def spared(one: Dependent) -> bool:
            is_named = one.kind == "Secret" and one.namespace == namespace and one.name in named
            return is_named or one in claimed

        return spared

    # Reporting.

    async def on_error(self, context: AgentContext[Any], error: StepError | KubeError) -> StepError | None:
        if isinstance(error, StepError):
            return error
        if isinstance(error, Conflict):
            return None
        this = Dependent(self.kind.FACTS.group, self.kind.FACTS.name, context.key.namespace, context.key.name)
        return AgentError([ObjectFailure(AgentPhase.READ, this, error)])

    def report(self, context: AgentContext[Any], error: StepError) -> None:
        context.failure, context.failure_reason = error.message, error.reason
        # An agent of another shape, which a laxer CRD let in, has no more to be reported than its failure.
        with suppress(NotReadable):
            self._summarize(context)

    def _summarize(self, context: AgentContext[Any]) -> None:
        """Draft the status: a failure hides nothing of what is known."""
        context.apply_conditions([verdicts.reconciled(self.words, context.failure)])
        if context.is_built:
            problems = self.problems(context, self.defaulted(context.object))
            found = [*self.availability(context), *self._runtime(context), verdicts.configured(problems)]
            context.apply_conditions(found)
        context.set_status("observedGeneration", metadata_of(context.raw).generation)
        if version := verdicts.semantic_version(self._world.operator_version):
            context.set_status("operatorVersion", version)
        self.describe(context)

    def _runtime(self, context: AgentContext[Any]) -> Iterable[AgentCondition]:
        """The condition of the status pages, where an option asks for them; none while nothing is known."""
        if not context.facts.options.runtime_status:
            self._pages.forget(context.key)
            yield AgentCondition(AGENTS_REPORT, None)
            return
        available = all(one.status == TRUE for one in self.availability(context) if one.type == AGENTS_AVAILABLE)
        selectors = selectors_of(context.wanted, self.words.kind)
        self._pages.follow(
            context.key, AgentPods(self._deputies.client(context.key.namespace), context.key.namespace, selectors)
        )
        if (found := self._pages.report(context.key, available=available)) is not None:
            yield found

    def observe(self, context: AgentContext[Any]) -> None:
        self._metrics.reconciled(context.key, self.kind.FACTS.name, context.failure_reason)

    async def gone(self, key: ObjectKey) -> Result | None:
        self._metrics.forget(key, self.kind.FACTS.name)
        self._pages.forget(key)
        return None

    def info(self, context: AgentContext[Any], kind: Any, name: str) -> Object | None:
        """One of the agent's own objects as it is now."""
        return self._objects.get(kind, context.key.namespace, name)


def record_name(agent: ObjectKey) -> ObjectKey:
    """The ConfigMap that remembers what an agent had."""
    return ObjectKey(agent.namespace, f"{agent.name}-dependents")


__all__ = ["AGENT_FINALIZER", "AgentController", "record_name"]
