"""The tree that people are shown of a cluster: from its Runtime to an API server that answers."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from hortus.domains.clusters.types import Runtime
from hortus.domains.credentials.service import STAMPS
from hortus.domains.credentials.settings import LIFETIME
from hortus.domains.credentials.shoots import STATUS_LABEL, GardenerShoot
from hortus.domains.credentials.types import GardenerCluster
from hortus.engine.kubeconfigs import KubeconfigSecret
from hortus.engine.leftovers import sentence_of
from hortus.engine.leftovers.types import Leftover
from hortus.kube.objects import format_time


class Node(msgspec.Struct, omit_defaults=True):
    """One line of a tree: an object, its health, and the nodes below it."""

    kind: str
    name: str
    healthy: bool | None = None
    """None where it is not known."""
    note: str = ""
    written: str = ""
    """When a kubeconfig was written, RFC 3339."""
    expires: str = ""
    """When it ends, RFC 3339."""
    children: list[Node] = []

    def lines(self) -> Iterator[tuple[str, Node]]:
        """Every node, depth first, with the branches that stand before it."""
        yield "", self
        yield from _below(self, "")

    @property
    def well(self) -> bool:
        """True when nothing here or below is known to be unhealthy."""
        return self.healthy is not False and all(child.well for child in self.children)


def _below(node: Node, indent: str) -> Iterator[tuple[str, Node]]:
    for child in node.children:
        last = child is node.children[-1]
        yield indent + ("└─ " if last else "├─ "), child
        yield from _below(child, indent + ("   " if last else "│  "))


def runtime_node(runtime: Runtime) -> Node:
    status, metadata = runtime.status, runtime.metadata
    conditions = () if status is None else status.conditions
    unsettled = next((found for found in reversed(conditions) if found.status != "True"), None)
    condition = unsettled or (conditions[-1] if conditions else None)
    message = "" if condition is None else condition.message
    return Node(
        kind="Runtime",
        name=f"{metadata.namespace}/{metadata.name}",
        healthy=None if status is None else {"Ready": True, "Failed": False}.get(status.state),
        note=f"{status.state}: {message}" if status is not None else "not reconciled yet",
    )


def cluster_node(cluster: GardenerCluster) -> Node:
    state = cluster.status.state
    message = "" if cluster.condition is None else cluster.condition.message
    return Node(
        kind="GardenerCluster",
        name=str(cluster.key),
        healthy=state == "Ready" if state else None,
        note=f"{state}: {message}" if state else "not reconciled yet",
    )


def leftover_node(leftover: Leftover) -> Node:
    """An open one is unhealthy; of an acknowledged one a person knows."""
    metadata = leftover.metadata
    known = leftover.spec.acknowledgement is not None
    return Node(
        kind="Leftover",
        name=f"{metadata.namespace}/{metadata.name}",
        healthy=None if known else False,
        note=sentence_of(leftover),
    )


def secret_node(cluster: GardenerCluster, secret: KubeconfigSecret | None, now: float) -> Node:
    reference = cluster.secret
    name = str(reference.object_key)
    if secret is None:
        return Node(kind="Secret", name=name, healthy=False, note="does not exist")
    written, ends = STAMPS.issued_at(secret), STAMPS.expires_at(secret)
    if written is None:
        return Node(kind="Secret", name=name, healthy=False, note="never written by us")
    ending = ends if ends is not None and ends > written else written + LIFETIME
    left = ending - now
    note = f"key {reference.key}, written {span(now - written)} ago, "
    note += f"valid for {span(left)} more" if left > 0 else f"expired {span(-left)} ago"
    begins, end = format_time(written), format_time(ending)
    return Node(kind="Secret", name=name, healthy=left > 0, note=note, written=begins, expires=end)


def shoot_node(shoot: GardenerShoot | None, name: str) -> Node:
    if shoot is None:
        return Node(kind="Shoot", name=name, healthy=False, note="does not exist")
    last = shoot.status.last_operation
    if last is None:
        return Node(kind="Shoot", name=name, note="not scheduled yet")
    label = shoot.metadata.labels.get(STATUS_LABEL, "")
    note = f"{last.type} {last.state} {last.progress}%"
    bad = last.state in ("Error", "Failed") or label == "unhealthy"
    if bad:
        note = f"{note}: {last.description}"
    return Node(kind="Shoot", name=name, healthy=not bad, note=f"{note}, {label}" if label else note)


def span(seconds: float) -> str:
    """A length of time in its two largest units."""
    whole = max(int(seconds), 0)
    for size, unit, smaller, small_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {unit} {rest} {small_unit}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"
