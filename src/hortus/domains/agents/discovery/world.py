"""All that the cluster contributes to the objects of an agent, gathered from caches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from hortus.domains.agents.builders import (
    EtcdTargets,
    InstanaFacts,
    OpenShiftEtcd,
    daemon_set_names,
    is_corrected,
    options_of,
    persists_id,
    workload_name,
)
from hortus.domains.agents.discovery.etcd import AUTHORITY, EtcdDiscovery
from hortus.domains.agents.discovery.secrets import NamedSecrets
from hortus.domains.agents.operating.objects import DAEMON_SETS, DEPLOYMENTS, AgentObjects
from hortus.domains.agents.options import CONFIG_KEY
from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote, InstanaBaseAgent
from hortus.engine import Cache
from hortus.engine.typed import metadata_of
from hortus.kube.objects import ObjectKey, shaped
from hortus.schema import ObjectMeta

MONITORING: Final = "instana-workload-monitoring"
"""The label by which a namespace chooses how its workloads are monitored."""


class _Source(msgspec.Struct):
    metadata: ObjectMeta
    data: dict[str, str] | None = None


class AgentWorld:
    """Reads the facts of one agent."""

    def __init__(
        self,
        *,
        operator_version: str,
        objects: AgentObjects,
        secrets: NamedSecrets,
        namespaces: Cache,
        sources: Cache,
        nodes: Cache,
        etcd: EtcdDiscovery,
    ) -> None:
        """`namespaces` holds those with the label, `sources` the ConfigMaps that options may merge."""
        self.operator_version = operator_version
        self.secrets = secrets
        self.etcd = etcd
        self._objects = objects
        self._namespaces = namespaces
        self._sources = sources
        self._nodes = nodes

    async def facts(self, agent: InstanaAgent) -> InstanaFacts:
        """The facts of an InstanaAgent with its defaults. Raises KubeError, UnknownWorkload."""
        namespace = agent.metadata.namespace
        names = daemon_set_names(agent)
        live = dict(self._objects.of_kind(DAEMON_SETS, names, namespace))
        openshift = self.etcd.is_openshift if agent.spec.openshift is None else agent.spec.openshift
        return InstanaFacts(
            operator_version=self.operator_version,
            openshift=openshift,
            namespaces=self.monitored(),
            keys_secret=await self._keys(agent.spec.agent, namespace),
            persist_ids={name: persists_id(found) for name, found in live.items()},
            corrected={name: is_corrected(found) for name, found in live.items()},
            etcd=self._etcd(agent, openshift=openshift),
            node_zones=self._zones(options_of(agent).zone_label),
            config_sources=self._configurations(namespace),
            tls_secret=await self._certificate(agent),
        )

    async def remote_facts(self, agent: InstanaAgentRemote) -> InstanaFacts:
        """The facts of an InstanaAgentRemote with its defaults. Raises KubeError."""
        namespace, name = agent.metadata.namespace, workload_name(agent)
        live = dict(self._objects.of_kind(DEPLOYMENTS, [name], namespace))
        return InstanaFacts(
            operator_version=self.operator_version,
            keys_secret=await self._keys(agent.spec.agent, namespace),
            corrected={name: is_corrected(found) for name, found in live.items()},
            config_sources=self._configurations(namespace),
            tls_secret=await self._certificate(agent),
        )

    def bare(self) -> InstanaFacts:
        """The facts that hold for every object."""
        return InstanaFacts(operator_version=self.operator_version)

    def monitored(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of all namespaces that have the one of monitoring."""
        found = map(metadata_of, list(self._namespaces.values()))
        return {one.name: {MONITORING: one.labels[MONITORING]} for one in found if MONITORING in one.labels}

    async def _keys(self, agent: InstanaBaseAgent, namespace: str) -> Mapping[str, bytes] | None:
        if not agent.keys_secret:
            return None
        return await self.secrets.data(ObjectKey(namespace, agent.keys_secret))

    async def _certificate(self, agent: InstanaAgent | InstanaAgentRemote) -> Mapping[str, bytes] | None:
        name = agent.spec.agent.tls.secret_name
        if not name or not options_of(agent).restart_on_change:
            return None
        return await self.secrets.data(ObjectKey(agent.metadata.namespace, name))

    def _configurations(self, namespace: str) -> Mapping[str, str]:
        """The labelled ConfigMaps of a namespace that hold a configuration."""
        found = {}
        for obj in list(self._sources.values()):
            source = shaped(obj, _Source)
            if source is not None and source.metadata.namespace == namespace and CONFIG_KEY in (source.data or {}):
                found[source.metadata.name] = (source.data or {})[CONFIG_KEY]
        return found

    def _zones(self, label: str) -> frozenset[str]:
        """The values of a label on all nodes, an empty one where a node lacks it."""
        if not label:
            return frozenset()
        return frozenset(metadata_of(node).labels.get(label, "") for node in list(self._nodes.values()))

    def _etcd(self, agent: InstanaAgent, *, openshift: bool) -> EtcdTargets | OpenShiftEtcd | None:
        if openshift:
            return self.etcd.credentials()
        if agent.spec.k8s_sensor.etcd.targets:
            return None
        return self.etcd.targets(ca_secret=self.secrets.exists(ObjectKey(agent.metadata.namespace, AUTHORITY)))
