"""Texts of the agent's configuration: YAML of its plugins, a file for each backend, and the labels of namespaces.

The texts are those of the Go operator, byte for byte. The agent reads changed files while it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from hortus.domains.agents.builders import proxy
from hortus.domains.agents.builders.backends import AgentBackend, backends_of
from hortus.domains.agents.builders.facts import InstanaFacts
from hortus.domains.agents.builders.merging import configuration
from hortus.domains.agents.builders.names import AnyAgent
from hortus.domains.agents.types import InstanaAgent, InstanaTelemetry, InstanaTelemetryPort

MONITORING_LABEL: Final = "instana-workload-monitoring"
HTTPS_PROXY: Final = "HTTPS_PROXY"
_MARGIN: Final = re.compile(r"^ +", re.MULTILINE)
_NO_SENSOR: Final = "com.instana.plugin.kubernetes:\n    enabled: false\n"
_REMOTE_WRITE: Final = "com.instana.plugin.prometheus:\n    remote_write:\n        enabled: true\n"


def config_files(agent: AnyAgent, facts: InstanaFacts) -> dict[str, bytes]:
    """The data of the config Secret."""
    wanted = agent.spec.agent
    files = {"configuration-disable-kubernetes-sensor.yaml": _NO_SENSOR.encode()}
    if isinstance(agent, InstanaAgent):
        files |= _of_cluster(agent, facts)
    if text := configuration(agent, facts):
        files["configuration.yaml"] = text.encode()
    for number, backend in enumerate(backends_of(wanted), start=1):
        if backend.host and (key := backend.key(facts.keys_secret)):
            files[f"com.instana.agent.main.sender.Backend-{number}.cfg"] = _backend(agent, backend, key)
    return files


def _of_cluster(agent: InstanaAgent, facts: InstanaFacts) -> dict[str, bytes]:
    """The files that only the agent of a cluster has."""
    spec = agent.spec
    files = {"configuration-opentelemetry.yaml": telemetry(spec.opentelemetry).encode()}
    if spec.cluster.name:
        files["cluster_name"] = spec.cluster.name.encode()
    if spec.prometheus.remote_write.enabled:
        files["configuration-prometheus-remote-write.yaml"] = _REMOTE_WRITE.encode()
    if lacks_proxy_key(agent, facts):
        files[HTTPS_PROXY] = proxy.quoted_url(spec.agent).encode()
    return files


def lacks_proxy_key(agent: InstanaAgent, facts: InstanaFacts) -> bool:
    """Reports whether the k8sensor needs the URL of the proxy, and the user's Secret was read and has none."""
    wanted = agent.spec.agent
    known = facts.keys_secret is not None and "httpsProxy" not in facts.keys_secret
    return bool(wanted.keys_secret and wanted.proxy_host and known)


def _backend(agent: AnyAgent, backend: AgentBackend, key: bytes) -> bytes:
    head = f"host={backend.host}\nport={backend.port or '443'}\nprotocol=HTTP/2\n".encode()
    tail = "".join(f"{line}\n" for line in proxy.lines(agent.spec.agent))
    return head + b"key=" + key + b"\n" + tail.encode()


def telemetry(wanted: InstanaTelemetry) -> str:
    """The configuration of OpenTelemetry, with its fields in the order of the CRD."""
    lines = ["com.instana.plugin.opentelemetry:"]
    if wanted.enabled is not None:
        lines.append(f"    enabled: {_boolean(wanted.enabled)}")
    for name, protocol in (("grpc", wanted.grpc), ("http", wanted.http)):
        fields = list(_protocol(protocol))
        lines.append(f"    {name}:" if fields else f"    {name}: {{}}")
        lines += [f"        {field}" for field in fields]
    return "\n".join([*lines, ""])


def _protocol(wanted: InstanaTelemetryPort) -> Iterator[str]:
    if wanted.enabled is not None:
        yield f"enabled: {_boolean(wanted.enabled)}"
    if wanted.port is not None:
        yield f"port: {wanted.port}"


def _boolean(value: bool) -> str:
    return "true" if value else "false"


def namespace_labels(namespaces: Mapping[str, Mapping[str, str]] | None) -> str:
    """The namespaces that say how their workloads are monitored; version 0 where they could not be listed."""
    chosen = {
        name: {"labels": {MONITORING_LABEL: labels[MONITORING_LABEL]}}
        for name, labels in (namespaces or {}).items()
        if MONITORING_LABEL in labels
    }
    version = 0 if namespaces is None else 1
    if not chosen:
        return f"version: {version}\nnamespaces: {{}}\n"
    # Loaded with the first such namespace: a process without agents does without templates.
    from hortus.render.gotemplate import write_pretty

    # The writer indents by two, the Go operator's by four; no key and no value has a line break.
    return f"version: {version}\n" + _MARGIN.sub(lambda found: found[0] * 2, write_pretty({"namespaces": chosen}))
