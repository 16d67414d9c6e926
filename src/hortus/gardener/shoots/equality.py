"""Worker pools by their meaning: as they are written, and as a garden answers with them.

A garden writes durations and quantities in a form of its own (`10m` as `10m0s`, a CPU of `0.1` as `100m`), leaves empty
fields out and fills defaults in. Labels, volumes, versions and settings of providers are texts to it and stay so.
Source: gardener/gardener 1.150, pkg/apis/core/v1beta1/types_shoot.go and defaults_shoot.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hortus.kube import Object, durations
from hortus.kube.durations import DurationError
from hortus.kube.quantities import Quantity, QuantityError

ROLLING: Final = "AutoRollingUpdate"
IN_PLACE: Final = "AutoInPlaceUpdate"
MANUAL: Final = "ManualInPlaceUpdate"

_DURATIONS: Final = frozenset(
    (
        "evictionPressureTransitionPeriod",
        "imageMaximumGCAge",
        "imageMinimumGCAge",
        "inPlaceUpdateTimeout",
        "machineCreationTimeout",
        "machineDrainTimeout",
        "machineHealthTimeout",
        "machinePreserveTimeout",
        "maxNodeProvisionTime",
        "scaleDownUnneededTime",
        "scaleDownUnreadyTime",
        "streamingConnectionIdleTimeout",
    )
)
_DURATION_MAPS: Final = frozenset(("evictionSoftGracePeriod",))
_QUANTITIES: Final = frozenset(("containerLogMaxSize",))
_QUANTITY_MAPS: Final = frozenset(("evictionMinimumReclaim", "kubeReserved", "systemReserved"))
_VERBATIM: Final = frozenset(("annotations", "labels", "providerConfig", "sysctls", "taints"))
"""Fields that a garden hands on as they are, whatever is in them."""
_ABSENT: Final = object()


def completed(pool: Object) -> Object:
    """A pool with the defaults that do not depend on a CloudProfile's machine types, and amd64 for theirs."""
    strategy = pool.get("updateStrategy") or ROLLING
    defaults: Object = {
        "cri": {"name": "containerd"},
        "machine": {"architecture": "amd64"},
        "systemComponents": {"allow": True},
        "updateStrategy": ROLLING,
    }
    if isinstance(kubelet := _at(pool, "kubernetes", "kubelet"), dict):
        defaults["kubernetes"] = {"kubelet": _kubelet_defaults(kubelet)}
    if strategy in (IN_PLACE, MANUAL):
        defaults["machineControllerManager"] = {"disableHealthTimeout": True}
    if strategy != MANUAL:
        surge, unavailable = (0, 1) if strategy == IN_PLACE else (1, 0)
        defaults |= {"maxSurge": surge, "maxUnavailable": unavailable}
    return _over(defaults, pool)


def spelled_as(pool: Object, live: Object) -> Object:
    """`pool` with the spelling of `live` where both mean the same, and without the empty fields that `live` lacks."""
    spelled: Object = _spelled("", pool, live)
    return spelled


def has_pool(live: Object, pool: Object) -> bool:
    """True when `live` has all that a pool says, in any spelling; other fields of `live` do not count."""
    return _has("", live, pool)


def _kubelet_defaults(kubelet: Object) -> Object:
    swaps = kubelet.get("failSwapOn") is False and _at(kubelet, "featureGates", "NodeSwap") is True
    return {"failSwapOn": True, **({"memorySwap": {"swapBehavior": "LimitedSwap"}} if swaps else {})}


def _at(value: Any, *path: str) -> Any:
    """The value below some fields; None where there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _over(defaults: Object, given: Object) -> Object:
    """`given` with the defaults that it does not have."""
    return {
        **defaults,
        **given,
        **{
            name: _over(default, given[name])
            for name, default in defaults.items()
            if isinstance(default, dict) and isinstance(given.get(name), dict)
        },
    }


def _spelled(name: str, wanted: Any, live: Any) -> Any:
    if isinstance(wanted, dict) and isinstance(live, Mapping) and name not in _VERBATIM:
        found = {key: _spelled(_field(name, key), value, live.get(key, _ABSENT)) for key, value in wanted.items()}
        return {key: value for key, value in found.items() if key in live or not _is_empty(value)}
    return live if _means_the_same(name, wanted, live) else wanted


def _has(name: str, live: Any, wanted: Any) -> bool:
    if _is_empty(wanted) and (live is _ABSENT or _is_empty(live)):
        return True
    if isinstance(wanted, dict) and isinstance(live, Mapping) and name not in _VERBATIM:
        return all(_has(_field(name, key), live.get(key, _ABSENT), value) for key, value in wanted.items())
    if bool(live == wanted) or _means_the_same(name, wanted, live) or _same_duration(name, wanted, live):
        return True
    # A garden completes a version that names a series, such as 1.33.
    return name == "version" and str(live).startswith(f"{wanted}.")


def _field(parent: str, key: str) -> str:
    """The name by which a field's form is known: that of the map for the members of some maps."""
    return parent if parent in _DURATION_MAPS | _QUANTITY_MAPS else key


def _is_empty(value: Any) -> bool:
    """True for a value that Go leaves out of JSON wherever it is optional."""
    return value is None or value in ({}, [], ())


def _means_the_same(name: str, one: Any, other: Any) -> bool:
    if name in _DURATIONS or name in _DURATION_MAPS:
        return _equal_durations(one, other)
    if name not in _QUANTITIES and name not in _QUANTITY_MAPS:
        return False
    try:
        return Quantity.parse(str(one)) == Quantity.parse(str(other))
    except QuantityError:
        return False


def _same_duration(name: str, one: Any, other: Any) -> bool:
    """True for equal durations in a field that is not known here, such as one of a later Gardener."""
    return name not in _VERBATIM and _equal_durations(one, other)


def _equal_durations(one: Any, other: Any) -> bool:
    if not isinstance(one, str) or not isinstance(other, str):
        return False
    try:
        return durations.parse(one) == durations.parse(other)
    except DurationError:
        return False
