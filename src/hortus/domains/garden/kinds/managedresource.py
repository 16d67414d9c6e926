"""ManagedResource: objects that gardener-resource-manager applies, in the seed or in the Shoot."""

from __future__ import annotations

from typing import Final

import msgspec

from hortus.domains.garden.kinds.common import VERSION, GardenCondition
from hortus.kube.objects import Resource
from hortus.schema import Fields, Kind, kind

RESOURCES_GROUP: Final = "resources.gardener.cloud"


class LocalSecret(Fields, frozen=True):
    """A Secret of the same namespace."""

    name: str = ""
    """Name."""


class DeployedResourcesSpec(Fields, frozen=True):
    """The Secrets with the objects, and the cluster that they are for."""

    secret_refs: tuple[LocalSecret, ...] = ()
    """Secrets with the objects as YAML."""
    class_name: str = msgspec.field(default="", name="class")
    """seed for objects of the seed; empty for those of the Shoot."""
    keep_objects: bool = False
    """True where the objects outlive the ManagedResource."""


class DeployedResourcesStatus(Fields, frozen=True):
    """The state of the objects."""

    conditions: tuple[GardenCondition, ...] = ()
    """ResourcesApplied, ResourcesHealthy and ResourcesProgressing."""
    observed_generation: int = 0
    """Generation that was applied."""


@kind(group=RESOURCES_GROUP, version=VERSION, name="ManagedResource", status=True)
class DeployedResources(Kind, frozen=True):
    """Objects that gardener-resource-manager applies."""

    spec: DeployedResourcesSpec = DeployedResourcesSpec()
    """The Secrets with the objects, and the cluster that they are for."""
    status: DeployedResourcesStatus = DeployedResourcesStatus()
    """The state of the objects."""


MANAGED_RESOURCES: Final = Resource(RESOURCES_GROUP, VERSION, "managedresources", "ManagedResource")
