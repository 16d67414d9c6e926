"""Small Shoots for tests, on three providers."""

from __future__ import annotations

from hortus.kube.objects import Object
from hortus.simulation.garden.kinds import SHOOTS
from hortus.simulation.garden.profiles import zones

_PLACES = (("aws", "eu-central-1", "aws"), ("azure", "westeurope", "az"), ("gcp", "europe-west3", "gcp"))
_MACHINES = {"aws": "m6i.large", "azure": "Standard_D2s_v5", "gcp": "n2-standard-2"}


def small_shoot(project: str, number: int) -> Object:
    """The Shoot `demo-<number>` with one node; providers take turns."""
    provider, region, profile = _PLACES[number % len(_PLACES)]
    worker = {
        "name": "cpu-worker-0",
        "machine": {"type": _MACHINES[provider], "image": {"name": "gardenlinux", "version": "1592.1.0"}},
        "minimum": 1,
        "maximum": 3,
        "zones": [zones(provider, region)[0]["name"]],
    }
    return {
        "apiVersion": SHOOTS.api_version,
        "kind": SHOOTS.kind,
        "metadata": {"name": f"demo-{number}", "namespace": f"garden-{project}"},
        "spec": {
            "purpose": "evaluation",
            "cloudProfile": {"kind": "CloudProfile", "name": profile},
            "credentialsBindingName": "demo-binding",
            "region": region,
            "kubernetes": {"version": "1.34.1"},
            "networking": {"type": "calico", "nodes": "10.250.0.0/16"},
            "provider": {"type": provider, "workers": [worker]},
        },
    }
