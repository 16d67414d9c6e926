"""Worker pools as a Runtime declares them: Gardener's own Worker, field by field.

The structs give the CRD its schema and `kubectl explain` its words. The controllers pass pools on as the plain objects
they are, so that no field of Gardener's is lost on the way. Contract: infrastructure-manager, section 1.2.
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
    """Settings for the extension that serves this operating system."""
    version: str | None = None
    """Version of the image. The operator's default when left out."""


class Machine(Fields, frozen=True):
    """What the machines of a pool are."""

    type: str
    """Machine type of the provider, such as m6i.large."""
    architecture: str | None = None
    """Architecture of the processor: amd64 or arm64."""
    image: MachineImage | None = None
    """The operating system. The operator's default when left out."""


class Volume(Fields, frozen=True):
    """The root disk of each machine."""

    size: str
    """Size, such as 50Gi."""
    encrypted: bool | None = None
    """Whether it is encrypted."""
    name: str | None = None
    """A name to refer to it."""
    type: str | None = None
    """Disk type of the provider."""


class DataVolume(Fields, frozen=True):
    """A further disk of each machine."""

    name: str
    """A name to refer to it."""
    size: str
    """Size, such as 50Gi."""
    encrypted: bool | None = None
    """Whether it is encrypted."""
    type: str | None = None
    """Disk type of the provider."""


class Taint(Fields, frozen=True):
    """What keeps pods that do not tolerate it off the pool's nodes."""

    effect: str
    """What happens to such pods: NoSchedule, PreferNoSchedule or NoExecute."""
    key: str
    """Key of the taint."""
    time_added: Annotated[str, Format("date-time")] | None = None
    """When it was added; only for NoExecute."""
    value: str | None = None
    """Value of the taint."""


class ContainerRuntime(Fields, frozen=True):
    """A container runtime beside the default one."""

    type: str
    """Its type, such as gvisor."""
    provider_config: dict[str, Any] | None = None
    """Settings for the extension that serves it."""


class Cri(Fields, frozen=True):
    """The container runtime interface of a pool."""

    name: str
    """Its implementation: containerd."""
    container_runtimes: tuple[ContainerRuntime, ...] = ()
    """Container runtimes beside the default one."""


class ClusterAutoscaler(Fields, frozen=True):
    """How the cluster autoscaler treats this pool."""

    max_node_provision_time: str | None = None
    """How long a new node may take until it counts as failed."""
    scale_down_gpu_utilization_threshold: float | None = None
    """Share of used GPUs, 0 to 1, below which a node may go."""
    scale_down_unneeded_time: str | None = None
    """How long a node must have been unneeded before it goes."""
    scale_down_unready_time: str | None = None
    """How long an unready node must have been unneeded before it goes."""
    scale_down_utilization_threshold: float | None = None
    """Share of used resources, 0 to 1, below which a node may go."""


class MachineControllerManager(Fields, frozen=True):
    """How long machines may take for what."""

    disable_health_timeout: bool | None = None
    """Whether unhealthy machines are left alone, however long they are."""
    in_place_update_timeout: str | None = None
    """How long an update in place may take."""
    machine_creation_timeout: str | None = None
    """How long a new machine may take."""
    machine_drain_timeout: str | None = None
    """How long pods get to leave a machine before it is removed by force."""
    machine_health_timeout: str | None = None
    """How long a machine may be unhealthy before it is replaced."""
    max_evict_retries: Int32 | None = None
    """How often the eviction of a pod is tried."""
    node_conditions: tuple[str, ...] = ()
    """Conditions of a node that make its machine count as unhealthy."""


class WorkerControlPlane(Fields, frozen=True):
    """Marks the pool that runs the control plane of a self-hosted shoot."""


class SystemComponents(Fields, frozen=True):
    """Whether a pool takes the cluster's own components."""

    allow: bool
    """Whether they may run here."""


class Worker(Fields, frozen=True):
    """A pool of like machines."""

    machine: Machine
    """What the machines are."""
    maximum: Int32
    """Most machines, over all zones."""
    minimum: Int32
    """Fewest machines, over all zones."""
    name: str
    """Name of the pool."""
    annotations: dict[str, str] = field(default_factory=dict)
    """Annotations of its nodes."""
    ca_bundle: str | None = None
    """Certificates that its machines trust."""
    cluster_autoscaler: ClusterAutoscaler | None = None
    """How the cluster autoscaler treats it."""
    control_plane: WorkerControlPlane | None = None
    """Marks the pool that runs the control plane of a self-hosted shoot."""
    cri: Cri | None = None
    """Its container runtime interface."""
    data_volumes: tuple[DataVolume, ...] = ()
    """Further disks of each machine."""
    kubelet_data_volume_name: str | None = None
    """Which of the further disks holds the kubelet's state."""
    kubernetes: WorkerKubernetes | None = None
    """Kubernetes on its nodes."""
    labels: dict[str, str] = field(default_factory=dict)
    """Labels of its nodes."""
    machine_controller_manager: MachineControllerManager | None = None
    """How long its machines may take for what."""
    max_surge: int | str | None = None
    """How many machines more there may be during an update: a number or a percentage."""
    max_unavailable: int | str | None = None
    """How many machines fewer there may be during an update: a number or a percentage."""
    priority: Int32 | None = None
    """Which pool the cluster autoscaler prefers."""
    provider_config: dict[str, Any] | None = None
    """Settings for the extension of the provider."""
    sysctls: dict[str, str] = field(default_factory=dict)
    """Kernel settings of its machines."""
    system_components: SystemComponents | None = None
    """Whether it takes the cluster's own components."""
    taints: tuple[Taint, ...] = ()
    """Taints of its nodes."""
    update_strategy: str | None = None
    """How its machines are updated: AutoRollingUpdate, AutoInPlaceUpdate or ManualInPlaceUpdate."""
    volume: Volume | None = None
    """The root disk of each machine."""
    zones: tuple[str, ...] = ()
    """Availability zones over which its machines are spread. A zone once given cannot be taken away."""
