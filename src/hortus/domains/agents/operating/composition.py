"""Puts the controllers of agents together for a process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from hortus.domains.agents.builders import cluster_names, issued_secret
from hortus.domains.agents.builders.configuration import MONITORING_LABEL
from hortus.domains.agents.builders.metadata import COMPONENT_LABEL, INSTANCE_LABEL
from hortus.domains.agents.defaults import defaulted
from hortus.domains.agents.discovery.cached import CachedFacts, EtcdCaches, etcd_caches
from hortus.domains.agents.discovery.facts import AUTHORITY
from hortus.domains.agents.discovery.secrets import NamedSecrets, secret_outlines
from hortus.domains.agents.discovery.world import AgentWorld
from hortus.domains.agents.operating.agents import BY_NAME, InstanaAgentController
from hortus.domains.agents.operating.applying import AgentApplier
from hortus.domains.agents.operating.base import AgentController
from hortus.domains.agents.operating.filters import changed_by_others
from hortus.domains.agents.operating.metrics import OperatingMetrics
from hortus.domains.agents.operating.migration import HelmMigration
from hortus.domains.agents.operating.objects import (
    BESIDES_THE_AGENT,
    CONFIG_MAPS,
    FIELD_MANAGER,
    SECRETS,
    WITHOUT_OWNER,
    AgentObjects,
)
from hortus.domains.agents.operating.pages import StatusPages
from hortus.domains.agents.operating.remotes import BY_NAMESPACE as REMOTES_BY_NAMESPACE
from hortus.domains.agents.operating.remotes import InstanaAgentRemoteController
from hortus.domains.agents.operating.renames import FormerNames
from hortus.domains.agents.operating.settings import OperatingSettings
from hortus.domains.agents.operating.shared_nodes import neighbour_of, node_choices
from hortus.domains.agents.options import CONFIG_LABEL, OPTIONS_ANNOTATION
from hortus.domains.agents.types import (
    INSTANA_AGENTS,
    INSTANA_AGENTS_REMOTE,
    InstanaAgent,
    InstanaAgentRemote,
    InstanaBaseAgent,
)
from hortus.engine import (
    Cache,
    Change,
    EventRecorder,
    Manager,
    Trigger,
    Watch,
    Wiring,
    fields_changed,
    labels_changed,
    spec_or_metadata_changed,
    wire,
    without_managed_fields,
)
from hortus.engine.backoff import Backoff
from hortus.engine.deputies import Deputies
from hortus.engine.sources import Mapper, to_owner
from hortus.engine.typed import metadata_of, read
from hortus.kube import Client
from hortus.kube.objects import Object, ObjectKey, Resource, key_of

AGENT: Final = "instanaagent"
REMOTE: Final = "instanaagentremote"
"""The controllers' names in metrics and logs."""
AGENT_EVENTS: Final = "agent-controller"
REMOTE_EVENTS: Final = "instana-agent-remote-controller"
"""The sources of events, as in the Go operator."""
BACKOFF: Final = Backoff(first=0.5, cap=300.0)
"""A failed agent is tried again after half a second, then after at most five minutes."""

_NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_BY_SECRET: Final = "agents by secret"  # noqa: S105 - an index
_NODES: Final = Resource("", "v1", "nodes", "Node", namespaced=False)


class _Parts(NamedTuple):
    """The parts that both controllers share."""

    applier: AgentApplier
    objects: AgentObjects
    world: AgentWorld
    metrics: OperatingMetrics
    deputies: Deputies


class _Watched(NamedTuple):
    """The caches whose changes concern agents."""

    objects: AgentObjects
    outlines: Cache
    """Secrets, without their values."""
    namespaces: Cache
    """The namespaces with the label of the monitoring."""
    sources: Cache
    """ConfigMaps that options may merge."""
    nodes: Cache
    etcd: EtcdCaches


def add_agents(
    manager: Manager, *, client: Client, deputies: Deputies, namespace: str, settings: OperatingSettings
) -> None:
    """Add both controllers; `namespace` is the watched one, empty for all."""
    manager.add_server(FormerNames(client, namespace=namespace))
    watched = _watched(manager, namespace, credentials=bool(settings.etcd_namespaces))
    parts = _parts(manager, client, deputies, watched, settings)

    def wired(controller: type[AgentController[Any]], component: str) -> Wiring[Any]:
        events = EventRecorder(client, component=component, clock=manager.clock)
        manager.add_server(events)
        return wire(manager, controller, client=client, events=events, namespace=namespace)

    of_agents, of_remotes = (
        wired(InstanaAgentController, AGENT_EVENTS),
        wired(InstanaAgentRemoteController, REMOTE_EVENTS),
    )
    agents = of_agents.cache.raw
    agents.add_index(_BY_SECRET, secrets_of_agent)
    migration = HelmMigration(
        client, deputies=deputies, applier=parts.applier, objects=parts.objects, driver=settings.helm_driver
    )
    pages, reported = _pages(manager, settings)
    manager.controller(
        AGENT,
        InstanaAgentController(of_agents, migration=migration, pages=pages, **parts._asdict()),
        sources=[*_sources_of_agents(watched, agents), reported],
        workers=settings.workers,
        backoff=BACKOFF,
    )
    remotes = of_remotes.cache.raw
    remotes.add_index(_BY_SECRET, secrets_of_remote)
    pages, reported = _pages(manager, settings)
    manager.controller(
        REMOTE,
        InstanaAgentRemoteController(of_remotes, agents=agents, pages=pages, **parts._asdict()),
        sources=[*_sources_of_remotes(watched, agents, remotes), reported],
        workers=settings.workers,
        backoff=BACKOFF,
    )


def _watched(manager: Manager, namespace: str, *, credentials: bool) -> _Watched:
    return _Watched(
        objects=AgentObjects(manager, namespace=namespace),
        outlines=secret_outlines(manager, namespace),
        namespaces=manager.cache(_NAMESPACES, labels=MONITORING_LABEL, transform=_metadata_alone),
        sources=manager.cache(CONFIG_MAPS, namespace=namespace, labels=f"{CONFIG_LABEL}=true"),
        nodes=manager.cache(_NODES, transform=_metadata_alone),
        etcd=etcd_caches(manager, credentials=credentials),
    )


def _parts(
    manager: Manager, client: Client, deputies: Deputies, watched: _Watched, settings: OperatingSettings
) -> _Parts:
    objects = watched.objects
    secrets = NamedSecrets(deputies, watched.outlines, objects.caches[SECRETS])
    world = AgentWorld(
        operator_version=settings.operator_version,
        objects=objects,
        secrets=secrets,
        cluster=CachedFacts(objects=objects, secrets=secrets, namespaces=watched.namespaces, etcd=watched.etcd),
        sources=watched.sources,
        nodes=watched.nodes,
        clock=manager.clock,
        etcd_namespaces=settings.etcd_namespaces,
    )
    metrics = OperatingMetrics(manager.registry)
    manager.on_handover(metrics.shed)
    return _Parts(AgentApplier(client, deputies, objects), objects, world, metrics, deputies)


def _pages(manager: Manager, settings: OperatingSettings) -> tuple[StatusPages, Trigger]:
    """The status pages of the agents of one controller, and the source of those whose report changed."""
    reported = Trigger()
    pages = StatusPages(manager.clock, reported.fire, period=settings.page_period)
    manager.add_server(pages)
    manager.on_handover(pages.shed)
    return pages, reported


# Sources.


def _sources_of_agents(watched: _Watched, agents: Cache) -> list[Watch]:
    objects = watched.objects
    return [
        *_owned(objects, INSTANA_AGENTS),
        *_unowned(objects, agents),
        *_secrets(objects, watched.outlines, agents),
        *_cluster(watched.etcd, watched.namespaces, agents),
        Watch(watched.sources, to=_of_namespace(agents), when=fields_changed("data", "metadata")),
        Watch(watched.nodes, to=lambda _: list(agents.keys()), when=labels_changed),
        Watch(agents, to=lambda _: list(agents.keys()), when=_concerns_others),
        Watch(agents, when=spec_or_metadata_changed),
    ]


def _sources_of_remotes(watched: _Watched, agents: Cache, remotes: Cache) -> list[Watch]:
    return [
        *_owned(watched.objects, INSTANA_AGENTS_REMOTE),
        *_secrets(watched.objects, watched.outlines, remotes),
        Watch(watched.sources, to=_of_namespace(remotes), when=fields_changed("data", "metadata")),
        Watch(agents, to=lambda agent: [key_of(agent)], when=_comes_or_goes),
        Watch(remotes, to=_neighbours(remotes), when=_comes_or_goes),
        Watch(remotes, when=spec_or_metadata_changed),
    ]


def _owned(objects: AgentObjects, owner: Resource) -> list[Watch]:
    """Objects next to their agent, where others change or delete them."""
    when = changed_by_others(FIELD_MANAGER)
    to = to_owner(owner, controllers_only=False)
    return [Watch(objects.caches[resource], to=to, when=when) for resource in BESIDES_THE_AGENT]


def _unowned(objects: AgentObjects, agents: Cache) -> list[Watch]:
    """Objects that no reference leads from; their labels name the agent, in whatever namespace."""
    when = changed_by_others(FIELD_MANAGER)

    def to(obj: Object) -> list[ObjectKey]:
        labels = metadata_of(obj).labels
        if not labels.get(COMPONENT_LABEL):
            return []
        return agents.keys_by(BY_NAME, labels.get(INSTANCE_LABEL, ""))

    return [Watch(objects.caches[resource], to=to, when=when) for resource in WITHOUT_OWNER]


def _secrets(objects: AgentObjects, outlines: Cache, agents: Cache) -> list[Watch]:
    """Secrets that agents name, also where the Secret is one of another agent's."""

    def to(secret: Object) -> list[ObjectKey]:
        key = key_of(secret)
        return agents.keys_by(_BY_SECRET, f"{key.namespace}/{key.name}")

    others = changed_by_others(FIELD_MANAGER)

    def matters(change: Change) -> bool:
        return not change.initial and (change.old is None or others(change))

    return [Watch(outlines, to=to), Watch(objects.caches[SECRETS], to=to, when=matters)]


def _cluster(found: EtcdCaches, namespaces: Cache, agents: Cache) -> list[Watch]:
    """Changes that concern all agents: namespaces that say how they are monitored, OpenShift, etcd."""

    def to(_: Object) -> list[ObjectKey]:
        return list(agents.keys())

    return [
        Watch(namespaces, to=to, when=_differs(lambda obj: metadata_of(obj).labels.get(MONITORING_LABEL))),
        *(Watch(cache, to=to) for cache in found.all),
    ]


def _differs(value: Callable[[Object], Any]) -> Callable[[Change], bool]:
    def when(change: Change) -> bool:
        return change.old is None or change.new is None or value(change.old) != value(change.new)

    return when


def _of_namespace(agents: Cache) -> Mapper:
    return lambda source: [key for key in agents if key.namespace == metadata_of(source).namespace]


def _neighbours(remotes: Cache) -> Mapper:
    return lambda remote: remotes.keys_by(REMOTES_BY_NAMESPACE, metadata_of(remote).namespace)


def _comes_or_goes(change: Change) -> bool:
    """An agent is new, begins to be deleted, or is gone: who shares objects with it has to look."""
    if change.old is None or change.new is None:
        return not change.initial
    return metadata_of(change.old).deletion_timestamp != metadata_of(change.new).deletion_timestamp


def _concerns_others(change: Change) -> bool:
    """An InstanaAgent comes or goes, or takes other nodes or names, which others may have taken too."""
    if _comes_or_goes(change) or change.old is None or change.new is None:
        return _comes_or_goes(change)
    old, new = neighbour_of(change.old), neighbour_of(change.new)
    if old is None or new is None:
        return old is not new
    if old.spec == new.spec:
        return False
    return node_choices(old) != node_choices(new) or _names(old) != _names(new)


def _names(agent: InstanaAgent) -> tuple[str, str]:
    return cluster_names(defaulted(agent))


def _metadata_alone(namespace: Object) -> Object:
    """A namespace or node without its spec and status."""
    for part in ("spec", "status"):
        namespace.pop(part, None)
    return without_managed_fields(namespace)


def secrets_of_agent(obj: Object) -> Iterable[str]:
    """The Secrets that an InstanaAgent names, or is to find, as `namespace/name`."""
    agent = read(InstanaAgent, obj)
    sensor = agent.spec.k8s_sensor
    named = [*_named(agent.spec.agent), sensor.etcd.ca.secret_name, sensor.rest_client.ca.secret_name, AUTHORITY]
    return [f"{agent.metadata.namespace}/{name}" for name in (*named, *_issued(agent)) if name]


def secrets_of_remote(obj: Object) -> Iterable[str]:
    """The Secrets that an InstanaAgentRemote names, as `namespace/name`."""
    agent = read(InstanaAgentRemote, obj)
    return [f"{agent.metadata.namespace}/{name}" for name in (*_named(agent.spec.agent), *_issued(agent)) if name]


def _issued(agent: InstanaAgent | InstanaAgentRemote) -> tuple[str, ...]:
    """The Secret with a certificate, for an agent with options: they need not be understood here."""
    return (issued_secret(agent),) if OPTIONS_ANNOTATION in agent.metadata.annotations else ()


def _named(agent: InstanaBaseAgent) -> tuple[str, str]:
    return agent.keys_secret, agent.tls.secret_name


__all__ = ["AGENT", "REMOTE", "add_agents"]
