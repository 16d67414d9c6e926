"""How the simulated garden behaves: every duration, limit and fault is a setting.

Read from the `simulation` part of a YAML configuration file (`hortus up --config`). Durations are seconds of a real
garden's time; `time_factor` says how many of those go by in one second here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Something that goes wrong, for the shoots and the calls it matches."""

    shoots: str = "*"
    """Names of shoots, with `*` for any part of one."""
    operation: str = ""
    """`Create`, `Reconcile` or `Delete`: the operation fails with `code`. Empty: not an operation fault."""
    code: str = ""
    """A Gardener error code such as ERR_INFRA_QUOTA_EXCEEDED."""
    message: str = "the infrastructure refused"
    """What `lastErrors` says."""
    at_progress: int = 40
    """Percent at which the operation fails."""
    times: int = 0
    """How often it happens before it stops; 0 is always."""
    kubeconfig: str = ""
    """What a kubeconfig request answers: `429`, `500`, `503`, `garbage` (not a kubeconfig) or `unusable` (a kubeconfig
    that the cluster refuses). Empty: not a kubeconfig fault."""


class GardenSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Source of the defaults: the gardenlet's and the gardener-apiserver's own, except where `hortus up` would bore."""

    project: str = "demo"
    """The one Gardener project; its namespace is `garden-<project>`."""
    time_factor: float = 1.0
    """Seconds of the garden's time that go by in one second here. Kubeconfigs live that much shorter, too."""
    schedule_delay: float = 0.2
    """Until a new shoot is given a seed."""
    create_duration: float = 3.0
    """A whole Create operation; in a real garden some minutes."""
    reconcile_duration: float = 1.0
    """A whole Reconcile operation."""
    delete_duration: float = 2.0
    """A whole Delete operation."""
    progress_period: float = 0.5
    """Least time between two progress reports; gardenlet's own default is 5 s."""
    care_period: float = 1.0
    """Between the end of an operation and the first look at the shoot's health."""
    sync_period: float = 3600.0
    """Between two regular Reconcile operations of a shoot."""
    retry_period: float = 5.0
    """Wait before an operation in state Error is tried again."""
    retry_duration: float = 12 * 3600.0
    """After this long in one retry cycle Error becomes Failed."""
    condition_threshold: float = 60.0
    """How long a condition is Progressing before it becomes False."""
    kubeconfig_minimum: int = 600
    """Least expirationSeconds that a kubeconfig request may ask for."""
    kubeconfig_maximum: int = 24 * 3600
    """More is cut to this without a word."""
    kubeconfig_default: int = 3600
    """expirationSeconds of a request that does not say."""
    workers: int = 50
    """Shoots that each of the garden's controllers works on at the same time."""
    nodes: bool = True
    """Whether workload clusters show Node objects for their worker pools."""
    faults: tuple[Fault, ...] = ()
    """What goes wrong: see below. The first that fits strikes."""

    def scaled(self, seconds: float) -> float:
        """Seconds of our time for `seconds` of the garden's."""
        return seconds / self.time_factor


class SettingsError(Exception):
    """The configuration cannot be used; the message names the place in it."""


def from_config(document: Mapping[str, Any] | None) -> GardenSettings:
    """The settings of a configuration file's `simulation` part. Raises SettingsError."""
    part = (document or {}).get("simulation") or {}
    try:
        settings = msgspec.convert(part, type=GardenSettings)
    except msgspec.ValidationError as error:
        raise SettingsError(f"configuration, simulation: {error}") from None
    if settings.time_factor <= 0:
        raise SettingsError(f"configuration, simulation.time_factor: {settings.time_factor:g} must be more than 0")
    return settings
