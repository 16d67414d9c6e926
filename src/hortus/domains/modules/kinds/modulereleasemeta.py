"""ModuleReleaseMeta: the versions of a module in each channel."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

from msgspec import Meta

from hortus.domains.modules.kinds.shared import CHANNEL_PATTERN, MODULE_NAME_PATTERN, VERSION_PATTERN, Selector
from hortus.domains.modules.names import GROUP, VERSION
from hortus.kube.objects import Resource
from hortus.schema import Column, Default, Fields, Kind, ListMap, ValidationRule, kind

_NUMBER = r"(0|[1-9]\d*)"
_PRERELEASE = r"(?:0|[1-9]\d*|\d*[a-zA-Z-][0-9a-zA-Z-]*)"
_BUILD = r"[0-9a-zA-Z-]+"
SEMVER_PATTERN: Final = (
    rf"^{_NUMBER}\.{_NUMBER}\.{_NUMBER}"
    rf"(?:-({_PRERELEASE}(?:\.{_PRERELEASE})*))?(?:\+({_BUILD}(?:\.{_BUILD})*))?$"
)
"""The expression that semver.org suggests."""
_WORD = "[a-z][-a-z0-9]*"
_SEGMENT = "[a-z][-a-z0-9_]*"
COMPONENT_PATTERN: Final = rf"^{_WORD}([.]{_WORD})*[.][a-z]{{2,}}(/{_SEGMENT}([.]{_SEGMENT})*)+$"


class ChannelVersion(Fields, frozen=True):
    """The version of the module in a channel."""

    channel: Annotated[str, Meta(min_length=3, max_length=32, pattern=CHANNEL_PATTERN)]
    """The channel."""
    version: Annotated[str, Meta(max_length=32, pattern=VERSION_PATTERN)]
    """The version."""


class MandatoryVersion(Fields, frozen=True):
    """The version of a module that every cluster has."""

    version: Annotated[str, Meta(min_length=1, pattern=SEMVER_PATTERN)]
    """The version."""


class ModuleReleaseMetaSpec(Fields, frozen=True):
    """The versions of the module."""

    __rules__ = (
        ValidationRule(
            "(has(self.mandatory) && !has(self.channels)) || (!has(self.mandatory) && has(self.channels))",
            message="exactly one of 'mandatory' or 'channels' must be specified",
        ),
    )
    __schema__: ClassVar[dict[str, Any]] = {"required": ["moduleName"]}

    module_name: Annotated[str, Meta(max_length=64, pattern=MODULE_NAME_PATTERN)] = ""
    """Name of the module, which is that of this object."""
    ocm_component_name: Annotated[str, Meta(max_length=255, pattern=COMPONENT_PATTERN)] = ""
    """Name of the module's component in the registry."""
    channels: Annotated[tuple[ChannelVersion, ...], ListMap("channel")] = ()
    """The version in each channel."""
    mandatory: MandatoryVersion | None = None
    """The version that every cluster has."""
    beta: Annotated[bool, Default(False)] = False
    """Deprecated; has no effect: labels of ModuleTemplates decide."""
    internal: Annotated[bool, Default(False)] = False
    """Deprecated; has no effect: labels of ModuleTemplates decide."""
    kyma_selector: Selector | None = None
    """Labels of the Kymas that may use a restricted module. Experimental."""


@kind(
    group=GROUP,
    version=VERSION,
    short_names=("mrm",),
    columns=(Column("Age", ".metadata.creationTimestamp", "date"),),
)
class ModuleReleaseMeta(Kind, frozen=True):
    """The versions of a module in each channel."""

    spec: ModuleReleaseMetaSpec = ModuleReleaseMetaSpec()
    """The versions of the module."""


MODULE_RELEASE_METAS: Final = Resource(GROUP, VERSION, "modulereleasemetas", "ModuleReleaseMeta")
