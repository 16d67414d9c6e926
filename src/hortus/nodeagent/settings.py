"""The configuration file of the agent: NodeAgentConfiguration, `nodeagent.config.gardener.cloud/v1alpha1`.

`docs/concepts/node-agent.md` and `example/node-agent/10-componentconfig.yaml` of gardener/gardener show it. What is
added here is below `hortus`, so that a file for Gardener's own agent is one for this agent too.
"""

from __future__ import annotations

import msgspec

from hortus.kube import durations, yaml
from hortus.nodeagent.osc import without_nulls
from hortus.nodeagent.state import FOLDER

API_VERSION = "nodeagent.config.gardener.cloud/v1alpha1"
KIND = "NodeAgentConfiguration"
KUBECONFIG = f"{FOLDER}/credentials/kubeconfig"
_QPS, _BURST = 50.0, 100
"""The recommended ones of k8s.io/component-base, which Gardener's agent takes in the place of 0."""
_LEVEL, _FORMAT = "info", "json"


class AgentConfigError(ValueError):
    """A file that is no configuration; the message names the field and the fix."""


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    """The options of all structs here."""


class ClientSettings(_Part, frozen=True):
    kubeconfig: str = ""
    qps: float = _QPS
    burst: int = _BURST


class Endpoint(_Part, frozen=True):
    bind_address: str = ""
    port: int = 0


class EndpointSettings(_Part, frozen=True):
    health_probes: Endpoint = Endpoint(port=2751)
    metrics: Endpoint = Endpoint(port=2752)


class ApiServerAddress(_Part, frozen=True):
    server: str = ""
    ca_file: str = ""


class BootstrapSettings(_Part, frozen=True):
    kubelet_data_volume_size: int | str | None = None


class OscSettings(_Part, frozen=True):
    sync_period: str = "10m"
    secret_name: str = ""
    kubernetes_version: str = ""


class TokenTarget(_Part, frozen=True):
    secret_name: str = ""
    path: str = ""


class TokenSettings(_Part, frozen=True):
    sync_configs: tuple[TokenTarget, ...] = ()
    sync_period: str = "1h"


class UnitCheckSettings(_Part, frozen=True):
    sync_period: str = "1m"
    stuck_threshold: str = "5m"


class ControllerSettings(_Part, frozen=True):
    operating_system_config: OscSettings = OscSettings()
    token: TokenSettings = TokenSettings()
    systemd_unit_check: UnitCheckSettings = UnitCheckSettings()


class AgentExtras(_Part, frozen=True):
    """The options that Gardener's agent does not have."""

    repair_drift: bool = False
    """Put back what differs from the applied configuration, at the start and at each `syncPeriod`."""
    roll_back: bool = False
    """Return to the last good configuration when the node does not become healthy with another one."""
    health_patience: str = "5m"
    """The time that a node has to become healthy."""


class NodeAgentConfiguration(_Part, frozen=True):
    api_version: str = ""
    kind: str = ""
    client_connection: ClientSettings = ClientSettings()
    log_level: str = _LEVEL
    log_format: str = _FORMAT
    server: EndpointSettings = EndpointSettings()
    api_server: ApiServerAddress = ApiServerAddress()
    bootstrap: BootstrapSettings | None = None
    controllers: ControllerSettings = ControllerSettings()
    hortus: AgentExtras = AgentExtras()

    @property
    def kubeconfig(self) -> str:
        return self.client_connection.kubeconfig or KUBECONFIG

    @property
    def secret_name(self) -> str:
        return self.controllers.operating_system_config.secret_name

    @property
    def kubernetes_version(self) -> str:
        """The version of the worker pool, without `v`; empty where the file has none."""
        return self.controllers.operating_system_config.kubernetes_version.removeprefix("v")

    @property
    def data_volume_size(self) -> int:
        """The size of the volume for data of the kubelet in bytes; 0 without one. Raises AgentConfigError."""
        size = self.bootstrap.kubelet_data_volume_size if self.bootstrap is not None else None
        try:
            return int(size or 0)
        except ValueError:
            field = "bootstrap.kubeletDataVolumeSize"
            raise AgentConfigError(f"{field} is {size!r}: write the bytes of the volume as a whole number") from None

    @property
    def sync_period(self) -> float:
        return durations.seconds(self.controllers.operating_system_config.sync_period)


_LEVELS, _FORMATS = ("debug", "info", "error"), ("json", "text")


def read(text: str | bytes) -> NodeAgentConfiguration:
    """The configuration in a file. Raises AgentConfigError."""
    try:
        document = yaml.load(text)
        found = _completed(msgspec.convert(without_nulls(document), NodeAgentConfiguration))
    except yaml.YamlError as error:
        raise AgentConfigError(f"is not readable YAML: {error}") from None
    except msgspec.ValidationError as error:
        raise AgentConfigError(str(error)) from None
    wrong = list(_problems(found))
    if wrong:
        raise AgentConfigError("; ".join(wrong))
    return found


def _completed(found: NodeAgentConfiguration) -> NodeAgentConfiguration:
    """The configuration with defaults for what is empty: gardenlet writes all fields of log and client that way."""
    client = found.client_connection
    return msgspec.structs.replace(
        found,
        log_level=found.log_level or _LEVEL,
        log_format=found.log_format or _FORMAT,
        client_connection=msgspec.structs.replace(client, qps=client.qps or _QPS, burst=client.burst or _BURST),
    )


def _problems(found: NodeAgentConfiguration) -> list[str]:
    wrong = []
    if (found.api_version, found.kind) != (API_VERSION, KIND):
        wrong.append(
            f"is {found.kind or 'nothing'} of {found.api_version or 'no version'}: write {KIND}, {API_VERSION}"
        )
    if not found.secret_name:
        wrong.append("controllers.operatingSystemConfig.secretName is empty: name the Secret of the worker pool")
    if found.log_level not in _LEVELS:
        wrong.append(f"logLevel is {found.log_level!r}: set it to one of {', '.join(_LEVELS)}")
    if found.log_format not in _FORMATS:
        wrong.append(f"logFormat is {found.log_format!r}: set it to one of {', '.join(_FORMATS)}")
    wrong += [_duration_problem(*each) for each in _durations(found) if _duration_problem(*each)]
    for index, target in enumerate(found.controllers.token.sync_configs):
        if not target.secret_name or not target.path.startswith("/"):
            wrong.append(f"controllers.token.syncConfigs[{index}] needs a secretName and an absolute path")
    return wrong


def _durations(found: NodeAgentConfiguration) -> list[tuple[str, str, float]]:
    """Each duration with its field and the least that it may be, in seconds."""
    controllers = found.controllers
    return [
        ("controllers.operatingSystemConfig.syncPeriod", controllers.operating_system_config.sync_period, 15.0),
        ("controllers.token.syncPeriod", controllers.token.sync_period, 15.0),
        ("controllers.systemdUnitCheck.syncPeriod", controllers.systemd_unit_check.sync_period, 15.0),
        ("controllers.systemdUnitCheck.stuckThreshold", controllers.systemd_unit_check.stuck_threshold, 0.0),
        ("hortus.healthPatience", found.hortus.health_patience, 1.0),
    ]


def _duration_problem(field: str, text: str, least: float) -> str:
    try:
        seconds = durations.seconds(text)
    except durations.DurationError as error:
        return f"{field}: {error}"
    return "" if seconds >= least else f"{field} is {text}: set it to {durations.from_seconds(least)} or more"
