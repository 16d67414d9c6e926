"""Finds the changes of a configuration that a node takes only in place: drained, and when its pool says so.

The decisions are pure. The machine controller drains the node and gives it the condition `InPlaceUpdate` with reason
`ReadyForUpdate`; `hortus.nodeagent.updating` does the steps.
"""

from __future__ import annotations

import re

import msgspec

from hortus.nodeagent.osc import CredentialsRotation, InPlaceUpdates, KubeletUpdate, OperatingSystemConfig

OS_RELEASE = "/etc/os-release"
CONDITION, READY = "InPlaceUpdate", "ReadyForUpdate"
RESULT = "node.machine.sapcloud.io/update-result"
SUCCESSFUL, FAILED = "successful", "failed"
_VERSION = re.compile(r"\b\d+(?:\.\d+)*\b")
_MINOR = re.compile(r"v?(\d+\.\d+)")


class InPlaceChanges(msgspec.Struct, frozen=True):
    """The parts of a node that a configuration updates in place."""

    os_version: str = ""
    """The wanted version of the operating system; empty when it is installed."""
    kubelet: bool = False
    """True for another minor version of the kubelet, or other reserved resources."""
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
    """The changes that have to be made in place on a node that has `old` and runs the system of `release`."""
    wanted = new.spec.in_place_updates
    if wanted is None:
        return NO_UPDATE
    found = os_changes(wanted, release)
    before = old.spec.in_place_updates
    return found if before is None else found.joined(_since(before, wanted))


def os_changes(wanted: InPlaceUpdates, release: str) -> InPlaceChanges:
    """The update of the operating system, which the node itself shows to be needed."""
    installed, version = os_version(release), wanted.operating_system_version
    if not installed or not version or installed == version:
        return NO_UPDATE
    return InPlaceChanges(os_version=version, reasons=(f"operatingSystemVersion ({installed} to {version})",))


def _since(before: InPlaceUpdates, wanted: InPlaceUpdates) -> InPlaceChanges:
    kubelet = _kubelet_reasons(before.kubelet, wanted.kubelet)
    policy = before.kubelet.cpu_manager_policy != wanted.kubelet.cpu_manager_policy
    was = before.credentials_rotation or CredentialsRotation()
    now = wanted.credentials_rotation or CredentialsRotation()
    authorities = was.certificate_authorities != now.certificate_authorities
    key = was.service_account_key != now.service_account_key
    named = {
        "kubelet.cpuManagerPolicy": policy,
        "credentialsRotation.certificateAuthorities": authorities,
        "credentialsRotation.serviceAccountKey": key,
    }
    return InPlaceChanges(
        kubelet=bool(kubelet),
        cpu_manager=policy,
        authorities=authorities,
        service_account_key=key,
        reasons=(*kubelet, *(name for name, changed in named.items() if changed)),
    )


def _kubelet_reasons(before: KubeletUpdate, wanted: KubeletUpdate) -> list[str]:
    found = []
    if _minor(before.version) != _minor(wanted.version):
        found.append(f"kubelet.version ({before.version} to {wanted.version})")
    if before.eviction_hard != wanted.eviction_hard:
        found.append("kubelet.evictionHard")
    if before.kube_reserved != wanted.kube_reserved:
        found.append("kubelet.kubeReserved")
    return found


def _minor(version: str | None) -> str:
    found = _MINOR.match(version or "")
    return found[1] if found else ""
