"""Parts of objects that options ask for. Without options each of these functions returns what it was given."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import sha256
from typing import Final, TypeVar

import msgspec

from hortus.domains.agents.builders import names, secrets
from hortus.domains.agents.builders.backends import backends_of
from hortus.domains.agents.builders.facts import InstanaFacts
from hortus.domains.agents.builders.metadata import SENSOR, common_labels, namespaced, selector_labels
from hortus.domains.agents.builders.names import AnyAgent
from hortus.domains.agents.builders.pods import AGENT_PORT
from hortus.domains.agents.options import InstanaOptions
from hortus.domains.agents.types import InstanaAgent, InstanaPod, InstanaSensorPod, InstanaZone
from hortus.kube.objects import Object

CHECKSUM: Final = "checksum/credentials"
UNZONED: Final = "unzoned"
"""The zone of nodes that lack the label."""
_STATUS: Final = "/status"
_ANY_TAINT: Final[Object] = {"operator": "Exists"}
_TAINTS: Final = {
    "control-plane": ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"),
    "infra": ("node-role.kubernetes.io/infra",),
}
_NOT_IN_NAMES: Final = re.compile(r"[^a-z0-9-]+")
_STORAGE: Final = "ephemeral-storage"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_DNS: Final = 53
_HTTPS: Final = 443
_ETCD_PORTS: Final = (2379, 2381, 9978)

_Pod = TypeVar("_Pod", InstanaPod, InstanaSensorPod)


def probes(container: Object, options: InstanaOptions, pod: InstanaPod, host: str) -> Object:
    """The container with the probes that are asked for.

    With a startup probe the default liveness probe need not wait: it begins when the agent has started.
    """
    get: Object = {"path": _STATUS, "port": AGENT_PORT}
    check: Object = {"httpGet": {"host": host, **get} if host else get, "timeoutSeconds": 5, "periodSeconds": 10}
    found = dict(container)
    if options.readiness_probe:
        found["readinessProbe"] = {**check, "failureThreshold": 3}
    if options.startup_probe:
        found["startupProbe"] = {**check, "failureThreshold": 60}
        if pod.liveness_probe is None:
            found["livenessProbe"] = {**check, "failureThreshold": 6}
    return found


def tolerations(given: Iterable[Object], options: InstanaOptions) -> list[Object]:
    """The tolerations, with those of the kinds of nodes that are asked for."""
    found = list(given)
    if "all" in options.tolerate:
        wanted = [_ANY_TAINT]
    else:
        wanted = [{"key": key, **_ANY_TAINT} for kind in options.tolerate for key in _TAINTS[kind]]
    return [*found, *(each for each in wanted if each not in found)]


def with_storage(pod: _Pod, options: InstanaOptions) -> _Pod:
    """The pod with amounts of ephemeral storage where it has none."""
    wanted = options.ephemeral_storage
    requests = {_STORAGE: wanted.request, **pod.requests} if wanted.request else pod.requests
    limits = {_STORAGE: wanted.limit, **pod.limits} if wanted.limit else pod.limits
    return msgspec.structs.replace(pod, requests=requests, limits=limits)


def zones_of(agent: InstanaAgent, facts: InstanaFacts) -> tuple[InstanaZone, ...]:
    """The zones of the CR, else one for each value of the label of nodes that the options name.

    Of zones with one name the last counts: two would be one DaemonSet whose pods each reconcile replaces. Values of the
    label that give the same name, such as `A` and `a`, are one zone. Its pods keep the placement of the agent's.
    """
    label = facts.options.zone_label
    if agent.spec.zones or not label:
        return tuple({zone.name: zone for zone in agent.spec.zones}.values())
    groups: dict[str, list[str]] = {}
    for value in sorted(set(facts.node_zones)):
        name = _NOT_IN_NAMES.sub("-", value.lower()).strip("-") if value else UNZONED
        groups.setdefault(name or UNZONED, []).append(value)
    return tuple(_zone(agent, name, label, values) for name, values in groups.items())


def _zone(agent: InstanaAgent, name: str, label: str, values: list[str]) -> InstanaZone:
    """A zone of the nodes with one of the values, of which an empty one stands for nodes without the label."""
    present = [value for value in values if value]
    wanted: list[Object] = []
    if present:
        wanted.append({"key": label, "operator": "In", "values": present})
    if len(present) < len(values):
        wanted.append({"key": label, "operator": "DoesNotExist"})
    pod = agent.spec.agent.pod
    affinity = _on_nodes(pod.affinity or {}, wanted)
    return InstanaZone(name=name, mode=agent.spec.agent.mode, tolerations=pod.tolerations, affinity=affinity)


def _on_nodes(affinity: Object, wanted: list[Object]) -> Object:
    """The affinity with each of its terms restricted to nodes that meet one of the requirements."""
    node: Object = {}
    terms: list[Object] = []
    match affinity:
        case {"nodeAffinity": dict(node)}:
            match node:
                case {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}:
                    pass
    restricted = [_restricted(term, requirement) for term in terms or [{}] for requirement in wanted]
    return {**affinity, "nodeAffinity": {**node, _REQUIRED: {"nodeSelectorTerms": restricted}}}


def _restricted(term: Object, requirement: Object) -> Object:
    match term:
        case {"matchExpressions": list(expressions)}:
            return {**term, "matchExpressions": [*expressions, requirement]}
    return {**term, "matchExpressions": [requirement]}


def pod_annotations(agent: AnyAgent, facts: InstanaFacts) -> dict[str, str]:
    """Annotations of pods: those of the CR, and a checksum of keys and certificate when a change replaces pods."""
    found = dict(agent.spec.agent.pod.annotations)
    if facts.options.restart_on_change:
        known = {f"keys/{key}": value for key, value in (facts.keys_secret or {}).items()}
        known |= {f"tls/{key}": value for key, value in (facts.tls_secret or {}).items()}
        known |= {f"own/{key}": value for key, value in secrets.own_credentials(agent).items()}
        parts = sorted((key, value.hex()) for key, value in known.items())
        found[CHECKSUM] = sha256(msgspec.json.encode(parts)).hexdigest()
    return found


def network_policy(agent: InstanaAgent, facts: InstanaFacts) -> Object | None:
    """The NetworkPolicy of the k8sensor: no connection to it, and from it only to ports that it needs."""
    wanted = facts.options.sensor_network
    if not wanted.enabled:
        return None
    base = agent.spec.agent
    ports = {_HTTPS, *wanted.ports, *_ETCD_PORTS}
    ports |= {int(port) for port in (each.port for each in backends_of(base)) if port.isdecimal()}
    if base.proxy_host:
        ports.add(int(base.proxy_port) if base.proxy_port.isdecimal() else 80)
    dns = [{"protocol": protocol, "port": _DNS} for protocol in ("UDP", "TCP")]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": namespaced(agent, names.sensor(agent), common_labels(agent, SENSOR, facts.operator_version)),
        "spec": {
            "podSelector": {"matchLabels": selector_labels(agent, SENSOR)},
            "policyTypes": ["Ingress", "Egress"],
            "egress": [{"ports": [*dns, *({"protocol": "TCP", "port": port} for port in sorted(ports))]}],
        },
    }
