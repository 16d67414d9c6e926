"""Finds the changes of a configuration that a node takes only in place: drained, and when its pool says so.

The decisions are pure. The machine controller drains the node and gives it the condition `InPlaceUpdate` with reason
`ReadyForUpdate`; `hortus.nodeagent.updating` does the steps. Versions are compared as in Gardener's own agent, which
leaves pre-releases and metadata out (pkg/utils/version of gardener/gardener).
"""

from __future__ import annotations

import re

import msgspec

from hortus.kube.constraints import Constraint
from hortus.kube.versions import Version, VersionError
from hortus.nodeagent.kubeletfile import KubeletFileError, KubeletSettings, kubelet_settings
from hortus.nodeagent.osc import CredentialsRotation, InPlaceUpdates, OperatingSystemConfig, RotationTime
from hortus.nodeagent.seams import NodeFault

OS_RELEASE = "/etc/os-release"
CONDITION, READY = "InPlaceUpdate", "ReadyForUpdate"
BROKEN = "UpdateFailed"
"""The reason that the machine controller sets after a failure: the node stays drained, and is not made ready again."""
RESULT = "node.machine.sapcloud.io/update-result"
SUCCESSFUL, FAILED = "successful", "failed"
_VERSION = re.compile(r"\b\d+(?:\.\d+)*\b")


class InPlaceChanges(msgspec.Struct, frozen=True):
    """The parts of a node that a configuration updates in place."""

    os_version: str = ""
    """The wanted version of the operating system; empty when it is installed."""
    kubelet: bool = False
    """True for another minor version of the kubelet, other thresholds of eviction, or other reserved resources."""
    cpu_manager: bool = False
    authorities: bool = False
    service_account_key: bool = False
    reasons: tuple[str, ...] = ()
    """The changes for people, as fields below spec.inPlaceUpdates."""

    @property
    def changes_kubelet(self) -> bool:
        return self.kubelet or self.cpu_manager

    def joined(self, other: InPlaceChanges) -> InPlaceChanges:
        """The changes of both."""
        return InPlaceChanges(
            self.os_version or other.os_version,
            self.kubelet or other.kubelet,
            self.cpu_manager or other.cpu_manager,
            self.authorities or other.authorities,
            self.service_account_key or other.service_account_key,
            tuple(dict.fromkeys((*self.reasons, *other.reasons))),
        )


NO_UPDATE = InPlaceChanges()


def os_version(release: str) -> str:
    """The first version in PRETTY_NAME of /etc/os-release; empty without one."""
    line = re.search(r"^PRETTY_NAME=(.*)$", release, re.M)
    found = _VERSION.search(line[1]) if line else None
    return found[0] if found else ""


def in_place_changes(old: OperatingSystemConfig, new: OperatingSystemConfig, release: str) -> InPlaceChanges:
    """The changes that have to be made in place on a node that has `old` and runs the system of `release`.

    A configuration that is the first one with updates in place makes none, as in Gardener's agent. Raises NodeFault.
    """
    before, wanted = old.spec.in_place_updates, new.spec.in_place_updates
    if before is None or wanted is None:
        return NO_UPDATE
    kubelet = _kubelet_reasons(before.kubelet, wanted.kubelet)
    was, now = _settings(old), _settings(new)
    kubelet += _settings_reasons(was, now)
    policy = was.cpu_manager_policy != now.cpu_manager_policy
    authorities, key = _rotations(before.credentials_rotation, wanted.credentials_rotation)
    named = {
        "kubelet.cpuManagerPolicy": policy,
        "credentialsRotation.certificateAuthorities": authorities,
        "credentialsRotation.serviceAccountKey": key,
    }
    found = InPlaceChanges(
        kubelet=bool(kubelet),
        cpu_manager=policy,
        authorities=authorities,
        service_account_key=key,
        reasons=(*kubelet, *(name for name, changed in named.items() if changed)),
    )
    return os_changes(wanted, release).joined(found)


def os_changes(wanted: InPlaceUpdates, release: str) -> InPlaceChanges:
    """The update of the operating system, which the node itself shows to be needed. Raises NodeFault."""
    version = wanted.operating_system_version
    if not version:
        return NO_UPDATE
    installed = os_version(release)
    if not installed:
        raise NodeFault(f"{OS_RELEASE} has no version in its PRETTY_NAME, so an update to {version} cannot be judged")
    if is_installed(version, installed):
        return NO_UPDATE
    return InPlaceChanges(os_version=version, reasons=(f"operatingSystemVersion ({installed} to {version})",))


def is_installed(version: str, installed: str) -> bool:
    """True for a version that runs: `1592` is any 1592, `1592.4` any 1592.4."""
    try:
        return Constraint(f"= {_plain(version)}").allows(Version(_plain(installed)))
    except VersionError:
        return version == installed


def is_version(text: str) -> bool:
    """True for a text that can be compared as a version."""
    try:
        Version(_plain(text))
    except VersionError:
        return False
    return True


def _plain(version: str) -> str:
    """The version without `v`, pre-release and metadata."""
    return re.split(r"[-+~]", version.replace("v", ""), maxsplit=1)[0]


def _settings(osc: OperatingSystemConfig) -> KubeletSettings:
    """The settings of the kubelet; the new ones have been validated, and old ones that cannot be read count as none."""
    try:
        return kubelet_settings(osc)
    except KubeletFileError:
        return KubeletSettings()


def _kubelet_reasons(before: str, wanted: str) -> list[str]:
    if before == wanted:
        return []
    if is_version(before) and is_version(wanted) and Version(_plain(before)).minor == Version(_plain(wanted)).minor:
        return []
    return [f"kubelet ({before} to {wanted})"]


def _settings_reasons(before: KubeletSettings, wanted: KubeletSettings) -> list[str]:
    changed = {
        "kubelet.evictionHard": before.eviction != wanted.eviction,
        "kubelet.kubeReserved": before.reserved != wanted.reserved,
    }
    return [name for name, differs in changed.items() if differs]


def _rotations(before: CredentialsRotation | None, wanted: CredentialsRotation | None) -> tuple[bool, bool]:
    """True for each of authority and key that was rotated since `before`. One that is no longer named was not."""
    was, now = before or CredentialsRotation(), wanted or CredentialsRotation()
    return (
        _is_rotated(was.certificate_authorities, now.certificate_authorities),
        _is_rotated(was.service_account_key, now.service_account_key),
    )


def _is_rotated(before: RotationTime | None, wanted: RotationTime | None) -> bool:
    if wanted is None:
        return False
    return (before or RotationTime()).last_initiation_time != wanted.last_initiation_time
