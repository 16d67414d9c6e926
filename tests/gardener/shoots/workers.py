"""Changes of pools."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.gardener.shoots.mutations import GONE, VERSION, Changes, Family, Mutation, faults, one, variants

_IN_PLACE: Final = one("AutoInPlaceUpdate", "ManualInPlaceUpdate")
_RESERVED: Final = "node.gardener.cloud/critical-components-not-ready"

_POOL: Final[dict[str, Changes]] = {
    "name-bad": {"w/name": one("Upper", "a.b", "", "-a")},
    "name-long": {"w/name": "a" * 16},
    "machine-missing": {"w/machine/type": one("", GONE)},
    "image-missing": {"w/machine/image": GONE},
    "image-unnamed": {"w/machine/image": {"name": ""}},
    "image-without-a-version": {"w/machine/image": {"version": one("", GONE)}},
    "minimum-negative": {"w/minimum": -1},
    "maximum-negative": {"w/maximum": -1},
    "maximum-below-the-minimum": {"w/minimum": one(4, 1000)},
    "surge-no-number": {"w/maxSurge": one("1", "-1%", "abc", "")},
    "surge-negative": {"w/maxSurge": -1},
    "unavailable-no-number": {"w/maxUnavailable": one("1", "abc")},
    "unavailable-negative": {"w/maxUnavailable": -1},
    "unavailable-above-100": {"w/maxUnavailable": one("101%", "200%")},
    "surge-in-a-manual-update": {"w/updateStrategy": "ManualInPlaceUpdate", "w/maxSurge": one(0, 1)},
    "unavailable-in-a-manual-update": {"w/updateStrategy": "ManualInPlaceUpdate", "w/maxUnavailable": one(0, 1, "5%")},
    "neither-surge-nor-unavailable": {"w/maxSurge": one(0, "0%"), "w/maxUnavailable": one(0, "0%", GONE)},
    "strategy-unknown": {"w/updateStrategy": one("Rolling", "")},
    "priority-low": {"w/priority": -2},
    "architecture-unknown": {"w/machine/architecture": one("riscv64", "")},
    "runtime-unknown": {"w/cri": {"name": one("docker", "")}},
    "container-runtime-without-a-type": {"w/cri": {"name": "containerd", "containerRuntimes": [{"type": ""}]}},
    "container-runtime-twice": {"w/cri": {"name": "containerd", "containerRuntimes": [{"type": "a"}, {"type": "a"}]}},
    "certificates-bad": {
        "w/caBundle": one("nope", "", "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n")
    },
    "version-newer": {VERSION: one("1.32.9", "1.33.5"), "w/kubernetes/version": one("1.34.0", "1.33.6")},
    "version-old": {VERSION: "1.36.0", "w/kubernetes/version": one("1.32.9", "1.31.0")},
    "pool-twice": {"s/provider/workers/1": {}, "s/provider/workers/+": {"name": "pool-0"}},
    "few-nodes-for-the-zones": {"w/maximum": 1, "w/zones": ["a", "b"]},
    "no-active-pool": {"w/minimum": 0, "w/maximum": 0, "s/provider/workers/1/systemComponents": {"allow": False}},
    "no-pool-for-the-system": {
        "w/systemComponents": {"allow": False},
        "s/provider/workers/1/systemComponents": {"allow": False},
    },
}

_LABELS: Final[dict[str, Changes]] = {
    "label-key-bad": {"w/labels": {one("a b", "-a", "a/b/c"): "a"}},
    "label-value-bad": {"w/labels": {"a": one("b c", "x" * 64)}},
    "annotation-key-bad": {"w/annotations": {one("a b", ""): "a"}},
    "annotations-long": {"w/annotations": {"a": "x" * 262145}},
    "taint-key-bad": {"w/taints": [{"key": one("a b", "", "/a"), "effect": "NoSchedule"}]},
    "taint-key-reserved": {"w/taints": [{"key": _RESERVED, "effect": "NoSchedule"}]},
    "taint-value-bad": {"w/taints": [{"key": "a", "value": one("b c", "x" * 64), "effect": "NoSchedule"}]},
    "taint-without-an-effect": {"w/taints": [{"key": "a", "effect": ""}]},
    "taint-effect-unknown": {"w/taints": [{"key": "a", "effect": "NoFun"}]},
    "taint-twice": {
        "w/taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "value": "b", "effect": "NoSchedule"}]
    },
    "sysctl-bad": {"w/sysctls": {one("", "a b", ".a", "net.ipv4."): "1"}},
    "sysctl-long": {"w/sysctls": {"a." * 2100 + "b": "1"}},
    "sysctl-part-long": {"w/sysctls": {"net." + "a" * 256: "1"}},
    "sysctl-empty": {"w/sysctls": {"vm.swappiness": ""}},
}

_DISKS: Final[dict[str, Changes]] = {
    "volume-name-empty": {"w/volume": {"size": "80Gi", "name": ""}},
    "volume-name-bad": {"w/volume": {"size": "80Gi", "name": one("Upper", "a.b")}},
    "volume-name-long": {"w/volume": {"size": "80Gi", "name": "a" * 16}},
    "volume-size": {"w/volume": {"size": one("80", "80G", "", "80Mi", " 80Gi", "8.5Gi")}},
    "disks-without-a-volume": {"w/volume": GONE, "w/dataVolumes": [{"name": "a", "size": "10Gi"}]},
    "disk-name-empty": {"w/volume": {"size": "80Gi"}, "w/dataVolumes": [{"name": "", "size": "10Gi"}]},
    "disk-name-bad": {"w/volume": {"size": "80Gi"}, "w/dataVolumes": [{"name": one("Upper", "a_b"), "size": "10Gi"}]},
    "disk-name-long": {"w/volume": {"size": "80Gi"}, "w/dataVolumes": [{"name": "a" * 16, "size": "10Gi"}]},
    "disk-twice": {
        "w/volume": {"size": "80Gi"},
        "w/dataVolumes": [{"name": "a", "size": "10Gi"}, {"name": "a", "size": "20Gi"}],
    },
    "disk-size": {"w/volume": {"size": "80Gi"}, "w/dataVolumes": [{"name": "a", "size": one("10", "10G", "")}]},
    "disk-of-the-kubelet-unknown": {"w/kubeletDataVolumeName": one("nope", "")},
}

_SCALING: Final[dict[str, Changes]] = {
    "threshold-negative": {"w/clusterAutoscaler": {"scaleDownUtilizationThreshold": -0.1}},
    "threshold-large": {"w/clusterAutoscaler": {"scaleDownUtilizationThreshold": 1.1}},
    "gpu-threshold-negative": {"w/clusterAutoscaler": {"scaleDownGpuUtilizationThreshold": -0.1}},
    "gpu-threshold-large": {"w/clusterAutoscaler": {"scaleDownGpuUtilizationThreshold": 1.1}},
    "unneeded-negative": {"w/clusterAutoscaler": {"scaleDownUnneededTime": "-1m"}},
    "unready-negative": {"w/clusterAutoscaler": {"scaleDownUnreadyTime": "-1m"}},
    "provision-negative": {"w/clusterAutoscaler": {"maxNodeProvisionTime": "-1m"}},
    "drain-negative": {"w/machineControllerManager": {"machineDrainTimeout": "-1m"}},
    "health-negative": {"w/machineControllerManager": {"machineHealthTimeout": "-1m"}},
    "creation-negative": {"w/machineControllerManager": {"machineCreationTimeout": "-1m"}},
    "evictions-negative": {"w/machineControllerManager": {"maxEvictRetries": -1}},
    "update-timeout-negative": {
        "w/updateStrategy": _IN_PLACE,
        "w/machineControllerManager": {"inPlaceUpdateTimeout": "-1m"},
    },
    "update-timeout-in-rolling-updates": {"w/machineControllerManager": {"inPlaceUpdateTimeout": "1m"}},
    "no-health-timeout-in-rolling-updates": {"w/machineControllerManager": {"disableHealthTimeout": True}},
    "preserve-negative": {"w/machineControllerManager": {"machinePreserveTimeout": "-1m"}},
    "preserved-negative": {"w/machineControllerManager": {"autoPreserveFailedMachineMax": -1}},
    "preserved-all": {"w/machineControllerManager": {"autoPreserveFailedMachineMax": one(3, 10)}},
    "preserved-more": {
        "w/systemComponents": {"allow": False},
        "w/machineControllerManager": {"autoPreserveFailedMachineMax": one(4, 10)},
    },
}


_VARIANTS: Final[dict[str, Changes]] = {
    "many": {
        "w/minimum": 0,
        "w/maximum": one(3, 100),
        "w/maxSurge": one(3, "50%"),
        "w/maxUnavailable": one(0, 1, "5%"),
    },
    "in-place": {"w/updateStrategy": _IN_PLACE},
    "arm": {"w/machine/architecture": one("arm64", "amd64")},
    "gvisor": {"w/cri": {"name": "containerd", "containerRuntimes": [{"type": "gvisor"}]}},
    "labelled": {"w/labels": {"example.org/a": "b"}, "w/annotations": {"a": "b c"}},
    "tainted": {"w/taints": [{"key": "a", "effect": "NoSchedule"}, {"key": "a", "effect": "NoExecute"}]},
    "sysctls": {"w/sysctls": {"vm.max_map_count": "262144", "net.ipv4.conf.*.forwarding": "1"}},
    "disks": {
        "w/volume": {"size": "80Gi"},
        "w/dataVolumes": [{"name": "kubelet", "size": "20Gi"}],
        "w/kubeletDataVolumeName": "kubelet",
    },
    "older": {VERSION: one("1.35.0", "1.34.1"), "w/kubernetes": {"version": one("1.33.5", "1.34.0")}},
    "minor-alone": {VERSION: "1.34.1", "w/kubernetes": {"version": one("1.33", "v1.33.5")}},
    "mcm": {"w/machineControllerManager": {"machineDrainTimeout": one("2h", "10m0s", "10m"), "maxEvictRetries": 10}},
    "pool-autoscaler": {"w/clusterAutoscaler": {"scaleDownUtilizationThreshold": 0.5, "scaleDownUnneededTime": "0s"}},
    "priority": {"w/priority": one(-1, 0, 50)},
}


def mutations() -> Iterator[Mutation]:
    for table in (_POOL, _LABELS, _DISKS, _SCALING):
        yield from faults(Family.WORKERS, table, "pool-")
    yield from variants(Family.WORKERS, _VARIANTS)
