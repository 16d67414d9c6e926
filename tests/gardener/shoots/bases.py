"""Shoots that Gardener takes: on five clouds, without workers, and with their control plane in a pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from tests.gardener.shoots.mutations import Family

from hortus.kube.objects import Object

VERSIONS: Final = ("1.32.9", "1.33.5", "1.34.1", "1.35.0", "1.36.0")
_PLACES: Final[Mapping[str, tuple[str, tuple[str, ...], str, str]]] = {
    "aws": ("eu-central-1", ("eu-central-1a", "eu-central-1b", "eu-central-1c"), "m6i.large", "gp3"),
    "azure": ("westeurope", ("1", "2", "3"), "Standard_D4s_v5", "StandardSSD_LRS"),
    "gcp": ("europe-west3", ("europe-west3-a", "europe-west3-b", "europe-west3-c"), "n2-standard-4", "pd-ssd"),
    "openstack": ("eu-de-1", ("eu-de-1a", "eu-de-1b", "eu-de-1d"), "g_c4_m16", ""),
    "local": ("local", (), "local", ""),
}
PROVIDERS: Final = tuple(_PLACES)


def base(family: Family, random: Random) -> Object:
    """A valid Shoot of the family; families that any Shoot is of have one with workers, and at times one without."""
    if family is Family.ANY:
        family = Family.WORKERLESS if random.random() < 0.1 else Family.WORKERS
    return _MAKERS[family](random)


def _with_workers(random: Random) -> Object:
    provider = random.choice(PROVIDERS)
    region, zones, _, _ = _PLACES[provider]
    spec = {
        **_common(provider, region, random),
        "credentialsBindingName": f"{provider}-credentials",
        "networking": {
            "type": random.choice(["calico", "cilium"]),
            "nodes": "10.250.0.0/16",
            "pods": "100.64.0.0/12",
            "services": "100.104.0.0/13",
        },
        "provider": {
            "type": provider,
            "infrastructureConfig": {
                "apiVersion": f"{provider}.provider.extensions.gardener.cloud/v1alpha1",
                "kind": "InfrastructureConfig",
            },
            "workers": [_worker(provider, f"pool-{number}", zones) for number in range(random.choice([1, 1, 2]))],
        },
    }
    return _shoot(spec, "garden-demo")


def _workerless(random: Random) -> Object:
    provider = random.choice(PROVIDERS)
    spec = {**_common(provider, _PLACES[provider][0], random), "provider": {"type": provider}}
    return _shoot(spec, "garden-demo")


def _self_hosted(random: Random) -> Object:
    found = _with_workers(random)
    found["metadata"]["namespace"] = "garden"
    worker = found["spec"]["provider"]["workers"][0]
    found["spec"]["provider"]["workers"] = [{**worker, "minimum": 1, "maximum": 1, "controlPlane": {}}]
    worker["zones"] = worker["zones"][:1]
    found["spec"]["provider"]["workers"][0]["zones"] = worker["zones"]
    return found


_MAKERS: Final[Mapping[Family, Callable[[Random], Object]]] = {
    Family.WORKERS: _with_workers,
    Family.WORKERLESS: _workerless,
    Family.SELF_HOSTED: _self_hosted,
}


def _shoot(spec: Object, namespace: str) -> Object:
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": "drawn", "namespace": namespace},
        "spec": spec,
    }


def _common(provider: str, region: str, random: Random) -> Object:
    return {
        "cloudProfile": {"kind": "CloudProfile", "name": provider},
        "region": region,
        "purpose": random.choice(["evaluation", "development", "production"]),
        "kubernetes": {"version": random.choice(VERSIONS)},
    }


def _worker(provider: str, name: str, zones: tuple[str, ...]) -> Object:
    _, _, machine, volume = _PLACES[provider]
    found: Object = {
        "name": name,
        "machine": {"type": machine, "image": {"name": "gardenlinux", "version": "1592.1.0"}},
        "minimum": 1,
        "maximum": 3,
        "zones": [*zones],
    }
    if volume:
        found["volume"] = {"type": volume, "size": "80Gi"}
    return found
