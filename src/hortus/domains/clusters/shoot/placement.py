"""The place of a Shoot: cloud profile, exposure, seed, access restrictions, tolerations (docs/clusters/shoot.md)."""

from __future__ import annotations

from typing import Final

from hortus.domains.clusters.types import Runtime, RuntimeShoot
from hortus.gardener.shoots.fields import CLOUD_PROFILE_NAME, is_forbidden
from hortus.kube import Object

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
    if is_forbidden(CLOUD_PROFILE_NAME, kubernetes_version):
        return {"cloudProfile": {"kind": "CloudProfile", "name": name}}
    return {"cloudProfileName": name}
