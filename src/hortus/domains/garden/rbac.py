"""RBAC rules of the frame on the seed; each topic adds its own. The roles of the charts come from here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hortus.domains.garden.topics import GardenTopic
from hortus.domains.garden.types import EXTENSIONS, GARDENLETS, MANAGED_RESOURCES, SEED_CLUSTERS
from hortus.engine.deputies import REVIEWS
from hortus.engine.rbac import EVENTS, Permission

FRAME: Final = (
    Permission(EXTENSIONS.group, (EXTENSIONS.plural,), ("list", "watch", "patch"), "carries out operations"),
    Permission(EXTENSIONS.group, (f"{EXTENSIONS.plural}/status",), ("patch",), "reports operations"),
    Permission(SEED_CLUSTERS.group, (SEED_CLUSTERS.plural,), ("list", "watch"), "reads the Shoots"),
    Permission(
        MANAGED_RESOURCES.group,
        (MANAGED_RESOURCES.plural,),
        ("get", "list", "watch", "create", "patch", "delete"),
        "hands objects to gardener-resource-manager",
    ),
    Permission("", ("secrets",), ("list", "watch", "create", "patch", "delete"), "keeps these objects"),
    EVENTS,
    REVIEWS,
)
"""In all namespaces of the seed."""

GARDENLET_OPERATOR: Final = (
    Permission(GARDENLETS.group, (GARDENLETS.plural,), ("list", "watch", "patch"), "follows Gardenlets"),
    Permission(GARDENLETS.group, (f"{GARDENLETS.plural}/status",), ("patch",), "reports their Seeds"),
    Permission("", ("secrets",), ("get", "delete"), "reads the Secrets that Gardenlets name; drops used kubeconfigs"),
    EVENTS,
)
"""In the namespace of Gardenlets on the management cluster."""


def permissions(topics: Iterable[GardenTopic]) -> tuple[Permission, ...]:
    """The permissions of the frame and of topics."""
    return (*FRAME, *(one for topic in topics for one in topic.permissions()))
