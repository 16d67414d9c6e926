"""`spec.k8s_sensor`: the Deployment that watches the API server for the agent."""

from __future__ import annotations

from typing import Annotated

from hortus.domains.agents.kinds.core import Affinity, InstanaEnabled, ResourceAmounts, ResourceClaims, Tolerations
from hortus.domains.agents.kinds.process import InstanaImage
from hortus.schema import Extra, Fields


class InstanaSensorPod(Fields, frozen=True):
    """The pods of a sensor."""

    requests: ResourceAmounts = {}
    """Resources that are reserved."""
    limits: ResourceAmounts = {}
    """Resources that must not be exceeded."""
    claims: ResourceClaims = ()
    """Claims of dynamic resource allocation that the container uses."""
    node_selector: dict[str, str] = {}
    """Labels that a node must have to run the sensor."""
    tolerations: Tolerations = ()
    """Taints of nodes that the sensor tolerates."""
    affinity: Affinity = None
    """Further rules for the choice of nodes, in place of spreading the replicas over nodes."""
    priority_class_name: str = ""
    """Name of a PriorityClass."""


class InstanaSensorDeployment(Fields, frozen=True):
    """The Deployment of a sensor."""

    enabled: bool | None = None
    """False leaves the Deployment out."""
    replicas: int = 0
    """Number of pods; 0 means 3."""
    min_ready_seconds: int = 0
    """Seconds for which a new pod must be ready to count as available."""
    pod: InstanaSensorPod = InstanaSensorPod()
    """The pods of the Deployment."""


class InstanaCaFile(Fields, frozen=True):
    """A bundle of certificate authorities, mounted from a Secret."""

    mount_path: str = ""
    """Folder of the file in the container."""
    secret_name: str = ""
    """Name of the Secret; where it is empty the folder is expected to be there."""
    filename: str = ""
    """Key of the Secret, and name of the file."""


class InstanaEtcd(Fields, frozen=True):
    """The metrics of etcd."""

    insecure: bool | None = None
    """Read them without verifying the server's certificate."""
    ca: InstanaCaFile = InstanaCaFile()
    """The authorities that signed the certificate of etcd."""
    targets: tuple[str, ...] = ()
    """URLs of the metrics, in place of those that are found in kube-system."""


class InstanaRestClient(Fields, frozen=True):
    """The metrics of the control plane."""

    host_allowlist: tuple[str, ...] = ()
    """Host names that may be asked."""
    ca: InstanaCaFile = InstanaCaFile()
    """The authorities that signed the certificates of these hosts."""


class InstanaFeatureFlags(Fields, frozen=True):
    """Features of the sensor."""

    crd_monitoring: bool | None = None
    """Deprecated and without effect."""


class InstanaSensor(Fields, frozen=True):
    """The k8sensor, which watches the API server and needs no node of its own."""

    image: InstanaImage = InstanaImage()
    """The image of the sensor."""
    deployment: InstanaSensorDeployment = InstanaSensorDeployment()
    """The Deployment of the sensor, one for each backend."""
    pod_disruption_budget: InstanaEnabled = InstanaEnabled()
    """A PodDisruptionBudget that keeps all replicas but one."""
    pollrate: Annotated[str, Extra({"pattern": "^[0-9]+s$"})] = ""
    """Time between two looks at the API server, in seconds."""
    etcd: InstanaEtcd = InstanaEtcd()
    """The metrics of etcd."""
    rest_client: InstanaRestClient = InstanaRestClient()
    """The metrics of the control plane."""
    feature_flags: InstanaFeatureFlags = InstanaFeatureFlags()
    """Features of the sensor."""


class InstanaDeprecatedSensor(Fields, frozen=True):
    """Settings of the sensor in the agent, which is gone. Accepted without effect."""

    deployment: InstanaSensorDeployment = InstanaSensorDeployment()
    """Accepted without effect."""
