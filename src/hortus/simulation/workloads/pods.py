"""A pod as the simulation keeps it, and the times at which something happens to it. Pure."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from hortus.simulation.workloads.placement import Node

_REVISION_LENGTH = 10
"""The length of the hashes that kube-controller-manager puts in `pod-template-hash`."""


class Pod(NamedTuple):
    """One pod. Instants are seconds since the Unix epoch."""

    node: str
    """Empty for a pod of a Deployment, which is on no node."""
    revision: str
    created: float
    ready_at: float
    """Infinity: it never becomes ready."""
    restarts_at: float = math.inf
    restarts: int = 0
    name: str = ""
    """Its object's name, once there is one."""

    def ready(self, now: float) -> bool:
        return self.ready_at <= now

    def available(self, now: float, minimum: float) -> bool:
        """True when it has been ready for `minimum` seconds."""
        return self.ready_at + minimum <= now


class KubeletPace(NamedTuple):
    """The behaviour of the kubelets of a cluster."""

    start: float = 0.0
    """Seconds from the creation of a pod, or the end of its container, until it is ready."""
    restart_period: float = 0.0
    """Seconds between two restarts of a pod's container; 0 is never."""

    def run(self, node: str, revision: str, now: float, *, broken: bool) -> Pod:
        """A new pod."""
        ready_at = math.inf if broken else now + self.start
        return Pod(node, revision, now, ready_at, self._first_restart(node, now))

    def restarted(self, pod: Pod, now: float) -> Pod:
        """The pod after the restart that is due by now, if one is."""
        if pod.restarts_at > now:
            return pod
        ready_at = math.inf if pod.ready_at == math.inf else now + self.start
        return pod._replace(ready_at=ready_at, restarts_at=now + self.restart_period, restarts=pod.restarts + 1)

    def _first_restart(self, node: str, now: float) -> float:
        """Spread over the first period by the node's name, so that the pods of a cluster do not restart together."""
        if not self.restart_period:
            return math.inf
        share = int(hashlib.sha256(node.encode()).hexdigest()[:4], 16) / 0xFFFF
        return now + self.restart_period * (0.5 + share / 2)


def revision_of(template: Mapping[str, Any]) -> str:
    """A hash of a pod template. It is not the one that kube-controller-manager computes of the same template."""
    return hashlib.sha256(orjson.dumps(template, option=orjson.OPT_SORT_KEYS)).hexdigest()[:_REVISION_LENGTH]


def next_due(pods: Iterable[Pod], now: float, minimum: float) -> float | None:
    """Seconds until the next pod becomes ready or available, or restarts; None when no pod will."""
    times = {
        instant
        for pod in pods
        for instant in (pod.ready_at, pod.ready_at + minimum, pod.restarts_at)
        if now < instant < math.inf
    }
    return min(times) - now if times else None


def node_of(obj: Mapping[str, Any], *, broken: bool) -> Node:
    """The part of a Node object that decides on pods. One without a condition Ready counts as ready."""
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    taints = [(taint["key"], taint.get("value") or "", taint["effect"]) for taint in spec.get("taints") or ()]
    ready = [one["status"] for one in status.get("conditions") or () if one["type"] == "Ready"]
    metadata = obj["metadata"]
    return Node(metadata["name"], metadata.get("labels") or {}, tuple(taints), set(ready) <= {"True"}, works=not broken)
