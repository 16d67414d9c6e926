"""The ClusterProfile in the dashboard's page of a cluster: version, nodes and zones."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from hortus.domains.inventory.registry import parse_sources
from hortus.domains.inventory.rows import ProfilePart, ProfileRows, ProfileSubject
from hortus.domains.inventory.types import CLUSTER_PROFILES, ClusterProfile
from hortus.engine.fleet import FleetKind, FleetObjects, reading
from hortus.engine.pages import ClusterNames, ClusterPart, TreeNode, node_of

_PROFILES: Final = FleetKind(CLUSTER_PROFILES, reading(ClusterProfile))


class ProfileNodes(ClusterPart):
    """The ClusterProfile of a cluster. It may be of another namespace than the cluster's other objects."""

    kinds = (_PROFILES,)
    order = 20

    def names(self, objects: FleetObjects, cluster: ClusterNames) -> Iterable[str]:
        for profile in _profiles(objects, cluster):
            yield profile.metadata.name
            yield from (origin.key.name for origin, _ in parse_sources(profile.metadata.annotations))

    def nodes(self, objects: FleetObjects, cluster: ClusterNames, now: float) -> Iterable[TreeNode]:
        for profile in _profiles(objects, cluster):
            part = ProfilePart.from_profile(profile)
            node = node_of(
                ProfileRows().row(ProfileSubject(part)), page=ProfileRows.page, conditions=profile.status.conditions
            )
            shown = part.row
            facts = [f"Kubernetes {shown.version}" if shown.version else "", _nodes(shown.nodes), _zones(shown.zones)]
            note = ", ".join(fact for fact in facts if fact)
            yield replace(node, note=f"{node.note}; {note}" if node.note and note else node.note or note)


def _profiles(objects: FleetObjects, cluster: ClusterNames) -> Iterable[ClusterProfile]:
    for profile in objects.all(_PROFILES, ClusterProfile):
        named = profile.metadata.name in cluster.names
        origins = [origin for origin, _ in parse_sources(profile.metadata.annotations)]
        # Names of origins count where there are any: another cluster may have the name of this profile elsewhere.
        ours = not origins or profile.metadata.namespace == cluster.namespace
        if any(cluster.has(*origin.key) for origin in origins) or (named and ours):
            yield profile


def _nodes(number: str) -> str:
    return f"{number} node{'' if number == '1' else 's'}" if number else ""


def _zones(zones: str) -> str:
    return f"zones {zones}" if zones else ""
