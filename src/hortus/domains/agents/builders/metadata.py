"""Labels, owners and names that all objects of an agent share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hortus.domains.agents.builders.names import AnyAgent
from hortus.engine.owners import owner_reference
from hortus.kube.objects import Object

AGENT: Final = "instana-agent"
SENSOR: Final = "k8sensor"
REMOTE: Final = "instana-agent-remote"

MANAGER: Final = "instana-agent-operator"
NAME_LABEL: Final = "app.kubernetes.io/name"
COMPONENT_LABEL: Final = "app.kubernetes.io/component"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
GENERATION_LABEL: Final = "agent.instana.io/generation"
ZONE_LABEL: Final = "io.instana/zone"
MODE_LABEL: Final = "instana/agent-mode"
INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
_VERSION_LABEL: Final = "app.kubernetes.io/version"
_PART_OF_LABEL: Final = "app.kubernetes.io/part-of"
_PART_OF: Final = "instana"


def common_labels(agent: AnyAgent, component: str, operator_version: str) -> dict[str, str]:
    """Labels of every object."""
    return {
        NAME_LABEL: AGENT,
        INSTANCE_LABEL: agent.metadata.name,
        _VERSION_LABEL: operator_version,
        COMPONENT_LABEL: component,
        _PART_OF_LABEL: _PART_OF,
        MANAGED_BY_LABEL: MANAGER,
        GENERATION_LABEL: str(agent.metadata.generation),
    }


def selector_labels(agent: AnyAgent, component: str, zone: str = "") -> dict[str, str]:
    """Labels by which the pods of a component are found; a Remote's pods have its component as their name too."""
    labels = {
        NAME_LABEL: REMOTE if component == REMOTE else AGENT,
        INSTANCE_LABEL: agent.metadata.name,
        COMPONENT_LABEL: component,
    }
    return {**labels, ZONE_LABEL: zone} if zone else labels


def pod_labels(agent: AnyAgent, component: str, mode: str, zone: str = "") -> dict[str, str]:
    """Labels of pods. Version and generation are not among them, so that an upgrade replaces no pod."""
    return {
        **agent.spec.agent.pod.labels,
        MODE_LABEL: mode,
        **selector_labels(agent, component, zone),
        _PART_OF_LABEL: _PART_OF,
        MANAGED_BY_LABEL: MANAGER,
    }


def owner_of(agent: AnyAgent) -> Object:
    """The ownerReference that points at the CR."""
    facts = agent.FACTS
    metadata = {"name": agent.metadata.name, "uid": agent.metadata.uid}
    return owner_reference({"apiVersion": facts.api_version, "kind": facts.name, "metadata": metadata})


def namespaced(agent: AnyAgent, name: str, labels: Mapping[str, str], annotations: Mapping[str, str] = {}) -> Object:
    """Metadata of an object next to the CR, which owns it."""
    named: Object = {"name": name, "namespace": agent.metadata.namespace, "labels": dict(labels)}
    if annotations:
        named["annotations"] = dict(annotations)
    return {**named, "ownerReferences": [owner_of(agent)]}
