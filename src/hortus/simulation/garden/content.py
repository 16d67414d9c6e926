"""What a simulated garden holds before anybody asked for a cluster: a project, seeds, cloud profiles."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from typing import Any

from hortus.kube import Client
from hortus.kube.errors import AlreadyExists
from hortus.kube.objects import Object, Resource, format_time
from hortus.simulation.garden.kinds import CLOUD_PROFILES, PROJECTS, SECRET_BINDINGS, SEEDS

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_SECRETS = Resource("", "v1", "secrets", "Secret")
_BINDING = "demo-binding"
"""Name of the secret binding that shoots of the simulation use, one for all providers."""

_PROVIDERS = {
    "aws": ("aws", ("eu-central-1", "eu-west-1", "us-east-1"), ("m6i.large", "m6i.xlarge", "m6i.2xlarge")),
    "azure": ("az", ("westeurope", "eastus", "polandcentral"), ("Standard_D2s_v5", "Standard_D4s_v5")),
    "gcp": ("gcp", ("europe-west3", "us-central1"), ("n2-standard-2", "n2-standard-4")),
    "openstack": ("converged-cloud-kyma", ("eu-de-1",), ("g_c2_m8", "g_c4_m16")),
    "alicloud": ("alicloud", ("eu-central-1",), ("ecs.g8i.large", "ecs.g8i.xlarge")),
    "local": ("local", ("local",), ("local",)),
}
"""By provider type: cloud profile, its regions, of which the first has a seed, and its machine types."""

_ZONE_NAMES = {"azure": "{number}", "gcp": "{region}-{letter}"}
_ZONE_NAME = "{region}{letter}"
"""How the zones of a region are called."""

_FURTHER_SEEDS = (("aws", "us-east-1"), ("azure", "eastus"), ("gcp", "us-central1"))
"""Regions with a seed beside those above, for clusters that must be controlled from their own region."""

_VERSIONS = ("1.34.1", "1.33.5", "1.32.9", "1.31.13", "1.28.7")
_IMAGES = ("1592.1.0", "1443.9.0", "1312.3.0")
"""With those that the Go system's examples name."""


async def ensure_content(client: Client, project: str, now: float) -> None:
    """Create what is not there yet; what is there stays as it is."""
    for wave in _waves(project, now):
        await asyncio.gather(*(_create(client, resource, obj) for resource, obj in wave))


async def _create(client: Client, resource: Resource, obj: Object) -> None:
    try:
        await client.create(resource, obj)
    except AlreadyExists:
        return


def _waves(project: str, now: float) -> Iterator[Iterable[tuple[Resource, Object]]]:
    namespace = f"garden-{project}"
    yield [
        (NAMESPACES, _object(NAMESPACES, "garden")),
        (NAMESPACES, _object(NAMESPACES, namespace, labels={"project.gardener.cloud/name": project})),
    ]
    objects = [
        (PROJECTS, _object(PROJECTS, project, spec={"namespace": namespace}, status={"phase": "Ready"})),
        (_SECRETS, _object(_SECRETS, "demo-credentials", namespace=namespace)),
        (
            SECRET_BINDINGS,
            _object(
                SECRET_BINDINGS,
                _BINDING,
                namespace=namespace,
                provider={"type": ",".join(_PROVIDERS)},
                secretRef={"name": "demo-credentials", "namespace": namespace},
            ),
        ),
    ]
    objects += [(CLOUD_PROFILES, profile) for profile in cloud_profiles()]
    for provider, (_, regions, _) in _PROVIDERS.items():
        objects.append((SEEDS, _seed(provider, 1, regions[0], now)))
    for provider, region in _FURTHER_SEEDS:
        objects.append((SEEDS, _seed(provider, 2, region, now)))
    yield objects


def _object(resource: Resource, name: str, *, namespace: str = "", labels: Any = None, **parts: Any) -> Object:
    metadata: dict[str, Any] = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **parts}


def cloud_profiles() -> list[Object]:
    """What the simulated providers offer."""
    return [
        _cloud_profile(profile, provider, regions, machines)
        for provider, (profile, regions, machines) in _PROVIDERS.items()
    ]


def _cloud_profile(name: str, provider: str, regions: Iterable[str], machines: Iterable[str]) -> Object:
    return _object(
        CLOUD_PROFILES,
        name,
        spec={
            "type": provider,
            "kubernetes": {"versions": [{"version": version} for version in _VERSIONS]},
            "machineImages": [{"name": "gardenlinux", "versions": [{"version": version} for version in _IMAGES]}],
            "machineTypes": [
                {"name": machine, "cpu": "2", "gpu": "0", "memory": "8Gi", "usable": True} for machine in machines
            ],
            "regions": [{"name": region, "zones": _zones(provider, region)} for region in regions],
        },
    )


def _zones(provider: str, region: str) -> list[dict[str, str]]:
    name = _ZONE_NAMES.get(provider, _ZONE_NAME)
    letters = enumerate("abcd", start=1)
    return [{"name": name.format(number=number, region=region, letter=letter)} for number, letter in letters]


def _seed(provider: str, number: int, region: str, now: float) -> Object:
    stamp = format_time(now)
    conditions = [
        {
            "type": kind,
            "status": "True",
            "reason": kind,
            "message": "simulated",
            "lastTransitionTime": stamp,
            "lastUpdateTime": stamp,
        }
        for kind in ("GardenletReady", "SeedSystemComponentsHealthy", "BackupBucketsReady", "ExtensionsReady")
    ]
    return _object(
        SEEDS,
        f"{provider}-{number}",
        labels={"seed.gardener.cloud/region": region, "seed.gardener.cloud/provider": provider},
        spec={
            "provider": {"type": provider, "region": region, "zones": [f"{region}{zone}" for zone in "abc"]},
            "settings": {"scheduling": {"visible": True}},
            "networks": {"pods": "10.0.0.0/16", "services": "10.1.0.0/16"},
        },
        status={
            "conditions": conditions,
            "kubernetesVersion": _VERSIONS[0],
            "lastOperation": {
                "type": "Reconcile",
                "state": "Succeeded",
                "progress": 100,
                "description": "Seed reconciliation finished",
                "lastUpdateTime": stamp,
            },
        },
    )
