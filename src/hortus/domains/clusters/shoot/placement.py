"""The place of a Shoot: cloud profile, exposure, seed, access restrictions, tolerations (docs/clusters/shoot.md)."""

from __future__ import annotations

from typing import Final

from hortus.domains.clusters.types import Runtime, RuntimeShoot
from hortus.kube import Object
from hortus.kube.versions import Version, VersionError

CLOUD_PROFILES: Final = {
    "aws": "aws",
    "azure": "az",
    "gcp": "gcp",
    "openstack": "converged-cloud-kyma",
    "alicloud": "alicloud",
}
"""Name of the cloud profile of each provider type."""

EXPOSURE_CLASSES: Final = {"openstack": "converged-cloud-internet"}
EU_ACCESS_REGIONS: Final = frozenset({"cf-eu11", "cf-ch20"})
"""Platform regions whose clusters only people within the EU may access."""
TOLERATIONS: Final = {"me-central2": "ksa-assured-workload"}
"""Taints of the seeds in a region that its shoots tolerate."""
SEED_REGION: Final = "seed.gardener.cloud/region"

_EU_ACCESS: Final = {
    "name": "eu-access-only",
    "options": {
        "support.gardener.cloud/eu-access-for-cluster-addons": "true",
        "support.gardener.cloud/eu-access-for-cluster-nodes": "true",
    },
}
_PROFILE_REFERENCES_SINCE = Version("1.34")
"""From here on Gardener forbids `cloudProfileName` and takes `cloudProfile`.

Source: gardener/gardener, pkg/apis/core/validation/shoot.go.
"""


def placement(shoot: RuntimeShoot, kubernetes_version: str) -> Object:
    """Fields of a Shoot's spec, for `shoot`, the `spec.shoot` of a Runtime. Provider type must be known."""
    provider = shoot.provider.type
    fields: Object = _cloud_profile(CLOUD_PROFILES[provider], kubernetes_version)
    if provider in EXPOSURE_CLASSES:
        fields["exposureClassName"] = EXPOSURE_CLASSES[provider]
    if shoot.enforce_seed_location and shoot.region:
        fields["seedSelector"] = {"matchLabels": {SEED_REGION: shoot.region}}
    if shoot.platform_region in EU_ACCESS_REGIONS:
        fields["accessRestrictions"] = [_EU_ACCESS]
    return fields


def profile_name(runtime: Runtime) -> str:
    """Name of the CloudProfile that a Runtime's Shoot refers to; empty for a provider nobody knows."""
    return CLOUD_PROFILES.get(runtime.wanted.shoot.provider.type, "")


def tolerations(region: str) -> list[Object]:
    """The tolerations of a new Shoot; a patch leaves them as they are."""
    return [{"key": TOLERATIONS[region]}] if region in TOLERATIONS else []


def _cloud_profile(name: str, kubernetes_version: str) -> Object:
    try:
        by_reference = Version(kubernetes_version) >= _PROFILE_REFERENCES_SINCE
    except VersionError:
        by_reference = False
    return {"cloudProfile": {"kind": "CloudProfile", "name": name}} if by_reference else {"cloudProfileName": name}
