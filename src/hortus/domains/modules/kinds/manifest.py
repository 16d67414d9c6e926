"""Manifest: one module on one cluster."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

from hortus.domains.modules.kinds.shared import (
    EmbeddedObject,
    ModuleManager,
    OperationRecord,
    PolicyField,
    Selector,
    StateField,
    former_kind,
)
from hortus.domains.modules.names import GROUP, VERSION, CustomResourcePolicy, State
from hortus.kube.objects import Object, Resource
from hortus.schema import Atomic, Column, Condition, Fields, Kind, ListMap, Nullable, PreserveUnknown, Values, kind

CONFIG_TYPES: Final = ("helm-chart", "oci-ref", "kustomize", "")
LINKED: Final = "linked"
"""Type of an install source that is a file behind an address."""
EXTERNAL: Final = "external"
"""Type of an install source without objects: others install the operator of the module."""
_COLUMNS = (Column("State", ".status.state"), Column("Age", ".metadata.creationTimestamp", "date"))


class InstallSource(Fields, frozen=True):
    """The place of a module's objects in the registry."""

    repo: str = ""
    """The registry, with a path where it has one."""
    name: str = ""
    """Name of the component."""
    ref: str = ""
    """Digest of the layer."""
    type: str = ""
    """oci-dir for an archive, oci-ref for one file."""


class ManifestInstall(Fields, frozen=True):
    """The objects of the module."""

    name: str
    """Name of the installation."""
    source: Annotated[Object, PreserveUnknown()]
    """Their place in the registry: repo, name, ref and type."""


class FormerConfig(Fields, frozen=True):
    """Deprecated; has no effect."""

    repo: str = ""
    """Has no effect."""
    name: str = ""
    """Has no effect."""
    ref: str = ""
    """Has no effect."""
    type: Annotated[str, Values(*CONFIG_TYPES)] = ""
    """Has no effect."""
    cred_secret_selector: Selector | None = None
    """Has no effect."""


class FormerManifestSpec(Fields, frozen=True):
    """The module."""

    install: ManifestInstall
    """The objects of the module."""
    remote: bool = False
    """Has no effect."""
    custom_resource_policy: PolicyField = CustomResourcePolicy.CREATE_AND_DELETE.value
    """CreateAndDelete creates and deletes the default resource with the module; Ignore does neither."""
    version: str = ""
    """Version of the module."""
    config: FormerConfig | None = None
    """Deprecated; has no effect."""
    resource: Annotated[EmbeddedObject | None, Nullable()] = None
    """The default resource of the module."""

    __schema__: ClassVar[dict[str, Any]] = {"required": ["install", "remote"]}


class ManifestSpec(FormerManifestSpec, frozen=True):
    """The module."""

    localized_images: tuple[str, ...] = ()
    """Images that replace those of the same name and tag in workloads."""
    manager: ModuleManager | None = None
    """The workload whose state shows that the module is installed."""


class SyncedObject(Fields, frozen=True):
    """An object of the module on the cluster."""

    group: str
    """API group of the object."""
    version: str
    """Version of the group."""
    kind: str
    """Kind of the object."""
    name: str
    """Name of the object."""
    namespace: str
    """Namespace of the object; empty if it has none."""


class ManifestStatus(Fields, frozen=True):
    """The module as observed."""

    __schema__: ClassVar[dict[str, Any]] = {"required": ["state"]}

    state: StateField = State.NONE.value
    """Ready, Processing, Warning, Error or Deleting."""
    conditions: Annotated[tuple[Condition, ...], ListMap("type")] = ()
    """Resources, Installation and ModuleCR."""
    last_operation: OperationRecord | None = None
    """The last step of the controller."""
    synced: Annotated[tuple[SyncedObject, ...], Atomic()] = ()
    """The objects of the module on the cluster."""


@former_kind("Manifest", columns=_COLUMNS)
class FormerManifest(Kind, frozen=True):
    """One module on one cluster."""

    spec: FormerManifestSpec | None = None
    """The module."""
    status: ManifestStatus = ManifestStatus()
    """The module as observed."""


@kind(group=GROUP, version=VERSION, status=True, former=(FormerManifest,), columns=_COLUMNS)
class Manifest(Kind, frozen=True):
    """One module on one cluster."""

    spec: ManifestSpec | None = None
    """The module."""
    status: ManifestStatus = ManifestStatus()
    """The module as observed."""


MANIFESTS: Final = Resource(GROUP, VERSION, "manifests", "Manifest")
