"""Rules of the settings of controller manager, scheduler, proxy, autoscalers and etcd.

Source: gardener/gardener, pkg/api/core/validation, validateKubernetes and the functions that it calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from hortus.gardener.shoots.apiserver import api_server_problems
from hortus.gardener.shoots.checks import (
    Check,
    FieldRules,
    at_least,
    between,
    duration,
    forbidden_from,
    label_name,
    lasting,
    nanoseconds,
    not_negative,
    one_of,
)
from hortus.gardener.shoots.facts import RuleFacts, Span
from hortus.gardener.shoots.gates import autoscaler_gate_problems, gate_problems
from hortus.gardener.shoots.kubelet import kubelet_problems
from hortus.gardener.shoots.sizing import least_allowed, most_allowed
from hortus.kube import Object
from hortus.kube.durations import SECOND
from hortus.schema import FieldError
from hortus.schema.problems import duplicate, forbidden, invalid, not_supported, required
from hortus.schema.quoting import quote

WORKERLESS: Final = "this field should not be set for workerless Shoot clusters"
RESERVED_TAINT: Final = "node.gardener.cloud/critical-components-not-ready"
EXPANDERS: Final = ("least-nodes", "least-waste", "most-pods", "priority", "random")
PROXY_MODES: Final = ("IPTables", "IPVS", "NFTables")
PROFILES: Final = ("balanced", "bin-packing")
_FOR_WORKERS = ("kubeScheduler", "kubeProxy", "kubelet", "clusterAutoscaler", "verticalPodAutoscaler")
_SHOWN = {"clusterAutoscaler": "clusterAutoScaler", "verticalPodAutoscaler": "verticalPodAutoScaler"}


def kubernetes_problems(
    kubernetes: Object, families: Sequence[str] | None, path: str, facts: RuleFacts, **known: bool
) -> Iterator[FieldError]:
    """Problems of `spec.kubernetes`. `families` are those of the networking, None without one; `known` is for
    `api_server_problems`."""
    if not facts.version:
        yield required(f"{path}.version", "kubernetes version must not be empty")
        return
    yield from _ETCD.problems(kubernetes.get("etcd"), f"{path}.etcd", facts)
    if (server := kubernetes.get("kubeAPIServer")) is not None:
        yield from api_server_problems(server, f"{path}.kubeAPIServer", facts, **known)
    if (manager := kubernetes.get("kubeControllerManager")) is not None:
        yield from _manager_problems(manager, families, f"{path}.kubeControllerManager", facts)
    if facts.workerless:
        for name in _FOR_WORKERS:
            if kubernetes.get(name) is not None:
                yield forbidden(f"{path}.{_SHOWN.get(name, name)}", WORKERLESS)
        return
    yield from _SCHEDULER.problems(kubernetes.get("kubeScheduler"), f"{path}.kubeScheduler", facts)
    yield from _proxy_problems(kubernetes.get("kubeProxy"), f"{path}.kubeProxy", facts)
    if (kubelet := kubernetes.get("kubelet")) is not None:
        yield from kubelet_problems(kubelet, f"{path}.kubelet", facts)
    if (autoscaler := kubernetes.get("clusterAutoscaler")) is not None:
        yield from _AUTOSCALER.problems(autoscaler, f"{path}.clusterAutoscaler", facts)
        yield from _parallelism_problems(autoscaler, f"{path}.clusterAutoscaler")
    yield from _VERTICAL.problems(kubernetes.get("verticalPodAutoscaler"), f"{path}.verticalPodAutoscaler", facts)


def _manager_problems(
    manager: Object, families: Sequence[str] | None, path: str, facts: RuleFacts
) -> Iterator[FieldError]:
    if facts.workerless:
        for name in _MANAGER_FOR_WORKERS:
            if manager.get(name) is not None:
                yield forbidden(f"{path}.{name}", WORKERLESS)
    else:
        if families is not None:
            yield from _mask_problems(manager, families, path)
        yield from _MANAGER.problems(manager, path, facts)
    yield from gate_problems(manager.get("featureGates") or {}, f"{path}.featureGates", facts)


_MANAGER_FOR_WORKERS = (
    "nodeCIDRMaskSize",
    "nodeCIDRMaskSizeIPv6",
    "horizontalPodAutoscaler",
    "podEvictionTimeout",
    "nodeMonitorGracePeriod",
)


def _mask_problems(manager: Object, families: Sequence[str], path: str) -> Iterator[FieldError]:
    """Problems of the ranges of nodes for the address families of a network."""
    mask, mask_v6 = manager.get("nodeCIDRMaskSize"), manager.get("nodeCIDRMaskSizeIPv6")
    only_v4, only_v6 = list(families) in ([], ["IPv4"]), list(families) == ["IPv6"]
    at_mask, at_v6 = f"{path}.nodeCIDRMaskSize", f"{path}.nodeCIDRMaskSizeIPv6"
    if mask is not None and mask_v6 is not None and only_v6:
        text = "only one of nodeCIDRMaskSize or nodeCIDRMaskSizeIPv6 can be set for single-stack clusters"
        yield forbidden(at_mask, text)
    if mask is not None and only_v6 and not 64 <= mask <= 124:
        yield invalid(at_mask, mask, "nodeCIDRMaskSize must be between 64 and 124 for IPv6 single-stack clusters")
    if mask is not None and only_v4 and not 16 <= mask <= 28:
        yield invalid(at_mask, mask, "nodeCIDRMaskSize must be between 16 and 28")
    if mask_v6 is not None and only_v4:
        yield forbidden(at_v6, "nodeCIDRMaskSizeIPv6 cannot be set for IPv4 single-stack clusters")
    elif mask_v6 is not None and not 64 <= mask_v6 <= 124:
        yield invalid(at_v6, mask_v6, "nodeCIDRMaskSizeIPv6 must be between 64 and 124")


def _proxy_problems(proxy: Object | None, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    if proxy is None:
        return
    mode, gates = proxy.get("mode"), proxy.get("featureGates") or {}
    if mode is None:
        yield required(f"{path}.mode", "must be set when .spec.kubernetes.kubeProxy is set")
    elif mode not in PROXY_MODES:
        yield not_supported(f"{path}.mode", mode, PROXY_MODES)
    elif mode == "NFTables" and gates.get("NFTablesProxyMode") is False:
        text = "NFTables mode cannot be used when feature gate NFTablesProxyMode is explicitly set to false"
        yield invalid(f"{path}.mode", mode, text)
    yield from gate_problems(gates, f"{path}.featureGates", facts)


def _parallelism_problems(autoscaler: Object, path: str) -> Iterator[FieldError]:
    bulk, parallel = autoscaler.get("maxEmptyBulkDelete"), autoscaler.get("maxScaleDownParallelism")
    if bulk is not None and parallel is not None and bulk != parallel:
        yield invalid(f"{path}.maxEmptyBulkDelete", bulk, f"must equal maxScaleDownParallelism {parallel}")


def _expander(value: str, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    if not all(one in EXPANDERS for one in value.split(",")):
        yield not_supported(path, value, EXPANDERS)


def _taints(option: str, span: str) -> Check:
    """A list of keys of taints, which some versions of the autoscaler have."""
    versions = Span.of(span)

    def check(value: Sequence[str], path: str, facts: RuleFacts) -> Iterator[FieldError]:
        if facts.normal is None:
            yield invalid(f"{path}.{option}", option, facts.unreadable)
        elif not versions.covers(facts.normal):
            yield forbidden(f"{path}.{option}", f"not supported in Kubernetes version {facts.version}")
        seen: set[str] = set()
        for index, key in enumerate(value):
            yield from label_name(key, f"{path}[{index}]", facts)
            if key == RESERVED_TAINT:
                yield forbidden(f"{path}[{index}]", "taint key is reserved by gardener")
            if key in seen:
                yield duplicate(f"{path}[{index}]", key)
            seen.add(key)

    return check


_NUMBER = re.compile(r"[+-]?[0-9]+")


def _volumes(value: str, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """The most volumes of a node, a number as text."""
    if not _NUMBER.fullmatch(value):
        yield invalid(path, value, f"conversion error: strconv.Atoi: parsing {quote(value)}: invalid syntax")
    elif int(value[:20]) < 1:
        yield invalid(path, value, "must be positive")


def _ratio(value: float, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    if value < 0:
        yield invalid(path, value, "can not be negative")
    if value > 1:
        yield invalid(path, value, "can not be greater than 1.0")


def _fraction(value: float, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    if not 0 <= value < 1:
        yield invalid(path, value, "fraction value must be in the range [0, 1)")


def _above_zero(value: float, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    if value <= 0:
        yield invalid(path, value, "tolerance of must be greater than 0")


def _longer_than_zero(name: str) -> Check:
    return lasting(f"{name} must be larger than 0", least=1, shown=nanoseconds)


_PERCENTILE = between(0, 1, "percentile value must be in the range [0, 1]")
_MANAGER: Final = FieldRules(
    {
        "podEvictionTimeout": forbidden_from(
            "spec.kubernetes.kubeControllerManager.podEvictionTimeout",
            "versions >= 1.33, podEvictionTimeout field is no longer supported",
            _longer_than_zero("podEvictionTimeout"),
        ),
        "nodeMonitorGracePeriod": _longer_than_zero("nodeMonitorGracePeriod"),
        "horizontalPodAutoscaler.syncPeriod": lasting("syncPeriod must not be less than a second", least=SECOND),
        "horizontalPodAutoscaler.tolerance": _above_zero,
        "horizontalPodAutoscaler.downscaleStabilization": lasting(
            "downScale stabilization must not be less than a second", least=SECOND
        ),
        "horizontalPodAutoscaler.initialReadinessDelay": lasting(
            "initial readiness delay must be greater than 0", least=1
        ),
        "horizontalPodAutoscaler.cpuInitializationPeriod": lasting(
            "cpu initialization period must not be less than a second", least=SECOND
        ),
    }
)
_SCHEDULER: Final = FieldRules(
    {
        "profile": one_of(PROFILES),
        "kubeMaxPDVols": forbidden_from(
            "spec.kubernetes.kubeScheduler.kubeMaxPDVols",
            "version >= 1.35, kubeMaxPDVols field is no longer supported",
            _volumes,
        ),
        "featureGates": gate_problems,
    }
)
_AUTOSCALER: Final = FieldRules(
    {
        "scaleDownDelayAfterAdd": duration,
        "scaleDownDelayAfterDelete": duration,
        "scaleDownDelayAfterFailure": duration,
        "scaleDownUnneededTime": duration,
        "scaleDownUtilizationThreshold": _ratio,
        "scanInterval": duration,
        "expander": _expander,
        "maxNodeProvisionTime": duration,
        "maxGracefulTerminationSeconds": not_negative,
        "startupTaints": _taints("StartupTaints", "1.29-"),
        "statusTaints": _taints("StatusTaints", "1.29-"),
        "ignoreTaints": _taints("IgnoreTaints", "1.14-1.32"),
        "newPodScaleUpDelay": duration,
        "maxEmptyBulkDelete": (
            forbidden_from(
                "spec.kubernetes.clusterAutoscaler.maxEmptyBulkDelete",
                "versions >= 1.33, maxEmptyBulkDelete field is no longer supported,"
                " use maxScaleDownParallelism instead",
            ),
            at_least(0, "can not be negative"),
        ),
        "maxScaleDownParallelism": not_negative,
        "maxDrainParallelism": not_negative,
        "verbosity": not_negative,
        "initialNodeGroupBackoffDuration": duration,
        "maxNodeGroupBackoffDuration": duration,
        "nodeGroupBackoffResetTimeout": duration,
        "maxBinpackingTime": duration,
        "autoscaling": least_allowed({"cpu": "10m", "memory": "30M"}),
    }
)
_VERTICAL: Final = FieldRules(
    {
        "evictAfterOOMThreshold": duration,
        "evictionRateBurst": at_least(0, "must be non-negative"),
        "evictionTolerance": _fraction,
        "recommendationMarginFraction": _fraction,
        "updaterInterval": duration,
        "recommenderInterval": duration,
        "targetCPUPercentile": _PERCENTILE,
        "recommendationLowerBoundCPUPercentile": _PERCENTILE,
        "recommendationUpperBoundCPUPercentile": _PERCENTILE,
        "targetMemoryPercentile": _PERCENTILE,
        "recommendationLowerBoundMemoryPercentile": _PERCENTILE,
        "recommendationUpperBoundMemoryPercentile": _PERCENTILE,
        "cpuHistogramDecayHalfLife": duration,
        "memoryHistogramDecayHalfLife": duration,
        "memoryAggregationInterval": duration,
        "memoryAggregationIntervalCount": not_negative,
        "featureGates": autoscaler_gate_problems,
        "maxAllowed": most_allowed,
        "recommenderUpdateWorkerCount": at_least(1, "must be greater than 0"),
    }
)
_ETCD: Final = FieldRules(
    {
        "main.autoscaling": least_allowed({"memory": "300M"}),
        "events.autoscaling": least_allowed({"memory": "60M"}),
    }
)
POOL_AUTOSCALER: Final = FieldRules(
    {
        "scaleDownUtilizationThreshold": _ratio,
        "scaleDownGpuUtilizationThreshold": _ratio,
        **{
            name: lasting("can not be negative", least=0)
            for name in ("scaleDownUnneededTime", "scaleDownUnreadyTime", "maxNodeProvisionTime")
        },
    }
)
"""The autoscaler's options of one pool."""
