"""The kubelet's own configuration file, as far as a change of it is made in place.

An OperatingSystemConfig has it among its files, and nowhere else: `spec.inPlaceUpdates` names the version only. The
settings that count are those of `ComputeKubeletConfigChange` in gardener/gardener
(pkg/nodeagent/controller/operatingsystemconfig/changes.go); another setting is changed by a restart of the kubelet.
"""

from __future__ import annotations

import msgspec

from hortus.kube import yaml
from hortus.kube.quantities import Quantity
from hortus.nodeagent.osc import OperatingSystemConfig, OscFile, without_nulls

KUBELET_FILE = "/var/lib/kubelet/config/kubelet"
_API_VERSION, _KIND = "kubelet.config.k8s.io/v1beta1", "KubeletConfiguration"
_EVICTION = ("memory.available", "imagefs.available", "imagefs.inodesFree", "nodefs.available", "nodefs.inodesFree")
_RESERVED = ("cpu", "memory", "ephemeral-storage", "pid")


class KubeletFileError(ValueError):
    """A file that cannot be read as a configuration of the kubelet; the message names the field and the fix."""


class KubeletSettings(msgspec.Struct, frozen=True, rename="camel"):
    """The settings whose change makes an update in place."""

    api_version: str = _API_VERSION
    kind: str = _KIND
    cpu_manager_policy: str = ""
    eviction_hard: dict[str, str] = {}
    kube_reserved: dict[str, str] = {}

    @property
    def eviction(self) -> dict[str, str]:
        """The thresholds that count, as they are written: `1Gi` and `1024Mi` are two."""
        return {name: text for name, text in self.eviction_hard.items() if name in _EVICTION}

    @property
    def reserved(self) -> dict[str, str]:
        return {name: text for name, text in self.kube_reserved.items() if name in _RESERVED}


def kubelet_settings(osc: OperatingSystemConfig) -> KubeletSettings:
    """The settings of the first such file in the configuration, for whatever host. Raises KubeletFileError."""
    file = next((each for each in osc.spec.files if each.path == KUBELET_FILE), None)
    if file is None:
        raise KubeletFileError("is missing, and changes of the kubelet are read from it: add it to spec.files")
    try:
        document = yaml.load(_content(file))
        found = msgspec.convert(without_nulls(document or {}), KubeletSettings)
    except (yaml.YamlError, msgspec.ValidationError) as error:
        problem = str(error).replace("`$.", "`").replace(" - at ", ", at ")
        raise KubeletFileError(f"is no {_KIND}: {problem}: correct it") from None
    if (found.api_version, found.kind) != (_API_VERSION, _KIND):
        raise KubeletFileError(f"is {found.kind} of {found.api_version}: write {_KIND} of {_API_VERSION}")
    return found


def _content(file: OscFile) -> bytes:
    if file.content.inline is None:
        raise KubeletFileError("has no inline content, and changes of the kubelet are read from that: give it inline")
    try:
        return file.content.inline.decoded()
    except ValueError as error:
        raise KubeletFileError(f"{error}: encode it again") from None


def kubelet_problems(osc: OperatingSystemConfig) -> list[str]:
    """The reasons why the changes of this file could not be found, each with its fix."""
    try:
        found = kubelet_settings(osc)
    except KubeletFileError as error:
        return [str(error)]
    return [
        f"has kubeReserved.{name} {text!r}, which is no quantity: write for example 100m or 1Gi"
        for name, text in found.kube_reserved.items()
        if not _is_quantity(text)
    ]


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except ValueError:
        return False
    return True
