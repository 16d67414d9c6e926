"""DaemonSets of the agent: one for all nodes, or one for each zone."""

from __future__ import annotations

from hortus.domains.agents.builders import additions, environment, names, pods, volumes
from hortus.domains.agents.builders.facts import AGENT_CONTAINER, LOOPBACK, InstanaFacts
from hortus.domains.agents.builders.metadata import (
    AGENT,
    ZONE_LABEL,
    common_labels,
    namespaced,
    pod_labels,
    selector_labels,
)
from hortus.domains.agents.builders.services import agent_ports
from hortus.domains.agents.types import InstanaAgent, InstanaUpdateStrategy, InstanaZone
from hortus.kube.objects import Object

DEFAULT_MODE = "APM"


def daemon_sets(agent: InstanaAgent, facts: InstanaFacts) -> list[Object]:
    """The DaemonSets; none where key, cluster or zone are missing."""
    spec = agent.spec
    if not has_key(agent):
        return []
    if zones := additions.zones_of(agent, facts):
        return [_daemon_set(agent, facts, zone) for zone in zones] if spec.cluster.name else []
    return [_daemon_set(agent, facts, None)] if is_named(agent) else []


def daemon_set_names(agent: InstanaAgent) -> tuple[str, ...]:
    """Names of the DaemonSets that the CR asks for, of which the facts depend on live ones."""
    return tuple(dict.fromkeys(_name(agent, zone) for zone in agent.spec.zones)) or (agent.metadata.name,)


def has_key(agent: InstanaAgent) -> bool:
    return bool(agent.spec.agent.key or agent.spec.agent.keys_secret)


def is_named(agent: InstanaAgent) -> bool:
    """Reports whether the cluster can be recognized in the backend."""
    return bool(agent.spec.zone.name or agent.spec.cluster.name)


def _name(agent: InstanaAgent, zone: InstanaZone | None) -> str:
    return f"{agent.metadata.name}-{zone.name}" if zone else agent.metadata.name


def _daemon_set(agent: InstanaAgent, facts: InstanaFacts, zone: InstanaZone | None) -> Object:
    name, zone_name = _name(agent, zone), zone.name if zone else ""
    wanted = agent.spec.agent
    labels = common_labels(agent, AGENT, facts.operator_version)
    spec: Object = {
        "selector": {"matchLabels": selector_labels(agent, AGENT, zone_name)},
        "updateStrategy": _strategy(wanted.update_strategy),
        "template": pods.template(
            pod_labels(agent, AGENT, wanted.mode or DEFAULT_MODE, zone_name),
            additions.pod_annotations(agent, facts),
            _pod(agent, facts, zone, name),
        ),
    }
    if wanted.min_ready_seconds:
        spec["minReadySeconds"] = wanted.min_ready_seconds
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": namespaced(agent, name, {**labels, ZONE_LABEL: zone_name} if zone else labels),
        "spec": spec,
    }


def _strategy(wanted: InstanaUpdateStrategy) -> Object:
    found: Object = {"type": wanted.type} if wanted.type else {}
    if (rolling := wanted.rolling_update) is not None:
        pace = {"maxUnavailable": rolling.max_unavailable, "maxSurge": rolling.max_surge}
        found["rollingUpdate"] = pods.filled(pace)
    return found


def _pod(agent: InstanaAgent, facts: InstanaFacts, zone: InstanaZone | None, name: str) -> Object:
    wanted = agent.spec.agent
    placed = zone or wanted.pod
    tolerations = additions.tolerations(placed.tolerations, facts.options)
    mounted = pods.mounts_of(volumes.of_daemon_set(agent, facts, corrected=facts.corrected.get(name, True)), wanted.pod)
    return {
        "serviceAccountName": names.account(agent),
        "hostNetwork": True,
        "hostPID": True,
        "dnsPolicy": "ClusterFirstWithHostNet",
        **pods.placement(wanted.pod),
        **pods.filled({"imagePullSecrets": names.pull_secrets(agent), "tolerations": tolerations}),
        "affinity": placed.affinity or {},
        "containers": [_container(agent, facts, zone, name, mounted.mounts)],
        "volumes": mounted.volumes,
    }


def _container(
    agent: InstanaAgent, facts: InstanaFacts, zone: InstanaZone | None, name: str, mounts: list[Object]
) -> Object:
    wanted = agent.spec.agent
    container: Object = {
        "name": AGENT_CONTAINER,
        "image": pods.image(wanted.image),
        "imagePullPolicy": wanted.image.pull_policy,
        "env": environment.of_daemon_set(agent, zone, persists=facts.persist_ids.get(name, True)),
        "securityContext": {"privileged": True},
        "livenessProbe": pods.liveness(wanted.pod, LOOPBACK),
        "resources": pods.resources(additions.with_storage(wanted.pod, facts.options)),
        "ports": pods.container_ports(agent_ports(agent)),
        "volumeMounts": mounts,
    }
    return additions.probes(container, facts.options, wanted.pod, LOOPBACK)
