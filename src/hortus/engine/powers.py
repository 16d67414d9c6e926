"""The power that creating an object gives: what controllers do for its author with permissions of their own.

Each domain declares it for its kinds, next to the kinds. docs/security.md shows the declarations, and a test with
random authors (`tests/threats`) refuses every request that goes beyond them.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Effect(NamedTuple):
    """Requests in the fleet's namespace that a controller makes with the permissions of Hortus, for every author."""

    verbs: tuple[str, ...]
    group: str
    resource: str
    """Plural, with a subresource as `shoots/adminkubeconfig`."""
    why: str
    """The reason for which this gives its author nothing that is worth having."""


class Power(NamedTuple):
    """The power that an object of one kind gives its author."""

    trusted: str
    """In a namespace that is trusted."""
    untrusted: str
    """In any other namespace."""
    effects: tuple[Effect, ...] = ()
    """Besides the object, its status and Events in its namespace."""


IN_INVENTORY: Final = (
    Effect(
        ("patch", "delete"),
        "multicluster.x-k8s.io",
        "clusterprofiles",
        "the inventory makes a profile of its own of it, which adds nothing to those of other namespaces",
    ),
    Effect(
        ("patch",),
        "multicluster.x-k8s.io",
        "clusterprofiles/status",
        "the profile reports the state of the cluster",
    ),
)
"""Effects of an object that stands for a cluster."""
