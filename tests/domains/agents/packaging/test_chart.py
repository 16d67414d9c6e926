"""The chart `instana-agent`: our renderer and the real helm make the same of it, and its CRs are ones the CRD takes."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.render.oracles import find_helm

from hortus.domains.agents.packaging.chart import forms
from hortus.domains.agents.packaging.webhooks import CONFIGURATION, webhook_arguments
from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote
from hortus.engine import copy_of
from hortus.kube import yaml
from hortus.kube.objects import Object
from hortus.render.helm import Capabilities, Release, load_chart, render_chart
from hortus.schema import Structural, crd

CHART = Path(__file__).resolve().parents[4] / "charts" / "instana-agent"
KEYED: dict[str, Any] = {"agent": {"key": "k"}, "cluster": {"name": "one"}}
EVERYTHING: dict[str, Any] = {
    "name": "mine",
    "agent": {
        "key": 12345,
        "endpointPort": 8443,
        "additionalBackends": [{"endpointHost": "b", "endpointPort": 443, "key": None}],
        "env": {"DEBUG": True, "NUMBER": 1000000, "TEXT": "x"},
        "proxyPort": 3128,
        "image": {"pullSecrets": []},
        "pod": {
            "volumes": [{"name": "v", "emptyDir": {}}],
            "requests": {"cpu": 1, "ephemeral-storage": "1Gi"},
            "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
            "livenessProbe": {"httpGet": {"port": 42699, "path": "/status"}},
        },
    },
    "cluster": {"name": "one"},
    "zones": [{"name": "pool-01", "tolerations": [{"operator": "Exists"}]}],
    "opentelemetry": {"enabled": True, "grpc": {"port": "4417"}, "http": None},
    "serviceAccount": {"create": False, "name": "own", "annotations": {"a": "b"}},
    "podSecurityPolicy": {"enable": True, "name": None},
    "rbac": {"create": True},
    "service": {"create": False},
    "openshift": False,
    "k8s_sensor": {"deployment": {"replicas": 2, "pod": {"nodeSelector": {"a": "b"}}}, "pollrate": "30s"},
    "remotes": [{"name": "r1", "zone": {"name": "z"}}, {"name": "r2", "zone": {"name": 2}, "agent": {"key": "own"}}],
    "controllerManager": {
        "image": {"name": "images.example.org/hortus", "digest": "0" * 64, "pullSecrets": [{"name": "pull"}]},
        "extraArgs": ["--zap-log-level=debug"],
        "pod": {"tolerations": [{"operator": "Exists"}], "annotations": {"c": "d"}, "nodeSelector": {"e": "f"}},
    },
}
CHOICES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "keyed": KEYED,
    "everything": EVERYTHING,
    "operator alone": {"createAgent": False, "uninstall": {"enabled": False}},
    "webhook": {"webhooks": {"agents": True}, "controllerManager": {"extraArgs": ["--zap-log-level=debug"]}},
}


def rendered(values: dict[str, Any]) -> list[Object]:
    """The objects and hooks that our renderer makes of the chart, as copies."""
    made = render_chart(
        load_chart(CHART), copy_of(values), release=Release("agent", "monitoring"), capabilities=Capabilities("v1.34.0")
    )
    return [copy_of(obj) for obj in (*made.objects, *(hook.object for hook in made.hooks))]


def custom(values: dict[str, Any]) -> dict[str, Object]:
    """The CRs by name."""
    return {obj["metadata"]["name"]: obj for obj in rendered(values) if obj["apiVersion"] == "instana.io/v1"}


def refused(obj: Object) -> list[str]:
    kind = {"InstanaAgent": InstanaAgent, "InstanaAgentRemote": InstanaAgentRemote}[obj["kind"]]
    schema = Structural.compile(crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"])
    return [*schema.prune(copy_of(obj)), *map(str, schema.validate(copy_of(obj)))]


@pytest.mark.oracle
@pytest.mark.parametrize("choice", CHOICES)
def test_our_renderer_and_helm_make_the_same_objects(choice: str, tmp_path: Path) -> None:
    helm = find_helm()
    if helm is None:
        pytest.skip("no helm: neither on the PATH nor a Go toolchain to build one")
    values = tmp_path / "values.yaml"
    values.write_text(yaml.dump(CHOICES[choice]))
    command = [
        helm,
        "template",
        "agent",
        str(CHART),
        "-n",
        "monitoring",
        "--kube-version",
        "v1.34.0",
        "-f",
        str(values),
    ]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    theirs = [obj for obj in yaml.load_all(text) if obj]
    assert sorted(map(str, rendered(CHOICES[choice]))) == sorted(map(str, theirs))


def test_values_become_the_fields_of_the_crs_with_their_types() -> None:
    found = custom(EVERYTHING)
    assert {name: refused(obj) for name, obj in found.items()} == {"mine": [], "r1": [], "r2": []}
    spec = found["mine"]["spec"]
    assert spec["agent"] == EVERYTHING["agent"] | {
        "key": "12345",
        "endpointHost": "ingress-red-saas.instana.io",
        "endpointPort": "8443",
        "additionalBackends": [{"endpointHost": "b", "endpointPort": "443"}],
        "env": {"DEBUG": "true", "NUMBER": "1000000", "TEXT": "x"},
        "proxyPort": "3128",
    }
    assert spec["opentelemetry"] == {"enabled": True, "grpc": {"port": 4417}}
    assert spec["podSecurityPolicy"] == {"enabled": True}
    same = ("serviceAccount", "rbac", "service", "openshift", "k8s_sensor", "zones")
    assert {name: spec[name] for name in same} == {name: EVERYTHING[name] for name in same}
    assert found["r1"]["spec"]["agent"] == {
        "key": "12345",
        "endpointHost": "ingress-red-saas.instana.io",
        "endpointPort": "8443",
    }
    assert (found["r2"]["spec"]["agent"]["key"], found["r2"]["spec"]["zone"]) == ("own", {"name": "2"})


def test_the_values_of_the_go_operator_s_chart_are_taken(upstream: Path) -> None:
    theirs = yaml.load((upstream / "instana" / "chart" / "values.yaml").read_text())
    theirs["agent"]["key"], theirs["cluster"]["name"] = "k", "one"
    (agent,) = custom(theirs).values()
    (operator,) = (obj for obj in rendered(theirs) if obj["kind"] == "Deployment")
    assert operator["spec"]["template"]["spec"]["containers"][0]["image"].startswith("hortus:")
    assert refused(agent) == []
    assert agent["metadata"]["name"] == "instana-agent"
    assert agent["spec"]["agent"]["endpointPort"] == "443"
    assert agent["spec"]["cluster"] == {"name": "one"}


def test_every_field_of_a_spec_is_a_value() -> None:
    for kind in (InstanaAgent, InstanaAgentRemote):
        schema = crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        assert forms()[kind.__name__].keys() == schema["properties"].keys()


def test_a_deletion_of_the_release_first_removes_the_agents() -> None:
    hooks = [obj for obj in rendered(KEYED) if "helm.sh/hook" in (obj["metadata"].get("annotations") or {})]
    assert [obj["kind"] for obj in hooks] == ["ServiceAccount", "Role", "RoleBinding", "Job"]
    (container,) = hooks[-1]["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["agent", "remove", "--all", "--yes", "--namespace=monitoring", "--timeout=5m"]
    assert {obj["metadata"]["annotations"]["helm.sh/hook"] for obj in hooks} == {"pre-delete"}


def test_the_webhook_is_there_where_values_ask_for_it() -> None:
    def found(values: dict[str, Any]) -> tuple[list[str], dict[str, Object]]:
        objects = rendered(values)
        (operator,) = (obj for obj in objects if obj["kind"] == "Deployment")
        (container,) = operator["spec"]["template"]["spec"]["containers"]
        return container["args"], {obj["kind"]: obj for obj in objects if obj["metadata"]["name"] == CONFIGURATION}

    plain, none = found(KEYED)
    assert none == {}
    more = {"webhooks": {"agents": True}, "controllerManager": {"extraArgs": ["--zap-log-level=debug"]}}
    args, objects = found(KEYED | more)
    assert args == [*plain, *webhook_arguments("monitoring"), "--zap-log-level=debug"]
    assert sorted(objects) == ["ClusterRole", "ClusterRoleBinding", "Service", "ValidatingWebhookConfiguration"]
    webhooks = objects["ValidatingWebhookConfiguration"]["webhooks"]
    assert {one["failurePolicy"] for one in webhooks} == {"Ignore"}
    assert {one["clientConfig"]["service"]["namespace"] for one in webhooks} == {"monitoring"}
