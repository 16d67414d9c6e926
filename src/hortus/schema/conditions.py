"""metav1.Condition as a struct, with the limits of its schema (KEP-1623)."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hortus.schema.kind import Fields
from hortus.schema.markers import Format

_DNS = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"


class Condition(Fields, frozen=True):
    """One aspect of the state of an object."""

    type: Annotated[str, Meta(max_length=316, pattern=rf"^({_DNS}/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$")]
    """The aspect, in CamelCase, with an optional DNS prefix."""
    status: Literal["True", "False", "Unknown"]
    """True if the aspect holds."""
    reason: Annotated[str, Meta(min_length=1, max_length=1024, pattern="^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")]
    """The cause, as one CamelCase word for programs."""
    message: Annotated[str, Meta(max_length=32768)]
    """The cause, in a sentence for people; may be empty."""
    last_transition_time: Annotated[str, Format("date-time")]
    """When the status last changed."""
    observed_generation: Annotated[int, Meta(ge=0), Format("int64")] | None = None
    """The generation of the object that this condition describes."""
