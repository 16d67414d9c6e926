"""What people are shown of a cluster: the tree from its Runtime to an API server that answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from hortus.domains.credentials import ownership, service
from hortus.domains.credentials.settings import LIFETIME
from hortus.domains.credentials.types import CONDITION
from hortus.kube.objects import Object


class Node(msgspec.Struct, omit_defaults=True):
    """One line of a tree: an object, how it is, and what hangs below it."""

    kind: str
    name: str
    healthy: bool | None = None
    """None where it cannot be told."""
    note: str = ""
    children: list[Node] = []

    def lines(self) -> Iterator[tuple[str, Node]]:
        """Every node, depth first, with the branches that stand before it."""
        yield "", self
        yield from _below(self, "")

    @property
    def well(self) -> bool:
        """Whether nothing here or below is known to be unhealthy."""
        return self.healthy is not False and all(child.well for child in self.children)


def _below(node: Node, indent: str) -> Iterator[tuple[str, Node]]:
    for child in node.children:
        last = child is node.children[-1]
        yield indent + ("└─ " if last else "├─ "), child
        yield from _below(child, indent + ("   " if last else "│  "))


def runtime_node(runtime: Object) -> Node:
    status, metadata = runtime.get("status") or {}, runtime["metadata"]
    state, conditions = status.get("state", ""), status.get("conditions") or ()
    unsettled = next((found for found in reversed(conditions) if found["status"] != "True"), None)
    condition: Any = unsettled or (conditions[-1] if conditions else {})
    return Node(
        kind="Runtime",
        name=f"{metadata['namespace']}/{metadata['name']}",
        healthy={"Ready": True, "Failed": False}.get(state),
        note=f"{state}: {condition.get('message', '')}" if state else "not reconciled yet",
    )


def cluster_node(cluster: Object) -> Node:
    status = cluster.get("status") or {}
    condition: Any = next((c for c in status.get("conditions") or () if c["type"] == CONDITION), {})
    state = status.get("state", "")
    metadata = cluster["metadata"]
    return Node(
        kind="GardenerCluster",
        name=f"{metadata['namespace']}/{metadata['name']}",
        healthy=state == "Ready" if state else None,
        note=f"{state}: {condition.get('message', '')}" if state else "not reconciled yet",
    )


def secret_node(cluster: Object, secret: Object | None, now: float) -> Node:
    reference = ownership.secret_reference(cluster)
    name = f"{reference.namespace}/{reference.name}"
    if secret is None:
        return Node(kind="Secret", name=name, healthy=False, note="does not exist")
    written = service.last_sync(secret)
    if written is None:
        return Node(kind="Secret", name=name, healthy=False, note="never written by us")
    lifetime = service.granted_lifetime(secret) or LIFETIME
    left = written + lifetime - now
    note = f"key {reference.key}, written {span(now - written)} ago, "
    note += f"valid for {span(left)} more" if left > 0 else f"expired {span(-left)} ago"
    return Node(kind="Secret", name=name, healthy=left > 0, note=note)


def shoot_node(shoot: Object | None, name: str) -> Node:
    if shoot is None:
        return Node(kind="Shoot", name=name, healthy=False, note="does not exist")
    last = (shoot.get("status") or {}).get("lastOperation")
    if last is None:
        return Node(kind="Shoot", name=name, note="not scheduled yet")
    label = (shoot["metadata"].get("labels") or {}).get("shoot.gardener.cloud/status", "")
    note = f"{last['type']} {last['state']} {last['progress']}%"
    bad = last["state"] in ("Error", "Failed") or label == "unhealthy"
    if bad:
        note = f"{note}: {last['description']}"
    return Node(kind="Shoot", name=name, healthy=not bad, note=f"{note}, {label}" if label else note)


def span(seconds: float) -> str:
    """A length of time in its two largest units."""
    whole = max(int(seconds), 0)
    for size, unit, smaller, small_unit in ((86400, "d", 3600, "h"), (3600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {unit} {rest} {small_unit}" if rest else f"{whole // size} {unit}"
    return f"{whole} s"
