"""The DaemonSets besides their variables: placement, volumes, probes, resources, updates."""

from __future__ import annotations

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

TOLERATIONS = [{"operator": "Exists"}]
AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}


def test_a_zone_has_its_own_tolerations_and_affinity_and_the_pods_selector() -> None:
    wanted = {"tolerations": TOLERATIONS, "affinity": AFFINITY, "nodeSelector": {"disk": "ssd"}}
    zones = [{"name": "a"}, {"name": "b", "tolerations": [{"key": "b"}], "affinity": {"podAffinity": {}}}]
    found = built(agent({"zones": zones}, pod={**wanted, "priorityClassName": "high"}))
    assert "DaemonSet/edge" not in found
    first, second = pod(found["DaemonSet/edge-a"]), pod(found["DaemonSet/edge-b"])
    assert "tolerations" not in first
    assert first["affinity"] == {}
    assert second["tolerations"] == [{"key": "b"}]
    assert second["affinity"] == {"podAffinity": {}}
    for each in (first, second):
        assert (each["nodeSelector"], each["priorityClassName"]) == ({"disk": "ssd"}, "high")


def test_a_zone_is_a_label_of_the_daemon_set_its_selector_and_its_pods() -> None:
    daemon_set = built(agent({"zones": [{"name": "a"}]}))["DaemonSet/edge-a"]
    spec = daemon_set["spec"]
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    for labels in (daemon_set["metadata"]["labels"], spec["selector"]["matchLabels"]):
        assert labels["io.instana/zone"] == "a"


def test_pods_of_an_agent_without_zones_are_placed_as_its_pod_says() -> None:
    found = pod(built(agent(pod={"tolerations": TOLERATIONS, "affinity": AFFINITY}))["DaemonSet/edge"])
    assert (found["tolerations"], found["affinity"]) == (TOLERATIONS, AFFINITY)


def test_labels_of_the_user_are_the_weakest_and_annotations_are_kept() -> None:
    labels = {"team": "a", "instana/agent-mode": "mine", "app.kubernetes.io/name": "mine"}
    template = built(agent(pod={"labels": labels, "annotations": {"note": "x"}}))["DaemonSet/edge"]["spec"]["template"]
    assert template["metadata"] == {
        "labels": {
            "team": "a",
            "instana/agent-mode": "APM",
            "app.kubernetes.io/name": "instana-agent",
            "app.kubernetes.io/instance": "edge",
            "app.kubernetes.io/component": "instana-agent",
            "app.kubernetes.io/part-of": "instana",
            "app.kubernetes.io/managed-by": "instana-agent-operator",
        },
        "annotations": {"note": "x"},
    }


def test_an_upgrade_of_the_operator_and_a_new_generation_leave_the_pods_alone() -> None:
    cr = agent()
    newer = built(cr, FACTS._replace(operator_version="v9.0.0"))["DaemonSet/edge"]
    assert newer["metadata"]["labels"]["app.kubernetes.io/version"] == "v9.0.0"
    assert newer["spec"] == built(cr)["DaemonSet/edge"]["spec"]


@pytest.mark.parametrize(
    ("image", "reference"),
    [
        ({}, "icr.io/instana/agent:latest"),
        ({"tag": "1.2"}, "icr.io/instana/agent:1.2"),
        ({"tag": "1.2", "digest": "sha256:ab"}, "icr.io/instana/agent@sha256:ab"),
        ({"name": "mirror/agent"}, "mirror/agent:latest"),
    ],
)
def test_a_digest_wins_over_a_tag(image: dict[str, str], reference: str) -> None:
    assert container(built(agent(image=image))["DaemonSet/edge"])["image"] == reference


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        ({}, {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}),
        ({"type": "OnDelete"}, {"type": "OnDelete", "rollingUpdate": {"maxUnavailable": 1}}),
        (
            {"rollingUpdate": {"maxUnavailable": "20%"}},
            {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "20%"}},
        ),
    ],
)
def test_the_update_strategy_is_sent_with_its_defaults(strategy: dict[str, Any], expected: dict[str, Any]) -> None:
    spec = built(agent(updateStrategy=strategy, minReadySeconds=7))["DaemonSet/edge"]["spec"]
    assert (spec["updateStrategy"], spec["minReadySeconds"]) == (expected, 7)


def test_requests_and_limits_are_defaulted_one_by_one_and_others_are_kept() -> None:
    wanted = {
        "requests": {"memory": "1Gi", "ephemeral-storage": "2Gi"},
        "limits": {"cpu": 2, "memory": "1.5Gi"},
        "claims": [{"name": "gpu"}],
    }
    assert container(built(agent(pod=wanted))["DaemonSet/edge"])["resources"] == {
        "requests": {"cpu": "500m", "ephemeral-storage": "2Gi", "memory": "1Gi"},
        "limits": {"cpu": "2", "memory": "1536Mi"},
        "claims": [{"name": "gpu"}],
    }


def test_a_probe_of_the_user_replaces_the_whole_probe() -> None:
    probe = {"tcpSocket": {"port": 1}}
    assert container(built(agent(pod={"livenessProbe": probe}))["DaemonSet/edge"])["livenessProbe"] == probe


def test_volumes_of_the_user_come_last() -> None:
    wanted = {
        "volumes": [{"name": "mine", "emptyDir": {}}],
        "volumeMounts": [{"name": "mine", "mountPath": "/mine"}],
    }
    daemon_set = built(agent(pod=wanted, host={"repository": "/data/repo"}))["DaemonSet/edge"]
    assert volume_names(daemon_set)[-4:] == ["repo", "namespaces-details", "instana-secrets", "mine"]
    assert volume(daemon_set, "repo") == (
        {"hostPath": {"path": "/data/repo"}},
        {"name": "repo", "mountPath": "/opt/instana/agent/data/repo"},
    )


@pytest.mark.parametrize(
    ("tls", "secret"),
    [
        ({"secretName": "cert"}, "cert"),
        ({"certificate": "YQ==", "key": "Yg=="}, "edge-tls"),
        ({"certificate": "YQ=="}, ""),
        ({}, ""),
    ],
)
def test_a_certificate_is_mounted_where_there_is_one(tls: dict[str, str], secret: str) -> None:
    daemon_set = built(agent(tls=tls))["DaemonSet/edge"]
    assert ("instana-agent-tls" in volume_names(daemon_set)) is bool(secret)
    if secret:
        assert volume(daemon_set, "instana-agent-tls") == (
            {"secret": {"secretName": secret, "defaultMode": 0o440}},
            {"name": "instana-agent-tls", "mountPath": "/opt/instana/agent/etc/certs", "readOnly": True},
        )


def test_without_secret_mounts_there_is_no_volume_of_secrets() -> None:
    daemon_set = built(agent({"useSecretMounts": False}))["DaemonSet/edge"]
    assert "instana-secrets" not in volume_names(daemon_set)
    assert "INSTANA_AGENT_KEY" in variables(daemon_set)


OPTIONAL_KEYS = {
    "downloadKey": "INSTANA_DOWNLOAD_KEY",
    "proxyUser": "INSTANA_AGENT_PROXY_USER",
    "proxyPassword": "INSTANA_AGENT_PROXY_PASSWORD",
    "mirrorReleaseRepoUsername": "AGENT_RELEASE_REPOSITORY_MIRROR_USERNAME",
    "mirrorReleaseRepoPassword": "AGENT_RELEASE_REPOSITORY_MIRROR_PASSWORD",
    "mirrorSharedRepoUsername": "INSTANA_SHARED_REPOSITORY_MIRROR_USERNAME",
    "mirrorSharedRepoPassword": "INSTANA_SHARED_REPOSITORY_MIRROR_PASSWORD",
    "httpsProxy": "HTTPS_PROXY",
}


def test_a_new_daemon_set_mounts_all_keys_of_the_users_secret_and_waits_for_the_agent_key_alone() -> None:
    source, mount = volume(built(agent(keysSecret="mine"))["DaemonSet/edge"], "instana-secrets")
    required, optional = source["projected"]["sources"]
    assert required == {"secret": {"name": "mine", "items": [{"key": "key", "path": "INSTANA_AGENT_KEY"}]}}
    assert {each["key"]: each["path"] for each in optional["secret"]["items"]} == OPTIONAL_KEYS
    assert (optional["secret"]["name"], optional["secret"]["optional"]) == ("mine", True)
    assert source["projected"]["defaultMode"] == 0o400
    assert mount == {
        "name": "instana-secrets",
        "mountPath": "/opt/instana/agent/etc/instana/secrets",
        "readOnly": True,
    }


def test_a_daemon_set_of_the_go_operator_keeps_its_one_key_so_that_no_pod_is_replaced() -> None:
    facts = FACTS._replace(corrected={"edge": False}, keys_secret={"key": b"k", "downloadKey": b"d"})
    source, _ = volume(built(agent(keysSecret="mine"), facts)["DaemonSet/edge"], "instana-secrets")
    items = [{"key": "key", "path": "INSTANA_AGENT_KEY"}]
    assert source == {"secret": {"secretName": "mine", "items": items, "defaultMode": 0o400}}


def test_pull_secrets_that_are_not_set_differ_from_none() -> None:
    registry = "containers.instana.io/instana/agent"
    assert pod(built(agent(image={"name": registry}))["DaemonSet/edge"])["imagePullSecrets"] == [
        {"name": "edge-containers-instana-io"}
    ]
    for sensor in ("DaemonSet/edge", "Deployment/edge-k8sensor"):
        assert "imagePullSecrets" not in pod(built(agent(image={"name": registry, "pullSecrets": []}))[sensor])
        own = built(agent(image={"name": registry, "pullSecrets": [{"name": "own"}]}))
        assert pod(own[sensor])["imagePullSecrets"] == [{"name": "own"}]
        assert "imagePullSecrets" not in pod(built(agent())[sensor])
