"""Rules of kubelet settings, of a whole Shoot and of one pool.

Source: gardener/gardener, pkg/api/core/validation, ValidateKubeletConfig.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from hortus.gardener.shoots.checks import (
    Check,
    FieldRules,
    at,
    at_least,
    between,
    duration,
    forbidden_below,
    lasting,
    not_negative,
    one_of,
    quantity,
    whole_seconds,
)
from hortus.gardener.shoots.facts import Release, RuleFacts
from hortus.gardener.shoots.gates import gate_problems
from hortus.kube import Object
from hortus.kube.durations import HOUR, SECOND
from hortus.kube.quantities import Quantity, QuantityError
from hortus.schema import FieldError
from hortus.schema.problems import forbidden, invalid

VERIFICATION_FROM: Final[Release] = (1, 149)
"""The release of Gardener from which a kubelet verifies the credentials of images."""
_PERCENT = re.compile(r"[0-9]+%")
_ALLOWLISTED = "NeverVerifyAllowlistedImages"


def kubelet_problems(kubelet: Object, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """Problems of the settings of a kubelet."""
    yield from _FIELDS.problems(kubelet, path, facts)
    yield from _image_problems(kubelet, path)
    yield from _swap_problems(kubelet, path)
    if facts.release >= VERIFICATION_FROM:
        yield from _VERIFICATION.problems(kubelet, path, facts)
        yield from _verification_problems(kubelet, path)


def _image_problems(kubelet: Object, path: str) -> Iterator[FieldError]:
    low, high = kubelet.get("imageGCLowThresholdPercent"), kubelet.get("imageGCHighThresholdPercent")
    if low is not None and high is not None and low >= high:
        text = "imageGCLowThresholdPercent must be less than imageGCHighThresholdPercent"
        yield forbidden(f"{path}.imageGCLowThresholdPercent", text)
    if (kubelet.get("maxParallelImagePulls") or 0) > 1 and kubelet.get("serializeImagePulls"):
        text = "maxParallelImagePulls cannot be larger than 1 when serializeImagePulls is set to true"
        yield forbidden(f"{path}.maxParallelImagePulls", text)


def _swap_problems(kubelet: Object, path: str) -> Iterator[FieldError]:
    swap, text = kubelet.get("memorySwap"), "configuring swap behaviour is not available when"
    if swap is None:
        return
    if kubelet.get("failSwapOn"):
        yield forbidden(f"{path}.memorySwap", f"{text} the kubelet is configured with 'FailSwapOn=true'")
    if swap.get("swapBehavior") is not None and not (kubelet.get("featureGates") or {}).get("NodeSwap"):
        yield forbidden(f"{path}.memorySwap", f"{text} kubelet's 'NodeSwap' feature gate is not set")


def _verification_problems(kubelet: Object, path: str) -> Iterator[FieldError]:
    name, listed = "imagePullCredentialsVerificationPolicy", "preloadedImagesVerificationAllowlist"
    policy, images = kubelet.get(name), kubelet.get(listed)
    gate = "KubeletEnsureSecretPulledImages"
    if policy is not None and (kubelet.get("featureGates") or {}).get(gate) is False:
        yield forbidden(f"{path}.{name}", f"{name} may not be set when the {gate} feature gate is disabled")
    if images is None:
        return
    if policy != _ALLOWLISTED:
        yield forbidden(f"{path}.{listed}", f"{listed} may only be set when {name} is set to {_ALLOWLISTED}")
        return
    for index, pattern in enumerate(images):
        if problem := _pattern_problem(pattern):
            yield invalid(f"{path}.{listed}[{index}]", pattern, problem)


_COMPONENT = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_HOST = r"(?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*|\[[a-fA-F0-9:]+\])"
_NAME = rf"(?:{_HOST}(?::[0-9]+)?/)?{_COMPONENT}(?:/{_COMPONENT})*"
_REFERENCE = re.compile(rf"({_NAME})(:\w[\w.-]{{0,127}})?(@[A-Za-z][A-Za-z0-9+._-]*:[0-9a-fA-F]{{32,}})?", re.ASCII)


def _pattern_problem(pattern: str) -> str:
    """The problem of an image or a pattern of images, as the kubelet reads it (kubernetes/kubernetes,
    pkg/kubelet/images/pullmanager)."""
    wildcard = pattern.endswith("/*")
    image = pattern[:-1] if wildcard else pattern
    if pattern != pattern.strip():
        return "leading/trailing spaces are not allowed"
    if not image:
        return "the supplied pattern is too short"
    if "*" in image:
        return "not a valid wildcard pattern, only patterns ending with '/*' are allowed"
    if wildcard:
        return "at least registry hostname is required" if image == "/" else ""
    found = _REFERENCE.fullmatch(image)
    if found is None:
        upper = _REFERENCE.fullmatch(image.lower()) is not None
        reason = "repository name must be lowercase" if upper else "invalid reference format"
        return f"failed to parse as an image name: {reason}"
    return "neither tag nor digest is accepted in an image reference" if found[2] or found[3] else ""


def _amount(value: str, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """A threshold of an eviction: a quantity or a percentage."""
    try:
        if Quantity.parse(value).amount >= 0:
            return
    except QuantityError:
        pass
    if not _PERCENT.fullmatch(value):
        text = "field must be either a valid resource quantity (e.g 200Mi) or a percentage (e.g '5%')"
        yield invalid(path, value, text)
    elif int(value[:-1][:20]) > 100:
        yield invalid(path, value, "must not be greater than 100% and not smaller than 0%")


_PATHS = {
    "imageFSAvailable": "imagefsAvailable",
    "imageFSInodesFree": "imagefsInodesFree",
    "nodeFSAvailable": "nodefsAvailable",
}
"""Thresholds by their fields, as Gardener's errors name them. It does not check `nodeFSInodesFree`."""


def _thresholds(field: str, check: Check) -> dict[str, Check]:
    renamed = {f"{field}.{name}": at(shown, check) for name, shown in _PATHS.items()}
    return {f"{field}.memoryAvailable": check, **renamed}


_PERCENTAGE = between(0, 100, "value must be in [0,100]")
_FIELDS: Final = FieldRules(
    {
        "cpuManagerPolicy": one_of(("none", "static")),
        "maxPods": not_negative,
        "podPidsLimit": at("podPIDsLimit", at_least(100, "podPIDsLimit value must be at least 100")),
        "evictionPressureTransitionPeriod": duration,
        "evictionMaxPodGracePeriod": not_negative,
        **_thresholds("evictionHard", _amount),
        **_thresholds("evictionSoft", _amount),
        **_thresholds("evictionMinimumReclaim", quantity),
        **_thresholds("evictionSoftGracePeriod", duration),
        **{f"kubeReserved.{name}": quantity for name in ("cpu", "memory", "ephemeralStorage", "pid")},
        "imageMinimumGCAge": whole_seconds,
        "imageMaximumGCAge": whole_seconds,
        "imageGCHighThresholdPercent": _PERCENTAGE,
        "imageGCLowThresholdPercent": _PERCENTAGE,
        "featureGates": gate_problems,
        "registryPullQPS": not_negative,
        "registryBurst": not_negative,
        "containerLogMaxFiles": at_least(2, "value must be >= 2."),
        "containerLogMaxSize": quantity,
        "streamingConnectionIdleTimeout": lasting("value must be between 30s and 4h", least=30 * SECOND, most=4 * HOUR),
        "memorySwap.swapBehavior": one_of(("NoSwap", "LimitedSwap")),
        "maxParallelImagePulls": at_least(1, "value must be >= 1"),
    }
)
_VERIFICATION: Final = FieldRules(
    {
        "imagePullCredentialsVerificationPolicy": (
            forbidden_below(
                (1, 35), "imagePullCredentialsVerificationPolicy is only available for Kubernetes versions >= 1.35"
            ),
            one_of(("AlwaysVerify", "NeverVerify", _ALLOWLISTED, "NeverVerifyPreloadedImages")),
        )
    }
)
