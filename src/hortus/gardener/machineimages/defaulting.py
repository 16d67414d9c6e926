"""Defaults of a CloudProfile: its image versions get the capability flavors that its provider configuration has.

They are written where the profile defines capabilities and is not being deleted, over what was there. A version that is
still in the old form gives one flavor for each architecture, by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hortus.gardener.machineimages.capabilities import AMD64, ARCHITECTURE
from hortus.gardener.machineimages.profile import PROVIDER, ProviderVersion, profile_of
from hortus.kube.objects import Object


def defaulted_profile(cloud_profile: Object) -> Object:
    """The CloudProfile with its defaults; itself where it needs none. Raises UnreadableProfile."""
    profile = profile_of(cloud_profile)
    config, metadata = profile.provider_config, cloud_profile.get("metadata") or {}
    if profile.type != PROVIDER or not profile.machine_capabilities or config is None:
        return cloud_profile
    if metadata.get("deletionTimestamp"):
        return cloud_profile
    offered: dict[tuple[str, str], list[ProviderVersion]] = {}
    for image in config.machine_images:
        for version in image.versions:
            offered.setdefault((image.name, version.version), []).append(version)
    images = [_image(image, offered) for image in cloud_profile["spec"].get("machineImages") or ()]
    if images == (cloud_profile["spec"].get("machineImages") or []):
        return cloud_profile
    return {**cloud_profile, "spec": {**cloud_profile["spec"], "machineImages": images}}


def _image(image: Object, offered: dict[tuple[str, str], list[ProviderVersion]]) -> Object:
    versions = []
    for version in image.get("versions") or ():
        found = offered.get((image.get("name", ""), version.get("version", "")))
        versions.append({**version, "capabilityFlavors": _flavors(found)} if found else version)
    return {**image, "versions": versions}


def _flavors(found: Sequence[ProviderVersion]) -> list[dict[str, Any]]:
    written = [dict(flavor.capabilities) for version in found for flavor in version.capability_flavors]
    if written:
        return [{name: list(values) for name, values in one.items()} for one in written]
    architectures = {region.architecture or AMD64 for version in found for region in version.regions}
    if any(version.image for version in found):
        architectures.add(AMD64)
    return [{ARCHITECTURE: [one]} for one in sorted(architectures)]
