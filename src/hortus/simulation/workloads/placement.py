"""The nodes on which the pods of a DaemonSet run. Pure.

The rules are those of kube-controller-manager (`NodeShouldRunDaemonPod`): node selector, required node affinity, and
taints against tolerations. A pod is created where all of them hold, and stays where only a NoSchedule taint is in the
way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from hortus.kube.objects import Object
from hortus.kube.selectors import LabelRequirement, Operator

_ALWAYS_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
"""Taints that the DaemonSet controller has each of its pods tolerate."""
_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")
"""In addition, for pods in the network of their node."""


class Node(NamedTuple):
    """The part of a Node that decides on pods."""

    name: str
    labels: Mapping[str, str] = {}
    taints: tuple[tuple[str, str, str], ...] = ()
    """Key, value and effect."""
    ready: bool = True
    works: bool = True
    """False when containers on it never become ready."""


class Placement(NamedTuple):
    """The verdict on one node."""

    runs: bool
    """A pod is created, and counted as desired."""
    stays: bool
    """A pod that is there is not deleted."""


_ELSEWHERE = Placement(runs=False, stays=False)


def placement(pod_spec: Mapping[str, Any], node: Node) -> Placement:
    """The verdict on a node for pods of a DaemonSet's template."""
    required = pod_spec.get("nodeName")
    if required and required != node.name:
        return _ELSEWHERE
    if not _selected(pod_spec.get("nodeSelector") or {}, node) or not _attracted(pod_spec, node):
        return _ELSEWHERE
    effects = {effect for key, value, effect in node.taints if not _tolerated(pod_spec, key, value, effect)}
    if "NoExecute" in effects:
        return _ELSEWHERE
    return Placement(runs="NoSchedule" not in effects, stays=True)


def tolerations(pod_spec: Mapping[str, Any]) -> list[Object]:
    """The tolerations of a DaemonSet's pods: those of the template, then those that the controller adds."""
    found = [dict(one) for one in pod_spec.get("tolerations") or ()]
    added = [{"key": key, "operator": "Exists", "effect": effect} for key, effect in _added(pod_spec)]
    return found + [one for one in added if one not in found]


def _added(pod_spec: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return (*_ALWAYS_TOLERATED, _NETWORK) if pod_spec.get("hostNetwork") else _ALWAYS_TOLERATED


def _tolerated(pod_spec: Mapping[str, Any], key: str, value: str, effect: str) -> bool:
    return (key, effect) in _added(pod_spec) or any(
        _tolerates(one, key, value, effect) for one in pod_spec.get("tolerations") or ()
    )


def _tolerates(toleration: Mapping[str, Any], key: str, value: str, effect: str) -> bool:
    if toleration.get("effect") and toleration["effect"] != effect:
        return False
    if toleration.get("key") and toleration["key"] != key:
        return False
    exists = toleration.get("operator") == "Exists"
    return exists or bool(toleration.get("key") and (toleration.get("value") or "") == value)


def _selected(selector: Mapping[str, str], node: Node) -> bool:
    return all(node.labels.get(key) == value for key, value in selector.items())


def _attracted(pod_spec: Mapping[str, Any], node: Node) -> bool:
    affinity = (pod_spec.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    if required is None:
        return True
    return any(_meets(term, node) for term in required.get("nodeSelectorTerms") or ())


def _meets(term: Mapping[str, Any], node: Node) -> bool:
    """A term without any expression selects no node."""
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False
    return _hold(expressions, node.labels) and _hold(fields, {"metadata.name": node.name})


def _hold(expressions: Iterable[Mapping[str, Any]], labels: Mapping[str, str]) -> bool:
    return all(
        LabelRequirement(one["key"], Operator(one["operator"]), tuple(one.get("values") or ())).matches(labels)
        for one in expressions
    )
