"""All that the cluster contributes to the objects of an agent, gathered from caches."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from hortus.domains.agents.builders import InstanaFacts, is_corrected, issued_secret, options_of, workload_name
from hortus.domains.agents.discovery.facts import FactSource, facts_of
from hortus.domains.agents.discovery.making import with_own_certificate
from hortus.domains.agents.discovery.secrets import NamedSecrets
from hortus.domains.agents.operating.objects import DEPLOYMENTS, AgentObjects
from hortus.domains.agents.options import CONFIG_KEY
from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote, InstanaBaseAgent
from hortus.engine import Cache
from hortus.engine.typed import metadata_of
from hortus.kube.clock import Clock
from hortus.kube.objects import ObjectKey, shaped
from hortus.schema import ObjectMeta


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
        cluster: FactSource,
        sources: Cache,
        nodes: Cache,
        clock: Clock,
        etcd_namespaces: Collection[str],
    ) -> None:
        """`sources` holds the ConfigMaps that options may merge; `etcd_namespaces` may have etcd's credentials."""
        self.operator_version = operator_version
        self.secrets = secrets
        self._objects = objects
        self._cluster = cluster
        self._sources = sources
        self._nodes = nodes
        self._clock = clock
        self._etcd_namespaces = etcd_namespaces

    async def facts(self, agent: InstanaAgent) -> InstanaFacts:
        """The facts of an InstanaAgent with its defaults. Raises KubeError, UnknownWorkload."""
        namespace = agent.metadata.namespace
        options, keys = options_of(agent), await self._keys(agent.spec.agent, namespace)
        found = await facts_of(
            self._cluster,
            agent,
            operator_version=self.operator_version,
            keys=keys,
            etcd_namespaces=self._etcd_namespaces,
        )
        found = found._replace(
            node_zones=self._zones(options.zone_label),
            config_sources=self._configurations(namespace),
            tls_secret=await self._certificate(agent),
            options=options,
        )
        return await self._own_certificate(found, agent)

    async def remote_facts(self, agent: InstanaAgentRemote) -> InstanaFacts:
        """The facts of an InstanaAgentRemote with its defaults. Raises KubeError."""
        namespace, name = agent.metadata.namespace, workload_name(agent)
        live = dict(self._objects.of_kind(DEPLOYMENTS, [name], namespace))
        found = InstanaFacts(
            operator_version=self.operator_version,
            keys_secret=await self._keys(agent.spec.agent, namespace),
            corrected={name: is_corrected(found) for name, found in live.items()},
            config_sources=self._configurations(namespace),
            tls_secret=await self._certificate(agent),
            options=options_of(agent),
        )
        return await self._own_certificate(found, agent)

    def bare(self) -> InstanaFacts:
        """The facts that hold for every object."""
        return InstanaFacts(operator_version=self.operator_version)

    async def _keys(self, agent: InstanaBaseAgent, namespace: str) -> Mapping[str, bytes] | None:
        if not agent.keys_secret:
            return None
        return await self.secrets.data(ObjectKey(namespace, agent.keys_secret))

    async def _certificate(self, agent: InstanaAgent | InstanaAgentRemote) -> Mapping[str, bytes] | None:
        tls, options = agent.spec.agent.tls, options_of(agent)
        name = tls.secret_name if options.restart_on_change else ""
        if options.certificate is not None and not (tls.secret_name or (tls.certificate and tls.key)):
            name = issued_secret(agent)
        if not name:
            return None
        return await self.secrets.data(ObjectKey(agent.metadata.namespace, name))

    async def _own_certificate(self, facts: InstanaFacts, agent: InstanaAgent | InstanaAgentRemote) -> InstanaFacts:
        namespace = agent.metadata.namespace

        async def read(name: str) -> Mapping[str, bytes] | None:
            return await self.secrets.data(ObjectKey(namespace, name))

        async def live(name: str) -> Mapping[str, bytes] | None:
            return await self.secrets.live(ObjectKey(namespace, name))

        return await with_own_certificate(facts, agent, read, live, now=self._clock.now())

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
