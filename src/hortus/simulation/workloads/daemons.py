"""A DaemonSet: its pods on the nodes of a cluster, one step of its roll-out, and its status. Pure.

As kube-controller-manager does it (pkg/controller/daemon): pods come and go with nodes first, then old pods are
replaced: by `maxUnavailable` (an old pod that does not work is replaced at once) or `maxSurge` (the new pod first).
With OnDelete a pod stays until someone deletes it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from hortus.kube.objects import Object
from hortus.simulation.garden.nodes import amount
from hortus.simulation.workloads.behaviour import is_broken
from hortus.simulation.workloads.placement import Node, Placement, placement
from hortus.simulation.workloads.pods import KubeletPace, Pod, revision_of

Pods = dict[str, tuple[Pod, ...]]
"""By node, the oldest first. A node has two while a new pod is started next to an old one."""


class Daemon(NamedTuple):
    """A DaemonSet on the nodes of its cluster."""

    generation: int
    revision: str
    minimum_ready: float
    surge: int
    unavailable: int
    on_delete: bool
    works: bool
    template_works: bool
    nodes: Mapping[str, Node]
    places: Mapping[str, Placement]

    def runs_on(self, name: str) -> bool:
        return name in self.places and self.places[name].runs

    def available(self, pod: Pod, now: float) -> bool:
        return self.works and self._node_works(pod) and pod.available(now, self.minimum_ready)

    def ready(self, pod: Pod, now: float) -> bool:
        return self.works and self._node_works(pod) and pod.ready(now)

    def _node_works(self, pod: Pod) -> bool:
        node = self.nodes.get(pod.node)
        return node is not None and node.ready and node.works


def daemon_of(obj: Object, nodes: Mapping[str, Node]) -> Daemon:
    """The DaemonSet of an object that an API server has defaulted."""
    spec = obj["spec"]
    template = spec["template"]
    strategy = spec.get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    places = {name: placement(template["spec"], node) for name, node in nodes.items()}
    desired = sum(place.runs for place in places.values())
    surge = amount(rolling.get("maxSurge", 0), desired, up=True)
    unavailable = amount(rolling.get("maxUnavailable", 1), desired, up=True)
    return Daemon(
        generation=obj["metadata"].get("generation", 1),
        revision=revision_of(template),
        minimum_ready=spec.get("minReadySeconds") or 0,
        surge=surge,
        unavailable=unavailable if surge or unavailable else 1,
        on_delete=strategy.get("type") == "OnDelete",
        works=not is_broken(obj),
        template_works=not is_broken(template),
        nodes=nodes,
        places=places,
    )


def step(daemon: Daemon, pods: Pods, kubelet: KubeletPace, now: float) -> Pods:
    """The pods after everything that is due by now has happened."""
    found = _managed(daemon, pods, kubelet, now)
    if daemon.on_delete:
        return found
    return _surged(daemon, found, kubelet, now) if daemon.surge else _replaced(daemon, found, kubelet, now)


def _managed(daemon: Daemon, pods: Pods, kubelet: KubeletPace, now: float) -> Pods:
    """Pods on nodes that have become fit, none on nodes that are gone or unfit."""
    found: Pods = {}
    for name, place in sorted(daemon.places.items()):
        here = tuple(kubelet.restarted(pod, now) for pod in pods.get(name, ())) if place.stays else ()
        if len(here) > 1 and here[0].revision == daemon.revision:
            here = here[:1]  # The template has changed back.
        elif len(here) > 1 and daemon.available(here[-1], now):
            here = here[-1:]
        if not here and place.runs:
            here = (_new(daemon, name, kubelet, now),)
        if here:
            found[name] = here
    return found


def _replaced(daemon: Daemon, pods: Pods, kubelet: KubeletPace, now: float) -> Pods:
    unavailable = 0
    failed: list[str] = []
    candidates: list[str] = []
    for name, here in pods.items():
        works = daemon.available(here[-1], now)
        unavailable += not works
        if here[-1].revision != daemon.revision:
            (candidates if works else failed).append(name)
    room = max(0, daemon.unavailable - unavailable)
    replaced = {*failed, *candidates[:room]}
    fresh = {name: (_new(daemon, name, kubelet, now),) for name in replaced if daemon.runs_on(name)}
    return {name: fresh.get(name, here) for name, here in pods.items() if name in fresh or name not in replaced}


def _surged(daemon: Daemon, pods: Pods, kubelet: KubeletPace, now: float) -> Pods:
    surging = 0
    failed: list[str] = []
    candidates: list[str] = []
    for name, here in pods.items():
        if len(here) > 1:
            surging += 1
        elif here[0].revision != daemon.revision:
            (candidates if daemon.available(here[0], now) else failed).append(name)
    begun = {*failed, *candidates[: max(0, daemon.surge - surging - len(failed))]}
    # The template has changed again before the new pod was available.
    begun |= {name for name, here in pods.items() if len(here) > 1 and here[-1].revision != daemon.revision}
    new = {name: (pods[name][0], _new(daemon, name, kubelet, now)) for name in begun if daemon.runs_on(name)}
    return {name: new.get(name, here) for name, here in pods.items()}


def _new(daemon: Daemon, node: str, kubelet: KubeletPace, now: float) -> Pod:
    return kubelet.run(node, daemon.revision, now, broken=not daemon.template_works)


def status_of(daemon: Daemon, pods: Pods, now: float) -> Object:
    """The status as kube-controller-manager writes it: of two pods of a node the older one counts."""
    desired = sum(place.runs for place in daemon.places.values())
    counted = [pods[name][0] for name, place in daemon.places.items() if place.runs and name in pods]
    available = sum(daemon.available(pod, now) for pod in counted)
    return {
        "observedGeneration": daemon.generation,
        "desiredNumberScheduled": desired,
        "currentNumberScheduled": len(counted),
        "numberMisscheduled": sum(not place.runs and name in pods for name, place in daemon.places.items()),
        "numberReady": sum(daemon.ready(pod, now) for pod in counted),
        "updatedNumberScheduled": sum(pod.revision == daemon.revision for pod in counted),
        "numberAvailable": available,
        "numberUnavailable": desired - available,
    }


def recovered(daemon: Daemon, status: Mapping[str, Any], now: float) -> Pods:
    """The pods of a DaemonSet whose simulation has begun again, as far as its status says.

    The first nodes by name have the pods of the present template, and the last ones the pods that do not work yet.
    """
    known = [name for name, place in sorted(daemon.places.items()) if place.runs]
    known = known[: int(status.get("currentNumberScheduled") or 0)]
    is_current = status.get("observedGeneration") == daemon.generation
    updated = int(status.get("updatedNumberScheduled") or 0) if is_current else 0
    ready = int(status.get("numberReady") or 0)
    return {
        name: (_found(daemon, name, now, updated=index < updated, ready=index < ready),)
        for index, name in enumerate(known)
    }


def _found(daemon: Daemon, node: str, now: float, *, updated: bool, ready: bool) -> Pod:
    later = now if daemon.template_works or not updated else math.inf
    return Pod(node, daemon.revision if updated else "", now, ready_at=0.0 if ready else later)


def all_pods(pods: Pods) -> Iterator[Pod]:
    for here in pods.values():
        yield from here
