"""Flags of Kyma's lifecycle-manager that have no effect here. They are accepted, so that its arguments can be kept.

Each has the default of the Go system's code and the reason for which it changes nothing. A process logs those that are
set to something else (`ineffective`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from hortus.engine.flags import Flag

_PROFILES: Final = "there are no Go profiles; --debug-bind-address serves queues, slow reconciles and caches"
_CONTROL_PLANE: Final = "the API server's priority and fairness limits the requests to the control plane"
_RETRIES: Final = "each object has a back-off of its own: --failure-base-delay and --failure-max-delay"


class IneffectiveFlag(NamedTuple):
    """A flag that was set, its value, and the reason for which it changes nothing."""

    name: str
    value: Any
    reason: str


def _accepted(name: str, kind: str, default: Any, reason: str) -> tuple[Flag, str]:
    return Flag(name, kind, default, f"Accepted without effect: {reason}."), reason


_ACCEPTED: Final = (
    _accepted("pprof", "bool", False, _PROFILES),
    _accepted("pprof-bind-address", "string", ":8084", _PROFILES),
    _accepted("pprof-server-timeout", "duration", 90.0, _PROFILES),
    _accepted("k8s-client-qps", "float", 1000.0, _CONTROL_PLANE),
    _accepted("k8s-client-burst", "int", 2000, _CONTROL_PLANE),
    _accepted("rate-limiter-burst", "int", 2000, _RETRIES),
    _accepted("rate-limiter-frequency", "int", 1000, _RETRIES),
    _accepted(
        "cache-sync-timeout",
        "duration",
        3600.0,
        "controllers wait until their caches are complete, and /readyz names those that are not",
    ),
    _accepted("log-level", "int", 0, "--zap-log-level sets the level, also while the process runs"),
    _accepted("enable-webhooks", "bool", False, "the kinds need no webhooks"),
    _accepted(
        "istio-gateway-cert-switch-before-expiration-time",
        "duration",
        0.0,
        "--istio-gateway-server-cert-switch-grace-period has replaced it",
    ),
    _accepted("metrics-cleanup-interval", "int", 15, "the series of an object are removed together with it"),
)
FLAGS: Final[tuple[Flag, ...]] = tuple(flag for flag, _ in _ACCEPTED)


def ineffective(values: Mapping[str, Any]) -> Iterator[IneffectiveFlag]:
    """Yields the flags that are set to something else than their default."""
    for flag, reason in _ACCEPTED:
        if values[flag.name] != flag.default:
            yield IneffectiveFlag(flag.name, values[flag.name], reason)
