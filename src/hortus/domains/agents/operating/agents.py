"""The InstanaAgent controller: the agent on every node, the sensor, their configuration, keys and RBAC.

Conditions it owns: all of InstanaAgents. Objects it owns: those of `builders`, the dependents ConfigMap, and next to
agents on OpenShift the copies of etcd's credentials.
It watches: InstanaAgents; its objects where others change them; namespaces with the monitoring label; Secrets that
agents name; what etcd and OpenShift are found by.
It never: writes when nothing changed, applies any object before all pass a dry run, deletes what it did not make.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from hortus.domains.agents.builders import (
    build_agent,
    daemon_set_names,
    etcd_copies,
    is_copy,
    reserved_name,
)
from hortus.domains.agents.builders.etcd import BUNDLE, CLIENT
from hortus.domains.agents.builders.metadata import COMPONENT_LABEL, INSTANCE_LABEL
from hortus.domains.agents.defaults import defaulted
from hortus.domains.agents.operating import verdicts
from hortus.domains.agents.operating.base import AgentController
from hortus.domains.agents.operating.context import AgentContext
from hortus.domains.agents.operating.dependents import Dependent, dependent_of
from hortus.domains.agents.operating.helm import HELM_FINALIZER
from hortus.domains.agents.operating.migration import HelmMigration
from hortus.domains.agents.operating.objects import (
    CONFIG_MAPS,
    DAEMON_SETS,
    SECRETS,
    WITHOUT_OWNER,
)
from hortus.domains.agents.operating.problems import problems_of_agent, problems_of_certificate
from hortus.domains.agents.operating.records import FixedInventory
from hortus.domains.agents.operating.shared_nodes import neighbour_of
from hortus.domains.agents.operating.verdicts import AgentCondition, Workload
from hortus.domains.agents.ownership import AgentMarking
from hortus.domains.agents.types import InstanaAgent
from hortus.engine import Steps, Wiring
from hortus.engine.indexes import by_namespace
from hortus.engine.typed import metadata_of
from hortus.kube.objects import Object, ObjectKey, key_of
from hortus.schema import ObjectMeta

OURS: Final = ("instana-agent", "k8sensor")
"""Components of the objects of an InstanaAgent."""
BY_NAME, BY_NAMESPACE = "agents by name", "agents by namespace"
"""Indexes of the cache of InstanaAgents."""


class InstanaAgentController(AgentController[InstanaAgent]):
    """Reconciles one InstanaAgent at a time."""

    kind = InstanaAgent
    words = verdicts.AGENT

    def __init__(self, wiring: Wiring[Any], *, migration: HelmMigration, **parts: Any) -> None:
        super().__init__(wiring, **parts)
        self._migration = migration
        self.wiring.cache.raw.add_index(BY_NAME, lambda obj: (metadata_of(obj).name,))
        self.wiring.cache.raw.add_index(BY_NAMESPACE, by_namespace)

    def make_context(self, raw: Object) -> AgentContext[Any]:
        context = super().make_context(raw)
        context.dates_status = True
        return context

    def steps(self, context: AgentContext[Any]) -> Steps:
        return (
            self._hold,
            self._build,
            self._make_way,
            self._provide,
            self._remove_copies,
            self._report,
            self._drop_release,
            self._look_again,
        )

    def finalize_steps(self, context: AgentContext[Any]) -> Steps:
        return (self._uninstall, self._retire, self._release)

    # Building.

    def taken(self, agent: InstanaAgent) -> str:
        problem = reserved_name(agent)
        return problem and f"InstanaAgent {agent.metadata.namespace}/{agent.metadata.name}: {problem}"

    def defaulted(self, agent: InstanaAgent) -> InstanaAgent:
        return defaulted(agent)

    async def build(self, context: AgentContext[Any], agent: InstanaAgent) -> None:
        context.facts = await self._world.facts(agent)
        context.wanted = build_agent(agent, context.facts)
        if self._senior(agent.metadata.namespace) == agent.metadata.name:
            context.besides = etcd_copies(agent, context.facts)

    def problems(self, context: AgentContext[Any], agent: InstanaAgent) -> dict[str, str]:
        namespace = agent.metadata.namespace

        def exists(name: str) -> bool:
            return self._world.secrets.exists(ObjectKey(namespace, name))

        found = problems_of_agent(
            agent, exists=exists, keys=context.facts.keys_secret, others=self._others(context.key)
        )
        return found | problems_of_certificate(agent, context.facts)

    async def _remove_copies(self, context: AgentContext[Any]) -> None:
        """Delete the copies of OpenShift's credentials whose sources are gone."""
        facts, namespace = context.facts, context.key.namespace
        if not facts.openshift or etcd_copies(context.object, facts):
            return
        copies = ((CONFIG_MAPS, BUNDLE), (SECRETS, CLIENT))
        found = (self._objects.get(resource, namespace, name) for resource, name in copies)
        gone = [dependent_of(live) for live in found if live is not None and is_copy(metadata_of(live).labels)]
        if gone:
            marking = self.marking(context.object)
            await self._applier.delete(FixedInventory(marking.identity, namespace, gone), marking)

    # The operator of 2.0.x.

    async def _make_way(self, context: AgentContext[Any]) -> None:
        await self._migration.make_way(context, self.marking(context.object))

    async def _drop_release(self, context: AgentContext[Any]) -> None:
        await self._migration.finish(context, available=self._is_available(context))

    async def _uninstall(self, context: AgentContext[Any]) -> None:
        await self._migration.uninstall(context)

    def _is_available(self, context: AgentContext[Any]) -> bool:
        return all(one.status != "False" and one.status != "Unknown" for one in self.availability(context))

    # Sharing.

    def siblings(self, agent: InstanaAgent) -> list[ObjectMeta]:
        found = map(metadata_of, self.wiring.cache.raw.by(BY_NAMESPACE, agent.metadata.namespace))
        return [one for one in found if one.name != agent.metadata.name and not one.deletion_timestamp]

    def marking(self, agent: InstanaAgent) -> AgentMarking:
        helm = HELM_FINALIZER in agent.metadata.finalizers
        return AgentMarking(agent, binding_of=self._objects.binding_of, helm=helm)

    def _others(self, key: ObjectKey) -> list[InstanaAgent]:
        """The other living agents of the cluster, as far as this process watches it."""
        others = (neighbour_of(raw) for raw in list(self.wiring.cache.raw.values()) if key_of(raw) != key)
        return [agent for agent in others if agent is not None and not agent.metadata.deletion_timestamp]

    def _senior(self, namespace: str) -> str:
        """The agent that makes what all agents of a namespace share."""
        found = map(metadata_of, self.wiring.cache.raw.by(BY_NAMESPACE, namespace))
        living = [one for one in found if not one.deletion_timestamp]
        return min(((one.creation_timestamp or "", one.name) for one in living), default=("", ""))[1]

    def kept_in_caches(self, agent: InstanaAgent) -> set[Dependent]:
        found = set()
        for resource in WITHOUT_OWNER:
            for live in list(self._objects.caches[resource].values()):
                labels = metadata_of(live).labels
                if labels.get(INSTANCE_LABEL) == agent.metadata.name and labels.get(COMPONENT_LABEL) in OURS:
                    found.add(Dependent(resource.group, resource.kind, *_place(live)))
        return found

    # Reporting.

    def availability(self, context: AgentContext[Any]) -> Iterable[AgentCondition]:
        yield verdicts.agents_available(self.words, self._workloads(context, "DaemonSet"))
        enabled = context.object.spec.k8s_sensor.deployment.enabled is not False
        yield verdicts.sensors_available(self._workloads(context, "Deployment"), enabled=enabled)

    def _workloads(self, context: AgentContext[Any], kind: str) -> tuple[Workload, ...]:
        wanted = [dependent_of(obj) for obj in context.wanted]
        return tuple(Workload(one.name, self._objects.find(one)) for one in wanted if one.kind == kind)

    def describe(self, context: AgentContext[Any]) -> None:
        context.set_status("status", verdicts.FAILED if context.failure else verdicts.RUNNING)
        context.set_status("reason", context.failure or None)
        agent, name = context.object, context.key.name
        context.set_info("configsecret", self.info(context, SECRETS, f"{name}-config"))
        context.set_info("namespacesconfigmap", self.info(context, CONFIG_MAPS, f"{name}-namespaces"))
        names = daemon_set_names(agent)
        context.set_info("daemonset", self.info(context, DAEMON_SETS, names[0]) if len(names) == 1 else None)
        status = agent.status
        updated = verdicts.old_versions_updated(
            before=status.old_versions_updated,
            observed=status.observed_generation,
            generation=agent.metadata.generation,
            seen=status.operator_version,
            running=self._world.operator_version,
        )
        if updated:
            context.set_status("oldVersionsUpdated", True)


def _place(live: Object) -> tuple[str, str]:
    metadata = metadata_of(live)
    return metadata.namespace, metadata.name


__all__ = ["BY_NAME", "BY_NAMESPACE", "InstanaAgentController"]
