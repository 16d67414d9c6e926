"""Findings of the rules in an object that has been read. Pure.

A finding names the field, the value and the fix. The value of a credential is never in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from hortus.domains.agents.types import InstanaAgentRemoteSpec, InstanaAgentSpec

AgentSpec = InstanaAgentSpec | InstanaAgentRemoteSpec
MODES: Final = ("APM", "INFRASTRUCTURE", "AWS", "KUBERNETES")
HANDLERS: Final = ("exec", "grpc", "httpGet", "tcpSocket")
DNS_LABEL: Final = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
PORT_DIGITS: Final = "[0-9]{1,5}"
HIGHEST_PORT: Final = 65535
GRPC_PORT: Final = 4317
HTTP_PORT: Final = 4318
APIS_PORT: Final = 42699
LEGACY_PORT: Final = 55680
"""The port of OTLP before it had one of its own, which is open while gRPC is on."""
CREDENTIALS: Final = {
    "key": "key",
    "download_key": "downloadKey",
    "proxy_password": "proxyPassword",
    "agent_release_repo_mirror_password": "agentReleaseRepoMirrorPassword",
    "instana_shared_repo_mirror_password": "instanaSharedRepoMirrorPassword",
}
"""Fields of `spec.agent` that hold a credential, by their names here."""


class AgentFinding(NamedTuple):
    """A field that breaks a rule."""

    field: str
    problem: str

    def __str__(self) -> str:
        return f"{self.field}: {self.problem}"


Check = Callable[[AgentSpec], Iterator[AgentFinding]]


def keys(spec: AgentSpec) -> Iterator[AgentFinding]:
    if not spec.agent.key and not spec.agent.keys_secret:
        yield AgentFinding(
            "spec.agent.keysSecret", "is not set; name a Secret with the agent key, or set spec.agent.key"
        )


def reported_name(spec: AgentSpec) -> Iterator[AgentFinding]:
    if isinstance(spec, InstanaAgentSpec) and not (spec.cluster.name or spec.zone.name or spec.zones):
        yield AgentFinding("spec.cluster.name", "is not set; set it, or spec.zone.name")


def remote_zone(spec: AgentSpec) -> Iterator[AgentFinding]:
    if not spec.zone.name:
        yield AgentFinding("spec.zone.name", "is not set; set the zone under which the agent reports")


def zones_cluster(spec: AgentSpec) -> Iterator[AgentFinding]:
    if isinstance(spec, InstanaAgentSpec) and spec.zones and not spec.cluster.name:
        yield AgentFinding("spec.cluster.name", "is not set; spec.zones needs it")


def zone_names(spec: AgentSpec) -> Iterator[AgentFinding]:
    known: set[str] = set()
    for place, zone in enumerate(spec.zones if isinstance(spec, InstanaAgentSpec) else ()):
        field = f"spec.zones[{place}].name"
        if not re.fullmatch(DNS_LABEL, zone.name):
            yield AgentFinding(field, f"is {zone.name!r}; use up to 63 of a-z, 0-9 and -, with no - at either end")
        elif zone.name in known:
            yield AgentFinding(field, f"is {zone.name!r} like that of another zone; give each zone a name of its own")
        known.add(zone.name)


def endpoint_port(spec: AgentSpec) -> Iterator[AgentFinding]:
    yield from _port("spec.agent.endpointPort", spec.agent.endpoint_port)


def backend_ports(spec: AgentSpec) -> Iterator[AgentFinding]:
    for place, backend in enumerate(spec.agent.additional_backends):
        yield from _port(f"spec.agent.additionalBackends[{place}].endpointPort", backend.endpoint_port)


def _port(field: str, value: str) -> Iterator[AgentFinding]:
    """An empty port is that of HTTPS."""
    if value and not (re.fullmatch(PORT_DIGITS, value) and 1 <= int(value) <= HIGHEST_PORT):
        yield AgentFinding(field, f"is {value!r}; give a number from 1 to {HIGHEST_PORT}")


def telemetry_range(spec: AgentSpec) -> Iterator[AgentFinding]:
    if not isinstance(spec, InstanaAgentSpec):
        return
    for name, protocol in (("grpc", spec.opentelemetry.grpc), ("http", spec.opentelemetry.http)):
        if protocol.port is not None and not 1 <= protocol.port <= HIGHEST_PORT:
            problem = f"is {protocol.port}; give a number from 1 to {HIGHEST_PORT}"
            yield AgentFinding(f"spec.opentelemetry.{name}.port", problem)


def telemetry_ports(spec: AgentSpec) -> Iterator[AgentFinding]:
    if not isinstance(spec, InstanaAgentSpec) or spec.opentelemetry.enabled is False:
        return
    taken = {APIS_PORT: "agent-apis"}
    grpc, http = spec.opentelemetry.grpc, spec.opentelemetry.http
    if grpc.enabled is not False:
        taken[LEGACY_PORT] = "otlp-legacy"
    for name, protocol, default in (("grpc", grpc, GRPC_PORT), ("http", http, HTTP_PORT)):
        if protocol.enabled is False:
            continue
        port = default if protocol.port is None else protocol.port
        if port in taken:
            yield AgentFinding(
                f"spec.opentelemetry.{name}.port", f"is {port}, the port of {taken[port]}; choose another"
            )
        taken.setdefault(port, f"otlp-{name}")


def tls_pair(spec: AgentSpec) -> Iterator[AgentFinding]:
    tls = spec.agent.tls
    if not tls.secret_name and bool(tls.certificate) != bool(tls.key):
        missing, given = ("key", "certificate") if tls.certificate else ("certificate", "key")
        yield AgentFinding(f"spec.agent.tls.{missing}", f"is not set; it goes together with spec.agent.tls.{given}")


def client_authority(spec: AgentSpec) -> Iterator[AgentFinding]:
    if isinstance(spec, InstanaAgentSpec):
        authority = spec.k8s_sensor.rest_client.ca
        if authority.secret_name and not authority.mount_path:
            problem = f"is not set; Secret {authority.secret_name} needs a folder to be mounted at"
            yield AgentFinding("spec.k8s_sensor.restClient.ca.mountPath", problem)


def mode(spec: AgentSpec) -> Iterator[AgentFinding]:
    yield from _mode("spec.agent.mode", spec.agent.mode)


def zone_modes(spec: AgentSpec) -> Iterator[AgentFinding]:
    for place, zone in enumerate(spec.zones if isinstance(spec, InstanaAgentSpec) else ()):
        yield from _mode(f"spec.zones[{place}].mode", zone.mode)


def _mode(field: str, value: str) -> Iterator[AgentFinding]:
    if value and value not in MODES:
        yield AgentFinding(field, f"is {value!r}; use one of {', '.join(MODES)}")


def probes(spec: AgentSpec) -> Iterator[AgentFinding]:
    probe: dict[str, Any] | None = spec.agent.pod.liveness_probe
    if probe is None:
        return
    given = [name for name in HANDLERS if name in probe]
    if len(given) != 1:
        found = f"has {' and '.join(given)}" if given else "has no handler"
        yield AgentFinding("spec.agent.pod.livenessProbe", f"{found}; give exactly one of {', '.join(HANDLERS)}")


def credentials(spec: AgentSpec) -> Iterator[AgentFinding]:
    agent = spec.agent
    fields = [f"spec.agent.{wire}" for name, wire in CREDENTIALS.items() if getattr(agent, name)]
    fields += [
        f"spec.agent.additionalBackends[{place}].key"
        for place, backend in enumerate(agent.additional_backends)
        if backend.key
    ]
    if agent.tls.key and not agent.tls.secret_name:
        fields.append("spec.agent.tls.key")
    for field in fields:
        fix = "spec.agent.tls.secretName" if field.endswith("tls.key") else "spec.agent.keysSecret"
        yield AgentFinding(field, f"is a credential that everybody reads who may read this object; use {fix}")
