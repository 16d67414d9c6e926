"""Worker pools of a Runtime, with the fields of Gardener's Worker.

The CRD and `kubectl explain` are generated from the structs. The controllers pass pools on as plain objects, so that no
field of Gardener's is lost. Contract: gardener/gardener, pkg/apis/core/v1beta1/types_shoot.go.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import field

from hortus.domains.clusters.kubelets import Int32, WorkerKubernetes
from hortus.schema import Fields, Format


class MachineImage(Fields, frozen=True):
    """The operating system of a pool's machines."""

    name: str
    """Name of the image in the cloud profile."""
    provider_config: dict[str, Any] | None = None
    """Settings for the extension of this operating system."""
    version: str | None = None
    """Version of the image. Defaults to the operator's."""


class Machine(Fields, frozen=True):
    """Machine type and operating system of a pool."""

    type: str
    """Machine type of the provider, such as m6i.large."""
    architecture: str | None = None
    """Architecture of the processor: amd64 or arm64."""
    image: MachineImage | None = None
    """The operating system. Defaults to the operator's."""


class Volume(Fields, frozen=True):
    """The root disk of each machine."""

    size: str
    """Size, such as 50Gi."""
    encrypted: bool | None = None
    """Encrypts the disk."""
    name: str | None = None
    """Name of the disk."""
    type: str | None = None
    """Disk type of the provider."""


class DataVolume(Fields, frozen=True):
    """A further disk of each machine."""

    name: str
    """Name of the disk."""
    size: str
    """Size, such as 50Gi."""
    encrypted: bool | None = None
    """Encrypts the disk."""
    type: str | None = None
    """Disk type of the provider."""


class Taint(Fields, frozen=True):
    """A taint of the pool's nodes. It repels pods that do not tolerate it."""

    effect: str
    """Effect on pods without a toleration: NoSchedule, PreferNoSchedule or NoExecute."""
    key: str
    """Key of the taint."""
    time_added: Annotated[str, Format("date-time")] | None = None
    """Time at which the taint was added; only for NoExecute."""
    value: str | None = None
    """Value of the taint."""


class ContainerRuntime(Fields, frozen=True):
    """A container runtime in addition to the default one."""

    type: str
    """Type of the container runtime, such as gvisor."""
    provider_config: dict[str, Any] | None = None
    """Settings for the extension of this container runtime."""


class Cri(Fields, frozen=True):
    """The container runtime interface of a pool."""

    name: str
    """Name of the implementation: containerd."""
    container_runtimes: tuple[ContainerRuntime, ...] = ()
    """Container runtimes in addition to the default one."""


class ClusterAutoscaler(Fields, frozen=True):
    """Settings of the cluster autoscaler for one pool."""

    max_node_provision_time: str | None = None
    """Time after which a new node that is not ready counts as failed."""
    scale_down_gpu_utilization_threshold: float | None = None
    """Share of used GPUs, 0 to 1, below which a node may be removed."""
    scale_down_unneeded_time: str | None = None
    """Time for which a node must be unneeded before it is removed."""
    scale_down_unready_time: str | None = None
    """Time for which an unready node must be unneeded before it is removed."""
    scale_down_utilization_threshold: float | None = None
    """Share of used resources, 0 to 1, below which a node may be removed."""


class MachineControllerManager(Fields, frozen=True):
    """Timeouts and retries of the machine controller manager for one pool."""

    disable_health_timeout: bool | None = None
    """Keeps unhealthy machines instead of replacing them."""
    in_place_update_timeout: str | None = None
    """Timeout of an update in place."""
    machine_creation_timeout: str | None = None
    """Timeout of the creation of a machine."""
    machine_drain_timeout: str | None = None
    """Timeout of the drain of a machine. The machine is removed by force after it."""
    machine_health_timeout: str | None = None
    """Time after which an unhealthy machine is replaced."""
    max_evict_retries: Int32 | None = None
    """Maximum number of attempts to evict a pod."""
    node_conditions: tuple[str, ...] = ()
    """Node conditions that mark a machine as unhealthy."""


class WorkerControlPlane(Fields, frozen=True):
    """Marks the pool that runs the control plane of a self-hosted shoot."""


class SystemComponents(Fields, frozen=True):
    """Placement of the cluster's own components on a pool."""

    allow: bool
    """Allows the cluster's own components on this pool."""


class Worker(Fields, frozen=True):
    """A pool of machines of one type."""

    machine: Machine
    """Machine type and operating system."""
    maximum: Int32
    """Maximum number of machines over all zones."""
    minimum: Int32
    """Minimum number of machines over all zones."""
    name: str
    """Name of the pool."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations of the pool's nodes."""
    ca_bundle: str | None = None
    """CA certificates that the machines trust."""
    cluster_autoscaler: ClusterAutoscaler | None = None
    """Settings of the cluster autoscaler for this pool."""
    control_plane: WorkerControlPlane | None = None
    """Marks the pool that runs the control plane of a self-hosted shoot."""
    cri: Cri | None = None
    """The container runtime interface."""
    data_volumes: tuple[DataVolume, ...] = ()
    """Further disks of each machine."""
    kubelet_data_volume_name: str | None = None
    """Name of the further disk that holds the kubelet's state."""
    kubernetes: WorkerKubernetes | None = None
    """Version and settings of Kubernetes on the pool's nodes."""
    labels: dict[str, str] = field(default_factory=dict)
    """Labels of the pool's nodes."""
    machine_controller_manager: MachineControllerManager | None = None
    """Timeouts and retries of the machine controller manager for this pool."""
    max_surge: int | str | None = None
    """Maximum number of extra machines during an update: a number or a percentage."""
    max_unavailable: int | str | None = None
    """Maximum number of missing machines during an update: a number or a percentage."""
    priority: Int32 | None = None
    """Priority of the pool for the cluster autoscaler; the higher one is preferred."""
    provider_config: dict[str, Any] | None = None
    """Settings for the extension of the provider."""
    sysctls: dict[str, str] = field(default_factory=dict)
    """Kernel settings of the machines."""
    system_components: SystemComponents | None = None
    """Placement of the cluster's own components on this pool."""
    taints: tuple[Taint, ...] = ()
    """Taints of the pool's nodes."""
    update_strategy: str | None = None
    """Strategy for updates of the machines: AutoRollingUpdate, AutoInPlaceUpdate or ManualInPlaceUpdate."""
    volume: Volume | None = None
    """The root disk of each machine."""
    zones: tuple[str, ...] = ()
    """Availability zones of the machines. A zone cannot be removed later."""
