"""Variables of the agent: sources, precedence, order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domains.agents.builders.samples import FACTS, agent, built, built_remote, remote, variables

PERSISTENCE = {
    "INSTANA_AGENT_ID_FILE_PATH": "/var/lib/instana/instana-agent-id",
    "INSTANA_PERSIST_HOST_UNIQUE_ID": "true",
}
PLAIN = {
    "CONFIG_PATH": "/opt/instana/agent/etc/instana-config-yml",
    "ENTRYPOINT_SKIP_BACKEND_TEMPLATE_GENERATION": "true",
    "INSTANA_AGENT_ENDPOINT": "ingress-red-saas.instana.io",
    "INSTANA_AGENT_ENDPOINT_PORT": "443",
    "INSTANA_AGENT_POD_NAME": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}},
    "INSTANA_KUBERNETES_CLUSTER_NAME": "berlin",
    "K8S_SERVICE_DOMAIN": "edge-headless.monitoring.svc",
    "NAMESPACES_DETAILS_PATH": "/opt/instana/agent/etc/namespaces/namespaces.yaml",
    "NODE_NAME": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}},
    "POD_IP": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}},
    **PERSISTENCE,
}
SETTINGS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"mode": "INFRASTRUCTURE"}, {"INSTANA_AGENT_MODE": "INFRASTRUCTURE"}),
    ({"listenAddress": "0.0.0.0"}, {"INSTANA_AGENT_HTTP_LISTEN": "0.0.0.0"}),
    ({"redactKubernetesSecrets": "true"}, {"INSTANA_KUBERNETES_REDACT_SECRETS": "true"}),
    ({"proxyUseDNS": True}, {"INSTANA_AGENT_PROXY_USE_DNS": "true"}),
    ({"proxyUseDNS": False}, {}),
    (
        {"proxyHost": "proxy", "proxyPort": "3128", "proxyProtocol": "socks5"},
        {
            "INSTANA_AGENT_PROXY_HOST": "proxy",
            "INSTANA_AGENT_PROXY_PORT": "3128",
            "INSTANA_AGENT_PROXY_PROTOCOL": "socks5",
        },
    ),
    (
        {"instanaMvnRepoUrl": "u", "instanaMvnRepoFeaturesPath": "f", "instanaMvnRepoSharedPath": "s"},
        {
            "INSTANA_MVN_REPOSITORY_URL": "u",
            "INSTANA_MVN_REPOSITORY_FEATURES_PATH": "f",
            "INSTANA_MVN_REPOSITORY_SHARED_PATH": "s",
        },
    ),
    (
        {"agentReleaseRepoMirrorUrl": "a", "instanaSharedRepoMirrorUrl": "b"},
        {"AGENT_RELEASE_REPOSITORY_MIRROR_URL": "a", "INSTANA_SHARED_REPOSITORY_MIRROR_URL": "b"},
    ),
]
OF_CLUSTERS = {"INSTANA_KUBERNETES_CLUSTER_NAME", "NODE_NAME", "K8S_SERVICE_DOMAIN", "NAMESPACES_DETAILS_PATH"}


@pytest.mark.parametrize(("base", "added"), SETTINGS)
def test_a_variable_is_there_when_its_field_is_set(base: dict[str, Any], added: dict[str, Any]) -> None:
    assert variables(built(agent(**base))["DaemonSet/edge"]) == {**PLAIN, **added}


@pytest.mark.parametrize(("base", "added"), SETTINGS)
def test_a_remote_has_the_variables_that_are_of_no_cluster(base: dict[str, Any], added: dict[str, Any]) -> None:
    expected = {name: value for name, value in PLAIN.items() if name not in OF_CLUSTERS | PERSISTENCE.keys()}
    expected |= {"CONFIG_PATH": "/opt/instana/agent/etc/remote-config-yml", "INSTANA_ZONE": "outside", **added}
    assert variables(built_remote(remote(**base))["Deployment/instana-agent-r-far"]) == expected


def test_the_socket_for_a_mesh_is_opened_by_the_agents_own_switch() -> None:
    assert variables(built(agent(serviceMesh={"enabled": True}))["DaemonSet/edge"]) == {
        **PLAIN,
        "ENABLE_AGENT_SOCKET": "true",
    }
    assert variables(built(agent({"serviceMesh": {"enabled": True}}))["DaemonSet/edge"]) == PLAIN


CREDENTIALS = {
    "proxyUser": ("INSTANA_AGENT_PROXY_USER", "u"),
    "proxyPassword": ("INSTANA_AGENT_PROXY_PASSWORD", "p"),
    "agentReleaseRepoMirrorUsername": ("AGENT_RELEASE_REPOSITORY_MIRROR_USERNAME", "ru"),
    "agentReleaseRepoMirrorPassword": ("AGENT_RELEASE_REPOSITORY_MIRROR_PASSWORD", "rp"),
    "instanaSharedRepoMirrorUsername": ("INSTANA_SHARED_REPOSITORY_MIRROR_USERNAME", "su"),
    "instanaSharedRepoMirrorPassword": ("INSTANA_SHARED_REPOSITORY_MIRROR_PASSWORD", "sp"),
}


@pytest.mark.parametrize(("secret", "named"), [("", "edge"), ("mine", "mine")])
def test_credentials_are_variables_only_without_secret_mounts(secret: str, named: str) -> None:
    base = {field: value for field, (_, value) in CREDENTIALS.items()}
    assert variables(built(agent(**base))["DaemonSet/edge"]) == PLAIN
    found = variables(built(agent({"useSecretMounts": False}, keysSecret=secret, **base))["DaemonSet/edge"])
    assert found == {
        **PLAIN,
        **dict(CREDENTIALS.values()),
        "INSTANA_AGENT_KEY": {"secretKeyRef": {"name": named, "key": "key"}},
        "INSTANA_DOWNLOAD_KEY": {"secretKeyRef": {"name": named, "key": "downloadKey", "optional": True}},
    }


def test_a_zone_says_its_name_and_its_mode_even_when_that_is_empty() -> None:
    spec = {"zones": [{"name": "a", "mode": "AWS"}, {"name": "b"}], "zone": {"name": "unused"}}
    found = built(agent(spec, mode="APM"))
    for zone, mode in (("a", "AWS"), ("b", "")):
        daemon_set = found[f"DaemonSet/edge-{zone}"]
        assert variables(daemon_set) == {**PLAIN, "INSTANA_AGENT_MODE": mode, "INSTANA_ZONE": zone}
        # The label is that of the whole agent.
        assert daemon_set["spec"]["template"]["metadata"]["labels"]["instana/agent-mode"] == "APM"


def test_an_installation_without_the_variable_keeps_its_ids_and_each_zone_decides_for_itself() -> None:
    found = built(agent(), FACTS._replace(persist_ids={"edge": False}))
    assert variables(found["DaemonSet/edge"]) == {name: PLAIN[name] for name in PLAIN if name not in PERSISTENCE}
    zoned = built(agent({"zones": [{"name": "a"}, {"name": "b"}]}), FACTS._replace(persist_ids={"edge-a": False}))
    assert not PERSISTENCE.keys() & variables(zoned["DaemonSet/edge-a"]).keys()
    assert PERSISTENCE.items() <= variables(zoned["DaemonSet/edge-b"]).items()


NAMES = st.sampled_from([*PLAIN, "MINE", "a", "Z", "_"])


@given(legacy=st.dictionaries(NAMES, st.text()), own=st.lists(st.tuples(NAMES, st.text())))
def test_the_pods_variables_win_over_the_operators_and_these_over_the_agents(
    legacy: dict[str, str], own: list[tuple[str, str]]
) -> None:
    pod = {"env": [{"name": name, "value": value} for name, value in own]}
    found = variables(built(agent(env=legacy, pod=pod))["DaemonSet/edge"])
    assert found == {**legacy, **PLAIN, **dict(own)}
