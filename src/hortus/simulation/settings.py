"""The behaviour of the simulated garden: every duration, limit and fault is a setting.

Read from the `simulation` part of a YAML configuration file (`hortus up --config`). Durations are seconds of a real
garden's time; `time_factor` says how many of those go by in one second here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

import msgspec

from hortus.kube.shapes import problem_of

ERROR_CODES: Final = {
    "ERR_INFRA_UNAUTHENTICATED": "the provider refused the credentials: InvalidClientTokenId, the token is invalid",
    "ERR_INFRA_UNAUTHORIZED": "the credentials lack a permission: not authorized to perform this operation",
    "ERR_INFRA_QUOTA_EXCEEDED": "the provider's quota is exceeded: VcpuLimitExceeded",
    "ERR_INFRA_RATE_LIMITS_EXCEEDED": "the provider answers too many requests: RequestLimitExceeded",
    "ERR_INFRA_DEPENDENCIES": "the network cannot be changed: DependencyViolation, it is still in use by others",
    "ERR_RETRYABLE_INFRA_DEPENDENCIES": "a resource that this one needs is not there yet",
    "ERR_INFRA_RESOURCES_DEPLETED": "no capacity for the machine type in this zone: InsufficientInstanceCapacity",
    "ERR_CLEANUP_CLUSTER_RESOURCES": "resources in the cluster are not gone: a finalizer is never taken off",
    "ERR_CONFIGURATION_PROBLEM": "the configuration is not accepted: the range of a subnet is not valid",
    "ERR_RETRYABLE_CONFIGURATION_PROBLEM": "the configuration does not work yet: a disruption budget is in the way",
    "ERR_PROBLEMATIC_WEBHOOK": "a webhook in the cluster fails and stands in the way of its nodes",
}
"""Gardener's error codes (gardener, docs/usage/shoot/shoot_status.md), each with a provider's message."""
Operation = Literal["", "Create", "Reconcile", "Delete", "Migrate", "Restore"]


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Something that goes wrong, for the shoots and the calls it matches."""

    shoots: str = "*"
    """Names of shoots, with `*` for any part of one."""
    provider: str = ""
    """Only shoots of this provider type; empty is all."""
    operation: Operation = ""
    """`Create`, `Reconcile`, `Delete`, `Migrate` or `Restore`: what goes wrong with the operation says `effect`. Empty:
    not an operation fault."""
    effect: Literal["fail", "stuck", "slow", "abort"] = "fail"
    """`fail`: with `code`. `stuck`: progress stops. `slow`: it takes longer. `abort`: it ends and starts again."""
    code: str = ""
    """A Gardener error code such as ERR_INFRA_QUOTA_EXCEEDED; it decides whether the operation is tried again."""
    message: str = ""
    """The message of `lastErrors`; empty: that of a provider with this code."""
    at_progress: int = 40
    """Percent at which the operation fails, stops or is broken off."""
    seconds: float = 0.0
    """Seconds of the garden that it is stuck (0: until the Shoot changes), or that it takes in addition."""
    chance: float = 1.0
    """Share of the operations it strikes; which ones follows from `random_seed`."""
    times: int = 0
    """The number of times before it stops; 0 is always."""
    kubeconfig: str = ""
    """The answer to a kubeconfig request: `429`, `500`, `503`, `garbage` (no kubeconfig) or `unusable` (a kubeconfig
    that the cluster refuses). Empty: not a kubeconfig fault."""


class Pace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The duration of the operations of one provider."""

    provider: str = ""
    """A provider type; empty is all."""
    operation: Operation = ""
    """`Create`, `Reconcile`, `Delete`, `Migrate` or `Restore`; empty is all."""
    seconds: float
    """The whole operation."""


class Outage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A time in which seeds do not work."""

    seeds: str = "*"
    """Names of seeds, with `*` for any part of one."""
    what: Literal["gardenlet", "seed"] = "gardenlet"
    """`gardenlet`: it is down, and nothing happens to its shoots. `seed`: it is not healthy, and operations that begin
    end in Error."""
    after: float = 0.0
    """Begins so long after the start."""
    seconds: float = 60.0
    """The duration."""
    every: float = 0.0
    """Again after so long, counted from begin to begin; 0 is once."""


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
    spare_seeds: int = 0
    """Clusters that become seeds when a gardenlet is deployed there, spare-1 and so on."""
    paces: tuple[Pace, ...] = ()
    """Other durations for single providers: see below. The first that fits counts."""
    jitter: float = 0.0
    """Share by which each operation may take longer or shorter, such as 0.2."""
    node_duration: float = 0.2
    """One step of a roll of worker nodes: `maxSurge` come, or `maxUnavailable` go."""
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
    """The time that a condition is Progressing before it becomes False."""
    kubeconfig_minimum: int = 600
    """Least expirationSeconds that a kubeconfig request may ask for."""
    kubeconfig_maximum: int = 24 * 3600
    """More is cut to this without a word."""
    kubeconfig_default: int = 3600
    """expirationSeconds of a request that does not say."""
    workers: int = 50
    """Shoots that each of the garden's controllers works on at the same time."""
    nodes: bool = True
    """True when workload clusters show Node objects for their worker pools."""
    workload_duration: float = 0.5
    """Until a pod of a Deployment or DaemonSet in a workload cluster is ready, a StatefulSet runs, or a module's
    operator has done its work."""
    pod_restart_period: float = 0.0
    """Between two restarts of each pod's container; 0 is never."""
    pod_objects: bool = False
    """True when workload clusters show Pod objects for their DaemonSets."""
    workload_clusters: int = 50
    """Workload clusters in which they run at all; each costs a few watches."""
    scheduling: Literal["minimal-distance", "same-region"] = "minimal-distance"
    """The place of a shoot's seed: in the region with the most similar name, or in the shoot's own only."""
    seed_capacity: int = 0
    """Shoots that a seed of the simulation takes (`status.allocatable.shoots`); 0 is any number."""
    require_bindings: bool = True
    """True when a Shoot must name a SecretBinding or CredentialsBinding that exists. A placeholder passes."""
    random_seed: int = 0
    """The seed of `jitter` and `chance`: the same seed, the same fate of each shoot."""
    faults: tuple[Fault, ...] = ()
    """The faults: see below. The first that fits strikes."""
    outages: tuple[Outage, ...] = ()
    """When seeds do not work: see below."""

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
        raise SettingsError(f"configuration, {problem_of(error, place='simulation')}") from None
    for path, wrong in _problems(settings):
        raise SettingsError(f"configuration, simulation.{path}: {wrong}")
    return settings


def _problems(settings: GardenSettings) -> Iterator[tuple[str, str]]:
    if settings.time_factor <= 0:
        yield "time_factor", f"{settings.time_factor:g} must be more than 0"
    if not 0 <= settings.jitter < 1:
        yield "jitter", f"{settings.jitter:g} must be at least 0 and less than 1"
    for index, fault in enumerate(settings.faults):
        path = f"faults[{index}]"
        if fault.code and fault.code not in ERROR_CODES:
            yield f"{path}.code", f"unknown code {fault.code!r}; there are: {', '.join(sorted(ERROR_CODES))}"
        if not 0 <= fault.at_progress <= 100:
            yield f"{path}.at_progress", f"{fault.at_progress} must be between 0 and 100"
        if not 0 <= fault.chance <= 1:
            yield f"{path}.chance", f"{fault.chance:g} must be between 0 and 1"
    for index, outage in enumerate(settings.outages):
        if 0 < outage.every <= outage.seconds:
            yield f"outages[{index}].every", f"{outage.every:g} must be more than seconds, {outage.seconds:g}"
