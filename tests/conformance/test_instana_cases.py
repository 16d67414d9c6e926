"""Objects that are built from the samples of the Go operator are those that it builds."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hortus.domains.agents.builders import InstanaFacts, build_agent, build_remote, workload_name
from hortus.domains.agents.defaults import defaulted, defaulted_remote
from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote
from hortus.kube import yaml
from hortus.kube.objects import Object

FACTS = InstanaFacts(operator_version="v0.0.1-dev")
REGISTRY = "icr.io"


@pytest.fixture(scope="module")
def case(upstream: Path) -> Callable[[str], Any]:
    cases = {found["id"]: found for found in yaml.load((upstream / "instana/cases_a.yaml").read_text())["cases"]}
    return cases.__getitem__


@pytest.fixture(scope="module")
def sample(upstream: Path) -> Callable[[Any], Object]:
    def read(found: Any) -> Object:
        obj: Object = yaml.load((upstream / "instana" / found["input"]).read_text())
        obj["metadata"] |= {"uid": "7d0c1b1e", "generation": 1}
        obj["spec"] |= found.get("patch", {}).get("spec", {})
        return obj

    return read


def agent(obj: Object) -> InstanaAgent:
    return defaulted(msgspec.convert(obj, InstanaAgent))


def one(objects: Sequence[Object], kind: str, name: str) -> Object:
    (found,) = [obj for obj in objects if (obj["kind"], obj["metadata"]["name"]) == (kind, name)]
    return found


def container(workload: Object) -> Any:
    return workload["spec"]["template"]["spec"]["containers"][0]


def texts(secret: Object) -> dict[str, str]:
    return {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}


def flat(variable: Object) -> Object:
    """A variable in the short form of the cases."""
    match variable:
        case {"valueFrom": {"fieldRef": {"fieldPath": path}}}:
            return {"name": variable["name"], "fieldRef": path}
        case {"valueFrom": {"configMapKeyRef": {"name": name, "key": key}}}:
            return {"name": variable["name"], "configMapKeyRef": [name, key]}
        case {"valueFrom": {"secretKeyRef": {"name": name, "key": key}}}:
            return {"name": variable["name"], "secretKeyRef": [name, key]}
    return variable


def named(parts: Sequence[Object]) -> list[str]:
    return [part["name"] for part in parts]


def identity(obj: Object) -> Object:
    found = {"kind": obj["kind"], "name": obj["metadata"]["name"]}
    if obj["metadata"].get("namespace") == "kube-system":
        found["namespace"] = "kube-system"
    return {**found, "type": obj["type"]} if obj["kind"] == "Secret" else found


def test_a_minimal_agent_has_the_objects_of_the_go_operator_in_its_order(case: Any, sample: Any) -> None:
    expected = case("A1-minimal-fresh-vanilla")
    built = build_agent(agent(sample(expected)), FACTS)
    # The dependents ConfigMap is the memory of the controller, which writes it.
    assert [identity(obj) for obj in built] == expected["objects"][:-1]


def test_the_daemon_set_of_a_minimal_agent(case: Any, sample: Any) -> None:
    expected = case("A1-minimal-fresh-vanilla")
    built = build_agent(agent(sample(expected)), FACTS)
    daemon_set, wanted = one(built, "DaemonSet", "instana-agent"), expected["daemonset"]
    template, found = daemon_set["spec"]["template"], container(daemon_set)
    assert [flat(variable) for variable in found["env"]] == wanted["env"]
    assert named(template["spec"]["volumes"]) == named(found["volumeMounts"]) == wanted["volumes"]
    assert [[port["name"], port["containerPort"]] for port in found["ports"]] == wanted["ports"]
    assert found["resources"] == wanted["resources"]
    assert found["image"] == wanted["image"].replace("REG1", REGISTRY)
    assert found["imagePullPolicy"] == wanted["imagePullPolicy"]
    assert daemon_set["spec"]["updateStrategy"] == wanted["updateStrategy"]
    assert template["metadata"] == {"labels": wanted["pod_labels"]}


def test_the_secrets_and_config_maps_of_a_minimal_agent(case: Any, sample: Any) -> None:
    expected = case("A1-minimal-fresh-vanilla")
    obj = sample(expected)
    built = build_agent(agent(obj), FACTS)
    assert texts(one(built, "Secret", "instana-agent")) == expected["secret_keys"]["instana-agent"]
    own = {"configuration.yaml": obj["spec"]["agent"]["configuration_yaml"]}
    assert texts(one(built, "Secret", "instana-agent-config")) == {**expected["config_secret"], **own}
    assert one(built, "ConfigMap", "instana-agent-namespaces")["data"] == {
        "namespaces.yaml": expected["namespaces_yaml"]
    }
    assert one(built, "ConfigMap", "instana-agent-k8sensor")["data"] == expected["k8sensor"]["configmap"]


def test_the_k8sensor_of_a_minimal_agent(case: Any, sample: Any) -> None:
    expected = case("A1-minimal-fresh-vanilla")
    built = build_agent(agent(sample(expected)), FACTS)
    sensor, wanted = one(built, "Deployment", "instana-agent-k8sensor"), expected["k8sensor"]
    template, found = sensor["spec"]["template"], container(sensor)
    assert sensor["spec"]["replicas"] == wanted["replicas"]
    assert found["command"] == wanted["command"]
    assert found["args"] == wanted["args"]
    assert template["metadata"]["annotations"] == {"checksum/backend": wanted["checksum_backend"]}
    assert [flat(variable) for variable in found["env"]] == wanted["env"]
    assert named(template["spec"]["volumes"]) == named(found["volumeMounts"]) == wanted["volumes"]


def test_openshift_leaves_out_three_folders_of_the_host(case: Any, sample: Any) -> None:
    expected = case("A2-same-on-openshift-without-etcd-resources")
    built = build_agent(agent(sample(expected)), FACTS._replace(openshift=True))
    daemon_set = one(built, "DaemonSet", "instana-agent")
    assert named(daemon_set["spec"]["template"]["spec"]["volumes"]) == expected["daemonset"]["volumes"]


def test_each_backend_has_a_k8sensor_with_its_own_key_and_checksum(case: Any, sample: Any) -> None:
    expected = case("A3-two-inline-backends")
    built = build_agent(agent(sample(expected)), FACTS)
    assert {
        obj["metadata"]["name"]: {
            "backend_key": flat(next(each for each in container(obj)["env"] if each["name"] == "BACKEND"))[
                "configMapKeyRef"
            ][1],
            "key_file": container(obj)["args"][-1].rpartition("/")[2],
            "checksum": obj["spec"]["template"]["metadata"]["annotations"]["checksum/backend"],
        }
        for obj in built
        if obj["kind"] == "Deployment"
    } == expected["k8sensor_deployments"]
    assert one(built, "ConfigMap", "instana-agent-k8sensor")["data"] == expected["configmap"]
    assert texts(one(built, "Secret", "instana-agent")) == expected["secret_keys"]["instana-agent"]
    assert expected["config_secret"].items() <= texts(one(built, "Secret", "instana-agent-config")).items()


def test_variables_of_the_pod_win_over_those_of_the_agent(case: Any, sample: Any) -> None:
    expected = case("A4-env-precedence")
    found = case("A4-env-precedence")["expect"]
    built = build_agent(agent(sample(expected)), FACTS)
    daemon_set, sensor = one(built, "DaemonSet", "instana-agent"), one(built, "Deployment", "instana-agent-k8sensor")
    tags = {"name": "INSTANA_AGENT_TAGS"}
    assert [each for each in container(daemon_set)["env"] if each["name"] == tags["name"]] == [
        {**tags, "value": found["INSTANA_AGENT_TAGS"]}
    ]
    assert [each for each in container(sensor)["env"] if each["name"] == tags["name"]] == [
        {**tags, "value": found["k8sensor_INSTANA_AGENT_TAGS"]}
    ]
    assert named(daemon_set["spec"]["template"]["spec"]["volumes"])[-2:] == found["user_volumes_last"]


EXTENDED = {"input": "samples/instana_v1_extended_instanaagent.yaml"}
"""The sample with most fields. Where they have the values of the defaults, its objects are those of the minimal one."""


def test_the_extended_sample_has_the_set_of_the_minimal_one(case: Any, sample: Any) -> None:
    built = build_agent(agent(sample(EXTENDED)), FACTS)
    assert [identity(obj) for obj in built] == case("A1-minimal-fresh-vanilla")["objects"][:-1]


def test_the_block_of_the_former_sensor_has_no_effect(sample: Any) -> None:
    obj = sample(EXTENDED)
    built = build_agent(agent(obj), FACTS)
    assert obj["spec"].pop("kubernetes")["deployment"]["pod"]["limits"]["cpu"] == 4
    assert build_agent(agent(obj), FACTS) == built


def test_the_daemon_set_of_the_extended_sample_adds_its_variables_and_volumes(case: Any, sample: Any) -> None:
    minimal_set = case("A1-minimal-fresh-vanilla")["daemonset"]
    daemon_set = one(build_agent(agent(sample(EXTENDED)), FACTS), "DaemonSet", "instana-agent")
    template, found = daemon_set["spec"]["template"], container(daemon_set)
    added: list[Object] = [
        {"name": "CONFIG_VALUE", "configMapKeyRef": ["my-config", "value"]},
        {"name": "ENABLE_AGENT_SOCKET", "value": "true"},
        {"name": "INSTANA_AGENT_TAGS", "value": "kubernetes,example"},
        {"name": "MY_POD_NAME", "fieldRef": "metadata.name"},
        {"name": "SECRET_PASSWORD", "secretKeyRef": ["my-secret", "password"]},
    ]
    wanted = sorted([*minimal_set["env"], *added], key=lambda each: each["name"])
    assert [flat(variable) for variable in found["env"]] == wanted
    volumes = [*minimal_set["volumes"], "my-secret-volume"]
    assert named(template["spec"]["volumes"]) == named(found["volumeMounts"]) == volumes
    assert template["spec"]["volumes"][-1]["secret"] == {"secretName": "instana-agent-key"}
    assert found["volumeMounts"][-1] == {"name": "my-secret-volume", "mountPath": "/secrets"}
    assert [[port["name"], port["containerPort"]] for port in found["ports"]] == minimal_set["ports"]
    assert found["resources"] == minimal_set["resources"]
    assert found["image"] == minimal_set["image"].replace("REG1", REGISTRY)
    assert daemon_set["spec"]["updateStrategy"] == minimal_set["updateStrategy"]
    assert template["metadata"] == {"labels": minimal_set["pod_labels"]}
    assert template["spec"]["affinity"] == {}


def test_the_k8sensor_of_the_extended_sample_has_the_resources_and_the_affinity_of_its_user(
    case: Any, sample: Any
) -> None:
    obj, wanted = sample(EXTENDED), case("A1-minimal-fresh-vanilla")["k8sensor"]
    built = build_agent(agent(obj), FACTS)
    sensor = one(built, "Deployment", "instana-agent-k8sensor")
    template, found = sensor["spec"]["template"], container(sensor)
    assert found["resources"] == {
        "requests": {"cpu": "120m", "memory": "128Mi"},
        "limits": {"cpu": "500m", "memory": "2Gi"},
    }
    assert template["spec"]["affinity"] == obj["spec"]["k8s_sensor"]["deployment"]["pod"]["affinity"]
    assert sensor["spec"]["replicas"] == wanted["replicas"]
    assert found["args"] == wanted["args"]
    # Variables and volumes of the agent's pods are not the sensor's.
    assert [flat(variable) for variable in found["env"]] == wanted["env"]
    assert named(template["spec"]["volumes"]) == named(found["volumeMounts"]) == wanted["volumes"]
    assert template["metadata"]["annotations"] == {"checksum/backend": wanted["checksum_backend"]}
    assert one(built, "ConfigMap", "instana-agent-k8sensor")["data"] == wanted["configmap"]


def test_the_secrets_of_the_extended_sample_have_its_ports_in_addition(case: Any, sample: Any) -> None:
    expected = case("A1-minimal-fresh-vanilla")
    built = build_agent(agent(sample(EXTENDED)), FACTS)
    assert texts(one(built, "Secret", "instana-agent")) == expected["secret_keys"]["instana-agent"]
    # Its configuration_yaml is a block of comments, which YAML reads as an empty text.
    telemetry = (
        "com.instana.plugin.opentelemetry:\n    enabled: true\n    grpc:\n        enabled: true\n        port: 4317\n"
        "    http:\n        enabled: true\n        port: 4318\n"
    )
    wanted = {**expected["config_secret"], "configuration-opentelemetry.yaml": telemetry}
    assert texts(one(built, "Secret", "instana-agent-config")) == wanted


def test_a_remote_has_the_objects_of_the_go_operator(case: Any, sample: Any) -> None:
    expected = case("A5-remote")
    remote = defaulted_remote(msgspec.convert(sample(expected), InstanaAgentRemote))
    built = build_remote(remote, FACTS)
    assert {(obj["kind"], obj["metadata"]["name"]) for obj in built} == {
        # Dependents are written by the controller.
        (each["kind"], each["name"])
        for each in expected["objects"][:-1]
    }
    wanted, deployment = expected["objects"][0], one(built, "Deployment", workload_name(remote))
    assert deployment["spec"]["replicas"] == wanted["replicas"]
    assert container(deployment)["name"] == wanted["container"]
    assert deployment["spec"]["template"]["spec"]["hostname"] == wanted["hostname"]


def test_opentelemetry_decides_about_ports(case: Any) -> None:
    for row in case("A7-otel-ports")["table"]:
        enabled, grpc, http = row["in"]
        spec = {"enabled": enabled, "grpc": {"enabled": grpc}, "http": {"enabled": http}}
        built = build_agent(agent(minimal(opentelemetry=spec)), FACTS)
        assert named(container(one(built, "DaemonSet", "edge"))["ports"]) == row["out"]
        assert named(one(built, "Service", "edge-headless")["spec"]["ports"]) == row["out"]


def test_a_disruption_budget_keeps_all_replicas_but_one(case: Any) -> None:
    for row in case("A8-pdb")["table"]:
        enabled, replicas = row["in"]
        sensor = {"podDisruptionBudget": {"enabled": enabled}, "deployment": {"replicas": replicas}}
        built = build_agent(agent(minimal(k8s_sensor=sensor)), FACTS)
        found = [obj["spec"]["minAvailable"] for obj in built if obj["kind"] == "PodDisruptionBudget"]
        assert found == ([] if row["out"] is None else [row["out"]])


def test_a_keys_secret_and_the_registry_that_takes_keys_change_the_set(case: Any) -> None:
    assert "image-pull Secret exists" in case("A9-lifecycle")["steps"][1]
    before = minimal(k8s_sensor={"podDisruptionBudget": {"enabled": True}})
    changed = {"keysSecret": "test", "image": {"name": "containers.instana.io/instana-agent"}}
    after = minimal(k8s_sensor={"podDisruptionBudget": {"enabled": False}}, agent=changed)
    first, second = ({tuple(identity(o).items()) for o in build_agent(agent(cr), FACTS)} for cr in (before, after))
    assert {dict(each)["kind"] for each in first - second} == {"PodDisruptionBudget", "Secret"}
    assert [dict(each) for each in second - first] == [
        {"kind": "Secret", "name": "edge-containers-instana-io", "type": "kubernetes.io/dockerconfigjson"}
    ]


def minimal(**spec: Any) -> Object:
    base = {"key": "replace-key", "endpointHost": "backend.example", "endpointPort": "443", **spec.pop("agent", {})}
    return {
        "apiVersion": "instana.io/v1",
        "kind": "InstanaAgent",
        "metadata": {"name": "edge", "namespace": "monitoring", "uid": "7d0c1b1e", "generation": 1},
        "spec": {"cluster": {"name": "berlin"}, "zone": {"name": "eu"}, "agent": base, **without_null(spec)},
    }


def without_null(value: Any) -> Any:
    """The value as an API server keeps it, which drops nulls."""
    if isinstance(value, dict):
        return {name: without_null(part) for name, part in value.items() if part is not None}
    return value
