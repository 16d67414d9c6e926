"""Gardener's defaults of a Shoot, as its API server fills them in when it reads one.

From a Shoot as somebody sent it to the Shoot that Gardener's rules look at and that is stored. Source: gardener,
pkg/apis/core/v1beta1/defaults_shoot.go; what admission and the strategy add besides depends on other objects, or on the
Shoot before (`preparing`).
"""

from __future__ import annotations

import copy
import functools
import math
import zlib
from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

from hortus.gardener.shoots.facts import NEWEST
from hortus.gardener.structure import shapes
from hortus.kube.objects import Object
from hortus.schema.builtin import Shapes, static_defaults

SHOOT: Final = "garden.Shoot"
GARDEN_NAMESPACE: Final = "garden"
"""The namespace of Gardener's own project."""


_ARCHITECTURE_BY_ADMISSION: Final = (1, 149)
"""The first release in which the architecture of a machine is no default, but follows from its image."""
_PROTECTED: Final = {"key": "seed.gardener.cloud/protected"}
_HOURS: Final = 23
"""Gardener draws the first hour of a maintenance window from 0 to 22."""
_PODS: Final = 110
"""kubelet's own limit of pods on a node."""
_MOST_PODS: Final = 1 << 30
"""From here on twice the pods do not fit into Go's int32, and there is no mask."""
_NO_MASK: Final = 32 - (1 << 31)
_WIDE_MASK: Final = 64
"""Bits of the network of a node's pods where they have IPv6."""
_WITH_WORKERS: Final[Mapping[str, Any]] = {
    "kubernetes": {
        "kubeAPIServer": {"defaultNotReadyTolerationSeconds": 300, "defaultUnreachableTolerationSeconds": 300},
        "kubeControllerManager": {"nodeMonitorGracePeriod": "40s"},
        "kubeProxy": {"enabled": True, "mode": "IPTables"},
        "kubeScheduler": {"profile": "balanced"},
        "kubelet": {
            "failSwapOn": True,
            "imageGCHighThresholdPercent": 50,
            "imageGCLowThresholdPercent": 40,
            "imageMaximumGCAge": "0s",
            "imageMinimumGCAge": "2m0s",
        },
    },
    "maintenance": {"autoUpdate": {"machineImageVersion": True}},
    "provider": {"workersSettings": {"sshAccess": {"enabled": True}}},
    "systemComponents": {"coreDNS": {"autoscaling": {"mode": "horizontal"}}},
}
"""Defaults below spec of a Shoot that has workers."""
_DNS_MODES: Final = frozenset({"horizontal", "cluster-proportional"})
_IN_PLACE: Final = frozenset({"AutoInPlaceUpdate", "ManualInPlaceUpdate"})
_SURGE: Final[Mapping[str, Mapping[str, int]]] = {
    "AutoInPlaceUpdate": {"maxSurge": 0, "maxUnavailable": 1},
    "ManualInPlaceUpdate": {},
}
_ROLLING: Final = {"maxSurge": 1, "maxUnavailable": 0}


def defaulted(shoot: Object, *, release: tuple[int, int] = NEWEST, hour: int | None = None) -> Object:
    """A copy of a Shoot as Gardener of this release decodes and defaults it. Raises ShapeError."""
    found = copy.deepcopy(shoot)
    default(found, release=release, hour=hour)
    return found


def default(shoot: Object, *, release: tuple[int, int] = NEWEST, hour: int | None = None) -> None:
    """The same in place. Raises ShapeError. `hour` begins the maintenance window; without it the name decides."""
    _shapes().shape(shoot, SHOOT)
    spec = shoot["spec"]
    if _metadata(shoot).get("namespace") == GARDEN_NAMESPACE:
        tolerations = spec.setdefault("tolerations", [])
        if _PROTECTED not in tolerations:
            tolerations.append(dict(_PROTECTED))
    if "timeWindow" not in spec["maintenance"]:
        spec["maintenance"]["timeWindow"] = _window(_hour(shoot) if hour is None else hour)
    workers = spec["provider"].get("workers") or ()
    for worker in workers:
        _default_worker(worker, spec["provider"]["type"], release)
    if workers:
        _fill(spec, _WITH_WORKERS)
        _default_components(spec)
    if autoscaler := spec["kubernetes"].get("clusterAutoscaler"):
        autoscaler.setdefault("maxScaleDownParallelism", autoscaler.get("maxEmptyBulkDelete", 10))


def _default_components(spec: Object) -> None:
    """The defaults of a Shoot with workers that depend on other fields."""
    kubelet = spec["kubernetes"]["kubelet"]
    _default_swap(kubelet)
    kubelet.setdefault("serializeImagePulls", kubelet.get("maxParallelImagePulls", 0) < 2)
    _default_masks(spec)
    dashboard = (spec.get("addons") or {}).get("kubernetesDashboard") or {}
    if dashboard.get("enabled"):
        dashboard.setdefault("authenticationMode", "token")
    autoscaling = spec["systemComponents"]["coreDNS"]["autoscaling"]
    if autoscaling.get("mode") not in _DNS_MODES:
        autoscaling["mode"] = "horizontal"


def _default_worker(worker: Object, provider: str, release: tuple[int, int]) -> None:
    worker.setdefault("cri", {"name": "containerd"})
    if release < _ARCHITECTURE_BY_ADMISSION:
        worker["machine"].setdefault("architecture", "amd64")
    strategy = worker.setdefault("updateStrategy", "AutoRollingUpdate")
    _fill(worker, _SURGE.get(strategy, _ROLLING))
    if strategy in _IN_PLACE:
        worker.setdefault("machineControllerManager", {}).setdefault("disableHealthTimeout", True)
    worker.setdefault("systemComponents", {"allow": True})
    kubelet = (worker.get("kubernetes") or {}).get("kubelet")
    if kubelet is not None:
        kubelet.setdefault("failSwapOn", True)
        _default_swap(kubelet)
    extension = ((worker.get("controlPlane") or {}).get("exposure") or {}).get("extension")
    if extension is not None:
        extension.setdefault("type", provider)


def _default_swap(kubelet: Object) -> None:
    if (kubelet.get("featureGates") or {}).get("NodeSwap") and not kubelet["failSwapOn"]:
        kubelet.setdefault("memorySwap", {}).setdefault("swapBehavior", "LimitedSwap")


def _default_masks(spec: Object) -> None:
    """The sizes of the networks of a node's pods."""
    manager, families = spec["kubernetes"]["kubeControllerManager"], spec["networking"]["ipFamilies"]
    if families == ["IPv4"]:
        manager.setdefault("nodeCIDRMaskSize", _mask(spec))
    elif families == ["IPv6"] and "nodeCIDRMaskSizeIPv6" not in manager:
        manager.setdefault("nodeCIDRMaskSize", _WIDE_MASK)
    elif {"IPv4", "IPv6"} <= set(families):
        manager.setdefault("nodeCIDRMaskSize", _mask(spec))
        manager.setdefault("nodeCIDRMaskSizeIPv6", _WIDE_MASK)


def _mask(spec: Object) -> int:
    """The smallest network with twice the addresses that the pods of a node need."""
    pods = spec["kubernetes"]["kubelet"].get("maxPods", _PODS)
    own = ((worker.get("kubernetes") or {}).get("kubelet") or {} for worker in spec["provider"]["workers"])
    most = max([pods, *(kubelet.get("maxPods", 0) for kubelet in own)])
    return 32 - math.ceil(math.log2(most * 2)) if 0 < most < _MOST_PODS else _NO_MASK


def _window(hour: int) -> Object:
    return {"begin": f"{hour % 24:02d}0000+0000", "end": f"{(hour + 1) % 24:02d}0000+0000"}


def _hour(shoot: Object) -> int:
    """The same hour each time, where Gardener draws one: a test or a plan must not depend on luck."""
    metadata = _metadata(shoot)
    return zlib.crc32(f"{metadata.get('namespace', '')}/{metadata.get('name', '')}".encode()) % _HOURS


def _metadata(shoot: Object) -> Mapping[str, Any]:
    return shoot.get("metadata") or {}


def _fill(target: Object, values: Mapping[str, Any]) -> None:
    """Sets what is not there, level by level."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            _fill(target.setdefault(key, {}), value)
        else:
            target.setdefault(key, value)


@functools.cache
def _shapes() -> Shapes:
    return shapes(static_defaults(resources.files(__package__).joinpath("defaults.txt").read_text("utf-8")))
