"""The chart: what it makes is what the real helm makes of it, and its generated files are in step with the code."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.production.rendering import WITHOUT_CRDS, objects
from tests.render.oracles import find_helm

from hortus.cli.flags import FLAGS
from hortus.cli.install.chart import chart_folder, values_of
from hortus.kube import yaml
from hortus.kube.objects import Object
from hortus.kube.selectors import LabelSelector
from hortus.terminal import CommandError

ROOT = Path(__file__).resolve().parents[2]
EVERYTHING: dict[str, Any] = {
    "global": {"imagePullSecrets": [{"name": "pull"}], "commonLabels": {"team": "x"}, "priorityClassName": "high"},
    "crds": {"keep": False},
    "replicaCount": 3,
    "strategy": {"type": "RollingUpdate"},
    "image": {"registry": "images.example.org", "repository": "fleet/hortus", "digest": "sha256:" + "0" * 64},
    "watchNamespace": "",
    "garden": {"projectName": "demo", "secretKey": "kubeconfig.yaml"},
    "config": {"gardener-ratelimiter-qps": 50, "leader-elect": False},
    "featureGates": {"A": True, "B": False},
    "files": [
        {"name": "converter", "configMap": "converter-config", "mountPath": "/converter-config"},
        {"name": "extra", "secret": "extra", "mountPath": "/extra"},
    ],
    "extraArgs": ["--zap-log-level=debug"],
    "extraEnv": [{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}],
    "extraObjects": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "more-{{ .Release.Name }}"}},
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: text}\n",
    ],
    "dashboard": {
        "enabled": True,
        "publicUrl": "https://hortus.example.org",
        "tlsSecretName": "dashboard-tls",
        "oidc": {
            "issuerUrl": "https://idp.example.org",
            "clientId": "hortus",
            "clientSecretName": "oidc",
            "scopes": ["groups"],
            "caConfigMapName": "oidc-ca",
        },
    },
    "podLabels": {"a": "b"},
    "podAnnotations": {"c": "d"},
    "deploymentAnnotations": {"e": "f"},
    "serviceAccount": {"annotations": {"g": "h"}, "labels": {"i": "j"}, "name": "mine"},
    "hostNetwork": True,
    "tolerations": [{"operator": "Exists"}],
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}],
    "affinity": {"nodeAffinity": {}},
    "podDisruptionBudget": {"maxUnavailable": "50%"},
    "networkPolicy": {"enabled": True, "metricsFrom": [{"namespaceSelector": {}}]},
    "prometheus": {
        "servicemonitor": {"enabled": True, "labels": {"k": "l"}, "annotations": {"m": "n"}},
        "podmonitor": {"enabled": True},
    },
}
_LISTED = ("CustomResourceDefinition", "ConfigMap")
"""Kinds whose texts speak of webhooks also where none is served."""
CHOICES = {
    "defaults": {},
    "everything": EVERYTHING,
    "little": {
        "crds": {"enabled": False},
        "replicaCount": 1,
        "global": {"rbac": {"create": False}},
        "serviceAccount": {"create": False},
        "prometheus": {"enabled": False},
        "livenessProbe": {"enabled": False},
        "readinessProbe": {"enabled": False},
        "nodeSelector": {"kubernetes.io/os": None},
    },
    "sharing": {"config": {"sharding": True}, "replicaCount": 5},
    "watcher": {
        "config": {"modules": True, "skr-watcher-image-tag": "1.0.0", "istio-namespace": "mesh"},
        "networkPolicy": {"enabled": True},
    },
    "stacks": {"config": {"stacks": True}, "networkPolicy": {"enabled": True}},
    "agents": {"config": {"agents": True, "inventory": True}},
    "webhooks-cert-manager": {
        "config": {"stacks": True, "namespace": "catalog"},
        "hostNetwork": True,
        "webhooks": {"certificates": "cert-manager", "issuer": {"kind": "ClusterIssuer", "name": "ca"}},
    },
    "webhooks-openshift": {
        "config": {"stacks": True},
        "watchNamespace": "",
        "webhooks": {"certificates": "openshift"},
    },
    "webhooks-agents": {
        "config": {"agents": True, "stacks": True, "namespace": "catalog"},
        "webhooks": {"agents": True},
    },
    "webhooks-url": {
        "config": {"stacks": True},
        "webhooks": {"certificates": "cert-manager", "url": "https://hooks.example.org:9443/"},
    },
    "own-namespace": {"createWatchNamespace": True, "watchNamespace": "fleet", "fullnameOverride": "other"},
}


@pytest.fixture(scope="module")
def helm() -> str:
    found = find_helm()
    if found is None:
        pytest.skip("no helm: neither on the PATH nor a Go toolchain to build one")
    return found


@pytest.mark.oracle
@pytest.mark.parametrize("choice", CHOICES)
def test_hortus_install_makes_what_helm_makes(choice: str, helm: str) -> None:
    values = CHOICES[choice]
    command = [helm, "template", "hortus", str(chart_folder()), "-n", "hortus-system", "--kube-version", "v1.34.0"]
    done = subprocess.run(
        [*command, "-f", "-"], input=yaml.dump(values), capture_output=True, text=True, timeout=60, check=True
    )
    assert objects("hortus-system", values) == [obj for obj in yaml.load_all(done.stdout) if obj]


def test_the_generated_files_are_in_step_with_the_code() -> None:
    done = subprocess.run(
        [sys.executable, "tools/chart.py", "--check"], cwd=ROOT, capture_output=True, text=True, env={**os.environ}
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["replicas=3"], "additional properties 'replicas' not allowed"),
        (["replicaCount=many"], "at '/replicaCount': got string, want integer"),
        (["image.digest=latest"], "at '/image/digest': 'latest' does not match pattern"),
        (["watchNamespace=Not_A_Name"], "at '/watchNamespace'"),
        (["image.pullPolicy=Sometimes"], "at '/image/pullPolicy': value must be one of"),
        (["files=[{name: a, mountPath: /a}]"], "at '/files/0'"),
        (["image.tag"], "--set image.tag: must be of the form"),
        (["image..tag=1"], "must be of the form"),
        (["config={"], "--set config: "),
    ],
)
def test_a_value_that_does_not_fit_is_named(settings: Sequence[str], message: str) -> None:
    with pytest.raises(CommandError) as caught:
        objects("hortus-system", values_of([], settings))
    assert message in str(caught.value)


def test_settings_win_over_files_and_later_files_over_earlier(tmp_path: Path) -> None:
    one, two = tmp_path / "1", tmp_path / "2"
    one.write_text("image: {tag: one, repository: r}\nreplicaCount: 1\n")
    two.write_text("image: {tag: two}\n")
    found = values_of([one, two], ["replicaCount=4", "podLabels={a: b}", "image.registry="])
    assert found == {
        "image": {"tag": "two", "repository": "r", "registry": ""},
        "replicaCount": 4,
        "podLabels": {"a": "b"},
    }


def by_kind(found: Sequence[Object], kind: str) -> Object:
    [obj] = [obj for obj in found if obj["kind"] == kind]
    return obj


def test_the_pod_is_as_restricted_as_pods_can_be() -> None:
    pod = by_kind(objects("hortus-system", WITHOUT_CRDS), "Deployment")["spec"]["template"]["spec"]
    [container] = pod["containers"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_the_configuration_of_the_chart_is_one_that_hortus_run_takes(tmp_path: Path) -> None:
    from hortus.engine.configuration import FlagValues
    from hortus.engine.flags import FlagSet

    values = {"garden": {"projectName": "demo"}, "config": {"gardener-ratelimiter-qps": 50}}
    file = tmp_path / "config.yaml"
    file.write_text(by_kind(objects("hortus-system", {**values, **WITHOUT_CRDS}), "ConfigMap")["data"]["config.yaml"])
    loaded = FlagValues(FlagSet(FLAGS), [f"--config={file}"], {}).load()
    assert loaded["gardener-ratelimiter-qps"] == 50
    assert loaded["gardener-project-name"] == "demo"
    assert loaded["leader-election-namespace"] == "hortus-system"
    assert loaded["watch-namespace"] == "kcp-system"


def test_a_kind_that_is_not_always_served_names_its_flag() -> None:
    kinds = yaml.load((chart_folder() / "files" / "kinds.yaml").read_bytes())["kinds"]
    flags = {flag.name for flag in FLAGS}
    assert [kind["kind"] for kind in kinds if bool(kind["reason"]) is not (kind["flag"] in flags)] == []


def test_the_wheel_carries_the_chart(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        timeout=250,
    )
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = {
            name.removeprefix("hortus/cli/install/chart/")
            for name in archive.namelist()
            if name.startswith("hortus/cli/install/chart/")
        }
    assert names == {
        str(path.relative_to(ROOT / "charts" / "hortus"))
        for path in (ROOT / "charts" / "hortus").rglob("*")
        if path.is_file()
    }


def test_cluster_api_reaches_the_hooks_where_stacks_are_served_and_nowhere_else() -> None:
    made = _all_by_kind(CHOICES["stacks"])
    [service] = [one for one in made["Service"] if one["metadata"]["name"] == "hortus-hooks"]
    assert service["spec"]["ports"] == [{"name": "hooks", "port": 443, "protocol": "TCP", "targetPort": "hooks"}]
    [container] = made["Deployment"][0]["spec"]["template"]["spec"]["containers"]
    assert {"name": "hooks", "containerPort": 9442, "protocol": "TCP"} in container["ports"]
    [policy] = made["NetworkPolicy"]
    [hooks] = [one for one in policy["spec"]["ingress"] if one["ports"][0]["port"] == "hooks"]
    assert [one["namespaceSelector"]["matchLabels"] for one in hooks["from"]] == [
        {"kubernetes.io/metadata.name": "capi-system"},
        {"kubernetes.io/metadata.name": "flux-system"},
    ]
    namespace = service["metadata"]["namespace"]
    config = yaml.load(next(one for one in made["ConfigMap"] if "config.yaml" in one["data"])["data"]["config.yaml"])
    assert (config["hook-service"], config["hook-namespace"]) == ("hortus-hooks", namespace)
    assert any(one["metadata"]["namespace"] == namespace for one in made["Role"] if "secrets" in str(one["rules"]))
    without = _all_by_kind({"networkPolicy": {"enabled": True}})
    assert "hooks" not in str([without["Service"], without["NetworkPolicy"]])


def test_who_may_reach_a_port_is_a_value_and_the_dashboard_has_a_policy_too() -> None:
    peer = {"podSelector": {"matchLabels": {"app": "gateway"}}}
    names = ("metricsFrom", "webhooksFrom", "hooksFrom", "watchersFrom", "dashboardFrom")
    values = {
        "config": {"stacks": True, "modules": True, "skr-watcher-image-tag": "1.0.0"},
        "dashboard": {"enabled": True, "publicUrl": "https://fleet.example.org"},
        "networkPolicy": {"enabled": True, **{name: [peer] for name in names}},
    }
    controllers, dashboard = sorted(_all_by_kind(values)["NetworkPolicy"], key=lambda one: str(one["metadata"]["name"]))
    allowed = {one["ports"][0]["port"]: one.get("from") for one in controllers["spec"]["ingress"]}
    assert allowed == {
        "http-health": None,
        "http-metrics": [peer],
        "webhooks": [peer],
        "hooks": [peer],
        "events": [peer],
    }
    assert dashboard["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "dashboard"
    assert dashboard["spec"]["ingress"] == [{"ports": [{"port": "dashboard", "protocol": "TCP"}], "from": [peer]}]
    assert dashboard["spec"]["egress"] == controllers["spec"]["egress"]


def test_the_api_server_reaches_webhooks_where_their_kinds_are_served_and_nowhere_else() -> None:
    made = _all_by_kind(CHOICES["stacks"])
    [configuration] = made["ValidatingWebhookConfiguration"]
    services = [one["clientConfig"]["service"] for one in configuration["webhooks"]]
    assert {(one["name"], one["namespace"], one["port"]) for one in services} == {
        ("hortus-webhooks", "hortus-system", 443)
    }
    assert all("caBundle" not in one["clientConfig"] for one in configuration["webhooks"])
    selectors = [one["namespaceSelector"] for one in configuration["webhooks"]]
    assert selectors == [{"matchLabels": {"kubernetes.io/metadata.name": "kcp-system"}}] * 4
    [service] = [one for one in made["Service"] if one["metadata"]["name"] == "hortus-webhooks"]
    assert service["spec"]["ports"] == [{"name": "webhooks", "port": 443, "protocol": "TCP", "targetPort": "webhooks"}]
    [container] = made["Deployment"][0]["spec"]["template"]["spec"]["containers"]
    assert {"name": "webhooks", "containerPort": 9443, "protocol": "TCP"} in container["ports"]
    [policy] = made["NetworkPolicy"]
    assert {"ports": [{"port": "webhooks", "protocol": "TCP"}]} in policy["spec"]["ingress"]
    [role] = [one for one in made["ClusterRole"] if one["metadata"]["name"] == "hortus-webhooks"]
    assert [rule["resourceNames"] for rule in role["rules"]] == [["hortus"]]
    for values in ({}, {"config": {"stacks": True}, "webhooks": {"stacks": False}}):
        assert "ebhook" not in str([one for one in _all_by_kind(values).values() if one[0]["kind"] not in _LISTED])


def test_webhooks_of_agents_are_registered_on_request_and_fail_open() -> None:
    [plain] = _all_by_kind({"config": {"agents": True, "stacks": True}})["ValidatingWebhookConfiguration"]
    assert "instana.io" not in str(plain)
    [configuration] = _all_by_kind(CHOICES["webhooks-agents"])["ValidatingWebhookConfiguration"]
    found = {
        one["name"]: (one["failurePolicy"], one["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"])
        for one in configuration["webhooks"]
    }
    assert found == {
        "validation.agents.instana.io": ("Ignore", "kcp-system"),
        "validation.agentsremote.instana.io": ("Ignore", "kcp-system"),
        "validation.cluster.cluster.x-k8s.io": ("Fail", "catalog"),
        "validation.clusteraddon.clusterstack.x-k8s.io": ("Fail", "catalog"),
        "validation.clusterstack.clusterstack.x-k8s.io": ("Fail", "catalog"),
        "validation.clusterstackrelease.clusterstack.x-k8s.io": ("Fail", "catalog"),
    }


def test_the_webhooks_of_the_chart_are_those_that_the_go_operator_registers(upstream: Path) -> None:
    theirs = yaml.load((upstream / "cso/deploy/cso-webhook-manifests.yaml").read_text())
    [ours] = _all_by_kind(CHOICES["stacks"] | {"watchNamespace": ""})["ValidatingWebhookConfiguration"]
    for webhook in (*theirs["webhooks"], *ours["webhooks"]):
        webhook["clientConfig"] = webhook["clientConfig"]["service"]["path"]
    # A server that serves Clusters in v1beta2 alone would ask nobody.
    [clusters] = [one for one in theirs["webhooks"] if one["name"] == "validation.cluster.cluster.x-k8s.io"]
    clusters["rules"][0]["apiVersions"].append("v1beta2")
    assert ours["webhooks"] == theirs["webhooks"]


def test_a_certificate_of_another_program_is_mounted_and_trusted_by_that_program() -> None:
    for name, annotation in (
        ("webhooks-cert-manager", {"cert-manager.io/inject-ca-from": "hortus-system/hortus-webhooks"}),
        ("webhooks-openshift", {"service.beta.openshift.io/inject-cabundle": "true"}),
    ):
        made = _all_by_kind(CHOICES[name])
        [configuration] = made["ValidatingWebhookConfiguration"]
        assert configuration["metadata"]["annotations"] == annotation
        pod = made["Deployment"][0]["spec"]["template"]["spec"]
        [volume] = [one for one in pod["volumes"] if one["name"] == "webhook-certificate"]
        assert volume["secret"] == {"secretName": "hortus-webhooks-tls"}
        config = yaml.load(
            next(one for one in made["ConfigMap"] if "config.yaml" in one["data"])["data"]["config.yaml"]
        )
        assert config["webhook-cert-dir"] == "/webhook-certificate"
        assert "webhook-configuration" not in config
        assert "hortus-webhooks" not in {one["metadata"]["name"] for one in made["ClusterRole"]}
    [certificate] = _all_by_kind(CHOICES["webhooks-cert-manager"])["Certificate"]
    assert certificate["spec"]["issuerRef"] == {"kind": "ClusterIssuer", "name": "ca"}
    [certificate] = _all_by_kind(CHOICES["webhooks-url"])["Certificate"]
    assert certificate["spec"]["dnsNames"] == ["hooks.example.org"]
    [configuration] = _all_by_kind(CHOICES["webhooks-url"])["ValidatingWebhookConfiguration"]
    assert configuration["webhooks"][3]["clientConfig"] == {
        "url": "https://hooks.example.org:9443/validate-clusterstack-x-k8s-io-v1alpha1-clusterstackrelease"
    }
    with pytest.raises(CommandError, match="the service CA certifies Services alone"):
        objects(
            "hortus-system", {"config": {"stacks": True}, "webhooks": {"certificates": "openshift", "url": "https://a"}}
        )


def test_agents_reach_the_listener_where_the_watcher_runs_and_nothing_is_open_where_it_does_not() -> None:
    made = _all_by_kind(CHOICES["watcher"])
    [service] = [one for one in made["Service"] if one["metadata"]["name"] == "hortus-events"]
    assert service["spec"]["ports"] == [{"name": "events", "port": 8082, "protocol": "TCP", "targetPort": "events"}]
    [container] = made["Deployment"][0]["spec"]["template"]["spec"]["containers"]
    assert {"name": "events", "containerPort": 8082, "protocol": "TCP"} in container["ports"]
    [policy] = made["NetworkPolicy"]
    assert {"ports": [{"port": "events", "protocol": "TCP"}]} in policy["spec"]["ingress"]
    [role] = [one for one in made["Role"] if one["metadata"]["namespace"] == "mesh"]
    assert any("secrets" in rule["resources"] for rule in role["rules"])
    without = _all_by_kind({"networkPolicy": {"enabled": True}})
    assert "events" not in str([without["Service"], without["NetworkPolicy"]])


def test_objects_of_agents_are_labelled_with_the_version_of_the_chart_or_the_one_of_the_environment() -> None:
    given = {"name": "OPERATOR_VERSION", "value": "v2.2.16"}
    chart = yaml.load((chart_folder() / "Chart.yaml").read_text())

    def versions(**values: Any) -> list[Object]:
        [container] = _all_by_kind(values)["Deployment"][0]["spec"]["template"]["spec"]["containers"]
        return [one for one in container["env"] if one["name"] == "OPERATOR_VERSION"]

    assert versions(config={"agents": True}) == [{"name": "OPERATOR_VERSION", "value": f"v{chart['appVersion']}"}]
    assert versions(config={"agents": True}, extraEnv=[given]) == [given]
    assert versions() == []


def _all_by_kind(values: dict[str, Any]) -> dict[str, list[Object]]:
    """The objects but for the CRDs."""
    found: dict[str, list[Object]] = {}
    for one in objects("hortus-system", {**values, **WITHOUT_CRDS}):
        found.setdefault(one["kind"], []).append(one)
    return found


def test_the_dashboard_has_no_permission_no_token_and_no_way_in_the_clear() -> None:
    values = {"dashboard": {"enabled": True, "publicUrl": "https://hortus.example.org"}}
    found = objects("hortus-system", {**values, **WITHOUT_CRDS})
    ours = {one["kind"]: one for one in found if one["metadata"]["name"].endswith("-dashboard")}
    assert set(ours) == {"ServiceAccount", "Deployment", "Service"}
    pod = ours["Deployment"]["spec"]["template"]["spec"]
    account = ours["ServiceAccount"]["metadata"]["name"]
    assert (pod["serviceAccountName"], pod["automountServiceAccountToken"]) == (account, False)
    bindings = [one for one in found if one["kind"].endswith("Binding")]
    assert all(subject["name"] != account for one in bindings for subject in one.get("subjects", ()))
    with pytest.raises(CommandError, match=r"dashboard\.publicUrl"):
        objects("hortus-system", {"dashboard": {"enabled": True}})


def test_the_dashboard_reads_the_metrics_of_the_pods_of_its_release() -> None:
    values = {
        "dashboard": {"enabled": True, "publicUrl": "https://hortus.example.org"},
        "networkPolicy": {"enabled": True},
        "prometheus": {"enabled": False},
    }
    found = objects("hortus-system", {**values, **WITHOUT_CRDS})
    deployments = {one["metadata"]["name"]: one for one in found if one["kind"] == "Deployment"}
    arguments = deployments["hortus-dashboard"]["spec"]["template"]["spec"]["containers"][0]["args"]
    (place,) = [one.partition("=")[2] for one in arguments if one.startswith("--metrics-pods=")]
    namespace, selector = place.removesuffix(":8080").split("/", 1)
    assert namespace == "hortus-system"
    parsed = LabelSelector.parse(selector)
    chosen = [
        name for name, one in deployments.items() if parsed.matches(one["spec"]["template"]["metadata"]["labels"])
    ]
    assert chosen == ["hortus"]
    (policy, _) = [one for one in found if one["kind"] == "NetworkPolicy"]
    assert "http-metrics" in str(policy["spec"]["ingress"])
    given = {"dashboard": {**values["dashboard"], "oidc": {"issuerUrl": "https://idp.example.org"}}}
    with pytest.raises(CommandError, match=r"dashboard\.oidc\.clientId"):
        objects("hortus-system", given)
