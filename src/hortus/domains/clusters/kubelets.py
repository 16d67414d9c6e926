"""Kubernetes on the nodes of a worker pool: its version and the settings of the kubelets, field by field.

Contract: Gardener's WorkerKubernetes (gardener/gardener, pkg/apis/core/v1beta1/types_shoot.go).
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from hortus.schema import Extra, Fields, Format

_QUANTITY = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|"
    r"([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
Quantity = Annotated[int | str, Extra({"pattern": _QUANTITY})]
Int32 = Annotated[int, Format("int32")]


class EvictionValues(Fields, frozen=True):
    """One value for each signal at which a kubelet evicts pods: thresholds, or the grace before they count."""

    image_fs_available: str | None = field(name="imageFSAvailable", default=None)
    """For free space where images lie."""
    image_fs_inodes_free: str | None = field(name="imageFSInodesFree", default=None)
    """For free inodes where images lie."""
    memory_available: str | None = None
    """For free memory."""
    node_fs_available: str | None = field(name="nodeFSAvailable", default=None)
    """For free space where volumes and logs lie."""
    node_fs_inodes_free: str | None = field(name="nodeFSInodesFree", default=None)
    """For free inodes where volumes and logs lie."""


class EvictionReclaim(Fields, frozen=True):
    """How much a kubelet frees at least, once it evicts."""

    image_fs_available: Quantity | None = field(name="imageFSAvailable", default=None)
    """Of space where images lie."""
    image_fs_inodes_free: Quantity | None = field(name="imageFSInodesFree", default=None)
    """Of inodes where images lie."""
    memory_available: Quantity | None = None
    """Of memory."""
    node_fs_available: Quantity | None = field(name="nodeFSAvailable", default=None)
    """Of space where volumes and logs lie."""
    node_fs_inodes_free: Quantity | None = field(name="nodeFSInodesFree", default=None)
    """Of inodes where volumes and logs lie."""


class Reserved(Fields, frozen=True):
    """Resources of each node that pods do not get."""

    cpu: Quantity | None = None
    """Processor time."""
    ephemeral_storage: Quantity | None = None
    """Local disk."""
    memory: Quantity | None = None
    """Memory."""
    pid: Quantity | None = None
    """Process ids."""


class MemorySwap(Fields, frozen=True):
    """Swap memory for containers."""

    swap_behavior: str | None = None
    """How much of it they get: LimitedSwap or UnlimitedSwap."""


class Kubelet(Fields, frozen=True):
    """Settings of the kubelets of one pool, in place of those of the whole cluster."""

    container_log_max_files: Int32 | None = None
    """How many log files a container may have."""
    container_log_max_size: Quantity | None = None
    """Size at which a container's log is rotated."""
    cpu_cfs_quota: bool | None = field(name="cpuCFSQuota", default=None)
    """Whether limits on processor time are enforced."""
    cpu_manager_policy: str | None = None
    """How processors are given to containers."""
    eviction_hard: EvictionValues | None = None
    """Thresholds at which pods are evicted at once."""
    eviction_max_pod_grace_period: Int32 | None = None
    """Most seconds that a pod gets to end when a soft threshold is met."""
    eviction_minimum_reclaim: EvictionReclaim | None = None
    """How much is freed at least."""
    eviction_pressure_transition_period: str | None = None
    """How long a node stays under pressure after the last signal."""
    eviction_soft: EvictionValues | None = None
    """Thresholds at which pods are evicted after a grace period."""
    eviction_soft_grace_period: EvictionValues | None = None
    """The grace period of each soft threshold."""
    fail_swap_on: bool | None = None
    """Whether a kubelet refuses to start on a machine with swap."""
    feature_gates: dict[str, bool] = field(default_factory=dict)
    """Features switched on or off."""
    image_gc_high_threshold_percent: Int32 | None = field(name="imageGCHighThresholdPercent", default=None)
    """Percent of the disk in use above which unused images go."""
    image_gc_low_threshold_percent: Int32 | None = field(name="imageGCLowThresholdPercent", default=None)
    """Percent of the disk in use down to which unused images go."""
    kube_reserved: Reserved | None = None
    """What is kept for Kubernetes' own components."""
    max_pods: Int32 | None = None
    """How many pods a node may run."""
    memory_swap: MemorySwap | None = None
    """Swap memory for containers."""
    pod_pids_limit: Annotated[int, Format("int64")] | None = None
    """How many processes a pod may have."""
    protect_kernel_defaults: bool | None = None
    """Whether a kubelet refuses to run with other kernel settings than its own."""
    registry_burst: Int32 | None = None
    """How many images may be pulled at once for a moment."""
    registry_pull_qps: Int32 | None = field(name="registryPullQPS", default=None)
    """How many images may be pulled a second."""
    seccomp_default: bool | None = None
    """Whether the runtime's seccomp profile is everybody's default."""
    serialize_image_pulls: bool | None = None
    """Whether images are pulled one at a time."""
    streaming_connection_idle_timeout: str | None = None
    """How long a streaming connection may be idle."""
    system_reserved: Reserved | None = None
    """What is kept for the operating system."""


class WorkerKubernetes(Fields, frozen=True):
    """Kubernetes on the nodes of one pool."""

    kubelet: Kubelet | None = None
    """Settings of the kubelets, in place of those of the whole cluster."""
    version: str | None = None
    """Version of the kubelets. That of the control plane when left out."""
