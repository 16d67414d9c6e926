"""Seed: a cluster that hosts control planes, as far as the operator of gardenlets reads it."""

from __future__ import annotations

from typing import Final

from hortus.domains.garden.kinds.common import GardenCondition
from hortus.kube.objects import Resource
from hortus.schema import Fields, Kind, kind


class SeedGardener(Fields, frozen=True):
    """The gardenlet that reports for the Seed."""

    name: str = ""
    """Name of its pod."""
    version: str = ""
    """Its version."""


class RegisteredSeedStatus(Fields, frozen=True):
    """The Seed as its gardenlet reports it."""

    conditions: tuple[GardenCondition, ...] = ()
    """GardenletReady and others."""
    gardener: SeedGardener = SeedGardener()
    """The gardenlet that reports."""
    cluster_identity: str = ""
    """Identity of the cluster."""
    client_certificate_expiration_timestamp: str = ""
    """Time at which the gardenlet's certificate for the garden expires."""


@kind(group="core.gardener.cloud", version="v1beta1", name="Seed", scope="Cluster", status=True)
class RegisteredSeed(Kind, frozen=True):
    """A cluster that hosts control planes."""

    status: RegisteredSeedStatus = RegisteredSeedStatus()
    """The Seed as its gardenlet reports it."""


GARDENLET_READY: Final = "GardenletReady"
SEEDS: Final = Resource("core.gardener.cloud", "v1beta1", "seeds", "Seed", namespaced=False)
SHOOTS: Final = Resource("core.gardener.cloud", "v1beta1", "shoots", "Shoot")
