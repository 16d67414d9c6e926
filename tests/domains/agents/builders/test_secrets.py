"""Secrets and texts of the configuration."""

from __future__ import annotations

import json
from base64 import b64decode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domains.agents.builders.samples import FACTS, agent, built, built_remote, data, remote

CREDENTIALS = {
    "proxyUser": "user",
    "proxyPassword": "p@ss word",
    "agentReleaseRepoMirrorUsername": "ru",
    "agentReleaseRepoMirrorPassword": "rp",
    "instanaSharedRepoMirrorUsername": "su",
    "instanaSharedRepoMirrorPassword": "sp",
}
PROXY = {"proxyHost": "proxy.example", "proxyPort": "3128"}
BACKENDS = [{"endpointHost": "b.example", "endpointPort": "8443", "key": "other-key"}, {"endpointHost": "c"}]


def test_the_keys_secret_holds_keys_and_credentials_under_the_names_of_files() -> None:
    base = {**CREDENTIALS, **PROXY, "downloadKey": "dl", "additionalBackends": BACKENDS}
    assert data(built(agent(**base))["Secret/edge"]) == {
        "downloadKey": b"dl",
        "INSTANA_DOWNLOAD_KEY": b"dl",
        "INSTANA_AGENT_PROXY_USER": b"user",
        "INSTANA_AGENT_PROXY_PASSWORD": b"p@ss word",
        "AGENT_RELEASE_REPOSITORY_MIRROR_USERNAME": b"ru",
        "AGENT_RELEASE_REPOSITORY_MIRROR_PASSWORD": b"rp",
        "INSTANA_SHARED_REPOSITORY_MIRROR_USERNAME": b"su",
        "INSTANA_SHARED_REPOSITORY_MIRROR_PASSWORD": b"sp",
        "HTTPS_PROXY": b"http://user:p%40ss%20word@proxy.example:3128",
        "key": b"secret-key",
        "INSTANA_AGENT_KEY": b"secret-key",
        "key-1": b"other-key",
        "INSTANA_AGENT_KEY-1": b"other-key",
    }


def test_a_remotes_keys_secret_holds_credentials_under_the_names_of_keys() -> None:
    base = {**CREDENTIALS, **PROXY, "downloadKey": "dl", "additionalBackends": BACKENDS}
    assert data(built_remote(remote(**base))["Secret/far"]) == {
        "downloadKey": b"dl",
        "INSTANA_DOWNLOAD_KEY": b"dl",
        "proxyUser": b"user",
        "proxyPassword": b"p@ss word",
        "mirrorReleaseRepoUsername": b"ru",
        "mirrorReleaseRepoPassword": b"rp",
        "mirrorSharedRepoUsername": b"su",
        "mirrorSharedRepoPassword": b"sp",
        "httpsProxy": b"http://user:p%40ss%20word@proxy.example:3128",
        "key": b"secret-key",
        "INSTANA_AGENT_KEY": b"secret-key",
        "key-1": b"other-key",
        "INSTANA_AGENT_KEY-1": b"other-key",
    }


def test_without_secret_mounts_the_keys_secret_holds_what_variables_refer_to() -> None:
    off = {"useSecretMounts": False}
    base = {**CREDENTIALS, **PROXY, "downloadKey": "dl", "additionalBackends": BACKENDS}
    expected = {"downloadKey": b"dl", "key": b"secret-key", "key-1": b"other-key"}
    assert data(built(agent(off, **base))["Secret/edge"]) == expected
    assert data(built_remote(remote(off, **base))["Secret/far"]) == expected


@pytest.mark.parametrize(
    ("base", "url"),
    [
        ({"proxyHost": "p"}, b"http://p:80"),
        ({"proxyHost": "p", "proxyProtocol": "socks5", "proxyPort": "1080"}, b"socks5://p:1080"),
        ({"proxyHost": "p", "proxyUser": "only"}, b"http://p:80"),
        ({"proxyHost": "p", "proxyUser": "a:b", "proxyPassword": "/?#[]@"}, b"http://a%3Ab:%2F%3F%23%5B%5D%40@p:80"),
        ({"proxyHost": "p", "proxyUser": "$&+,;=-._~", "proxyPassword": "!*'()é"}, None),
    ],
)
def test_the_url_of_the_proxy_is_quoted_as_go_does(base: dict[str, str], url: bytes | None) -> None:
    expected = b"http://$&+,;=-._~:%21%2A%27%28%29%C3%A9@p:80" if url is None else url
    assert data(built(agent(**base))["Secret/edge"])["HTTPS_PROXY"] == expected


def pulled(facts: Any = FACTS, **base: Any) -> Any:
    found = built(agent(image={"name": "containers.instana.io/agent"}, **base), facts)
    secret = found.get("Secret/edge-containers-instana-io")
    if secret is None:
        return None
    access = json.loads(data(secret)[".dockerconfigjson"])["auths"]["containers.instana.io"]
    assert access.keys() == {"auth"}
    return b64decode(access["auth"])


def test_images_are_pulled_with_the_first_key_that_is_known() -> None:
    known = FACTS._replace(keys_secret={"key": b"K", "downloadKey": b"D"})
    assert pulled(known, keysSecret="mine", downloadKey="d") == b"_:D"
    assert pulled(FACTS._replace(keys_secret={"key": b"K"}), keysSecret="mine", downloadKey="d") == b"_:K"
    assert pulled(keysSecret="mine", downloadKey="d") == b"_:d"
    assert pulled() == b"_:secret-key"
    assert pulled(key="", keysSecret="mine") is None


def test_the_pull_secret_is_one_line_of_json() -> None:
    found = built(agent(key="k", image={"name": "containers.instana.io/agent"}))
    expected = b'{"auths":{"containers.instana.io":{"auth":"Xzpr"}}}'
    assert data(found["Secret/edge-containers-instana-io"]) == {".dockerconfigjson": expected}
    assert found["Secret/edge-containers-instana-io"]["type"] == "kubernetes.io/dockerconfigjson"


def test_certificate_and_key_of_the_cr_become_a_secret_when_both_are_there() -> None:
    tls = {"certificate": "Y2VydA==", "key": "a2V5"}
    secret = built(agent(tls=tls))["Secret/edge-tls"]
    assert (secret["type"], data(secret)) == ("kubernetes.io/tls", {"tls.crt": b"cert", "tls.key": b"key"})
    assert "Secret/edge-tls" not in built(agent(tls={"key": "a2V5"}))
    assert "Secret/edge-tls" not in built(agent(tls={**tls, "secretName": "own"}))


def config(facts: Any = FACTS, spec: Any = None, **base: Any) -> dict[str, bytes]:
    return data(built(agent(spec, **base), facts)["Secret/edge-config"])


def test_a_backends_file_has_its_lines_in_order() -> None:
    base = {**PROXY, "proxyProtocol": "socks5", "proxyUseDNS": True, "proxyUser": "u", "proxyPassword": "p"}
    assert config(**base)["com.instana.agent.main.sender.Backend-1.cfg"] == (
        b"host=ingress-red-saas.instana.io\nport=443\nprotocol=HTTP/2\nkey=secret-key\nproxy.type=socks5\n"
        b"proxy.host=proxy.example\nproxy.port=3128\nproxy.dns=true\nproxy.user=u\nproxy.password=p\n"
    )
    only = config(proxyUseDNS=True, proxyUser="u", proxyPassword="p")
    assert only["com.instana.agent.main.sender.Backend-1.cfg"].endswith(
        b"key=secret-key\nproxy.dns=true\nproxy.user=u\nproxy.password=p\n"
    )


def test_a_backend_without_host_or_key_is_left_out_and_leaves_its_number() -> None:
    backends = [
        {"endpointHost": "", "endpointPort": "1", "key": "a"},
        {"endpointHost": "b", "endpointPort": "", "key": ""},
        {"endpointHost": "c", "endpointPort": "", "key": "k"},
    ]
    found = config(additionalBackends=backends)
    assert [name for name in found if name.endswith(".cfg")] == [
        "com.instana.agent.main.sender.Backend-1.cfg",
        "com.instana.agent.main.sender.Backend-4.cfg",
    ]
    last = found["com.instana.agent.main.sender.Backend-4.cfg"]
    assert last == b"host=c\nport=443\nprotocol=HTTP/2\nkey=k\n"


def test_a_key_of_the_users_secret_wins_over_the_inline_key_and_may_hold_any_bytes() -> None:
    facts = FACTS._replace(keys_secret={"key": b"\xff\x00", "key-2": b""})
    backends = [{"endpointHost": "b", "key": "inline"}, {"endpointHost": "c", "key": "inline"}]
    found = config(facts, keysSecret="mine", additionalBackends=backends)
    files = {name[-5:-4]: text.split(b"key=")[1] for name, text in found.items() if name.endswith(".cfg")}
    assert files == {"1": b"\xff\x00\n", "2": b"inline\n"}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({}, "    enabled: true\n    grpc:\n        enabled: true\n    http:\n        enabled: true\n"),
        (
            {"enabled": False},
            "    enabled: false\n    grpc:\n        enabled: false\n    http:\n        enabled: false\n",
        ),
        (
            {"grpc": {"port": 9999}, "http": {"enabled": False, "port": 0}},
            "    enabled: true\n    grpc:\n        enabled: true\n        port: 9999\n"
            "    http:\n        enabled: false\n        port: 0\n",
        ),
    ],
)
def test_opentelemetry_is_written_as_it_is_with_its_defaults(spec: dict[str, Any], text: str) -> None:
    found = config(spec={"opentelemetry": spec})["configuration-opentelemetry.yaml"].decode()
    assert found == f"com.instana.plugin.opentelemetry:\n{text}"


def test_the_config_secret_has_what_is_asked_for() -> None:
    always = {"configuration-disable-kubernetes-sensor.yaml", "configuration-opentelemetry.yaml"}
    assert set(config(spec={"cluster": {}}, key="")) == always
    wanted = {"cluster": {"name": "berlin"}, "prometheus": {"remoteWrite": {"enabled": True}}}
    found = config(spec=wanted, key="", configuration_yaml="a: 1\n")
    assert set(found) - always == {
        "cluster_name",
        "configuration.yaml",
        "configuration-prometheus-remote-write.yaml",
    }
    assert found["configuration.yaml"] == b"a: 1\n"
    assert found["configuration-prometheus-remote-write.yaml"] == (
        b"com.instana.plugin.prometheus:\n    remote_write:\n        enabled: true\n"
    )
    assert set(data(built_remote(remote(configuration_yaml="a: 1\n"))["Secret/instana-agent-r-far-config"])) == {
        "com.instana.agent.main.sender.Backend-1.cfg",
        "configuration.yaml",
        "configuration-disable-kubernetes-sensor.yaml",
    }


def namespaces(found: Any) -> str:
    text: str = built(agent(), FACTS._replace(namespaces=found))["ConfigMap/edge-namespaces"]["data"]["namespaces.yaml"]
    return text


def test_namespaces_with_the_label_are_listed_with_that_label_alone() -> None:
    label = "instana-workload-monitoring"
    found = {"ns10": {label: "true", "other": "x"}, "ns2": {label: "false"}, "plain": {"other": "x"}, "z": {label: ""}}
    # Go's YAML writer sorts runs of digits as numbers, and quotes what a reader would take for no text.
    assert namespaces(found) == (
        "version: 1\nnamespaces:\n"
        '    ns2:\n        labels:\n            instana-workload-monitoring: "false"\n'
        '    ns10:\n        labels:\n            instana-workload-monitoring: "true"\n'
        '    z:\n        labels:\n            instana-workload-monitoring: ""\n'
    )
    assert namespaces({"plain": {}}) == "version: 1\nnamespaces: {}\n"


def test_namespaces_that_could_not_be_listed_are_said_by_the_version() -> None:
    assert namespaces(None) == "version: 0\nnamespaces: {}\n"


@given(key=st.text(), user=st.text(), password=st.text(), certificate=st.text())
def test_no_text_of_the_cr_keeps_a_secret_from_being_built(
    key: str, user: str, password: str, certificate: str
) -> None:
    base = {"proxyHost": "p", "proxyUser": user, "proxyPassword": password}
    found = built(agent(key=key, tls={"certificate": certificate, "key": certificate}, **base))
    assert data(found["Secret/edge"]).get("key", b"") == key.encode()
