"""ChangeKind: a sort of change, and the expressions by which it is seen in API objects."""

from __future__ import annotations

from typing import Annotated, Final, NamedTuple

from msgspec import Meta

from hortus.kube.objects import Resource
from hortus.schema import AGE, Column, Condition, Fields, Format, Kind, ListMap, kind

GROUP: Final = "fleet.hortus.dev"
VERSION: Final = "v1alpha1"

_Expression = Annotated[str, Meta(min_length=1, max_length=4096)]
_OptionalExpression = Annotated[str, Meta(max_length=4096)]

WANTS: Final = "wants.fleet.hortus.dev/"
"""Prefix of annotations on objects; followed by the name of a ChangeKind. The value is the version for which the
object waits."""
MOVED: Final = "moved.fleet.hortus.dev/"
"""Prefix of annotations on objects; followed by the name of a ChangeKind. The value is the version to which a rollout
moved the object last."""


class ChangedResource(Fields, frozen=True):
    """The kind of the objects in which a change is seen, one object for each cluster and subject."""

    version: Annotated[str, Meta(min_length=1, max_length=63)]
    """API version, such as v1."""
    resource: Annotated[str, Meta(min_length=1, max_length=63)]
    """Plural, such as runtimes."""
    group: Annotated[str, Meta(max_length=253)] = ""
    """API group; empty for the core group."""


class ChangeKindSpec(Fields, frozen=True):
    """CEL expressions over one object, the variable `self`, and the version of a rollout, the variable `to`."""

    resource: ChangedResource
    """The kind of the objects."""
    cluster: _Expression
    """The name of the object's ClusterProfile; empty for an object that belongs to no cluster."""
    subject: _Expression
    """The thing that changes, such as the name of a module."""
    version: _Expression
    """The version of the subject that the object asks its controller for."""
    succeeded: _Expression
    """True when that version is in place and works."""
    wanted: _OptionalExpression = ""
    """The version to which the object moves when it is admitted; empty for none. Left out, it is the value of the
    annotation wants.fleet.hortus.dev/NAME, NAME being that of the ChangeKind."""
    failed: _OptionalExpression = ""
    """True when that version failed, whether or not it is tried again. Left out, only deadlines fail."""
    message: _OptionalExpression = ""
    """The failure, in words for people; never a credential."""
    patch: _OptionalExpression = ""
    """A merge patch, or a list of JSON patch operations, that sets the object to the version `to`. With it,
    `hortus rollout start` can change the objects; without it, their controllers follow the PlacementDecisions."""


class ChangeKindStatus(Fields, frozen=True):
    """State of the ChangeKind."""

    observed_generation: Annotated[int, Meta(ge=0), Format("int64")] | None = None
    """The generation that the conditions report."""
    conditions: Annotated[tuple[Condition, ...], ListMap("type")] = ()
    """Ready: the expressions compile and the kind of the objects is served."""


@kind(
    group=GROUP,
    version=VERSION,
    scope="Cluster",
    status=True,
    columns=(
        Column("RESOURCE", ".spec.resource.resource"),
        Column("READY", '.status.conditions[?(@.type=="Ready")].status'),
        Column("REASON", '.status.conditions[?(@.type=="Ready")].reason', priority=1),
        AGE,
    ),
)
class ChangeKind(Kind, frozen=True):
    """A sort of change and the way it is seen in API objects, so that rollouts need to know no domain."""

    spec: ChangeKindSpec
    """The expressions by which the change is seen."""
    status: ChangeKindStatus = ChangeKindStatus()
    """State of the ChangeKind."""


CHANGE_KINDS: Final = Resource(GROUP, VERSION, "changekinds", "ChangeKind", namespaced=False)


class Proposal(NamedTuple):
    """A change that a cluster is about to make."""

    kind: str
    """Name of the ChangeKind."""
    subject: str
    to: str
    """The version."""
