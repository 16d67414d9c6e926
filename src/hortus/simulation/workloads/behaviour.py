"""Annotations by which an object says how it behaves in the simulation, and the comparison of statuses. Pure."""

from __future__ import annotations

from typing import Any, Final

from hortus.kube.objects import Object

BEHAVIOUR: Final = "simulation.hortus.dev/workload"
"""On a workload, a pod template or a node: its pods never become ready. On a module's resource: it is in error."""
BROKEN: Final = "broken"


def is_broken(obj: Object) -> bool:
    """Reports whether an object, or a pod template, is marked as one that does not work."""
    return bool(((obj.get("metadata") or {}).get("annotations") or {}).get(BEHAVIOUR) == BROKEN)


def settled(obj: Object, status: Object) -> bool:
    """True when an object has a status already, but for the times in it."""
    found = obj.get("status") or {}
    # An API server leaves numbers out that are 0.
    return all(_timeless(found.get(name) or 0) == _timeless(value or 0) for name, value in status.items())


def _timeless(value: Any) -> Any:
    if isinstance(value, list):
        return [_timeless(one) for one in value]
    if isinstance(value, dict):
        return {name: one for name, one in value.items() if not name.endswith("Time")}
    return value
