"""The operator's defaults, which hold for one reconcile and are never written to the object or into its CRD.

The rule is that of instana/instana-agent-operator (`api/v1/instanaagent_types.go`): a field with Go's zero value gets
the default, so that `replicas: 0` means 3 and an empty tag means latest; a switch that was set to false stays false.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from hortus.domains.agents.types import (
    InstanaAgent,
    InstanaAgentRemote,
    InstanaBaseAgent,
    InstanaCreate,
    InstanaImage,
    InstanaRollingUpdate,
    InstanaSensor,
    InstanaServiceAccount,
    InstanaTelemetry,
    InstanaUpdateStrategy,
)

ENDPOINT_HOST: Final = "ingress-red-saas.instana.io"
ENDPOINT_PORT: Final = "443"
AGENT_IMAGE: Final = "icr.io/instana/agent"
SENSOR_IMAGE: Final = "icr.io/instana/k8sensor"
TAG: Final = "latest"
PULL_POLICY: Final = "Always"
ROLLING_UPDATE: Final = "RollingUpdate"
MAX_UNAVAILABLE: Final = 1
REPLICAS: Final = 3
POLL_RATE: Final = "10s"
ETCD_CA_FOLDER: Final = "/var/run/secrets/kubernetes.io/serviceaccount"

_Image = TypeVar("_Image", bound=InstanaImage)
_Creating = TypeVar("_Creating", InstanaCreate, InstanaServiceAccount)


def defaulted(agent: InstanaAgent) -> InstanaAgent:
    """The agent with the operator's defaults; applied twice it is the same."""
    spec = agent.spec
    base = _base(spec.agent)
    return msgspec.structs.replace(
        agent,
        spec=msgspec.structs.replace(
            spec,
            agent=msgspec.structs.replace(base, update_strategy=_update_strategy(base.update_strategy)),
            use_secret_mounts=_switch(spec.use_secret_mounts, default=True),
            rbac=_created(spec.rbac),
            service=_created(spec.service),
            opentelemetry=_telemetry(spec.opentelemetry),
            service_account=_created(spec.service_account),
            k8s_sensor=_sensor(spec.k8s_sensor),
        ),
    )


def defaulted_remote(agent: InstanaAgentRemote) -> InstanaAgentRemote:
    """The remote agent with the operator's defaults; it has no update strategy, Service or sensor."""
    spec = agent.spec
    return msgspec.structs.replace(
        agent,
        spec=msgspec.structs.replace(
            spec,
            agent=_base(spec.agent),
            use_secret_mounts=_switch(spec.use_secret_mounts, default=True),
            rbac=_created(spec.rbac),
            service_account=_created(spec.service_account),
        ),
    )


def _switch(value: bool | None, *, default: bool) -> bool:
    return default if value is None else value


def _created(choice: _Creating) -> _Creating:
    return msgspec.structs.replace(choice, create=_switch(choice.create, default=True))


def _image(image: _Image, name: str) -> _Image:
    return msgspec.structs.replace(
        image, name=image.name or name, tag=image.tag or TAG, pull_policy=image.pull_policy or PULL_POLICY
    )


def _base(agent: InstanaBaseAgent) -> InstanaBaseAgent:
    return msgspec.structs.replace(
        agent,
        endpoint_host=agent.endpoint_host or ENDPOINT_HOST,
        endpoint_port=agent.endpoint_port or ENDPOINT_PORT,
        image=_image(agent.image, AGENT_IMAGE),
    )


def _update_strategy(strategy: InstanaUpdateStrategy) -> InstanaUpdateStrategy:
    """The pace is set with OnDelete too.

    Where pods may surge and nothing else is said, none may be unavailable: Kubernetes refuses a DaemonSet with both.
    """
    pace = strategy.rolling_update or InstanaRollingUpdate()
    if pace.max_unavailable is None:
        surges = pace.max_surge not in (None, 0, "0%")
        pace = msgspec.structs.replace(pace, max_unavailable=0 if surges else MAX_UNAVAILABLE)
    return InstanaUpdateStrategy(type=strategy.type or ROLLING_UPDATE, rolling_update=pace)


def _telemetry(telemetry: InstanaTelemetry) -> InstanaTelemetry:
    """Both protocols follow the switch of all of OpenTelemetry unless they have been switched themselves."""
    enabled = _switch(telemetry.enabled, default=True)
    grpc, http = (
        msgspec.structs.replace(port, enabled=_switch(port.enabled, default=enabled))
        for port in (telemetry.grpc, telemetry.http)
    )
    return InstanaTelemetry(enabled=enabled, grpc=grpc, http=http)


def _sensor(sensor: InstanaSensor) -> InstanaSensor:
    ca = msgspec.structs.replace(sensor.etcd.ca, mount_path=sensor.etcd.ca.mount_path or ETCD_CA_FOLDER)
    return msgspec.structs.replace(
        sensor,
        image=_image(sensor.image, SENSOR_IMAGE),
        deployment=msgspec.structs.replace(sensor.deployment, replicas=sensor.deployment.replicas or REPLICAS),
        pollrate=sensor.pollrate or POLL_RATE,
        etcd=msgspec.structs.replace(sensor.etcd, insecure=_switch(sensor.etcd.insecure, default=False), ca=ca),
    )
