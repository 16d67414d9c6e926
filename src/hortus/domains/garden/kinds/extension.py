"""Extension: the wish of a Shoot for one extension, as gardenlet puts it into the Shoot's namespace of the seed."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from hortus.domains.garden.kinds.common import (
    EXTENSIONS_GROUP,
    VERSION,
    GardenCondition,
    GardenError,
    GardenOperation,
)
from hortus.kube.objects import Resource
from hortus.schema import Fields, Kind, PreserveUnknown, kind


class GardenExtensionSpec(Fields, frozen=True):
    """The type of an extension and its configuration."""

    type: str
    """Type of the extension, by which a controller knows its own."""
    class_name: str = msgspec.field(default="", name="class")
    """shoot, seed or garden; empty is shoot."""
    provider_config: Annotated[dict[str, Any] | None, PreserveUnknown()] = None
    """Configuration, as the Shoot has it."""


class ProviderNotes(Fields, frozen=True):
    """Notes of our controllers for themselves, which survive a restart."""

    dependencies: str = ""
    """Digest of the facts outside of the Extension that its objects were made from."""
    managed_resources: tuple[str, ...] = ()
    """Names of the ManagedResources that the last operation left."""


class GardenExtensionStatus(Fields, frozen=True):
    """The last operation of an extension, and its health."""

    observed_generation: int = 0
    """Generation that the last operation was carried out for."""
    last_operation: GardenOperation | None = None
    """The operation that is carried out, or was last."""
    last_error: GardenError | None = None
    """Its error; absent after a success."""
    conditions: tuple[GardenCondition, ...] = ()
    """Health of the objects of the extension."""
    state: Annotated[dict[str, Any] | None, PreserveUnknown()] = None
    """Facts that a control plane takes along when it moves to another seed."""
    provider_status: ProviderNotes | None = None
    """Notes of the controller."""


@kind(group=EXTENSIONS_GROUP, version=VERSION, name="Extension", status=True)
class GardenExtension(Kind, frozen=True):
    """The wish of a Shoot for one extension."""

    spec: GardenExtensionSpec
    """The type of the extension and its configuration."""
    status: GardenExtensionStatus = GardenExtensionStatus()
    """The last operation, and health."""


EXTENSIONS: Final = Resource(EXTENSIONS_GROUP, VERSION, "extensions", "Extension")
