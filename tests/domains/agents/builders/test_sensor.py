"""The k8sensor: a Deployment for each backend, its variables, volumes and arguments."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from tests.domains.agents.builders.samples import (
    FACTS,
    agent,
    built,
    container,
    pod,
    variables,
    volume,
    volume_names,
)

from hortus.domains.agents.builders import EtcdTargets, InstanaFacts
from hortus.kube.objects import Object

SENSOR = "Deployment/edge-k8sensor"
SECRETS = "/opt/instana/agent/etc/instana/secrets"
PLAIN = {
    "AGENT_ZONE": "berlin",
    "BACKEND": {"configMapKeyRef": {"name": "edge-k8sensor", "key": "backend"}},
    "BACKEND_URL": "https://$(BACKEND)",
    "CONFIG_PATH": "/opt/instana/agent/etc/instana-config-yml",
    "ETCD_CA_FILE": "/var/run/secrets/kubernetes.io/serviceaccount/ca.crt",
    "ETCD_INSECURE": "false",
    "POD_IP": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}},
    "POD_NAME": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}},
    "POD_NAMESPACE": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
    "POD_UID": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}},
}
BACKENDS = [{"endpointHost": "b.example", "endpointPort": "8443", "key": "other"}]


def sensor(spec: Object | None = None, facts: InstanaFacts = FACTS, **base: Any) -> Object:
    return built(agent(spec, **base), facts)[SENSOR]


@pytest.mark.parametrize(
    ("spec", "base", "added"),
    [
        ({}, {}, {}),
        ({"cluster": {}, "zone": {"name": "eu"}}, {}, {"AGENT_ZONE": "eu"}),
        ({}, {"proxyHost": "p"}, {"NO_PROXY": "kubernetes.default.svc"}),
        ({}, {"redactKubernetesSecrets": "true"}, {"INSTANA_KUBERNETES_REDACT_SECRETS": "true"}),
        ({"k8s_sensor": {"etcd": {"insecure": True}}}, {}, {"ETCD_INSECURE": "true"}),
        ({"k8s_sensor": {"etcd": {"targets": ["b", "a"]}}}, {}, {"ETCD_TARGETS": "b,a"}),
        ({"k8s_sensor": {"etcd": {"ca": {"mountPath": "/ca"}}}}, {}, {"ETCD_CA_FILE": "/ca/ca.crt"}),
        ({"k8s_sensor": {"restClient": {"ca": {"mountPath": "/c"}}}}, {}, {"CONTROL_PLANE_CA_FILE": "/c/ca.crt"}),
        ({"k8s_sensor": {"restClient": {"hostAllowlist": ["x", "y"]}}}, {}, {"REST_CLIENT_HOST_ALLOWLIST": "x,y"}),
        ({"k8s_sensor": {"featureFlags": {"crdMonitoring": True}}}, {}, {}),
        ({}, {"env": {"EXTRA": "1"}, "pod": {"env": [{"name": "POD_ONLY", "value": "1"}]}}, {"EXTRA": "1"}),
    ],
)
def test_a_variable_follows_its_field(spec: Object, base: Object, added: Object) -> None:
    assert variables(sensor(spec, **base)) == {**PLAIN, **added}


def test_a_variable_of_the_agent_that_has_the_name_of_one_of_ours_stands_once() -> None:
    """The Go operator sends both, which server-side apply refuses."""
    assert variables(sensor(env={"BACKEND": "mine", "ETCD_INSECURE": "x", "MINE": "1"})) == {**PLAIN, "MINE": "1"}


def test_without_secret_mounts_variables_of_the_agent_stand_once() -> None:
    """The Go operator adds them twice."""
    found = variables(sensor({"useSecretMounts": False}, env={"MINE": "1"}, proxyHost="p", proxyUser="u"))
    assert found == {
        **PLAIN,
        "MINE": "1",
        "NO_PROXY": "kubernetes.default.svc",
        "HTTPS_PROXY": "http://p:80",
        "AGENT_KEY": {"secretKeyRef": {"name": "edge", "key": "key"}},
    }


def test_an_authority_that_was_found_wins_over_the_default_and_stands_once() -> None:
    """The Go operator sends ETCD_CA_FILE twice."""
    facts = FACTS._replace(etcd=EtcdTargets(("https://b:2379/metrics", "https://a:2379/metrics"), ca_secret=True))
    found = sensor(facts=facts)
    assert variables(found) == {
        **PLAIN,
        "ETCD_TARGETS": "https://a:2379/metrics,https://b:2379/metrics",
        "ETCD_CA_FILE": "/var/run/secrets/etcd/ca.crt",
    }
    assert volume(found, "etcd-ca") == (
        {"secret": {"secretName": "etcd-ca", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"name": "etcd-ca", "mountPath": "/var/run/secrets/etcd", "readOnly": True},
    )
    assert volume_names(found) == ["config", "etcd-ca", "instana-secrets"]


def test_targets_that_were_found_are_in_every_build() -> None:
    """The Go operator drops them whenever the live Deployment has them, so that pods are replaced each time."""
    facts = FACTS._replace(etcd=EtcdTargets(("https://a:2379/metrics",)))
    live = sensor(facts=facts)
    assert variables(live)["ETCD_TARGETS"] == "https://a:2379/metrics"
    assert sensor(facts=facts) == live


def test_targets_of_the_cr_need_no_discovery() -> None:
    facts = FACTS._replace(etcd=EtcdTargets(("https://a:2379/metrics",), ca_secret=True))
    found = sensor({"k8s_sensor": {"etcd": {"targets": ["z"]}}}, facts)
    assert variables(found) == {**PLAIN, "ETCD_TARGETS": "z"}
    assert volume_names(found) == ["config", "instana-secrets"]


def test_authorities_of_the_cr_are_mounted_at_their_path_as_one_file() -> None:
    etcd = {"ca": {"secretName": "etcd-cert", "mountPath": "/etcd", "filename": "root.pem"}}
    rest = {"ca": {"secretName": "api-cert", "mountPath": "/api"}}
    found = sensor({"k8s_sensor": {"etcd": etcd, "restClient": rest}})
    assert volume_names(found) == ["config", "control-plane-ca", "etcd-ca", "instana-secrets"]
    assert volume(found, "etcd-ca") == (
        {
            "secret": {
                "secretName": "etcd-cert",
                "items": [{"key": "root.pem", "path": "ca.crt"}],
                "defaultMode": 0o440,
            }
        },
        {"name": "etcd-ca", "mountPath": "/etcd", "readOnly": True},
    )
    source, mount = volume(found, "control-plane-ca")
    assert source["secret"]["items"] == [{"key": "ca.crt", "path": "ca.crt"}]
    assert mount["mountPath"] == "/api"


def test_an_authority_without_a_path_never_hides_the_token_of_the_account() -> None:
    """The Go operator mounts it over the token, without which the k8sensor cannot reach the API server."""
    found = sensor({"k8s_sensor": {"etcd": {"ca": {"secretName": "etcd-cert"}}}})
    assert volume(found, "etcd-ca")[1]["mountPath"] == "/var/run/secrets/etcd"
    assert variables(found)["ETCD_CA_FILE"] == "/var/run/secrets/etcd/ca.crt"


def test_an_authority_of_the_control_plane_without_a_path_is_not_mounted() -> None:
    """The Go operator builds a mount without a path, which is refused."""
    found = sensor({"k8s_sensor": {"restClient": {"ca": {"secretName": "api-cert"}}}})
    assert volume_names(found) == ["config", "instana-secrets"]
    assert variables(found) == PLAIN


def test_each_backend_mounts_its_own_key_alone() -> None:
    for secret, keys in (("", ("INSTANA_AGENT_KEY", "INSTANA_AGENT_KEY-1")), ("mine", ("key", "key-1"))):
        found = built(agent(keysSecret=secret, additionalBackends=BACKENDS))
        for key, suffix in zip(keys, ("", "-1"), strict=True):
            deployment = found[SENSOR + suffix]
            source, _ = volume(deployment, "instana-secrets")
            assert source["secret"] == {
                "secretName": secret or "edge",
                "items": [{"key": key, "path": f"INSTANA_AGENT_KEY{suffix}"}],
                "defaultMode": 0o400,
            }
            assert container(deployment)["args"][2:] == ["-agent-key-file", f"{SECRETS}/INSTANA_AGENT_KEY{suffix}"]


def test_the_proxys_url_is_a_file_of_the_own_secret_or_of_the_users() -> None:
    facts = FACTS._replace(keys_secret={"httpsProxy": b"u"})
    for secret, key in (("", "HTTPS_PROXY"), ("mine", "httpsProxy")):
        found = sensor(facts=facts, keysSecret=secret, proxyHost="p")
        assert container(found)["args"][-2:] == ["-https-proxy-file", f"{SECRETS}/HTTPS_PROXY"]
        source, _ = volume(found, "instana-secrets")
        assert source["secret"]["items"][1:] == [{"key": key, "path": "HTTPS_PROXY"}]


def test_a_users_secret_without_the_proxys_url_does_not_keep_the_pod_from_starting() -> None:
    """The Go operator mounts a key that is not there."""
    facts = FACTS._replace(keys_secret={"key": b"k"})
    found = built(agent(keysSecret="mine", proxyHost="p"), facts)
    deployment = found[SENSOR]
    assert "-https-proxy-file" not in container(deployment)["args"]
    assert volume(deployment, "instana-secrets")[0]["secret"]["items"] == [{"key": "key", "path": "INSTANA_AGENT_KEY"}]
    assert variables(deployment)["HTTPS_PROXY"] == {"secretKeyRef": {"name": "edge-config", "key": "HTTPS_PROXY"}}
    assert "HTTPS_PROXY" in found["Secret/edge-config"]["data"]


@pytest.mark.parametrize("rate", ["", "10", "abc", "5m", "１s", "5s\n"])
def test_a_rate_that_is_none_becomes_ten_seconds(rate: str) -> None:
    assert container(sensor({"k8s_sensor": {"pollrate": rate}}))["args"][:2] == ["-pollrate", "10s"]
    assert container(sensor({"k8s_sensor": {"pollrate": "5s"}}))["args"][:2] == ["-pollrate", "5s"]


@pytest.mark.parametrize(
    ("secret", "known", "key"),
    [
        ("", None, b"secret-key"),
        ("mine", {"key": b"\xff"}, b"\xff"),
        ("mine", {"other": b"x"}, b""),
        ("mine", None, b""),
    ],
)
def test_the_checksum_is_of_host_port_and_the_key_that_is_used(
    secret: str, known: dict[str, bytes] | None, key: bytes
) -> None:
    found = sensor(facts=FACTS._replace(keys_secret=known), keysSecret=secret)
    expected = hashlib.sha256(b"ingress-red-saas.instana.io443" + key).hexdigest()
    assert found["spec"]["template"]["metadata"]["annotations"] == {"checksum/backend": expected}


def test_selectors_of_all_backends_are_equal_since_they_cannot_be_changed() -> None:
    found = built(agent(additionalBackends=BACKENDS))
    first, second = found[SENSOR]["spec"], found[SENSOR + "-1"]["spec"]
    assert first["selector"] == second["selector"]
    assert first["selector"]["matchLabels"]["app"] == "k8sensor"


def test_labels_and_annotations_of_the_agents_pods_are_on_the_k8sensors_too() -> None:
    wanted = {"labels": {"app": "mine", "instana/agent-mode": "x"}, "annotations": {"note": "y"}}
    template = sensor(pod=wanted)["spec"]["template"]["metadata"]
    assert template["labels"]["app"] == "mine"
    assert template["labels"]["instana/agent-mode"] == "KUBERNETES"
    assert template["annotations"]["note"] == "y"


def test_placement_and_resources_are_those_of_the_k8sensor() -> None:
    wanted = {
        "requests": {"memory": "128Mi", "cpu": "0.12"},
        "limits": {"memory": "2048Mi"},
        "nodeSelector": {"a": "b"},
        "priorityClassName": "high",
        "tolerations": [{"operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
    }
    deployment = {"replicas": 2, "minReadySeconds": 9, "pod": wanted}
    found = sensor({"k8s_sensor": {"deployment": deployment}}, pod={"nodeSelector": {"agent": "only"}})
    assert (found["spec"]["replicas"], found["spec"]["minReadySeconds"]) == (2, 9)
    placed = pod(found)
    assert {name: placed[name] for name in ("nodeSelector", "priorityClassName", "tolerations", "affinity")} == {
        name: wanted[name] for name in ("nodeSelector", "priorityClassName", "tolerations", "affinity")
    }
    assert container(found)["resources"] == {
        "requests": {"cpu": "120m", "memory": "128Mi"},
        "limits": {"cpu": "1500m", "memory": "2Gi"},
    }


def test_an_empty_affinity_is_none_and_replicas_are_spread() -> None:
    found = pod(sensor({"k8s_sensor": {"deployment": {"pod": {"affinity": {}}}}}))
    assert "podAntiAffinity" in found["affinity"]


def test_a_budget_selects_the_pods_of_all_backends() -> None:
    spec = {"k8s_sensor": {"podDisruptionBudget": {"enabled": True}}}
    found = built(agent(spec, additionalBackends=BACKENDS))
    budget = found["PodDisruptionBudget/edge-k8sensor"]["spec"]
    assert budget["minAvailable"] == 2
    for suffix in ("", "-1"):
        labels = found[SENSOR + suffix]["spec"]["template"]["metadata"]["labels"]
        assert budget["selector"]["matchLabels"].items() <= labels.items()
