"""Finds the changes of a configuration that a node takes only in place: drained, and when its pool says so.

This agent does not carry such changes out. It refuses them as a whole, with the list of them, and the node stays as it
is; a half of an update of the operating system or of the credentials would leave a node that nobody can use.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hortus.nodeagent.osc import InPlaceUpdates, OperatingSystemConfig

OS_RELEASE = "/etc/os-release"
_VERSION = re.compile(r"\b\d+(?:\.\d+)*\b")
_MINOR = re.compile(r"v?(\d+\.\d+)")


def os_version(release: str) -> str:
    """The first version in PRETTY_NAME of /etc/os-release; empty without one."""
    line = re.search(r"^PRETTY_NAME=(.*)$", release, re.M)
    found = _VERSION.search(line[1]) if line else None
    return found[0] if found else ""


def in_place_changes(old: OperatingSystemConfig | None, new: OperatingSystemConfig, release: str) -> list[str]:
    """The changes that have to be made in place, as fields below spec.inPlaceUpdates."""
    wanted = new.spec.in_place_updates
    if wanted is None:
        return []
    return list(_changes(old.spec.in_place_updates if old is not None else None, wanted, release))


def _changes(old: InPlaceUpdates | None, new: InPlaceUpdates, release: str) -> Iterator[str]:
    installed = os_version(release)
    if installed and new.operating_system_version and installed != new.operating_system_version:
        yield f"operatingSystemVersion ({installed} to {new.operating_system_version})"
    if old is None:
        # A new node begins with what its configuration says.
        return
    before, after = old.kubelet, new.kubelet
    if _minor(before.version) != _minor(after.version):
        yield f"kubelet.version ({before.version} to {after.version})"
    for field in ("cpu_manager_policy", "eviction_hard", "kube_reserved"):
        if getattr(before, field) != getattr(after, field):
            yield f"kubelet.{_camel(field)}"
    if old.credentials_rotation != new.credentials_rotation:
        yield "credentialsRotation"


def _minor(version: str | None) -> str:
    found = _MINOR.match(version or "")
    return found[1] if found else ""


def _camel(field: str) -> str:
    first, *others = field.split("_")
    return first + "".join(each.title() for each in others)
