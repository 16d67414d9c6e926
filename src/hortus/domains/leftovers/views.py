"""Leftovers as text: one line each, and one as a page with its items and the commands for them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import msgspec

from hortus.engine.leftovers import quoted, thing_of, ways_of
from hortus.engine.leftovers.types import Leftover, LeftoverItem, LeftoverPhase
from hortus.kube.naming import dns_label, dns_subdomain
from hortus.kube.objects import parse_time

HEADS = ("Name", "Cluster", "Source", "Reason", "State", "Left", "Since")
WIDE = ("Acknowledged by", "Message")
_PLACES = {
    "Cluster": "in the cluster",
    "Garden": "in the garden",
    "Management": "on the management cluster",
    "Infrastructure": "at the provider",
}
_ACTORS = {"ClusterOwner": "the cluster's owner", "Operator": "an operator"}


def age_key(leftover: Leftover) -> float:
    """Seconds since the epoch, for sorting."""
    return parse_time(since(leftover) or "1970-01-01T00:00:00Z")


def since(leftover: Leftover) -> str:
    """When the deletion began, or when it was recorded."""
    return leftover.spec.since or leftover.metadata.creation_timestamp or ""


def place(leftover: Leftover) -> str:
    """The cluster; empty where none is concerned."""
    cluster = leftover.spec.cluster
    return f"{cluster.namespace}/{cluster.name}" if cluster.name else cluster.shoot


def source(leftover: Leftover) -> str:
    """The object whose deletion ended without the items."""
    found = leftover.spec.source
    return f"{found.kind} {found.namespace}/{found.name}" if found.namespace else f"{found.kind} {found.name}"


def row(leftover: Leftover, *, wide: bool) -> list[object]:
    """The cells of one Leftover under HEADS and, with `wide`, WIDE."""
    spec, status = leftover.spec, leftover.status
    cells: list[object] = [
        leftover.metadata.name,
        place(leftover),
        source(leftover),
        spec.reason,
        status.phase or LeftoverPhase.OPEN,
        f"{_left(leftover)}/{len(spec.items)}",
        since(leftover),
    ]
    return [*cells, spec.acknowledgement.by if spec.acknowledgement else "", spec.message] if wide else cells


def summary(leftover: Leftover) -> dict[str, Any]:
    """One Leftover as JSON."""
    spec, status = leftover.spec, leftover.status
    return {
        "name": leftover.metadata.name,
        "namespace": leftover.metadata.namespace,
        "cluster": msgspec.to_builtins(spec.cluster),
        "source": msgspec.to_builtins(spec.source),
        "reason": spec.reason,
        "message": spec.message,
        "state": status.phase or LeftoverPhase.OPEN,
        "items": len(spec.items),
        "left": _left(leftover),
        "since": since(leftover),
        "recordedAt": leftover.metadata.creation_timestamp,
        "settledAt": status.settled_at,
        "acknowledgement": msgspec.to_builtins(spec.acknowledgement) if spec.acknowledgement else None,
    }


def details(leftover: Leftover) -> dict[str, Any]:
    """One Leftover as JSON, with its items and their states."""
    states = {item.id: item for item in leftover.status.items}
    items = []
    for item in leftover.spec.items:
        state = states.get(item.id)
        seen = {"state": "Unknown"} if state is None else msgspec.to_builtins(state)
        items.append({**msgspec.to_builtins(item), **seen})
    return {**summary(leftover), "items": items}


def page(leftover: Leftover) -> Iterator[str]:
    """Yields the lines of one Leftover: source, cluster, reason, the items with their commands, the next step."""
    spec, status = leftover.spec, leftover.status
    settled = status.phase == LeftoverPhase.SETTLED
    yield f"{source(leftover)} was deleted, and {'all of this was seen to be gone' if settled else 'this may be left'}"
    yield f"state     {status.phase or LeftoverPhase.OPEN}"
    yield f"cluster   {place(leftover) or '(none)'}"
    yield f"reason    {spec.reason}: {quoted(spec.message)}" if spec.message else f"reason    {spec.reason}"
    yield f"since     {since(leftover)}"
    if status.settled_at:
        yield f"settled   {status.settled_at}"
    if spec.acknowledgement:
        yield f"known     to {spec.acknowledgement.by}: {quoted(spec.acknowledgement.reason)}"
    yield ""
    yield from items_of(leftover)
    yield from _advice(leftover)


def items_of(leftover: Leftover) -> Iterator[str]:
    """Yields the lines of the items: state, place, thing, owner of the next step, commands."""
    states = {item.id: item for item in leftover.status.items}
    said = ""
    for item in leftover.spec.items:
        state = states.get(item.id)
        name, why = ("Unknown", "") if state is None else (state.state, state.message)
        yield f"  {name.ljust(7)}  {thing_of(item)}, {_PLACES[item.where]}"
        if why:
            yield f"           why     {why if why != said else 'as above'}"
        said = why
        if name != "Gone":
            yield from _commands(item)


def _commands(item: LeftoverItem) -> Iterator[str]:
    look, remove = ways_of(item)
    if look:
        yield f"           look    {look}"
    if remove:
        yield f"           remove  {remove}"
    yield f"           next    {_ACTORS[item.actor]}"


def _advice(leftover: Leftover) -> Iterator[str]:
    cluster, items = leftover.spec.cluster, leftover.spec.items
    if leftover.status.phase == LeftoverPhase.SETTLED:
        return
    yield ""
    if any(item.where == "Cluster" for item in items) and not (
        dns_subdomain(cluster.name) or dns_label(cluster.namespace)
    ):
        yield "The commands for items in the cluster need its kubeconfig:"
        yield f"  {shlex.join(('hortus', 'kubeconfig', cluster.name, '-n', cluster.namespace))}"
    if leftover.spec.acknowledgement is None:
        if any(item.where != "Infrastructure" for item in items):
            yield "An item that is seen to be gone is settled by itself."
        yield "To take the Leftover out of the alert:"
        yield f"  {shlex.join(('hortus', 'leftovers', 'acknowledge', leftover.metadata.name))} --reason TEXT"


def _left(leftover: Leftover) -> int:
    """Items that were not seen to be gone; all before the first look."""
    return leftover.status.left if leftover.status.phase else len(leftover.spec.items)
