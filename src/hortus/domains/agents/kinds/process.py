"""`spec.agent`: the agent process itself, the same in both kinds."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from hortus.domains.agents.kinds.core import (
    Affinity,
    Base64,
    EnvVars,
    NumberOrPercent,
    Probe,
    PullSecrets,
    ResourceAmounts,
    ResourceClaims,
    Tolerations,
    VolumeMounts,
    Volumes,
)
from hortus.schema import Fields

_ENDPOINT_REQUIRED: dict[str, Any] = {"required": ["endpointHost", "endpointPort"]}


class InstanaBackend(Fields, frozen=True):
    """One more backend that the agent reports to."""

    __schema__: ClassVar[dict[str, Any]] = _ENDPOINT_REQUIRED

    endpoint_host: str = ""
    """Host name of the backend."""
    endpoint_port: str = ""
    """Port of the backend."""
    key: str = ""
    """The agent key for this backend."""


class InstanaTls(Fields, frozen=True):
    """The certificate with which the agent's own endpoints serve."""

    secret_name: str = ""
    """Name of a Secret of type kubernetes.io/tls; it wins over certificate and key."""
    certificate: Base64 = ""
    """The certificate, as base64 of PEM."""
    key: Base64 = ""
    """The private key, as base64 of PEM."""


class InstanaImage(Fields, frozen=True):
    """A container image."""

    name: str = ""
    """Repository of the image."""
    digest: str = ""
    """Digest of the image; it wins over the tag."""
    tag: str = ""
    """Tag of the image."""
    pull_policy: str = ""
    """Always, IfNotPresent or Never."""


class InstanaAgentImage(InstanaImage, frozen=True):
    """The image of the agent, with the Secrets to pull it."""

    pull_secrets: PullSecrets = None
    """Secrets with credentials of the registry. An empty list means none; not set has one made where that is needed."""


class InstanaRollingUpdate(Fields, frozen=True):
    """The pace at which a DaemonSet replaces its pods."""

    max_unavailable: NumberOrPercent = None
    """Nodes that may be without a running agent meanwhile, as a number or a percentage."""
    max_surge: NumberOrPercent = None
    """Nodes that may run an old and a new agent meanwhile, as a number or a percentage."""


class InstanaUpdateStrategy(Fields, frozen=True):
    """The way in which a DaemonSet replaces its pods."""

    type: str = ""
    """RollingUpdate or OnDelete."""
    rolling_update: InstanaRollingUpdate | None = None
    """The pace of RollingUpdate."""


class InstanaPod(Fields, frozen=True):
    """The pods of the agent."""

    annotations: dict[str, str] = {}
    """Annotations of the pods, those of the k8sensor among them."""
    labels: dict[str, str] = {}
    """Labels of the pods, those of the k8sensor among them."""
    node_selector: dict[str, str] = {}
    """Labels that a node must have to run the agent."""
    tolerations: Tolerations = ()
    """Taints of nodes that the agent tolerates."""
    affinity: Affinity = None
    """Further rules for the choice of nodes."""
    priority_class_name: str = ""
    """Name of a PriorityClass."""
    requests: ResourceAmounts = {}
    """Resources that are reserved."""
    limits: ResourceAmounts = {}
    """Resources that must not be exceeded."""
    claims: ResourceClaims = ()
    """Claims of dynamic resource allocation that the container uses."""
    volumes: Volumes = ()
    """Volumes in addition to the agent's own."""
    volume_mounts: VolumeMounts = ()
    """Mounts in addition to the agent's own."""
    env: EnvVars = ()
    """Variables of the environment, which win over all others of the same name."""
    liveness_probe: Probe = None
    """A liveness probe in place of the agent's own."""


class InstanaHost(Fields, frozen=True):
    """Folders that outlive the pods."""

    repository: str = ""
    """A place for downloads: a folder of the node, or for InstanaAgentRemote a PersistentVolumeClaim."""


class InstanaMesh(Fields, frozen=True):
    """Monitoring of a service mesh."""

    enabled: bool = False
    """Open the agent's socket for the proxies of the mesh."""


class InstanaBaseAgent(Fields, frozen=True):
    """The agent: its keys, its backends, its image and its pods."""

    __schema__: ClassVar[dict[str, Any]] = _ENDPOINT_REQUIRED

    mode: str = ""
    """Amount of monitoring: APM, INFRASTRUCTURE, AWS or KUBERNETES."""
    key: str = ""
    """The agent key. Prefer `keysSecret`, which keeps it out of this object."""
    download_key: str = ""
    """The key for downloads; the agent key serves where it is not set."""
    keys_secret: str = ""
    """Name of a Secret with the keys: `key`, `key-1` for the first additional backend and so on, and `downloadKey`."""
    listen_address: str = ""
    """Address on which the agent listens."""
    endpoint_host: str = ""
    """Host name of the backend."""
    endpoint_port: str = ""
    """Port of the backend."""
    min_ready_seconds: int = 0
    """Seconds for which a new pod must be ready to count as available."""
    additional_backends: tuple[InstanaBackend, ...] = ()
    """Further backends that get the same data."""
    tls: InstanaTls = InstanaTls()
    """The certificate of the agent's own endpoints."""
    image: InstanaAgentImage = InstanaAgentImage()
    """The image of the agent."""
    update_strategy: InstanaUpdateStrategy = InstanaUpdateStrategy()
    """The way in which changed pods are replaced."""
    pod: InstanaPod = InstanaPod()
    """The pods of the agent."""
    proxy_host: str = ""
    """Host name of a proxy between agent and backend."""
    proxy_port: str = ""
    """Port of the proxy."""
    proxy_protocol: str = ""
    """Protocol of the proxy: http, socks4 or socks5."""
    proxy_user: str = ""
    """User name for the proxy."""
    proxy_password: str = ""
    """Password for the proxy."""
    proxy_use_dns: bool = msgspec.field(name="proxyUseDNS", default=False)
    """Have the proxy resolve host names."""
    env: dict[str, str] = {}
    """Variables of the environment, which all others of the same name win over."""
    configuration_yaml: str = msgspec.field(name="configuration_yaml", default="")
    """The agent's own configuration, as YAML."""
    redact_kubernetes_secrets: str = ""
    """True hides values of Secrets that the agent comes across."""
    host: InstanaHost = InstanaHost()
    """Folders that outlive the pods."""
    service_mesh: InstanaMesh = InstanaMesh()
    """Monitoring of a service mesh."""
    instana_mvn_repo_url: str = ""
    """URL of a Maven repository in place of the public one."""
    instana_mvn_repo_features_path: str = ""
    """Path of the features in that repository."""
    instana_mvn_repo_shared_path: str = ""
    """Path of the shared artifacts in that repository."""
    agent_release_repo_mirror_url: str = ""
    """URL of a mirror of the repository of agent releases."""
    agent_release_repo_mirror_username: str = ""
    """User name for that mirror."""
    agent_release_repo_mirror_password: str = ""
    """Password for that mirror."""
    instana_shared_repo_mirror_url: str = ""
    """URL of a mirror of the repository of shared artifacts."""
    instana_shared_repo_mirror_username: str = ""
    """User name for that mirror."""
    instana_shared_repo_mirror_password: str = ""
    """Password for that mirror."""
