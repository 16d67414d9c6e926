"""The content of a simulated garden before anybody asked for a cluster: a project, seeds, cloud profiles."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from hortus.gardener.livemigration import CLOUD_PROFILES_ANNOTATION, COORDINATOR_MAP, REGION_CONFIG
from hortus.kube import Client
from hortus.kube.errors import AlreadyExists
from hortus.kube.objects import Object, Resource, format_time
from hortus.simulation.garden.kinds import (
    CLOUD_PROFILES,
    CREDENTIALS_BINDINGS,
    EXPOSURE_CLASSES,
    PROJECTS,
    SECRET_BINDINGS,
    SEEDS,
)
from hortus.simulation.garden.operations import GARDENLET_VERSION
from hortus.simulation.garden.profiles import NEWEST, PROVIDERS, profile_spec
from hortus.simulation.garden.seeds import PART, distance

NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
_SECRETS = Resource("", "v1", "secrets", "Secret")
BINDING = "demo-binding"
"""Name of the bindings that shoots of the simulation use: a SecretBinding and a CredentialsBinding for all."""

_FURTHER_SEEDS = (("aws", "us-east-1"), ("azure", "eastus"), ("gcp", "us-central1"), ("gcp", "me-central2"))
"""Regions with a seed besides those above, for clusters that must be controlled from their own region."""

_TAINTED = {"me-central2": "ksa-assured-workload"}
"""The taint of a region's seeds: only shoots that tolerate it are put there."""
_NEAR, _FAR = 40, 220
"""Milliseconds between regions of one part of the world, and of two."""
_NETWORKS = {"pods": "100.96.0.0/11", "services": "100.64.0.0/13"}
"""The networks of Shoots that bring none."""
_DNS_PROVIDER = {
    "type": "aws-route53",
    "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "namespace": "garden", "name": "seed-domain"},
}
_SEED_DNS = {
    "provider": _DNS_PROVIDER,
    "internal": {**_DNS_PROVIDER, "domain": "internal.example.org"},
    "defaults": [{**_DNS_PROVIDER, "domain": "shoot.example.org"}],
}
"""The domains of seeds; that of Shoots is the one of Shoots that bring none."""
_EXPOSURES = ("converged-cloud-internet",)
"""Names of exposure classes; on OpenStack clusters ask for one."""


async def ensure_content(client: Client, project: str, now: float, *, seed_capacity: int = 0) -> None:
    """Create what is not there yet; what is there stays as it is. `seed_capacity` 0: seeds take any number."""
    for wave in waves(project, now, seed_capacity=seed_capacity):
        await asyncio.gather(*(_create(client, resource, obj) for resource, obj in wave))


async def _create(client: Client, resource: Resource, obj: Object) -> None:
    try:
        await client.create(resource, obj)
    except AlreadyExists:
        return


def waves(project: str, now: float, *, seed_capacity: int = 0) -> Iterator[Iterable[tuple[Resource, Object]]]:
    """The objects in the order in which they are created."""
    namespace = f"garden-{project}"
    yield [
        (NAMESPACES, _object(NAMESPACES, "garden")),
        (NAMESPACES, _object(NAMESPACES, namespace, labels={"project.gardener.cloud/name": project})),
    ]
    objects = [
        (PROJECTS, _object(PROJECTS, project, spec={"namespace": namespace}, status={"phase": "Ready"})),
        (_SECRETS, _object(_SECRETS, "demo-credentials", namespace=namespace)),
        (_SECRETS, _object(_SECRETS, "seed-domain", namespace="garden")),
        (
            CREDENTIALS_BINDINGS,
            _object(
                CREDENTIALS_BINDINGS,
                BINDING,
                namespace=namespace,
                # Gardener has one for each provider; here one name serves the examples of all.
                provider={"type": ",".join(PROVIDERS)},
                credentialsRef={
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "name": "demo-credentials",
                    "namespace": namespace,
                },
            ),
        ),
        (
            SECRET_BINDINGS,
            _object(
                SECRET_BINDINGS,
                BINDING,
                namespace=namespace,
                provider={"type": ",".join(PROVIDERS)},
                secretRef={"name": "demo-credentials", "namespace": namespace},
            ),
        ),
    ]
    objects += [(_CONFIG_MAPS, one) for one in distances()]
    home, name = COORDINATOR_MAP
    objects.append((_CONFIG_MAPS, _object(_CONFIG_MAPS, name, namespace=home, data={"coordinator": "hortus"})))
    objects += [(CLOUD_PROFILES, profile) for profile in cloud_profiles()]
    objects += [(EXPOSURE_CLASSES, _object(EXPOSURE_CLASSES, name, handler="internet")) for name in _EXPOSURES]
    objects += [(SEEDS, seed) for seed in seeds(now, capacity=seed_capacity)]
    yield objects


def _object(resource: Resource, name: str, *, namespace: str = "", labels: Any = None, **parts: Any) -> Object:
    metadata: dict[str, Any] = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": metadata, **parts}


def cloud_profiles() -> list[Object]:
    """The CloudProfiles of the simulated providers."""
    return [
        _object(CLOUD_PROFILES, offer.profile, spec=profile_spec(provider)) for provider, offer in PROVIDERS.items()
    ]


def distances() -> list[Object]:
    """The ConfigMaps with the distances of each provider's regions: near within a part of the world."""
    key, value = REGION_CONFIG
    made = []
    for provider, offer in PROVIDERS.items():
        regions = sorted({*offer.regions, *(region for name, region in _FURTHER_SEEDS if name == provider)})
        data = {
            one: "".join(f"{other}: {_milliseconds(one, other)}\n" for other in regions if other != one)
            for one in regions
        }
        found = _object(_CONFIG_MAPS, f"{offer.profile}-distances", namespace="garden", labels={key: value}, data=data)
        found["metadata"]["annotations"] = {CLOUD_PROFILES_ANNOTATION: offer.profile}
        made.append(found)
    return made


def _milliseconds(one: str, other: str) -> int:
    return _NEAR if distance(one, other) < PART else _FAR


def seeds(now: float, *, capacity: int = 0) -> Iterator[Object]:
    """A Seed for each provider and a few more, each with its status at `now`; `capacity` is in Shoots, 0 for any."""
    counts: Counter[str] = Counter()
    for provider, region in (*((name, one.regions[0]) for name, one in PROVIDERS.items()), *_FURTHER_SEEDS):
        counts[provider] += 1
        yield _seed(provider, counts[provider], region, now, capacity)


def _seed(provider: str, number: int, region: str, now: float, capacity: int) -> Object:
    stamp, room = format_time(now), {"shoots": str(capacity)}
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
            "networks": {"pods": "10.0.0.0/16", "services": "10.1.0.0/16", "shootDefaults": _NETWORKS},
            "ingress": {"domain": f"{provider}-{number}.ingress.example.org", "controller": {"kind": "nginx"}},
            "dns": _SEED_DNS,
            "accessRestrictions": [{"name": "eu-access-only"}],
            **({"taints": [{"key": _TAINTED[region]}]} if region in _TAINTED else {}),
        },
        status={
            "conditions": conditions,
            "kubernetesVersion": NEWEST,
            "gardener": {"id": "simulated", "name": "hortus-simulated-gardenlet", "version": GARDENLET_VERSION},
            **({"allocatable": room, "capacity": room} if capacity else {}),
            "lastOperation": {
                "type": "Reconcile",
                "state": "Succeeded",
                "progress": 100,
                "description": "Seed reconciliation finished",
                "lastUpdateTime": stamp,
            },
        },
    )
