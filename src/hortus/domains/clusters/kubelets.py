"""Kubernetes on the nodes of a worker pool: its version and the settings of the kubelets.

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
    """One value, a threshold or a grace period, for each signal at which a kubelet evicts pods."""

    image_fs_available: str | None = field(name="imageFSAvailable", default=None)
    """Value for free space on the file system of images."""
    image_fs_inodes_free: str | None = field(name="imageFSInodesFree", default=None)
    """Value for free inodes on the file system of images."""
    memory_available: str | None = None
    """Value for free memory."""
    node_fs_available: str | None = field(name="nodeFSAvailable", default=None)
    """Value for free space on the file system of volumes and logs."""
    node_fs_inodes_free: str | None = field(name="nodeFSInodesFree", default=None)
    """Value for free inodes on the file system of volumes and logs."""


class EvictionReclaim(Fields, frozen=True):
    """Minimum amounts that a kubelet reclaims in an eviction."""

    image_fs_available: Quantity | None = field(name="imageFSAvailable", default=None)
    """Minimum space on the file system of images."""
    image_fs_inodes_free: Quantity | None = field(name="imageFSInodesFree", default=None)
    """Minimum inodes on the file system of images."""
    memory_available: Quantity | None = None
    """Minimum memory."""
    node_fs_available: Quantity | None = field(name="nodeFSAvailable", default=None)
    """Minimum space on the file system of volumes and logs."""
    node_fs_inodes_free: Quantity | None = field(name="nodeFSInodesFree", default=None)
    """Minimum inodes on the file system of volumes and logs."""


class Reserved(Fields, frozen=True):
    """Resources of each node that are not available to pods."""

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
    """Limit of the swap memory: LimitedSwap or UnlimitedSwap."""


class Kubelet(Fields, frozen=True):
    """Settings of the kubelets of one pool. They replace the settings of the cluster."""

    container_log_max_files: Int32 | None = None
    """Maximum number of log files of a container."""
    container_log_max_size: Quantity | None = None
    """Size at which a container's log is rotated."""
    cpu_cfs_quota: bool | None = field(name="cpuCFSQuota", default=None)
    """Enforces limits on processor time."""
    cpu_manager_policy: str | None = None
    """Policy that assigns processors to containers."""
    eviction_hard: EvictionValues | None = None
    """Thresholds at which pods are evicted immediately."""
    eviction_max_pod_grace_period: Int32 | None = None
    """Maximum time in seconds that a pod has to stop after a soft threshold is met."""
    eviction_minimum_reclaim: EvictionReclaim | None = None
    """Minimum amounts that an eviction reclaims."""
    eviction_pressure_transition_period: str | None = None
    """Time for which a node stays under pressure after the last signal."""
    eviction_soft: EvictionValues | None = None
    """Thresholds at which pods are evicted after a grace period."""
    eviction_soft_grace_period: EvictionValues | None = None
    """The grace period of each soft threshold."""
    fail_swap_on: bool | None = None
    """Refuses to start a kubelet on a machine with swap."""
    feature_gates: dict[str, bool] = field(default_factory=dict)
    """Feature gates, each enabled or disabled."""
    image_gc_high_threshold_percent: Int32 | None = field(name="imageGCHighThresholdPercent", default=None)
    """Percentage of disk usage above which unused images are deleted."""
    image_gc_low_threshold_percent: Int32 | None = field(name="imageGCLowThresholdPercent", default=None)
    """Percentage of disk usage at which the deletion of unused images stops."""
    kube_reserved: Reserved | None = None
    """Resources reserved for the components of Kubernetes."""
    max_pods: Int32 | None = None
    """Maximum number of pods on a node."""
    memory_swap: MemorySwap | None = None
    """Swap memory for containers."""
    pod_pids_limit: Annotated[int, Format("int64")] | None = None
    """Maximum number of processes in a pod."""
    protect_kernel_defaults: bool | None = None
    """Refuses to run a kubelet if the kernel settings differ from its own."""
    registry_burst: Int32 | None = None
    """Maximum number of image pulls in a burst."""
    registry_pull_qps: Int32 | None = field(name="registryPullQPS", default=None)
    """Maximum number of image pulls per second."""
    seccomp_default: bool | None = None
    """Makes the container runtime's seccomp profile the default of all workloads."""
    serialize_image_pulls: bool | None = None
    """Pulls images one at a time."""
    streaming_connection_idle_timeout: str | None = None
    """Maximum idle time of a streaming connection."""
    system_reserved: Reserved | None = None
    """Resources reserved for the operating system."""


class WorkerKubernetes(Fields, frozen=True):
    """Version and settings of Kubernetes on the nodes of one pool."""

    kubelet: Kubelet | None = None
    """Settings of the kubelets. They replace the settings of the cluster."""
    version: str | None = None
    """Version of the kubelets. Defaults to the version of the control plane."""
