"""The k8sensor: its ConfigMap, its PodDisruptionBudget, and a Deployment for each backend."""

from __future__ import annotations

import re
from typing import Final

from hortus.domains.agents.builders import additions, names, pods, sensorpods
from hortus.domains.agents.builders.backends import AgentBackend, backends_of
from hortus.domains.agents.builders.daemonset import has_key, is_named
from hortus.domains.agents.builders.facts import InstanaFacts
from hortus.domains.agents.builders.metadata import (
    MODE_LABEL,
    SENSOR,
    common_labels,
    namespaced,
    pod_labels,
    selector_labels,
)
from hortus.domains.agents.builders.services import API_PORT
from hortus.domains.agents.types import InstanaAgent
from hortus.kube.objects import Object

_MODE: Final = "KUBERNETES"
_APP: Final = {"app": SENSOR}
_POLLRATE: Final = re.compile(r"[0-9]+s", re.ASCII)
_DEFAULT_POLLRATE: Final = "10s"
_GROUP: Final = 1000
_SPREAD: Final[Object] = {
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 100,
                "podAffinityTerm": {
                    "labelSelector": {
                        "matchExpressions": [{"key": MODE_LABEL, "operator": "In", "values": [_MODE]}],
                    },
                    "topologyKey": "kubernetes.io/hostname",
                },
            }
        ]
    }
}
"""Replicas prefer different nodes."""


def config_map(agent: InstanaAgent, facts: InstanaFacts) -> Object:
    """The addresses of the backends, from which the Deployments take theirs."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": namespaced(agent, names.sensor(agent), common_labels(agent, SENSOR, facts.operator_version)),
        "data": {f"backend{backend.suffix}": backend.address for backend in backends_of(agent.spec.agent)},
    }


def disruption_budget(agent: InstanaAgent, facts: InstanaFacts) -> Object | None:
    """The budget that all backends' Deployments share: one pod may be missing. None where it is off or for one pod."""
    wanted = agent.spec.k8s_sensor
    replicas = wanted.deployment.replicas
    if not wanted.pod_disruption_budget.enabled or replicas <= 1:
        return None
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": namespaced(agent, names.sensor(agent), common_labels(agent, SENSOR, facts.operator_version)),
        "spec": {"minAvailable": replicas - 1, "selector": {"matchLabels": selector_labels(agent, SENSOR)}},
    }


def deployments(agent: InstanaAgent, facts: InstanaFacts) -> list[Object]:
    """A Deployment for each backend; none where the k8sensor is off, or key, cluster and zone are missing."""
    if agent.spec.k8s_sensor.deployment.enabled is False or not (has_key(agent) and is_named(agent)):
        return []
    return [_deployment(agent, facts, backend) for backend in backends_of(agent.spec.agent)]


def _deployment(agent: InstanaAgent, facts: InstanaFacts, backend: AgentBackend) -> Object:
    wanted, pod = agent.spec.k8s_sensor.deployment, agent.spec.agent.pod
    annotations = {**pod.annotations, "checksum/backend": backend.checksum(agent.spec.agent, facts.keys_secret)}
    labels = {**_APP, **pod_labels(agent, SENSOR, _MODE)}
    spec: Object = {
        "replicas": wanted.replicas,
        # Equal for all backends: the selector of a Deployment cannot be changed.
        "selector": {"matchLabels": {**selector_labels(agent, SENSOR), **_APP}},
        "template": pods.template(labels, annotations, _pod(agent, facts, backend)),
    }
    if wanted.min_ready_seconds:
        spec["minReadySeconds"] = wanted.min_ready_seconds
    common = {**common_labels(agent, SENSOR, facts.operator_version), **_APP}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": namespaced(agent, names.sensor(agent) + backend.suffix, common),
        "spec": spec,
    }


def _pod(agent: InstanaAgent, facts: InstanaFacts, backend: AgentBackend) -> Object:
    wanted = agent.spec.k8s_sensor
    pod = wanted.deployment.pod
    mounted = pods.mounts_of(sensorpods.volumes_of(agent, facts, backend))
    container: Object = {
        "name": "instana-agent",
        "image": pods.image(wanted.image),
        "imagePullPolicy": wanted.image.pull_policy,
        "command": ["/ko-app/k8sensor"],
        "args": _arguments(agent, facts, backend),
        "env": sensorpods.variables_of(agent, facts, backend),
        "resources": pods.resources(additions.with_storage(pod, facts.options)),
        "ports": pods.container_ports([API_PORT]),
        "volumeMounts": mounted.mounts,
    }
    return {
        "serviceAccountName": names.sensor(agent),
        "securityContext": {"fsGroup": _GROUP},
        **pods.placement(pod),
        **pods.filled({"imagePullSecrets": names.pull_secrets(agent), "tolerations": list(pod.tolerations)}),
        "affinity": pod.affinity or _SPREAD,
        "containers": [container],
        "volumes": mounted.volumes,
    }


def _arguments(agent: InstanaAgent, facts: InstanaFacts, backend: AgentBackend) -> list[str]:
    rate = agent.spec.k8s_sensor.pollrate
    found = ["-pollrate", rate if _POLLRATE.fullmatch(rate) else _DEFAULT_POLLRATE]
    if agent.spec.use_secret_mounts:
        found += ["-agent-key-file", sensorpods.key_file(backend)]
        if sensorpods.mounts_proxy(agent, facts):
            found += ["-https-proxy-file", sensorpods.PROXY_FILE]
    return found
