"""The rows of clusters in `hortus top` and `hortus problems`: those that no other row shows.

A cluster with a Runtime or a GardenerCluster has a row of theirs. It has one of its profile as well while it does not
answer, its control plane is ill or it shows the identity of another one, which the other row does not report; not
before it was reached for the first time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from hortus.domains.clusters.types import RUNTIMES
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.domains.inventory.types import CLUSTER_PROFILES, MANAGER, ClusterProfile, ProfileCondition, Property
from hortus.domains.inventory.views import ClusterRow, row
from hortus.engine import Actor, read
from hortus.engine.fleet import FleetKind, FleetObjects, FleetRow, FleetView, RowStanding, seconds_of
from hortus.kube.objects import Object

_ROWED: Final = (f"{RUNTIMES.kind}/", f"{GARDENER_CLUSTERS.kind}/")
"""Beginnings of sources that have a row of their own."""
_STANDINGS: Final = {
    "NoAccess": RowStanding.FAILED,
    "Unreachable": RowStanding.FAILED,
    "Unhealthy": RowStanding.FAILED,
    "Disputed": RowStanding.FAILED,
    "Pending": RowStanding.WAITING,
    "Connecting": RowStanding.WAITING,
    "Leaving": RowStanding.WAITING,
}
"""By the state of a cluster; the others are well."""
_CONDITIONS: Final = {
    "NoAccess": ProfileCondition.CREDENTIALS_FRESH,
    "Unhealthy": ProfileCondition.CONTROL_PLANE_HEALTHY,
    "Disputed": ProfileCondition.IDENTITY_PROVEN,
}
"""The condition behind a state, where it is not Joined."""


class ProfilePart(NamedTuple):
    """A profile as far as its row shows it."""

    namespace: str
    row: ClusterRow
    reason: str
    since: str

    @classmethod
    def of(cls, obj: Object) -> ProfilePart:
        """Raises NotReadable."""
        return cls.from_profile(read(ClusterProfile, obj))

    @classmethod
    def from_profile(cls, profile: ClusterProfile) -> ProfilePart:
        shown = row(profile)
        kind = _CONDITIONS.get(shown.state, ProfileCondition.JOINED)
        found = next((one for one in profile.status.conditions if one.type == kind), None)
        since = profile.metadata.creation_timestamp or "" if found is None else found.last_transition_time
        return cls(profile.metadata.namespace, shown, "" if found is None else found.reason, since)


_PROFILES: Final = FleetKind(CLUSTER_PROFILES, ProfilePart.of)


class ProfileSubject(NamedTuple):
    part: ProfilePart


class ProfileRows(FleetView[ProfileSubject]):
    """One row for each cluster that no Runtime or GardenerCluster shows, or that is ill."""

    kinds = (_PROFILES,)
    page = "clusters"
    order = 2

    def subjects(self, objects: FleetObjects) -> Iterable[ProfileSubject]:
        return (ProfileSubject(part) for part in objects.all(_PROFILES, ProfilePart) if _is_shown(part.row))

    def row(self, subject: ProfileSubject) -> FleetRow:
        part, shown = subject.part, subject.part.row
        standing = _STANDINGS.get(shown.state, RowStanding.WELL)
        failed = standing is RowStanding.FAILED
        return FleetRow(
            kind=CLUSTER_PROFILES.kind,
            namespace=part.namespace,
            name=shown.name,
            standing=standing,
            state=shown.state,
            reason=part.reason,
            message=shown.why,
            owner=_owner(shown) if failed else Actor.NOBODY,
            step=f"`hortus clusters {shown.name} -o yaml`" if failed else "",
            since=seconds_of(part.since),
            provider=shown.provider,
            region=shown.region,
            version=shown.version,
            labels=shown.labels,
        )


def _is_shown(shown: ClusterRow) -> bool:
    if not any(source.startswith(_ROWED) for source in shown.sources):
        return True
    return shown.state == "Disputed" or (
        shown.state in ("Unreachable", "Unhealthy") and Property.UID in shown.properties
    )


def _owner(shown: ClusterRow) -> Actor:
    """The control plane of a Shoot is the garden's; a profile of another manager is that manager's."""
    if shown.manager != MANAGER or shown.state == "Disputed":
        return Actor.OPERATOR
    of_garden = any(source.startswith(_ROWED) for source in shown.sources)
    return Actor.PROVIDER if of_garden and shown.state == "Unhealthy" else Actor.USER
