"""The kinds of Gardener that extension controllers read and write."""

from __future__ import annotations

from hortus.domains.garden.kinds.common import GardenCondition, GardenError, GardenOperation
from hortus.domains.garden.kinds.extension import (
    EXTENSIONS,
    GardenExtension,
    GardenExtensionSpec,
    GardenExtensionStatus,
    ProviderNotes,
)
from hortus.domains.garden.kinds.gardenlet import (
    GARDENLETS,
    Gardenlet,
    GardenletCondition,
    GardenletOperation,
    GardenletSpec,
    GardenletStatus,
)
from hortus.domains.garden.kinds.infrastructure import INFRASTRUCTURES, ShootInfrastructure, ShootInfrastructureStatus
from hortus.domains.garden.kinds.managedresource import MANAGED_RESOURCES, DeployedResources
from hortus.domains.garden.kinds.seed import SEEDS, RegisteredSeed
from hortus.domains.garden.kinds.seedcluster import SEED_CLUSTERS, GardenSeed, GardenShoot, SeedCluster

__all__ = [
    "EXTENSIONS",
    "GARDENLETS",
    "INFRASTRUCTURES",
    "MANAGED_RESOURCES",
    "SEEDS",
    "SEED_CLUSTERS",
    "DeployedResources",
    "GardenCondition",
    "GardenError",
    "GardenExtension",
    "GardenExtensionSpec",
    "GardenExtensionStatus",
    "GardenOperation",
    "GardenSeed",
    "GardenShoot",
    "Gardenlet",
    "GardenletCondition",
    "GardenletOperation",
    "GardenletSpec",
    "GardenletStatus",
    "ProviderNotes",
    "RegisteredSeed",
    "SeedCluster",
    "ShootInfrastructure",
    "ShootInfrastructureStatus",
]
