"""The rule table: its CRDs, its policies and its Python give the same verdict on every object."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote
from hortus.domains.agents.validation.policies import policies
from hortus.domains.agents.validation.rules import ADVICE, RULES, problems, rules_for
from hortus.domains.agents.validation.strict import strict_crds
from hortus.engine import copy_of, read
from hortus.kube.objects import Object
from hortus.schema import Structural, compile_expression, crd, validate_crd

KINDS: dict[str, type[InstanaAgent] | type[InstanaAgentRemote]] = {
    "InstanaAgent": InstanaAgent,
    "InstanaAgentRemote": InstanaAgentRemote,
}
_ENDPOINT = {"endpointHost": "example.com", "endpointPort": "443"}
_NAMES = st.sampled_from(["", "a", "zone-1", "-a", "a-", "UPPER", "a.b", "x" * 63, "ä", "a\n"])
_PORTS = st.sampled_from(["", "0", "1", "443", "65535", "65536", "00443", "-1", "4 3", "443\n", "https", "٤٤٣"])
_NUMBERS = st.sampled_from([-1, 0, 1, 4317, 4318, 42699, 55680, 65535, 65536, 2**31 - 1])
_SECRETS = st.sampled_from(["", "value"])
_BYTES = st.just("dmFsdWU=")
_MODES = st.sampled_from(["", "APM", "INFRASTRUCTURE", "AWS", "KUBERNETES", "apm", "OTHER"])


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """An object with any of these fields."""
    return st.fixed_dictionaries({}, optional=fields)


_HANDLERS = some(
    exec=st.just({"command": ["true"]}),
    grpc=st.just({"port": 1}),
    httpGet=st.just({"port": 80}),
    tcpSocket=st.just({"port": "http"}),
    periodSeconds=st.just(5),
)
_BACKEND = st.fixed_dictionaries({"endpointHost": st.just("b")} | {"endpointPort": _PORTS}, optional={"key": _SECRETS})
_AGENT = st.fixed_dictionaries(
    {"endpointHost": st.just("a"), "endpointPort": _PORTS},
    optional={
        "key": _SECRETS,
        "keysSecret": _SECRETS,
        "downloadKey": _SECRETS,
        "proxyPassword": _SECRETS,
        "mode": _MODES,
        "additionalBackends": st.lists(_BACKEND, max_size=2),
        "tls": some(secretName=_SECRETS, certificate=_BYTES, key=_BYTES),
        "pod": some(livenessProbe=_HANDLERS),
    },
)
_NAMED = some(name=_NAMES)
_PROTOCOL = some(enabled=st.booleans(), port=_NUMBERS)
_SPECS = {
    "InstanaAgent": st.fixed_dictionaries(
        {"agent": _AGENT},
        optional={
            "cluster": _NAMED,
            "zone": _NAMED,
            "zones": st.lists(some(name=_NAMES, mode=_MODES), max_size=3),
            "opentelemetry": some(enabled=st.booleans(), grpc=_PROTOCOL, http=_PROTOCOL),
            "k8s_sensor": some(restClient=some(ca=some(secretName=_SECRETS, mountPath=_SECRETS))),
        },
    ),
    "InstanaAgentRemote": st.fixed_dictionaries({"agent": _AGENT, "zone": _NAMED}),
}
_STRICT = {found["spec"]["names"]["kind"]: found for found in strict_crds()}
_SCHEMAS = {
    kind: Structural.compile(found["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    for kind, found in _STRICT.items()
}


def agent(kind: str, spec: dict[str, Any]) -> Object:
    metadata = {"name": "agent", "namespace": "default"}
    return {"apiVersion": "instana.io/v1", "kind": kind, "metadata": metadata, "spec": spec}


def breaches_by_policy(kind: str, obj: Object, *, advice: bool = False) -> set[str]:
    """The names of the rules that the expressions of the policy refuse."""
    found = set()
    for rule in rules_for(kind, advice=advice):
        program = compile_expression(rule.over("object.spec"), {"object": "any"}, returns="bool")
        if not program.run({"object": obj}):
            found.add(rule.name)
    return found


def breaches_by_code(kind: str, obj: Object, *, advice: bool = False) -> set[str]:
    spec = read(KINDS[kind], obj).spec
    return {rule.name for rule in rules_for(kind, advice=advice) if list(rule.check(spec))}


def refused_by_crd(kind: str, obj: Object) -> list[str]:
    return [str(problem) for problem in _SCHEMAS[kind].validate(copy_of(obj))]


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=80)
@given(data=st.data())
def test_crd_policy_and_code_agree_on_every_object(kind: str, data: st.DataObject) -> None:
    obj = agent(kind, data.draw(_SPECS[kind]))
    found = breaches_by_code(kind, obj)
    assert found == breaches_by_policy(kind, obj)
    assert bool(found) == bool(refused_by_crd(kind, obj)), refused_by_crd(kind, obj)
    assert breaches_by_code(kind, obj, advice=True) == breaches_by_policy(kind, obj, advice=True)


GOOD: dict[str, Any] = {"agent": _ENDPOINT | {"keysSecret": "keys"}, "cluster": {"name": "one"}}
ZONES: dict[str, Any] = GOOD | {"zones": [{"name": "a"}, {"name": "b"}]}


def changed(spec: dict[str, Any], **agent_fields: Any) -> dict[str, Any]:
    return spec | {"agent": spec["agent"] | agent_fields}


@pytest.mark.parametrize(
    ("rule", "spec", "expected"),
    [
        (
            "keys",
            changed(GOOD, keysSecret=""),
            ["spec.agent.keysSecret: is not set; name a Secret with the agent key, or set spec.agent.key"],
        ),
        (
            "reported-name",
            GOOD | {"cluster": {}},
            ["spec.cluster.name: is not set; set it, or spec.zone.name"],
        ),
        ("zones-cluster", ZONES | {"cluster": {}}, ["spec.cluster.name: is not set; spec.zones needs it"]),
        (
            "zone-names",
            GOOD | {"zones": [{"name": "a"}, {"name": "a"}, {"name": "A"}]},
            [
                "spec.zones[1].name: is 'a' like that of another zone; give each zone a name of its own",
                "spec.zones[2].name: is 'A'; use up to 63 of a-z, 0-9 and -, with no - at either end",
            ],
        ),
        (
            "endpoint-port",
            changed(GOOD, endpointPort="https"),
            ["spec.agent.endpointPort: is 'https'; give a number from 1 to 65535"],
        ),
        (
            "backend-ports",
            changed(GOOD, additionalBackends=[{"endpointHost": "b", "endpointPort": "99999"}]),
            ["spec.agent.additionalBackends[0].endpointPort: is '99999'; give a number from 1 to 65535"],
        ),
        (
            "telemetry-range",
            GOOD | {"opentelemetry": {"grpc": {"port": 0}}},
            ["spec.opentelemetry.grpc.port: is 0; give a number from 1 to 65535"],
        ),
        (
            "telemetry-ports",
            GOOD | {"opentelemetry": {"grpc": {"port": 4318}}},
            ["spec.opentelemetry.http.port: is 4318, the port of otlp-grpc; choose another"],
        ),
        (
            "tls-pair",
            changed(GOOD, tls={"certificate": "dmFsdWU="}),
            ["spec.agent.tls.key: is not set; it goes together with spec.agent.tls.certificate"],
        ),
        (
            "client-authority",
            GOOD | {"k8s_sensor": {"restClient": {"ca": {"secretName": "ca"}}}},
            ["spec.k8s_sensor.restClient.ca.mountPath: is not set; Secret ca needs a folder to be mounted at"],
        ),
        (
            "mode",
            changed(GOOD, mode="apm"),
            ["spec.agent.mode: is 'apm'; use one of APM, INFRASTRUCTURE, AWS, KUBERNETES"],
        ),
        (
            "zone-modes",
            GOOD | {"zones": [{"name": "a", "mode": "ALL"}]},
            ["spec.zones[0].mode: is 'ALL'; use one of APM, INFRASTRUCTURE, AWS, KUBERNETES"],
        ),
        (
            "probe",
            changed(GOOD, pod={"livenessProbe": {"exec": {"command": ["a"]}, "grpc": {"port": 1}}}),
            ["spec.agent.pod.livenessProbe: has exec and grpc; give exactly one of exec, grpc, httpGet, tcpSocket"],
        ),
    ],
)
def test_each_rule_names_field_value_and_fix(rule: str, spec: dict[str, Any], expected: list[str]) -> None:
    obj = agent("InstanaAgent", spec)
    assert [str(one) for one in problems("InstanaAgent", read(InstanaAgent, obj).spec)] == expected
    assert breaches_by_policy("InstanaAgent", obj) == {rule}
    (text,) = refused_by_crd("InstanaAgent", obj)
    assert next(one for one in RULES if one.name == rule).message in text


def test_a_remote_agent_without_a_zone_is_refused() -> None:
    obj = agent("InstanaAgentRemote", {"agent": _ENDPOINT | {"key": "k"}, "zone": {}})
    assert breaches_by_code("InstanaAgentRemote", obj) == {"remote-zone"}


def test_credentials_are_warned_about_by_field_and_never_shown() -> None:
    secret = "c2VjcmV0LXZhbHVl"
    spec = changed(
        GOOD,
        key=secret,
        proxyPassword=secret,
        tls={"certificate": secret, "key": secret},
        additionalBackends=[{"endpointHost": "b", "endpointPort": "1", "key": secret}],
    )
    found = problems("InstanaAgent", read(InstanaAgent, agent("InstanaAgent", spec)).spec, advice=True)
    assert [one.field for one in found] == [
        "spec.agent.key",
        "spec.agent.proxyPassword",
        "spec.agent.additionalBackends[0].key",
        "spec.agent.tls.key",
    ]
    assert secret not in " ".join(map(str, found))
    assert breaches_by_policy("InstanaAgent", agent("InstanaAgent", spec), advice=True) == {"credentials"}


def test_the_strict_crds_are_crds_and_differ_in_rules_and_bounds_alone() -> None:
    for kind, made in _STRICT.items():
        assert validate_crd(copy_of(made)) == []
        plain = crd(KINDS[kind])
        added = ("x-kubernetes-validations", "maxItems", "maxLength")
        assert _without(made, *added) == _without(plain, *added)


def _without(value: Any, *names: str) -> Any:
    if isinstance(value, list):
        return [_without(one, *names) for one in value]
    if isinstance(value, dict):
        return {name: _without(one, *names) for name, one in value.items() if name not in names}
    return value


def test_every_rule_is_in_the_policies_and_every_policy_fails_open() -> None:
    made = policies()
    expressions = {
        one["expression"]
        for obj in made
        for one in obj["spec"].get("validations", ())
        if obj["kind"].endswith("Policy")
    }
    assert expressions == {rule.over("object.spec") for rule in (*RULES, *ADVICE)}
    assert {obj["spec"]["failurePolicy"] for obj in made if obj["kind"].endswith("Policy")} == {"Ignore"}
    actions = {
        obj["metadata"]["name"]: obj["spec"]["validationActions"] for obj in made if obj["kind"].endswith("Binding")
    }
    assert actions == {
        "rules.agents.instana.io": ["Deny"],
        "advice.agents.instana.io": ["Warn"],
        "rules.agentsremote.instana.io": ["Deny"],
        "advice.agentsremote.instana.io": ["Warn"],
    }
