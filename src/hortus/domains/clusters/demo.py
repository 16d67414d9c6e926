"""The Runtimes of `hortus up`: small clusters, on each provider in turn."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle
from typing import Final, NamedTuple

from hortus.domains import DemoFleet
from hortus.domains.clusters.types import RUNTIMES, Label
from hortus.domains.credentials.types import HOME
from hortus.kube.objects import Object, Resource


class _Place(NamedTuple):
    """A provider with one of its regions, and what it offers there."""

    provider: str
    region: str
    platform_region: str
    zone: str
    machine: str
    volume: str
    """Type of the nodes' volumes; empty where the provider has one type alone."""


PLACES: Final = (
    _Place("aws", "eu-central-1", "cf-eu10", "eu-central-1a", "m6i.large", "gp3"),
    _Place("azure", "westeurope", "cf-eu20", "1", "Standard_D2s_v5", "StandardSSD_LRS"),
    _Place("gcp", "europe-west3", "cf-eu30", "europe-west3-a", "n2-standard-2", "pd-balanced"),
    _Place("openstack", "eu-de-1", "cf-eu10", "eu-de-1a", "g_c2_m8", ""),
    _Place("alicloud", "eu-central-1", "cf-cn40", "eu-central-1a", "ecs.g8i.large", "cloud_essd"),
)
"""One place of each provider."""


def runtimes(fleet: DemoFleet) -> Iterator[tuple[Resource, Object]]:
    """A Runtime for each cluster of the fleet."""
    for name, place in zip(fleet.names, cycle(PLACES), strict=False):
        yield RUNTIMES, _runtime(name, place, fleet.secret_binding)


def _runtime(name: str, place: _Place, secret_binding: str) -> Object:
    provider = place.provider
    labels = {
        Label.INSTANCE_ID: f"instance-{name}",
        Label.RUNTIME_ID: name,
        Label.REGION: place.region,
        Label.KYMA_NAME: name,
        Label.BROKER_PLAN_ID: f"plan-{provider}",
        Label.BROKER_PLAN_NAME: provider,
        Label.GLOBAL_ACCOUNT_ID: "demo-account",
        Label.SUBACCOUNT_ID: f"subaccount-{name}",
    }
    shoot = {
        "name": name,
        "purpose": "evaluation",
        "region": place.region,
        "platformRegion": place.platform_region,
        "secretBindingName": secret_binding,
        "provider": {"type": provider, "workers": [_worker(place)]},
        "networking": {
            "type": "calico",
            "nodes": "10.250.0.0/16",
            "pods": "10.96.0.0/13",
            "services": "10.104.0.0/13",
        },
    }
    filters = {"egress": {"enabled": True}, "ingress": {"enabled": False}}
    security = {"administrators": ["admin@example.org"], "networking": {"filter": filters}}
    return {
        "apiVersion": RUNTIMES.api_version,
        "kind": RUNTIMES.kind,
        "metadata": {"name": name, "namespace": HOME, "labels": labels},
        "spec": {"shoot": shoot, "security": security},
    }


def _worker(place: _Place) -> Object:
    return {
        "name": "cpu-worker-0",
        "machine": {"type": place.machine},
        "minimum": 1,
        "maximum": 3,
        "maxSurge": 1,
        "maxUnavailable": 0,
        "zones": [place.zone],
        **({"volume": {"type": place.volume, "size": "80Gi"}} if place.volume else {}),
    }
