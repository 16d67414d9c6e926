"""The OperatingSystemConfig as structs, decoded from the key `osc.yaml` of a Secret or from a file on the node.

Only the fields that a node acts on are read. The kind is the CRD `operatingsystemconfigs.extensions.gardener.cloud`,
version v1alpha1; a decoded value is frozen, so that two configurations can be compared part by part.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec

from hortus.kube import yaml
from hortus.kube.objects import Object

API_VERSION, KIND = "extensions.gardener.cloud/v1alpha1", "OperatingSystemConfig"
PROVISION, RECONCILE = "provision", "reconcile"
CONTAINERD = "containerd"
DEFAULT_FILE_MODE = 0o600


class _Part(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The options of all structs here."""


class OscDropIn(_Part, frozen=True):
    name: str = ""
    content: str = ""


class OscUnit(_Part, frozen=True):
    name: str = ""
    command: str | None = None
    """start, restart or stop; another word restarts the unit, as in Gardener's agent."""
    enable: bool | None = None
    content: str | None = None
    drop_ins: tuple[OscDropIn, ...] = ()
    file_paths: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        """False for a unit that has to be stopped."""
        return self.enable is not False and self.command != "stop"

    @property
    def by_name(self) -> dict[str, str]:
        """The contents of the drop-ins; of two with one name the later holds."""
        return {each.name: each.content for each in self.drop_ins}


class InlineContent(_Part, frozen=True):
    encoding: str = ""
    data: str = ""

    def decoded(self) -> bytes:
        """The bytes of the file. Raises ValueError for data that is not of its encoding."""
        if self.encoding != "b64":
            return self.data.encode()
        try:
            return base64.b64decode(self.data, validate=True)
        except ValueError:
            raise ValueError("is not valid base64") from None


class SecretContent(_Part, frozen=True):
    name: str = ""
    data_key: str = ""


class ImageContent(_Part, frozen=True):
    image: str = ""
    file_path_in_image: str = ""


class OscFileContent(_Part, frozen=True):
    inline: InlineContent | None = None
    secret_ref: SecretContent | None = None
    image_ref: ImageContent | None = None
    transmit_unencoded: bool | None = None


class OscFile(_Part, frozen=True):
    path: str = ""
    permissions: Annotated[int, msgspec.Meta(ge=0, le=2**32 - 1)] | None = None
    host_name: str | None = None
    content: OscFileContent = OscFileContent()

    @property
    def mode(self) -> int:
        return self.permissions if self.permissions is not None else DEFAULT_FILE_MODE


class OscRegistryHost(_Part, frozen=True):
    url: str = ""
    capabilities: tuple[str, ...] = ()
    ca_certs: tuple[str, ...] = ()
    override_path: bool | None = None


class RegistryUpstream(_Part, frozen=True):
    upstream: str = ""
    server: str | None = None
    hosts: tuple[OscRegistryHost, ...] = ()
    readiness_probe: bool | None = None


class PluginOperation(_Part, frozen=True):
    op: Literal["add", "remove"] | None = None
    path: tuple[str, ...] = ()
    values: Any = None


class ContainerdConfig(_Part, frozen=True):
    sandbox_image: str = ""
    registries: tuple[RegistryUpstream, ...] = ()
    plugins: tuple[PluginOperation, ...] = ()


class CriConfig(_Part, frozen=True):
    name: str = ""
    cgroup_driver: Literal["cgroupfs", "systemd"] | None = None
    containerd: ContainerdConfig | None = None

    @property
    def configured(self) -> ContainerdConfig | None:
        """The settings of containerd; None where the node does not configure it."""
        return self.containerd if self.name == CONTAINERD else None


class RotationTime(_Part, frozen=True):
    last_initiation_time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class CredentialsRotation(_Part, frozen=True):
    certificate_authorities: RotationTime | None = None
    service_account_key: RotationTime | None = None


class InPlaceUpdates(_Part, frozen=True):
    operating_system_version: str = ""
    kubelet: str = ""
    """The version of the kubelet. Its other settings stand in its own file, `hortus.nodeagent.kubeletfile`."""
    credentials_rotation: CredentialsRotation | None = None


class OsUpdate(_Part, frozen=True):
    command: str = ""
    args: tuple[str, ...] = ()


class InPlaceStatus(_Part, frozen=True):
    os_update: OsUpdate | None = None


class OscSpec(_Part, frozen=True):
    type: str = ""
    purpose: str = ""
    cri_config: CriConfig | None = None
    units: tuple[OscUnit, ...] = ()
    files: tuple[OscFile, ...] = ()
    in_place_updates: InPlaceUpdates | None = None


class OscStatus(_Part, frozen=True):
    extension_units: tuple[OscUnit, ...] = ()
    extension_files: tuple[OscFile, ...] = ()
    in_place_updates: InPlaceStatus | None = None


class OscMetadata(_Part, frozen=True):
    name: str = ""
    deletion_timestamp: str | None = None


class OperatingSystemConfig(_Part, frozen=True):
    """One configuration of a node, as its author wrote it."""

    api_version: str = ""
    kind: str = ""
    metadata: OscMetadata = OscMetadata()
    spec: OscSpec = OscSpec()
    status: OscStatus = OscStatus()

    def files_for(self, hostname: str) -> dict[str, OscFile]:
        """The files of a host by path: those of the extension after the own ones, without those of other hosts."""
        found = (*self.spec.files, *self.status.extension_files)
        return {each.path: each for each in found if each.host_name in (None, hostname)}

    @property
    def containerd(self) -> ContainerdConfig | None:
        """The settings of containerd; None where the node does not configure it."""
        return self.spec.cri_config.configured if self.spec.cri_config is not None else None

    def merged_units(self, *more: OscUnit) -> dict[str, OscUnit]:
        """The units by name: `more` is merged into the own ones, and the extension's into both."""
        merged: dict[str, OscUnit] = {}
        for unit in (*self.spec.units, *more, *self.status.extension_units):
            merged[unit.name] = joined_units(merged[unit.name], unit) if unit.name in merged else unit
        return merged


class OscError(ValueError):
    """A text that is no OperatingSystemConfig; the message names the field."""


def decode(text: str | bytes) -> OperatingSystemConfig:
    """The configuration in a YAML or JSON text. Raises OscError."""
    try:
        document = yaml.load(text)
    except yaml.YamlError as error:
        raise OscError(f"is not readable YAML: {error}") from None
    if not isinstance(document, dict):
        raise OscError("is empty, where an OperatingSystemConfig is needed")
    return convert(document)


def convert(document: Object) -> OperatingSystemConfig:
    """The configuration in a decoded document. Raises OscError."""
    try:
        osc = msgspec.convert(without_nulls(document), OperatingSystemConfig)
    except msgspec.ValidationError as error:
        raise OscError(str(error).replace("`$.", "`").replace(" - at ", ", at ")) from None
    if osc.kind != KIND:
        raise OscError(f"is of kind {osc.kind or 'none'!r}, where {KIND} is needed")
    if osc.api_version not in ("", API_VERSION):
        raise OscError(f"is of apiVersion {osc.api_version!r}, where {API_VERSION} is needed")
    return osc


def joined_units(first: OscUnit, later: OscUnit) -> OscUnit:
    """One unit of two: what the later one says holds, and it adds its drop-ins and paths."""
    return OscUnit(
        name=first.name,
        command=first.command if later.command is None else later.command,
        enable=first.enable if later.enable is None else later.enable,
        content=first.content if later.content is None else later.content,
        drop_ins=first.drop_ins + later.drop_ins,
        file_paths=first.file_paths + later.file_paths,
    )


def without_nulls(value: Any) -> Any:
    """`value` without null fields: Go leaves them out or writes null, and means the same."""
    match value:
        case dict():
            return {key: without_nulls(each) for key, each in value.items() if each is not None}
        case list():
            return [without_nulls(each) for each in value]
    return value


def paths_of(files: Iterable[OscFile]) -> set[str]:
    return {each.path for each in files}
