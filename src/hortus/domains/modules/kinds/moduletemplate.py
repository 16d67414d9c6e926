"""ModuleTemplate: one version of a module."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

from msgspec import Meta

from hortus.domains.modules.kinds.shared import (
    MODULE_NAME_PATTERN,
    VERSION_PATTERN,
    AssociatedKind,
    EmbeddedObject,
    ModuleManager,
    StateField,
    former_kind,
)
from hortus.domains.modules.names import GROUP, VERSION
from hortus.kube.objects import Object, Resource
from hortus.schema import Column, Fields, Format, Kind, ListMap, PreserveUnknown, Values, kind

_Channel = Annotated[str, Meta(max_length=32, pattern="^$|^[a-z]{3,}$")]
RAW_MANIFEST: Final = "rawManifest"
"""The resource that links to the objects of the module."""
_COLUMNS = (Column("Age", ".metadata.creationTimestamp", "date"),)


class ModuleIcon(Fields, frozen=True):
    """An icon of the module."""

    name: str
    """Name of the icon."""
    link: str
    """URL of the icon."""


class ModuleInfo(Fields, frozen=True):
    """Facts about the module, for people."""

    documentation: str
    """URL of the documentation."""
    repository: str
    """URL of the source code."""
    icons: Annotated[tuple[ModuleIcon, ...], ListMap("name")] = ()
    """Icons of the module."""


class ModuleResource(Fields, frozen=True):
    """A file of the module."""

    name: str
    """Name of the file; rawManifest is that of the module's objects."""
    link: Annotated[str, Format("uri")]
    """URL of the file."""


class CustomStateCheck(Fields, frozen=True):
    """Deprecated; has no effect."""

    json_path: str
    """Has no effect."""
    value: str
    """Has no effect."""
    mapped_state: StateField
    """Has no effect."""


class FormerModuleTemplateSpec(Fields, frozen=True):
    """The version."""

    descriptor: Annotated[Object, PreserveUnknown()]
    """Has no effect: the component descriptor is read from the registry."""
    target: Annotated[str, Values("control-plane", "remote")]
    """Has no effect."""
    channel: _Channel = ""
    """Deprecated: ModuleReleaseMetas assign channels."""
    mandatory: bool = False
    """Installs the module on every cluster."""
    requires_downtime: bool = False
    """An upgrade to this version waits for a maintenance window."""
    data: EmbeddedObject | None = None
    """The default resource of the module."""
    custom_state_check: tuple[CustomStateCheck, ...] = ()
    """Deprecated; has no effect."""


class ModuleTemplateSpec(Fields, frozen=True):
    """The version."""

    __schema__: ClassVar[dict[str, Any]] = {"required": ["descriptor"]}

    descriptor: Annotated[Object, PreserveUnknown()] = {}
    """Has no effect: the component descriptor is read from the registry."""
    module_name: Annotated[str, Meta(max_length=64, pattern=MODULE_NAME_PATTERN)] = ""
    """Name of the module."""
    version: Annotated[str, Meta(max_length=32, pattern=VERSION_PATTERN)] = ""
    """The version, such as 1.2.3."""
    channel: _Channel = ""
    """Deprecated: ModuleReleaseMetas assign channels."""
    mandatory: bool = False
    """Installs the module on every cluster."""
    requires_downtime: bool = False
    """An upgrade to this version waits for a maintenance window."""
    data: EmbeddedObject | None = None
    """The default resource of the module."""
    info: ModuleInfo | None = None
    """Facts about the module, for people."""
    resources: Annotated[tuple[ModuleResource, ...], ListMap("name")] = ()
    """Files of the module."""
    associated_resources: tuple[AssociatedKind, ...] = ()
    """Kinds whose objects a user should delete before the module; for information."""
    manager: ModuleManager | None = None
    """The workload whose state shows that the module is installed."""
    custom_state_check: tuple[CustomStateCheck, ...] = ()
    """Deprecated; has no effect."""


@former_kind("ModuleTemplate", columns=_COLUMNS, status=False, short_names=("mt",))
class FormerModuleTemplate(Kind, frozen=True):
    """One version of a module."""

    spec: FormerModuleTemplateSpec | None = None
    """The version."""


@kind(
    group=GROUP,
    version=VERSION,
    short_names=("mt",),
    former=(FormerModuleTemplate,),
    columns=_COLUMNS,
)
class ModuleTemplate(Kind, frozen=True):
    """One version of a module. Its name is that of the module and the version, with a dash between."""

    spec: ModuleTemplateSpec = ModuleTemplateSpec()
    """The version."""


MODULE_TEMPLATES: Final = Resource(GROUP, VERSION, "moduletemplates", "ModuleTemplate")
