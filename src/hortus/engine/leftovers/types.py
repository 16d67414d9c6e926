"""Leftover: the record of something that was released without being seen to be gone.

The recorder of this package writes the spec; the leftovers domain looks at the items and writes the status; a person
writes `spec.acknowledgement`.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta

from hortus.kube.objects import Resource
from hortus.schema import AGE, Column, Condition, Fields, Format, Kind, ListMap, ValidationRule, kind

GROUP: Final = "fleet.hortus.dev"
VERSION: Final = "v1alpha1"

MOST_ITEMS: Final = 200
"""Items of one Leftover; what is more becomes another Leftover. An item takes 2 KiB at most."""
LONGEST_TEXT: Final = 1000
"""Characters of a message: a part of it may come from an untrusted server."""

_Word = Annotated[str, Meta(max_length=253)]
_Text = Annotated[str, Meta(max_length=LONGEST_TEXT)]
_Time = Annotated[str, Format("date-time")]
_ItemId = Annotated[str, Meta(min_length=8, max_length=16, pattern="^[0-9a-f]+$")]


class LeftoverSource(Fields, frozen=True):
    """The object whose deletion ended without the items."""

    kind: _Word
    """Its kind."""
    name: _Word
    """Its name."""
    namespace: _Word = ""
    """Its namespace."""
    uid: _Word = ""
    """Its uid."""


class LeftoverCluster(Fields, frozen=True):
    """The cluster that is concerned."""

    name: _Word = ""
    """Name of its GardenerCluster."""
    namespace: _Word = ""
    """Namespace of its GardenerCluster."""
    shoot: _Word = ""
    """Name of its Shoot; empty when that was not known."""
    identity: _Word = ""
    """The uid of its namespace kube-system; empty when that was not known. Another cluster of the same name differs."""
    address: _Text = ""
    """The address of its API server, by which it was reached; empty when that was not known."""
    authority: _Word = ""
    """A checksum of the certificate authorities with which it was reached."""


class LeftoverObject(Fields, frozen=True):
    """An API object."""

    version: Annotated[str, Meta(min_length=1, max_length=63)]
    """API version without the group, such as v1."""
    resource: Annotated[str, Meta(min_length=1, max_length=63)]
    """Plural, such as clusterroles."""
    kind: Annotated[str, Meta(min_length=1, max_length=63)]
    """Its kind."""
    name: Annotated[str, Meta(min_length=1, max_length=253)]
    """Its name."""
    group: _Word = ""
    """API group; empty for the core group."""
    namespace: _Word = ""
    """Its namespace; empty for an object of the whole cluster."""
    uid: _Word = ""
    """Its uid; an object of that name with another uid is not this one. Empty when it was not known."""


class LeftoverItem(Fields, frozen=True):
    """One thing that may be left."""

    id: _ItemId
    """Identifies the item in this Leftover; a checksum of its place and identity."""
    what: Annotated[str, Meta(min_length=1, max_length=600)]
    """The thing, in words."""
    where: Literal["Cluster", "Garden", "Management", "Infrastructure"]
    """In the cluster, in the garden, on the management cluster, or at the provider of the infrastructure."""
    actor: Literal["ClusterOwner", "Operator"]
    """The owner of the next step."""
    object: LeftoverObject | None = None
    """Its identity; none for infrastructure, which no API server of ours shows."""
    look: _Text = ""
    """A command or a way to look whether it is there."""
    remove: _Text = ""
    """A command or a way to remove it."""


class Acknowledgement(Fields, frozen=True):
    """A person knows of the items, and wants no alert about them."""

    by: Annotated[str, Meta(min_length=1, max_length=253)]
    """The person, as the API server names the user."""
    reason: Annotated[str, Meta(min_length=1, max_length=500)]
    """The reason."""
    at: _Time | None = None
    """When."""


class LeftoverSpec(Fields, frozen=True):
    """The things that may be left, and the reason."""

    __rules__ = (ValidationRule("self.source == oldSelf.source", message="source is immutable"),)

    source: LeftoverSource
    """The object whose deletion ended without the items."""
    reason: Annotated[str, Meta(min_length=1, max_length=63, pattern="^[A-Z][A-Za-z]*$")]
    """ClusterUnreachable, ClusterGone, NotPruned, DeletionForced, SecretNotDeleted, ShootNotDeleted or CanaryFailed."""
    items: Annotated[tuple[LeftoverItem, ...], Meta(min_length=1, max_length=MOST_ITEMS), ListMap("id")]
    """The things that may be left."""
    cluster: LeftoverCluster = LeftoverCluster()
    """The cluster that is concerned."""
    message: _Text = ""
    """The obstacle, in words for people; never a credential."""
    since: _Time | None = None
    """When the deletion began that ended without the items."""
    acknowledgement: Acknowledgement | None = None
    """Set by `hortus leftovers acknowledge`: no alert counts this Leftover any more."""


class ItemStatus(Fields, frozen=True):
    """One item as it was seen last."""

    id: _ItemId
    """The item."""
    state: Literal["Unknown", "Left", "Gone"]
    """Unknown: it could not be looked at. Left: it is there. Gone: it was seen to be gone."""
    since: _Time | None = None
    """When this state was seen first."""
    message: _Text = ""
    """The obstacle, or the way in which it was seen."""


class LeftoverStatus(Fields, frozen=True):
    """The items as they were seen last."""

    observed_generation: Annotated[int, Meta(ge=0), Format("int64")] | None = None
    """The generation that the status reports."""
    phase: str = ""
    """Open, Acknowledged or Settled."""
    left: Annotated[int, Meta(ge=0), Format("int32")] = 0
    """Items that were not seen to be gone."""
    items: Annotated[tuple[ItemStatus, ...], Meta(max_length=MOST_ITEMS), ListMap("id")] = ()
    """Each item."""
    settled_at: _Time | None = None
    """When the last item was seen to be gone. The Leftover is deleted some time after."""
    conditions: Annotated[tuple[Condition, ...], ListMap("type")] = ()
    """Settled: all items were seen to be gone."""


@kind(
    group=GROUP,
    version=VERSION,
    status=True,
    columns=(
        Column("CLUSTER", ".spec.cluster.name"),
        Column("SOURCE", ".spec.source.name"),
        Column("REASON", ".spec.reason"),
        Column("PHASE", ".status.phase"),
        Column("LEFT", ".status.left", type="integer"),
        Column("ACKNOWLEDGED-BY", ".spec.acknowledgement.by", priority=1),
        Column("MESSAGE", ".spec.message", priority=1),
        AGE,
    ),
)
class Leftover(Kind, frozen=True):
    """Things that were released without being seen to be gone."""

    spec: LeftoverSpec
    """The things that may be left, and the reason."""
    status: LeftoverStatus = LeftoverStatus()
    """The items as they were seen last."""


class LeftoverPhase:
    """Values of `status.phase`."""

    OPEN: Final = "Open"
    ACKNOWLEDGED: Final = "Acknowledged"
    SETTLED: Final = "Settled"


class LeftoverReason:
    """Reasons of Leftovers."""

    CLUSTER_UNREACHABLE: Final = "ClusterUnreachable"
    """The cluster did not answer until the deadline."""
    CLUSTER_GONE: Final = "ClusterGone"
    """There is no way into the cluster any more."""
    NOT_PRUNED: Final = "NotPruned"
    """The cluster answers, and holds or refuses the deletion of objects."""
    DELETION_FORCED: Final = "DeletionForced"
    """The garden deletes a Shoot without its infrastructure, because a person asked for that."""
    SECRET_NOT_DELETED: Final = "SecretNotDeleted"  # noqa: S105 - a reason
    """A kubeconfig Secret could not be deleted until the deadline."""
    SHOOT_NOT_DELETED: Final = "ShootNotDeleted"
    """The namespace of a Runtime may not delete the Shoot any more."""
    CANARY_FAILED: Final = "CanaryFailed"
    """A run of the canary ended without removing its objects."""


SETTLED: Final = "Settled"
"""The type of the condition."""

LEFTOVERS: Final = Resource(GROUP, VERSION, "leftovers", "Leftover")
