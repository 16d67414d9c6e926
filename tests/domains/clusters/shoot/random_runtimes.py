"""Random Runtimes with faults: the faults of random Shoots, as far as a Runtime has the field, and some of their own.

A fault is written into a view of the Runtime as a Shoot, and what of the view a Runtime has is taken back.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, Final, NamedTuple

from tests.domains.clusters.shoot.samples import ZONES, pool, runtime
from tests.gardener.shoots.generator import MUTATIONS
from tests.gardener.shoots.mutations import GONE, Changes, Family, drawn, one, put

from hortus.kube import Object

VERSIONS: Final = ("1.32.9", "1.33.5", "1.34.1", "1.35.0", "1.36.0")
KINDS: Final[Mapping[str, Changes]] = {
    "sysctl": {"w/sysctls": {one("a b", "", "net.*.x y", "kernel.pid_max"): one("", "1")}},
    "certificates": {"w/caBundle": one("", "nope", "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----")},
    "update strategy": {"w/updateStrategy": one("Rolling", "", "ManualInPlaceUpdate"), "w/maxSurge": one(1, GONE)},
    "kubelet's disk": {"w/kubeletDataVolumeName": one("nope", ""), "w/dataVolumes": one(GONE, [])},
    "further disks": {
        "w/volume": one(GONE, {"size": "50Gi"}),
        "w/dataVolumes": [{"name": one("a", ""), "size": "1Gi"}],
    },
    "two disks of a name": {"w/volume": {"size": "50Gi"}, "w/dataVolumes": [{"name": "a", "size": "1Gi"}] * 2},
    "autoscaler": {
        "w/clusterAutoscaler": {
            "scaleDownUtilizationThreshold": one(-0.1, 0.5, 1.1),
            "scaleDownUnneededTime": one("-1m", "10m", "abc"),
        }
    },
    "priority": {"w/priority": one(-2, -1, 7)},
    "pool newer than its cluster": {"k/version": "1.33.5", "w/kubernetes/version": one("1.34.1", "1.33.6", "1.33.4")},
    "network type": {"s/networking/type": one(GONE, "", "a b")},
    "no active pool": {"w/minimum": 0, "w/maximum": 0},
    "hyphens in the name": {"m/name": one("a--b", "-a", "A", "a.b", "good")},
    "size without a unit": {"w/volume": {"size": one("80", "80Mi", "-5Gi", "", "80Gi")}},
    "surge": {"w/maxSurge": one(-1, "1", "-1%", "abc", 0, "5%")},
    "unavailable": {"w/maxUnavailable": one(-1, "1", "101%", 0, "5%"), "w/maxSurge": one(0, 1)},
    "label": {"w/labels": {one("a b", "a/b/c", "-a", "good"): one("b c", "x" * 64, "good")}},
    "annotation": {"w/annotations": {one("a b", "", "good"): "x"}},
    "taint": {
        "w/taints": [
            {"key": one("a b", "", "good"), "value": one("b c", "good"), "effect": one("Never", "", "NoExecute")}
        ]
    },
    "taint twice": {"w/taints": [{"key": "a", "effect": "NoSchedule", "value": one("1", "2")}] * 2},
    "architecture": {"w/machine/architecture": one("riscv64", "", "arm64")},
    "container runtime": {"w/cri": {"name": one("docker", "", "containerd")}},
    "machine timeouts": {"w/machineControllerManager": {"machineDrainTimeout": one("-1m", "abc", "10m")}},
    "update timeout": {"w/machineControllerManager": {"inPlaceUpdateTimeout": "1h"}},
    "few machines for the zones": {"w/minimum": 0, "w/maximum": one(1, 3)},
    "kubelet": {
        "w/kubernetes/kubelet": {
            "cpuManagerPolicy": one("bogus", "static"),
            "evictionHard": {"memoryAvailable": one("abc", "5%", "100Mi")},
            "kubeReserved": {"cpu": one("-1", "0.1", 1)},
            "maxPods": one(-1, 110),
        }
    },
    "feature gate": {"w/kubernetes/kubelet": {"featureGates": {one("Nope", "NodeSwap"): one(True, False)}}},
    "high availability": {"s/controlPlane": {"highAvailability": {"failureTolerance": {"type": one("moon", "node")}}}},
    "purpose": {"s/purpose": one("fun", "infrastructure", "testing")},
}
"""Faults that were refused by the garden alone, each by its name; some draws of each are valid."""
_OF_SHOOTS: Final = tuple(one_ for one_ in MUTATIONS if one_.family in (Family.ANY, Family.WORKERS))
_RANGES: Final = ("type", "nodes", "pods", "services")


class Drawn(NamedTuple):
    """A Runtime, and the names of its faults."""

    runtime: Object
    names: tuple[str, ...]


def runtimes(seed: int, count: int) -> Iterator[Drawn]:
    """As many random Runtimes; the same for the same seed. Each kind of fault is drawn as often as the others."""
    random = Random(seed)
    order: list[str] = []
    for number in range(count):
        made, names = valid(random), []
        if number % 2:
            order = order or random.sample([*KINDS], len(KINDS))
            for _ in range(random.choice((1, 1, 2))):
                if order:
                    names.append(order.pop())
                    _change(made, KINDS[names[-1]], random)
        else:
            for mutation in random.sample(_OF_SHOOTS, random.choice((0, 1, 1, 2, 3))):
                view = _view(made)
                mutation.apply(view, random)
                _take_back(made, view)
                names.append(mutation.name)
        yield Drawn(made, tuple(names))


def valid(random: Random, provider: str = "") -> Object:
    """A Runtime without a fault."""
    provider = provider or random.choice([*ZONES])
    zones = ZONES[provider][: random.randint(1, 3)]
    further = [_pool(f"pool-{number}", provider, zones, random) for number in range(random.choice((0, 0, 1, 2)))]
    region = "eu-de-1" if provider == "openstack" else "eu-central-1"
    version = {"kubernetes": {"version": random.choice(VERSIONS)}}
    main = _pool("cpu-worker-0", provider, zones, random)
    return runtime(provider, pool=main, further=further, region=region, **version)


def _pool(name: str, provider: str, zones: list[str], random: Random) -> Object:
    fields: dict[str, Any] = {"minimum": random.randint(0, 3), "maximum": random.randint(3, 9)}
    if provider != "azure" and random.random() < 0.5:
        fields["volume"] = {"type": "ssd", "size": "80Gi"}
    return pool(name, zones=zones, **fields)


def _change(made: Object, changes: Changes, random: Random) -> None:
    view = _view(made)
    for path, value in changes.items():
        put(view, path, drawn(value, random))
    _take_back(made, view)


def _view(made: Object) -> Object:
    """The fields of a Runtime at the places of a Shoot."""
    shoot = copy.deepcopy(made["spec"]["shoot"])
    provider = shoot["provider"]
    return {
        "metadata": {"name": shoot["name"], "namespace": "garden-demo"},
        "spec": {
            "provider": {"workers": [*provider["workers"], *provider.get("additionalWorkers", ())]},
            "kubernetes": dict(shoot["kubernetes"]),
            **{name: shoot[name] for name in ("networking", "purpose", "region", "controlPlane") if name in shoot},
        },
    }


def _take_back(made: Object, view: Object) -> None:
    shoot, spec = made["spec"]["shoot"], view["spec"]
    main, *further = spec["provider"].get("workers") or [{}]
    if main:
        shoot["provider"] |= {"workers": [main], "additionalWorkers": further}
    version = (spec.get("kubernetes") or {}).get("version")
    shoot["kubernetes"] = {"version": version} if isinstance(version, str) else {}
    networking = spec.get("networking") or {}
    shoot["networking"] |= {name: networking[name] for name in _RANGES if isinstance(networking.get(name), str)}
    if not networking.get("type"):
        shoot["networking"].pop("type", None)
    for name in ("purpose", "region"):
        shoot[name] = spec.get(name) or ""
    if spec.get("controlPlane"):
        shoot["controlPlane"] = spec["controlPlane"]
    shoot["name"] = view["metadata"].get("name") or ""
