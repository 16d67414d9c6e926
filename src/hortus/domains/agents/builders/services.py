"""Services of the agent and the ports behind them."""

from __future__ import annotations

from hortus.domains.agents.builders import names
from hortus.domains.agents.builders.facts import InstanaFacts
from hortus.domains.agents.builders.metadata import AGENT, common_labels, namespaced, selector_labels
from hortus.domains.agents.builders.names import AnyAgent
from hortus.domains.agents.builders.pods import AGENT_PORT
from hortus.domains.agents.types import InstanaAgent
from hortus.kube.objects import Object

API_PORT = ("agent-apis", AGENT_PORT)
_SERVING_SECRET = "service.beta.openshift.io/serving-cert-secret-name"  # noqa: S105 - an annotation
_LEGACY_PORT = 55680
_GRPC_PORT = 4317
_HTTP_PORT = 4318


def agent_ports(agent: InstanaAgent) -> list[tuple[str, int]]:
    """Names and numbers of the agent's ports. Without OpenTelemetry as a whole none of its protocols has one."""
    wanted = agent.spec.opentelemetry
    found = [API_PORT]
    if wanted.enabled and wanted.grpc.enabled:
        found += [("otlp-grpc", wanted.grpc.port or _GRPC_PORT), ("otlp-legacy", _LEGACY_PORT)]
    if wanted.enabled and wanted.http.enabled:
        found.append(("otlp-http", wanted.http.port or _HTTP_PORT))
    return found


def headless_service(agent: InstanaAgent, facts: InstanaFacts) -> Object:
    """The Service by which agents find each other."""
    return _service(agent, facts, names.headless(agent), {"clusterIP": "None"})


def service(agent: InstanaAgent, facts: InstanaFacts) -> Object | None:
    """The Service by which workloads reach the agent of their own node; None where nothing needs it."""
    if not is_served(agent):
        return None
    return _service(agent, facts, agent.metadata.name, {"internalTrafficPolicy": "Local"})


def is_served(agent: InstanaAgent) -> bool:
    """Reports whether workloads reach the agent by a Service of its name."""
    spec = agent.spec
    return bool(spec.service.create or spec.prometheus.remote_write.enabled or spec.opentelemetry.enabled)


def serving(agent: AnyAgent) -> str:
    """The Service that a certificate is for: that of workloads, or the headless one where there is no other."""
    assert isinstance(agent, InstanaAgent), "options of Remotes name an issuer"
    return agent.metadata.name if is_served(agent) else names.headless(agent)


def _annotations(agent: InstanaAgent, facts: InstanaFacts, name: str) -> dict[str, str]:
    """The annotation by which OpenShift issues a certificate, where options ask for it at this Service."""
    wanted = facts.options.certificate
    if wanted is None or not wanted.openshift or not facts.openshift or name != serving(agent):
        return {}
    return {_SERVING_SECRET: names.issued_secret(agent)}


def _service(agent: InstanaAgent, facts: InstanaFacts, name: str, fields: Object) -> Object:
    ports = [
        {"name": port, "port": number, "targetPort": number, "protocol": "TCP"} for port, number in agent_ports(agent)
    ]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": namespaced(
            agent, name, common_labels(agent, AGENT, facts.operator_version), _annotations(agent, facts, name)
        ),
        "spec": {**fields, "selector": selector_labels(agent, AGENT), "ports": ports},
    }
