"""Kyma: the modules of one cluster, and the channel that their versions come from."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

from msgspec import Meta

from hortus.domains.modules.kinds.shared import (
    CHANNEL_PATTERN,
    OperationRecord,
    PolicyField,
    StateField,
    former_kind,
)
from hortus.domains.modules.names import GROUP, VERSION, CustomResourcePolicy, State
from hortus.kube.objects import Resource
from hortus.schema import Column, Condition, Default, Fields, Format, Kind, ListMap, kind

_Channel = Annotated[str, Meta(min_length=3, max_length=32, pattern=CHANNEL_PATTERN)]
_COLUMNS = (Column("State", ".status.state"), Column("Age", ".metadata.creationTimestamp", "date"))


class Module(Fields, frozen=True):
    """A module that the cluster shall have."""

    __schema__: ClassVar[dict[str, Any]] = {"required": ["managed", "name"]}

    name: str
    """Name of the module: that of its ModuleReleaseMeta."""
    managed: bool = True
    """False leaves the module installed and hands its resources to their user."""
    channel: _Channel | None = None
    """The channel of this module, in place of the Kyma's."""
    custom_resource_policy: PolicyField = CustomResourcePolicy.CREATE_AND_DELETE.value
    """CreateAndDelete creates the module's default resource with it and deletes it with it; Ignore does neither."""
    controller: str = ""
    """Has no effect."""
    remote_module_template_ref: str = ""
    """Deprecated; has no effect."""


class KymaSpec(Fields, frozen=True):
    """The modules of the cluster."""

    __schema__: ClassVar[dict[str, Any]] = {"required": ["channel"]}

    channel: _Channel = ""
    """The channel that decides the versions of modules."""
    modules: Annotated[tuple[Module, ...], ListMap("name")] = ()
    """The modules."""
    skip_maintenance_windows: bool = False
    """Upgrades modules that need a downtime at once, outside maintenance windows too."""


class TrackedMetadata(Fields, frozen=True):
    """The identity of a tracked object."""

    name: str = ""
    """Its name."""
    namespace: str = ""
    """Its namespace."""
    generation: Annotated[int, Format("int64")] = 0
    """Its generation when it was last seen."""


class TrackedObject(Fields, frozen=True):
    """An object that belongs to the module."""

    api_version: str = ""
    """API version of the object."""
    kind: str = ""
    """Kind of the object."""
    metadata: TrackedMetadata = TrackedMetadata()
    """Identity of the object."""


class ModuleStatus(Fields, frozen=True):
    """A module as observed."""

    name: str
    """Name of the module."""
    state: StateField
    """State of the module."""
    fqdn: str = ""
    """Deprecated: the same as ocmComponentName."""
    ocm_component_name: str = ""
    """Name of the module's component in the registry."""
    channel: str = ""
    """The channel that the version comes from."""
    version: str = ""
    """The installed version."""
    message: str = ""
    """The cause of the state, for people."""
    maintenance: Annotated[bool, Default(False)] = False
    """True while an upgrade waits for a maintenance window."""
    manifest: TrackedObject | None = None
    """The Manifest that installs the module."""
    resource: TrackedObject | None = None
    """The default resource of the module."""
    template: TrackedObject | None = None
    """The ModuleTemplate of the installed version."""


class KymaStatus(Fields, frozen=True):
    """The modules as observed."""

    state: StateField = State.NONE.value
    """Ready, Processing, Warning, Error or Deleting."""
    active_channel: str = ""
    """The channel at the last time that all modules were installed."""
    conditions: Annotated[tuple[Condition, ...], ListMap("type")] = ()
    """CRDsSync, Modules, ModuleCatalog, SKRWebhook and SKRImagePullSecretSync."""
    last_operation: OperationRecord | None = None
    """The last step of the controller."""
    modules: tuple[ModuleStatus, ...] = ()
    """The modules."""


class FormerSync(Fields, frozen=True):
    """Settings of the copy in the cluster, which have no effect any more."""

    enabled: Annotated[bool, Default(False)] = False
    """Has no effect."""
    strategy: str = "secret"
    """Has no effect."""
    namespace: str = ""
    """Has no effect."""
    no_module_copy: bool = True
    """Has no effect."""
    module_catalog: bool = True
    """Has no effect."""


class FormerKymaSpec(Fields, frozen=True):
    """The modules of the cluster."""

    __schema__: ClassVar[dict[str, Any]] = {"required": ["channel"]}

    channel: _Channel = ""
    """The channel that decides the versions of modules."""
    modules: tuple[Module, ...] = ()
    """The modules."""
    skip_maintenance_windows: bool = False
    """Upgrades modules that need a downtime at once, outside maintenance windows too."""
    sync: FormerSync | None = None
    """Settings of the copy in the cluster."""


class FormerModuleStatus(Fields, frozen=True):
    """A module as observed."""

    name: str
    """Name of the module."""
    state: StateField
    """State of the module."""
    fqdn: str = ""
    """Name of the module's component in the registry."""
    channel: str = ""
    """The channel that the version comes from."""
    version: str = ""
    """The installed version."""
    message: str = ""
    """The cause of the state, for people."""
    manifest: TrackedObject | None = None
    """The Manifest that installs the module."""
    resource: TrackedObject | None = None
    """The default resource of the module."""
    template: TrackedObject | None = None
    """The ModuleTemplate of the installed version."""


class FormerKymaStatus(KymaStatus, frozen=True):
    """The modules as observed."""

    modules: tuple[FormerModuleStatus, ...] = ()  # type: ignore[assignment]
    """The modules."""


@former_kind("Kyma", columns=_COLUMNS)
class FormerKyma(Kind, frozen=True):
    """The modules of one cluster."""

    spec: FormerKymaSpec = FormerKymaSpec()
    """The modules of the cluster."""
    status: FormerKymaStatus = FormerKymaStatus()
    """The modules as observed."""


@kind(group=GROUP, version=VERSION, status=True, former=(FormerKyma,), columns=_COLUMNS)
class Kyma(Kind, frozen=True):
    """The modules of one cluster."""

    spec: KymaSpec = KymaSpec()
    """The modules of the cluster."""
    status: KymaStatus = KymaStatus()
    """The modules as observed."""


KYMAS: Final = Resource(GROUP, VERSION, "kymas", "Kyma")
