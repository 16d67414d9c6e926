"""Parts that several kinds of cluster stacks have."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from hortus.schema import AGE, Atomic, Column, Default, Fields, Format

Flag = Annotated[bool, Default(value=False)]
"""A boolean that the API server sets to False where it is missing."""

REASON_AND_MESSAGE: Final = tuple(
    Column(name.title(), f".status.conditions[?(@.type=='Ready')].{name}") for name in ("reason", "message")
)
READY_COLUMNS: Final = (Column("Ready", ".status.ready", "boolean"), AGE, *REASON_AND_MESSAGE)


class SeverityCondition(Fields, frozen=True):
    """One aspect of the state of an object, in the form of Cluster API's v1beta1."""

    type: str
    """The aspect, in CamelCase."""
    status: str
    """True, False or Unknown."""
    last_transition_time: Annotated[str, Format("date-time")]
    """When status, reason, severity or message last changed."""
    severity: str = ""
    """Error, Warning or Info while the status is False."""
    reason: str = ""
    """The cause, as one CamelCase word for programs."""
    message: str = ""
    """The cause, in a sentence for people."""


class ProvisionStatus(Fields, frozen=True):
    """Node images in a cloud as observed."""

    ready: Flag = False
    """True once the cloud has every node image that is asked for."""
    conditions: tuple[SeverityCondition, ...] = ()
    """Ready, which sums up the others."""


class ReferencedObject(Fields, frozen=True):
    """A core/v1 ObjectReference: an object that this one names."""

    api_version: str = ""
    """API version of the object."""
    kind: str = ""
    """Kind of the object."""
    name: str = ""
    """Name of the object."""
    namespace: str = ""
    """Namespace of the object."""
    uid: str = ""
    """UID of the object."""
    resource_version: str = ""
    """The version of the object that is meant."""
    field_path: str = ""
    """A part of the object, as a JSON path."""


ObjectRef = Annotated[ReferencedObject | None, Atomic()]


class ManagedResource(Fields, frozen=True):
    """An object that a release or an addon brings, and the result of its last apply."""

    group: str = ""
    """API group of the object."""
    version: str = ""
    """Version of the group."""
    kind: str = ""
    """Kind of the object."""
    namespace: str = ""
    """Namespace of the object as its chart writes it."""
    name: str = ""
    """Name of the object."""
    status: str = ""
    """synced or not-synced."""
    error: str = ""
    """The failure of the last apply."""


class IdentityReference(Fields, frozen=True):
    """The identity with which OpenStack is called."""

    kind: Annotated[str, Meta(min_length=1)]
    """Kind of the identity. Secrets alone are read, whatever it is."""
    name: str
    """Name of the Secret, which holds clouds.yaml; it is in the namespace of this object."""
