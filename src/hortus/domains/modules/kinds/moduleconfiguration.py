"""ModuleConfiguration: the operators' configuration of modules, which takes precedence over the users' of clusters."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

from hortus.domains.modules.kinds.shared import CHANNEL_PATTERN, Selector
from hortus.kube.objects import Object, Resource
from hortus.schema import AGE, Column, Fields, Kind, ListMap, PreserveUnknown, kind

GROUP: Final = "fleet.hortus.dev"
VERSION: Final = "v1alpha1"


class ConfiguredResource(Fields, frozen=True):
    """The fields of a module's default resource that users of clusters cannot change."""

    spec: Annotated[Object, PreserveUnknown()] = {}
    """Fields of its spec. Those that are not named here are the users'."""


class ConfiguredModule(Fields, frozen=True):
    """The configuration of one module."""

    name: Annotated[str, Meta(min_length=1, max_length=64)]
    """Name of the module."""
    required: bool = False
    """Clusters have the module, whether their users list it or not."""
    channel: Annotated[str, Meta(min_length=3, max_length=32, pattern=CHANNEL_PATTERN)] | None = None
    """The channel of the module, in place of the users' choice."""
    resource: ConfiguredResource | None = None
    """The fields of the default resource that users cannot change."""


class ModuleConfigurationSpec(Fields, frozen=True):
    """The configuration, and the clusters that it is for."""

    kyma_selector: Selector | None = None
    """Labels of the Kymas of these clusters; all of the namespace without it."""
    priority: int = 0
    """Decides where two configurations name the same field: the higher one counts, of equal ones the later name."""
    modules: Annotated[tuple[ConfiguredModule, ...], ListMap("name")] = ()
    """The modules."""


@kind(
    group=GROUP,
    version=VERSION,
    columns=(
        Column("Priority", ".spec.priority", type="integer"),
        Column("Modules", ".spec.modules[*].name"),
        AGE,
    ),
)
class ModuleConfiguration(Kind, frozen=True):
    """The operators' configuration of modules on the clusters of a namespace's Kymas."""

    spec: ModuleConfigurationSpec
    """The configuration, and the clusters that it is for."""


MODULE_CONFIGURATIONS: Final = Resource(GROUP, VERSION, "moduleconfigurations", "ModuleConfiguration")
