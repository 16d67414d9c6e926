"""The operator's defaults: what an empty spec gets, and what a user's own values keep."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.domains.agents.defaults import defaulted, defaulted_remote
from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote
from hortus.schema import crd, decode, encode

METADATA = {"name": "instana-agent", "namespace": "instana-agent"}
ENDPOINT = {"endpointHost": "ingress-red-saas.instana.io", "endpointPort": "443"}


def image(name: str) -> dict[str, str]:
    return {"name": f"icr.io/instana/{name}", "tag": "latest", "pullPolicy": "Always"}


DEFAULTS: dict[str, Any] = {
    "agent": {
        **ENDPOINT,
        "image": image("agent"),
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
    },
    "useSecretMounts": True,
    "rbac": {"create": True},
    "service": {"create": True},
    "opentelemetry": {"enabled": True, "grpc": {"enabled": True}, "http": {"enabled": True}},
    "serviceAccount": {"create": True},
    "k8s_sensor": {
        "image": image("k8sensor"),
        "deployment": {"replicas": 3},
        "pollrate": "10s",
        "etcd": {"insecure": False, "ca": {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}},
    },
}


def without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        found = {name: without_empty(item) for name, item in value.items()}
        return {name: item for name, item in found.items() if item != {}}
    return value


def merged(value: Any, changes: dict[str, Any]) -> dict[str, Any]:
    found = dict(value) if isinstance(value, dict) else {}
    for name, change in changes.items():
        found[name] = merged(found.get(name), change) if isinstance(change, dict) else change
    return found


def agent(spec: dict[str, Any]) -> InstanaAgent:
    return decode(
        InstanaAgent, {"apiVersion": "instana.io/v1", "kind": "InstanaAgent", "metadata": METADATA, "spec": spec}
    )


def spec_of(value: InstanaAgent | InstanaAgentRemote) -> Any:
    return without_empty(encode(value).get("spec", {}))


@pytest.mark.parametrize(
    ("spec", "changes"),
    [
        ({}, {}),
        ({"agent": {}}, {}),
        ({"agent": {"endpointHost": "", "endpointPort": "", "image": {"tag": ""}}}, {}),
        ({"k8s_sensor": {"deployment": {"replicas": 0}, "pollrate": ""}}, {}),
        (
            {"agent": {"endpointHost": "b.example.org", "endpointPort": "8443", "image": {"name": "a", "digest": "d"}}},
            {
                "agent": {
                    "endpointHost": "b.example.org",
                    "endpointPort": "8443",
                    "image": {"name": "a", "digest": "d", "tag": "latest"},
                }
            },
        ),
        (
            {"agent": {"image": {"tag": "1.2", "pullPolicy": "Never", "pullSecrets": []}}},
            {"agent": {"image": {"tag": "1.2", "pullPolicy": "Never", "pullSecrets": []}}},
        ),
        (
            {"useSecretMounts": False, "rbac": {"create": False}, "service": {"create": False}},
            {"useSecretMounts": False, "rbac": {"create": False}, "service": {"create": False}},
        ),
        (
            {"serviceAccount": {"create": False, "name": "own", "annotations": {"a": "b"}}},
            {"serviceAccount": {"create": False, "name": "own", "annotations": {"a": "b"}}},
        ),
        (
            {"opentelemetry": {"enabled": False, "http": {"enabled": True, "port": 4444}}},
            {"opentelemetry": {"enabled": False, "grpc": {"enabled": False}, "http": {"port": 4444}}},
        ),
        ({"opentelemetry": {"grpc": {"enabled": False}}}, {"opentelemetry": {"grpc": {"enabled": False}}}),
        (
            {"agent": {"updateStrategy": {"type": "OnDelete"}}},
            {"agent": {"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 1}}}},
        ),
        (
            {"agent": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%"}}}},
            {"agent": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": "10%"}}}},
        ),
        (
            {"agent": {"updateStrategy": {"rollingUpdate": {"maxSurge": 2}}}},
            {"agent": {"updateStrategy": {"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 0}}}},
        ),
        (
            {"agent": {"updateStrategy": {"rollingUpdate": {"maxSurge": "0%"}}}},
            {"agent": {"updateStrategy": {"rollingUpdate": {"maxSurge": "0%", "maxUnavailable": 1}}}},
        ),
        (
            {
                "k8s_sensor": {
                    "image": {"name": "s", "tag": "2"},
                    "deployment": {"enabled": False, "replicas": 1},
                    "pollrate": "5s",
                    "etcd": {"insecure": True, "ca": {"mountPath": "/etc/ca"}},
                }
            },
            {
                "k8s_sensor": {
                    "image": {"name": "s", "tag": "2"},
                    "deployment": {"enabled": False, "replicas": 1},
                    "pollrate": "5s",
                    "etcd": {"insecure": True, "ca": {"mountPath": "/etc/ca"}},
                }
            },
        ),
        ({"prometheus": {"remoteWrite": {"enabled": False}}}, {"prometheus": {"remoteWrite": {"enabled": False}}}),
        ({"openshift": False, "cluster": {"name": "c"}}, {"openshift": False, "cluster": {"name": "c"}}),
    ],
)
def test_a_field_at_its_zero_value_gets_the_default_and_any_other_is_kept(
    spec: dict[str, Any], changes: dict[str, Any]
) -> None:
    assert spec_of(defaulted(agent(spec))) == merged(DEFAULTS, changes)


def test_a_remote_agent_has_no_update_strategy_service_or_sensor() -> None:
    obj = {"apiVersion": "instana.io/v1", "kind": "InstanaAgentRemote", "metadata": METADATA, "spec": {}}
    assert spec_of(defaulted_remote(decode(InstanaAgentRemote, obj))) == {
        "agent": {**ENDPOINT, "image": image("agent")},
        "useSecretMounts": True,
        "rbac": {"create": True},
        "serviceAccount": {"create": True},
    }


def test_no_default_of_the_operator_is_one_of_the_crd() -> None:
    schema = crd(InstanaAgent)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert schema["agent"]["properties"]["image"]["properties"]["tag"] == {
        "type": "string",
        "description": "Tag of the image.",
    }
    for name in ("agent", "k8s_sensor", "opentelemetry", "useSecretMounts"):
        assert "default" not in schema[name]


@settings(deadline=None, max_examples=60)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "useSecretMounts": st.booleans(),
            "opentelemetry": st.fixed_dictionaries(
                {}, optional={"enabled": st.booleans(), "http": st.fixed_dictionaries({"enabled": st.booleans()})}
            ),
            "k8s_sensor": st.fixed_dictionaries({"deployment": st.fixed_dictionaries({"replicas": st.integers(0, 4)})}),
            "agent": st.fixed_dictionaries(
                {"updateStrategy": st.fixed_dictionaries({"type": st.sampled_from(["", "OnDelete"])})}
            ),
        },
    )
)
def test_defaulting_twice_changes_nothing_and_leaves_its_argument_alone(spec: dict[str, Any]) -> None:
    given_agent = agent(spec)
    once = defaulted(given_agent)
    assert defaulted(once) == once
    assert given_agent == agent(spec)
