"""Inventory: one ClusterProfile for each cluster of the fleet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hortus.domains import Domain

if TYPE_CHECKING:
    from hortus.engine.flags import Flag
    from hortus.kube.objects import Resource
    from hortus.schema import Kind


class _Inventory(Domain):
    def kinds(self) -> Mapping[Resource, type[Kind]]:
        from hortus.domains.inventory.types import CLUSTER_PROFILES, ClusterProfile

        return {CLUSTER_PROFILES: ClusterProfile}

    def flags(self) -> Sequence[Flag]:
        from hortus.engine.flags import Flag

        return (
            Flag("inventory", "bool", False, "Keep a ClusterProfile for each cluster. Needs their CRD."),
            Flag("fleet-namespace", "string", "fleet", "Namespace of ClusterProfiles, policies and rollouts."),
        )

    def served_by(self) -> str:
        return "inventory"

    def unserved_reason(self, values: Mapping[str, Any]) -> str:
        return "" if values["inventory"] else "--inventory is off (in the chart config.inventory)"


DOMAIN = _Inventory(__name__)
