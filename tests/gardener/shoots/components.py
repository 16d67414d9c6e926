"""Changes of the other parts of `spec.kubernetes`, for Shoots with workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.gardener.shoots.apiserver import gates
from tests.gardener.shoots.mutations import (
    FROM_134,
    FROM_135,
    GONE,
    UNTIL_134,
    VERSION,
    Changes,
    Family,
    Mutation,
    below,
    faults,
    one,
    variants,
)

_FROM_133: Final = ("1.33.5", *FROM_134)

_VERSION: Final[dict[str, Changes]] = {
    "version-missing": {VERSION: one("", GONE)},
    "version-unreadable": {VERSION: one("abc", "1.x.y", "latest"), "a/admissionPlugins": [{"name": "PodNodeSelector"}]},
}

_VERSION_OF_POOLS: Final[dict[str, Changes]] = {
    "version-unreadable-over-a-pool": {VERSION: one("abc", "1.x.y"), "w/kubernetes/version": one("1.33.5", "1.34.1")},
    "version-unreadable-for-taints": {
        VERSION: one("abc", "1.x.y"),
        "k/clusterAutoscaler": {"startupTaints": ["a"]},
        "w/kubernetes": GONE,
    },
}

_MANAGER: Final[dict[str, Changes]] = {
    "mask-for-pods": {"@/nodeCIDRMaskSize": one(26, 28)},
    "mask-small-or-large": {"@/nodeCIDRMaskSize": one(15, 29, 0, 64)},
    "mask-of-ipv6-small-or-large": {
        "s/networking": {"ipFamilies": ["IPv6"], "pods": GONE, "nodes": GONE, "services": GONE},
        "@/nodeCIDRMaskSize": one(63, 125, 24),
    },
    "masks-of-both-in-ipv6": {
        "s/networking": {"ipFamilies": ["IPv6"], "pods": GONE, "nodes": GONE, "services": GONE},
        "@/nodeCIDRMaskSize": 64,
        "@/nodeCIDRMaskSizeIPv6": 64,
    },
    "mask-of-ipv6-in-ipv4": {"s/networking": {"ipFamilies": ["IPv4"]}, "@/nodeCIDRMaskSizeIPv6": 64},
    "mask-of-ipv6-in-both": {"s/networking": {"ipFamilies": ["IPv4", "IPv6"]}, "@/nodeCIDRMaskSizeIPv6": one(63, 125)},
    "eviction-timeout-from-133": {VERSION: one(*_FROM_133), "@/podEvictionTimeout": "2m"},
    "eviction-timeout-none": {VERSION: "1.32.9", "@/podEvictionTimeout": one("0s", "-1s")},
    "monitor-grace-none": {"@/nodeMonitorGracePeriod": one("0s", "-1s")},
    "sync-short": {"@/horizontalPodAutoscaler": {"syncPeriod": one("0s", "999ms", "-1s")}},
    "tolerance-none": {"@/horizontalPodAutoscaler": {"tolerance": one(0, -0.5)}},
    "downscale-short": {"@/horizontalPodAutoscaler": {"downscaleStabilization": one("0s", "999ms")}},
    "readiness-none": {"@/horizontalPodAutoscaler": {"initialReadinessDelay": one("0s", "-1s")}},
    "initialization-short": {"@/horizontalPodAutoscaler": {"cpuInitializationPeriod": one("0s", "999ms")}},
}

_SCHEDULER: Final[dict[str, Changes]] = {
    "profile-unknown": {"@/profile": one("fast", "")},
    "volumes-from-135": {VERSION: one(*FROM_135), "@/kubeMaxPDVols": "30"},
    "volumes-no-number": {VERSION: one(*UNTIL_134), "@/kubeMaxPDVols": one("many", "1.5", "")},
    "volumes-none": {VERSION: one(*UNTIL_134), "@/kubeMaxPDVols": one("0", "-1")},
}

_PROXY: Final[dict[str, Changes]] = {
    "mode-unknown": {"@/mode": one("iptables", "", "Userspace")},
    "nftables-gate-off": {"@/mode": "NFTables", "@/featureGates": {"NFTablesProxyMode": False}},
}

_DURATIONS: Final = (
    "scaleDownDelayAfterAdd",
    "scaleDownDelayAfterDelete",
    "scaleDownDelayAfterFailure",
    "scaleDownUnneededTime",
    "scanInterval",
    "maxNodeProvisionTime",
    "newPodScaleUpDelay",
    "initialNodeGroupBackoffDuration",
    "maxNodeGroupBackoffDuration",
    "nodeGroupBackoffResetTimeout",
    "maxBinpackingTime",
)
_TAINTS: Final = one("startupTaints", "statusTaints", "ignoreTaints")

_AUTOSCALER: Final[dict[str, Changes]] = {
    **{f"negative-{name}": {f"@/{name}": one("-1s", "-10m")} for name in _DURATIONS},
    "threshold-negative": {"@/scaleDownUtilizationThreshold": -0.1},
    "threshold-large": {"@/scaleDownUtilizationThreshold": 1.1},
    "expander-unknown": {"@/expander": one("cheap", "random,cheap", "random,", "")},
    "termination-negative": {"@/maxGracefulTerminationSeconds": -1},
    "taint-bad": {"@": {_TAINTS: [one("a b", "", "-a")]}},
    "taint-reserved": {"@": {_TAINTS: ["node.gardener.cloud/critical-components-not-ready"]}},
    "taint-twice": {"@": {_TAINTS: ["a", "a"]}},
    "taints-ignored": {"@": {"ignoreTaints": ["a"]}},
    "bulk-from-133": {VERSION: one(*_FROM_133), "@": {"maxEmptyBulkDelete": 10}},
    "bulk-negative": {VERSION: "1.32.9", "@": {"maxEmptyBulkDelete": -1, "maxScaleDownParallelism": -1}},
    "bulk-is-not-the-parallelism": {VERSION: "1.32.9", "@": {"maxEmptyBulkDelete": 5, "maxScaleDownParallelism": 6}},
    "parallelism-negative": {"@/maxScaleDownParallelism": -1},
    "drains-negative": {"@/maxDrainParallelism": -1},
    "verbosity-negative": {"@/verbosity": -1},
}

_SCALED: Final[dict[str, Changes]] = {
    "minimum-missing": {"@/minAllowed": {}},
    "minimum-of-another-resource": {"@/minAllowed": {"pods": one("5", "500m"), "memory": "1Gi"}},
    "minimum-low": {"@/minAllowed": {"memory": one("1M", "59M", "0")}},
    "minimum-negative": {"@/minAllowed": {"cpu": "-1"}},
}
"""For each component that is scaled by its use."""

_SCALED_PLACES: Final = {
    "apiserver": "a/autoscaling",
    "etcd-main": "k/etcd/main/autoscaling",
    "etcd-events": "k/etcd/events/autoscaling",
}

_PERCENTILES: Final = (
    "targetCPUPercentile",
    "recommendationLowerBoundCPUPercentile",
    "recommendationUpperBoundCPUPercentile",
    "targetMemoryPercentile",
    "recommendationLowerBoundMemoryPercentile",
    "recommendationUpperBoundMemoryPercentile",
)
_VPA_DURATIONS: Final = (
    "evictAfterOOMThreshold",
    "updaterInterval",
    "recommenderInterval",
    "cpuHistogramDecayHalfLife",
    "memoryHistogramDecayHalfLife",
    "memoryAggregationInterval",
)

_VERTICAL: Final[dict[str, Changes]] = {
    **{f"percentile-{name}": {f"@/{name}": one(-0.1, 1.1)} for name in _PERCENTILES},
    **{f"negative-{name}": {f"@/{name}": "-1s"} for name in _VPA_DURATIONS},
    "burst-negative": {"@/evictionRateBurst": -1},
    "tolerance-out-of-range": {"@/evictionTolerance": one(-0.1, 1, 1.1)},
    "margin-out-of-range": {"@/recommendationMarginFraction": one(-0.1, 1)},
    "count-negative": {"@/memoryAggregationIntervalCount": -1},
    "gate-unknown": {"@/featureGates": {"Bogus": True}},
    "maximum-of-another-resource": {"@/maxAllowed": {"pods": one("5", "0.5")}},
    "maximum-negative": {"@/maxAllowed": {"memory": "-1Gi"}},
    "no-updaters": {"@/recommenderUpdateWorkerCount": one(0, -1)},
}

_VARIANTS: Final[dict[str, Changes]] = {
    "mask": {"k/kubeControllerManager": {"nodeCIDRMaskSize": one(20, 23, 24, 25)}},
    "masks-of-both": {
        "s/networking": {"ipFamilies": one(["IPv4", "IPv6"], ["IPv6", "IPv4"])},
        "k/kubeControllerManager": {"nodeCIDRMaskSizeIPv6": 64},
    },
    "hpa": {"k/kubeControllerManager/horizontalPodAutoscaler": {"syncPeriod": "30s", "tolerance": 0.2}},
    "scheduler": {"k/kubeScheduler": {"profile": one("balanced", "bin-packing")}},
    "volumes": {VERSION: one(*UNTIL_134), "k/kubeScheduler": {"kubeMaxPDVols": "30"}},
    "proxy": {"k/kubeProxy": {"mode": one("IPVS", "NFTables", "IPTables"), "enabled": one(True, False)}},
    "autoscaler": {
        "k/clusterAutoscaler": {
            "expander": one("random", "least-waste,random", "priority"),
            "scaleDownUnneededTime": one("30m", "10m0s", "0s"),
            "startupTaints": ["example.org/starting"],
            "statusTaints": ["example.org/status"],
        }
    },
    "autoscaler-bulk": {VERSION: "1.32.9", "k/clusterAutoscaler": {"maxEmptyBulkDelete": 5}},
    "autoscaler-scaled": {"k/clusterAutoscaler/autoscaling": {"minAllowed": {"cpu": "10m", "memory": "30M"}}},
    "vpa": {
        "k/verticalPodAutoscaler": {
            "enabled": True,
            "targetCPUPercentile": one(0, 0.9, 1),
            "featureGates": {"PerVPAConfig": True},
            "maxAllowed": {"cpu": "4", "memory": "8Gi"},
        }
    },
    "etcd": {"k/etcd": {"main": {"autoscaling": {"minAllowed": {"memory": "300M"}}}, "events": {}}},
}


def mutations() -> Iterator[Mutation]:
    yield from faults(Family.ANY, _VERSION)
    yield from faults(Family.WORKERS, _VERSION_OF_POOLS)
    for component, place in _SCALED_PLACES.items():
        yield from faults(Family.ANY, below(place, _SCALED), f"{component}-")
    components: dict[str, tuple[str, dict[str, Changes]]] = {
        "manager": ("k/kubeControllerManager", _MANAGER),
        "scheduler": ("k/kubeScheduler", _SCHEDULER),
        "proxy": ("k/kubeProxy", _PROXY),
        "autoscaler": ("k/clusterAutoscaler", _AUTOSCALER),
        "autoscaler-scaled": (
            "k/clusterAutoscaler/autoscaling",
            {**_SCALED, "minimum-low": {"@/minAllowed": {"memory": "29M"}}, "cpu-low": {"@/minAllowed": {"cpu": "9m"}}},
        ),
        "vpa": ("k/verticalPodAutoscaler", _VERTICAL),
    }
    for component, (place, table) in components.items():
        yield from faults(Family.WORKERS, below(place, table), f"{component}-")
    for component in ("manager", "scheduler", "proxy"):
        yield from gates(component, components[component][0], Family.WORKERS)
    yield from variants(Family.WORKERS, _VARIANTS)
