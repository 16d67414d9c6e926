"""The simulated providers: their regions and zones, machines, images and Kubernetes versions, as CloudProfiles.

Real machine types with their real sizes, so that quotas and the capacity of nodes add up. Of versions and images there
is one of each class that Gardener knows, those that the Go system's examples name among them; one of each has expired.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from hortus.kube.objects import Object

OPENSTACK: Final = "openstack"
EXPIRED: Final = "2025-01-31T23:59:59Z"
"""When what has expired did so."""


class MachineType(NamedTuple):
    """The capacity of one machine of a type."""

    cpu: str = "2"
    memory: str = "8Gi"
    gpu: str = "0"
    architecture: str = "amd64"


class Provider(NamedTuple):
    profile: str
    """Name of its CloudProfile."""
    regions: tuple[str, ...]
    """The first has a seed."""
    machines: Mapping[str, MachineType]
    volumes: tuple[str, ...]


PROVIDERS: Final = {
    "aws": Provider(
        "aws",
        ("eu-central-1", "eu-west-1", "us-east-1"),
        {
            "m6i.large": MachineType(),
            "m6i.xlarge": MachineType("4", "16Gi"),
            "m6i.2xlarge": MachineType("8", "32Gi"),
            "m6g.large": MachineType(architecture="arm64"),
            "g6.xlarge": MachineType("4", "16Gi", gpu="1"),
        },
        ("gp3", "gp2", "io1"),
    ),
    "azure": Provider(
        "az",
        ("westeurope", "eastus", "polandcentral"),
        {"Standard_D2s_v5": MachineType(), "Standard_D4s_v5": MachineType("4", "16Gi")},
        ("StandardSSD_LRS", "Standard_LRS", "Premium_LRS"),
    ),
    "gcp": Provider(
        "gcp",
        ("europe-west3", "us-central1", "me-central2"),
        {"n2-standard-2": MachineType(), "n2-standard-4": MachineType("4", "16Gi")},
        ("pd-balanced", "pd-standard", "pd-ssd"),
    ),
    "openstack": Provider(
        "converged-cloud-kyma",
        ("eu-de-1", "eu-nl-1"),
        {
            "g_c2_m8": MachineType(),
            "g_c4_m16": MachineType("4", "16Gi"),
            "a_c2_m8": MachineType(architecture="arm64"),
        },
        (),
    ),
    "alicloud": Provider(
        "alicloud",
        ("eu-central-1",),
        {"ecs.g8i.large": MachineType(), "ecs.g8i.xlarge": MachineType("4", "16Gi")},
        ("cloud_essd",),
    ),
    "local": Provider("local", ("local",), {"local": MachineType()}, ()),
}
"""By provider type."""

_VERSIONS: Final = (
    ("1.35.0", "preview", ""),
    ("1.34.1", "supported", ""),
    ("1.33.5", "supported", ""),
    ("1.32.9", "supported", "2099-12-31T23:59:59Z"),
    ("1.31.13", "supported", "2099-12-31T23:59:59Z"),
    ("1.28.7", "deprecated", "2099-12-31T23:59:59Z"),
    ("1.27.16", "deprecated", EXPIRED),
)
_IMAGES: Final = (
    ("1631.0.0", "preview", ""),
    ("1592.1.0", "supported", ""),
    ("1443.9.0", "deprecated", "2099-12-31T23:59:59Z"),
    ("1312.3.0", "deprecated", "2099-12-31T23:59:59Z"),
    ("1312.2.0", "deprecated", EXPIRED),
)
NEWEST: Final = "1.34.1"
"""The version that seeds run."""
_ZONE_NAMES = {"azure": "{number}", "gcp": "{region}-{letter}"}
_ZONE_NAME = "{region}{letter}"
"""The pattern of the names of a region's zones."""


def profile_spec(provider: str) -> Object:
    """`spec` of the CloudProfile of one provider."""
    offer = PROVIDERS[provider]
    spec: dict[str, Any] = {
        "type": provider,
        "kubernetes": {"versions": _classified(_VERSIONS)},
        "machineImages": [
            {
                "name": "gardenlinux",
                "updateStrategy": "major",
                "versions": [
                    {**version, "cri": [{"name": "containerd"}], "architectures": ["amd64", "arm64"]}
                    for version in _classified(_IMAGES)
                ],
            }
        ],
        "machineTypes": [
            {
                "name": name,
                "cpu": machine.cpu,
                "gpu": machine.gpu,
                "memory": machine.memory,
                "architecture": machine.architecture,
                "usable": True,
            }
            for name, machine in offer.machines.items()
        ],
        "regions": [{"name": region, "zones": zones(provider, region)} for region in offer.regions],
    }
    if provider == OPENSTACK:
        spec["providerConfig"] = _openstack_config(offer)
    if offer.volumes:
        spec["volumeTypes"] = [{"name": name, "class": "standard", "usable": True} for name in offer.volumes]
    return spec


def _openstack_config(offer: Provider) -> Object:
    """The part of the CloudProfile that maps images to regions: those for arm64 are in the first region alone."""
    first = offer.regions[0]
    return {
        "apiVersion": "openstack.provider.extensions.gardener.cloud/v1alpha1",
        "kind": "CloudProfileConfig",
        "keystoneURL": "https://keystone.example.org/v3",
        "constraints": {"floatingPools": [{"name": "FloatingIP-*"}], "loadBalancerProviders": [{"name": "f5"}]},
        "machineImages": [
            {
                "name": "gardenlinux",
                "versions": [
                    {
                        "version": version,
                        "regions": [
                            {
                                "name": region,
                                "id": f"gardenlinux-{version}-{region}-{made_for}",
                                "architecture": made_for,
                            }
                            for region in offer.regions
                            for made_for in ("amd64", "arm64")
                            if made_for == "amd64" or region == first
                        ],
                    }
                    for version, _, _ in _IMAGES
                ],
            }
        ],
    }


def _classified(versions: Iterable[tuple[str, str, str]]) -> list[dict[str, str]]:
    return [
        {"version": version, "classification": kind, **({"expirationDate": until} if until else {})}
        for version, kind, until in versions
    ]


def zones(provider: str, region: str) -> list[dict[str, str]]:
    """The zones of a region, as its CloudProfile lists them."""
    name = _ZONE_NAMES.get(provider, _ZONE_NAME)
    letters = enumerate("abcd", start=1)
    return [{"name": name.format(number=number, region=region, letter=letter)} for number, letter in letters]
