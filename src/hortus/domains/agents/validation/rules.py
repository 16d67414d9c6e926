"""The rule table: what an InstanaAgent must meet in addition to its CRD, as CEL and as Python.

An expression is about the spec, written `@`: `self` in a CRD, `object.spec` in a policy. It is true for a spec that
meets the rule. What an API server must bound to know the cost of a rule is selected directly, after `has`: it knows no
bound of an optional. The test of this table evaluates both sides on random objects.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from hortus.domains.agents.validation import findings
from hortus.domains.agents.validation.findings import AgentFinding, AgentSpec, Check

_BOTH: Final = ("InstanaAgent", "InstanaAgentRemote")
_AGENT: Final = _BOTH[:1]
_REMOTE: Final = _BOTH[1:]
_SPEC: Final = "@"


class AgentRule(NamedTuple):
    """One rule."""

    name: str
    kinds: tuple[str, ...]
    """The kinds that it holds for."""
    expression: str
    message: str
    """Names the field and the fix, for a server that shows no value."""
    check: Check
    value: str = ""
    """An expression for the text of the wrong value, shown after the message."""

    def over(self, spec: str) -> str:
        """The expression with `spec` for the spec."""
        return self.expression.replace(_SPEC, spec)

    def message_over(self, spec: str) -> str:
        """The expression of a message that shows the value; empty for a rule without one."""
        return f"'{self.message}, and is ' + {self.value.replace(_SPEC, spec)}" if self.value else ""


def _text(path: str) -> str:
    return f"@.{path}.orValue('')"


def _flag(path: str) -> str:
    return f"@.{path}.orValue(true)"


def _port(value: str) -> str:
    """True for a port as text, or for none."""
    digits = f"{value}.matches('^{findings.PORT_DIGITS}$')"
    number = f"int({value}) >= 1 && int({value}) <= {findings.HIGHEST_PORT}"
    return f"({value} == '' || ({digits} && {number}))"


def _mode(owner: str) -> str:
    return f"(!has({owner}.mode) || {owner}.mode in {['', *findings.MODES]})"


_GRPC: Final = f"@.?opentelemetry.?grpc.?port.orValue({findings.GRPC_PORT})"
_HTTP: Final = f"@.?opentelemetry.?http.?port.orValue({findings.HTTP_PORT})"
_ON: Final = _flag("?opentelemetry.?enabled")
_GRPC_ON: Final = _flag("?opentelemetry.?grpc.?enabled")
_HTTP_ON: Final = _flag("?opentelemetry.?http.?enabled")
_APIS: Final = findings.APIS_PORT
_LEGACY: Final = findings.LEGACY_PORT
_ZONES: Final = "@.?zones.orValue([])"
_HANDLED: Final = " + ".join(f"(has(probe.{name}) ? 1 : 0)" for name in findings.HANDLERS)

RULES: Final = (
    AgentRule(
        "keys",
        _BOTH,
        f"{_text('agent.?key')} != '' || {_text('agent.?keysSecret')} != ''",
        "spec.agent.keysSecret must name a Secret with the agent key, or spec.agent.key must be set",
        findings.keys,
    ),
    AgentRule(
        "reported-name",
        _AGENT,
        f"{_text('?cluster.?name')} != '' || {_text('?zone.?name')} != '' || {_ZONES}.size() > 0",
        "spec.cluster.name or spec.zone.name must be set",
        findings.reported_name,
    ),
    AgentRule(
        "remote-zone",
        _REMOTE,
        f"{_text('?zone.?name')} != ''",
        "spec.zone.name must be set",
        findings.remote_zone,
    ),
    AgentRule(
        "zones-cluster",
        _AGENT,
        f"{_ZONES}.size() == 0 || {_text('?cluster.?name')} != ''",
        "spec.cluster.name must be set where spec.zones is",
        findings.zones_cluster,
    ),
    AgentRule(
        "zone-names",
        _AGENT,
        f"!has(@.zones) || @.zones.all(zone, has(zone.name) && zone.name.matches('^{findings.DNS_LABEL}$') && "
        "@.zones.exists_one(other, has(other.name) && other.name == zone.name))",
        "spec.zones must have names that differ, each up to 63 of a-z, 0-9 and -, with no - at either end",
        findings.zone_names,
    ),
    AgentRule(
        "endpoint-port",
        _BOTH,
        _port("@.agent.endpointPort"),
        f"spec.agent.endpointPort must be a number from 1 to {findings.HIGHEST_PORT}",
        findings.endpoint_port,
        value="@.agent.endpointPort",
    ),
    AgentRule(
        "backend-ports",
        _BOTH,
        f"!has(@.agent.additionalBackends) || @.agent.additionalBackends.all(backend, {_port('backend.endpointPort')})",
        f"spec.agent.additionalBackends must have an endpointPort from 1 to {findings.HIGHEST_PORT} each",
        findings.backend_ports,
    ),
    AgentRule(
        "telemetry-range",
        _AGENT,
        f"{_GRPC} >= 1 && {_GRPC} <= {findings.HIGHEST_PORT} && {_HTTP} >= 1 && {_HTTP} <= {findings.HIGHEST_PORT}",
        f"spec.opentelemetry must have ports from 1 to {findings.HIGHEST_PORT}",
        findings.telemetry_range,
    ),
    AgentRule(
        "telemetry-ports",
        _AGENT,
        f"!{_ON} || ((!{_GRPC_ON} || !({_GRPC} in [{_APIS}, {_LEGACY}])) && (!{_HTTP_ON} || ({_HTTP} != {_APIS} && "
        f"(!{_GRPC_ON} || ({_HTTP} != {_LEGACY} && {_HTTP} != {_GRPC})))))",
        f"spec.opentelemetry must have ports for grpc and http that differ from each other, {_APIS} and {_LEGACY}",
        findings.telemetry_ports,
    ),
    AgentRule(
        "tls-pair",
        _BOTH,
        f"{_text('agent.?tls.?secretName')} != '' || "
        "has(@.agent.tls) == false || "
        "(has(@.agent.tls.certificate) && @.agent.tls.certificate.size() > 0) == "
        "(has(@.agent.tls.key) && @.agent.tls.key.size() > 0)",
        "spec.agent.tls.certificate and spec.agent.tls.key must be set together",
        findings.tls_pair,
    ),
    AgentRule(
        "client-authority",
        _AGENT,
        f"{_text('?k8s_sensor.?restClient.?ca.?secretName')} == '' || "
        f"{_text('?k8s_sensor.?restClient.?ca.?mountPath')} != ''",
        "spec.k8s_sensor.restClient.ca.mountPath must be set where secretName is",
        findings.client_authority,
    ),
    AgentRule(
        "mode",
        _BOTH,
        _mode("@.agent"),
        f"spec.agent.mode must be one of {', '.join(findings.MODES)}",
        findings.mode,
        value="@.agent.mode",
    ),
    AgentRule(
        "zone-modes",
        _AGENT,
        f"!has(@.zones) || @.zones.all(zone, {_mode('zone')})",
        f"spec.zones must have modes of {', '.join(findings.MODES)}",
        findings.zone_modes,
    ),
    AgentRule(
        "probe",
        _BOTH,
        f"!has(@.agent.pod) || !has(@.agent.pod.livenessProbe) || "
        f"[@.agent.pod.livenessProbe].all(probe, {_HANDLED} == 1)",
        f"spec.agent.pod.livenessProbe must have exactly one of {', '.join(findings.HANDLERS)}",
        findings.probes,
    ),
)
"""Rules that an object must meet."""

ADVICE: Final = (
    AgentRule(
        "credentials",
        _BOTH,
        " && ".join(f"{_text('agent.?' + wire)} == ''" for wire in findings.CREDENTIALS.values())
        + " && (!has(@.agent.additionalBackends) || @.agent.additionalBackends.all(backend, "
        + "!has(backend.key) || backend.key == ''))"
        + f" && ({_text('agent.?tls.?secretName')} != '' || !has(@.agent.tls) || !has(@.agent.tls.key)"
        + " || @.agent.tls.key.size() == 0)",
        "spec.agent holds credentials that everybody reads who may read this object; use spec.agent.keysSecret and "
        "spec.agent.tls.secretName",
        findings.credentials,
    ),
)
"""Rules whose breach is a warning."""


def rules_for(kind: str, *, advice: bool = False) -> tuple[AgentRule, ...]:
    """The rules of a kind, or the advice."""
    return tuple(rule for rule in (ADVICE if advice else RULES) if kind in rule.kinds)


def problems(kind: str, spec: AgentSpec, *, advice: bool = False) -> list[AgentFinding]:
    """The findings of all rules of a kind in a spec, each once."""
    found = (finding for rule in rules_for(kind, advice=advice) for finding in rule.check(spec))
    return list(dict.fromkeys(found))
