"""Changes of a kubelet's configuration: of the Shoot's, and of a pool's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tests.gardener.shoots.apiserver import gates
from tests.gardener.shoots.mutations import (
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

_NEVER: Final = "NeverVerifyAllowlistedImages"


def _allowing(pattern: str) -> Changes:
    return {
        VERSION: one(*FROM_135),
        "@/imagePullCredentialsVerificationPolicy": _NEVER,
        "@/preloadedImagesVerificationAllowlist": [pattern],
    }


_FAULTS: Final[dict[str, Changes]] = {
    "cpu-manager": {"@/cpuManagerPolicy": one("dynamic", "", "Static")},
    "max-pods-negative": {"@/maxPods": -1},
    "few-pids": {"@/podPidsLimit": one(99, 0, -1)},
    "pressure-negative": {"@/evictionPressureTransitionPeriod": "-1m"},
    "grace-negative": {"@/evictionMaxPodGracePeriod": -1},
    "hard-memory": {"@/evictionHard": {"memoryAvailable": one("abc", "-1Mi", "5 %", "")}},
    "hard-image": {"@/evictionHard": {"imageFSAvailable": one("abc", "-1Mi")}},
    "hard-image-inodes": {"@/evictionHard": {"imageFSInodesFree": one("abc", "-1%")}},
    "hard-node": {"@/evictionHard": {"nodeFSAvailable": one("abc", "")}},
    "hard-above-100": {"@/evictionHard": {"memoryAvailable": one("101%", "1000%")}},
    "soft-memory": {"@/evictionSoft": {"memoryAvailable": one("abc", "-1Mi", "101%")}},
    "soft-image": {"@/evictionSoft": {"imageFSAvailable": "abc"}},
    "soft-image-inodes": {"@/evictionSoft": {"imageFSInodesFree": "-1%"}},
    "soft-node": {"@/evictionSoft": {"nodeFSAvailable": "abc"}},
    "reclaim-memory": {"@/evictionMinimumReclaim": {"memoryAvailable": "-1Mi"}},
    "reclaim-image": {"@/evictionMinimumReclaim": {"imageFSAvailable": "-1Mi"}},
    "reclaim-image-inodes": {"@/evictionMinimumReclaim": {"imageFSInodesFree": "-1"}},
    "reclaim-node": {"@/evictionMinimumReclaim": {"nodeFSAvailable": "-1Mi"}},
    "soft-grace-memory": {"@/evictionSoftGracePeriod": {"memoryAvailable": "-1m"}},
    "soft-grace-image": {"@/evictionSoftGracePeriod": {"imageFSAvailable": "-1m"}},
    "soft-grace-image-inodes": {"@/evictionSoftGracePeriod": {"imageFSInodesFree": "-1m"}},
    "soft-grace-node": {"@/evictionSoftGracePeriod": {"nodeFSAvailable": "-1m"}},
    "reserved-cpu": {"@/kubeReserved": {"cpu": "-1"}},
    "reserved-memory": {"@/kubeReserved": {"memory": "-1Mi"}},
    "reserved-storage": {"@/kubeReserved": {"ephemeralStorage": "-1Gi"}},
    "reserved-pids": {"@/kubeReserved": {"pid": "-1"}},
    "minimum-age-negative": {"@/imageMinimumGCAge": "-2m"},
    "maximum-age-negative": {"@/imageMaximumGCAge": "-2m"},
    "high-threshold": {"@/imageGCHighThresholdPercent": one(-1, 101)},
    "low-threshold": {"@/imageGCLowThresholdPercent": one(-1, 101)},
    "thresholds-crossed": {"@/imageGCHighThresholdPercent": 30, "@/imageGCLowThresholdPercent": one(30, 40)},
    "pulls-negative": {"@/registryPullQPS": -1},
    "burst-negative": {"@/registryBurst": -1},
    "few-logs": {"@/containerLogMaxFiles": one(1, 0, -1)},
    "logs-negative": {"@/containerLogMaxSize": "-1Mi"},
    "streams-short-or-long": {"@/streamingConnectionIdleTimeout": one("29s", "4h1s", "-1m", "0s")},
    "swap-and-fail": {"@/failSwapOn": True, "@/memorySwap": {}},
    "swap-without-the-gate": {"@/failSwapOn": False, "@/memorySwap": {"swapBehavior": "LimitedSwap"}},
    "swap-unknown": {
        "@/failSwapOn": False,
        "@/memorySwap": {"swapBehavior": one("Unlimited", "")},
        "@/featureGates": {"NodeSwap": True},
    },
    "parallel-pulls-none": {"@/maxParallelImagePulls": one(0, -1)},
    "parallel-pulls-in-series": {"@/maxParallelImagePulls": 2, "@/serializeImagePulls": True},
    "pull-policy-until-134": {VERSION: one(*UNTIL_134), "@/imagePullCredentialsVerificationPolicy": "AlwaysVerify"},
    "pull-policy-gate-off": {
        VERSION: one(*FROM_135),
        "@/imagePullCredentialsVerificationPolicy": "AlwaysVerify",
        "@/featureGates": {"KubeletEnsureSecretPulledImages": False},
    },
    "pull-policy-unknown": {VERSION: one(*FROM_135), "@/imagePullCredentialsVerificationPolicy": one("Sometimes", "")},
    "allowlist-without-the-policy": {
        VERSION: one(*FROM_135),
        "@/imagePullCredentialsVerificationPolicy": "AlwaysVerify",
        "@/preloadedImagesVerificationAllowlist": ["registry.example.org/a"],
    },
    "allowlist-alone": {VERSION: one(*FROM_135), "@/preloadedImagesVerificationAllowlist": []},
    "allowlist-with-spaces": _allowing(" registry.example.org/a"),
    "allowlist-empty": _allowing(""),
    "allowlist-with-a-star": _allowing("registry.example.org/*/a"),
    "allowlist-without-a-host": _allowing("/*"),
    "allowlist-no-image": _allowing("UPPER:"),
    "allowlist-with-a-tag": _allowing("registry.example.org/a:v1"),
    "allowlist-with-a-digest": _allowing(f"registry.example.org/a@sha256:{'0' * 64}"),
}

_VARIANTS: Final[dict[str, Changes]] = {
    "kubelet": {"@/cpuManagerPolicy": one("none", "static"), "@/maxPods": one(50, 110, 250), "@/podPidsLimit": 100},
    "eviction": {
        "@/evictionHard": {"memoryAvailable": one("100Mi", "5%", "100%"), "nodeFSInodesFree": "5%"},
        "@/evictionSoft": {"nodeFSAvailable": "10%"},
        "@/evictionSoftGracePeriod": {"nodeFSAvailable": "90s"},
        "@/evictionMinimumReclaim": {"nodeFSAvailable": "1Gi"},
    },
    "reserved": {"@/kubeReserved": {"cpu": one("80m", "0.1", "100m"), "memory": "1Gi", "pid": "20k"}},
    "images": {"@/imageGCHighThresholdPercent": 80, "@/imageGCLowThresholdPercent": 0, "@/imageMinimumGCAge": "5m"},
    "swap": {"@/failSwapOn": False, "@/featureGates": {"NodeSwap": True}},
    "logs": {"@/containerLogMaxFiles": 2, "@/containerLogMaxSize": one("10Mi", "100M")},
    "parallel-pulls": {"@/maxParallelImagePulls": one(1, 2, 5)},
    "pull-policy": {
        VERSION: one(*FROM_135),
        "@/imagePullCredentialsVerificationPolicy": _NEVER,
        "@/preloadedImagesVerificationAllowlist": ["registry.example.org/*", "registry.example.org/a/b"],
    },
}

_OF_ALL: Final[dict[str, Changes]] = {
    "max-pods-none": {"k/kubelet/maxPods": 0, "k/kubeControllerManager/nodeCIDRMaskSize": GONE},
}
"""For the kubelets of all pools: the default of the mask for nodes is computed from their pods."""

_PLACES: Final = {"kubelet": "k/kubelet", "pool-kubelet": "w/kubernetes/kubelet"}


def mutations() -> Iterator[Mutation]:
    yield from faults(Family.WORKERS, _OF_ALL, "kubelet-")
    for component, place in _PLACES.items():
        yield from faults(Family.WORKERS, below(place, _FAULTS), f"{component}-")
        yield from variants(Family.WORKERS, below(place, _VARIANTS), f"{component}-")
        yield from gates(component, place, Family.WORKERS)
