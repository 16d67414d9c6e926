"""Whole sets of objects."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from tests.domains.agents.builders.samples import FACTS, agent, built, remote

from hortus.domains.agents.builders import build_agent, build_remote
from hortus.domains.agents.types import InstanaAgent
from hortus.kube import yaml

GOLDEN = Path(__file__).with_name("golden")


def test_a_minimal_agent_is_built_field_by_field() -> None:
    expected = list(yaml.load_all((GOLDEN / "minimal.yaml").read_text()))
    assert list(build_agent(agent(), FACTS)) == expected


def test_a_minimal_remote_is_built_field_by_field() -> None:
    expected = list(yaml.load_all((GOLDEN / "remote.yaml").read_text()))
    assert list(build_remote(remote(), FACTS)) == expected


def test_the_same_input_twice_gives_the_same_bytes() -> None:
    spec = {"zones": [{"name": "a"}, {"name": "b"}], "k8s_sensor": {"podDisruptionBudget": {"enabled": True}}}
    backends = [{"endpointHost": "b.example", "endpointPort": "443", "key": "k"}]
    facts = FACTS._replace(namespaces={"z": {"instana-workload-monitoring": "true"}, "a": {}})
    first, second = (
        msgspec.json.encode(build_agent(agent(spec, env={"B": "1", "A": "2"}, additionalBackends=backends), facts))
        for _ in range(2)
    )
    assert first == second


@pytest.mark.parametrize(
    ("cr", "missing"),
    [
        (agent(key=""), "DaemonSet/edge Deployment/edge-k8sensor"),
        (agent({"cluster": {"name": ""}}), "DaemonSet/edge Deployment/edge-k8sensor"),
        (agent({"k8s_sensor": {"deployment": {"enabled": False}}}), "Deployment/edge-k8sensor"),
        (agent(keysSecret="mine"), "Secret/edge"),
        (agent({"serviceAccount": {"create": False, "name": "edge"}}), "ServiceAccount/edge"),
        (agent({"service": {"create": False}, "opentelemetry": {"enabled": False}}), "Service/edge"),
    ],
)
def test_an_object_whose_condition_fails_is_left_out_and_all_others_are_built(cr: InstanaAgent, missing: str) -> None:
    assert set(built(agent())) - set(built(cr)) == set(missing.split())
    assert set(built(cr)) - set(built(agent())) == set()


def test_a_zone_alone_is_enough_for_one_daemon_set_and_not_for_zones() -> None:
    unnamed = {"cluster": {"name": ""}, "zone": {"name": "eu"}}
    assert "DaemonSet/edge" in built(agent(unnamed))
    zones = built(agent({**unnamed, "zones": [{"name": "a"}]}))
    assert not [name for name in zones if name.startswith("DaemonSet")]
    assert "Deployment/edge-k8sensor" in zones


def test_the_service_stays_while_opentelemetry_or_remote_write_needs_it() -> None:
    off = {"service": {"create": False}, "opentelemetry": {"enabled": False}}
    assert "Service/edge" in built(agent({"service": {"create": False}}))
    assert "Service/edge" in built(agent({**off, "prometheus": {"remoteWrite": {"enabled": True}}}))
    assert "Service/edge" not in built(agent(off))


def test_no_role_in_kube_system_has_an_owner_in_another_namespace() -> None:
    """The Go operator sets one, and the garbage collector may delete such a dependent."""
    for obj in build_agent(agent(), FACTS):
        owned = obj["metadata"].get("namespace") == "monitoring"
        assert ("ownerReferences" in obj["metadata"]) is owned, obj["metadata"]["name"]


def test_the_account_names_the_cluster_role_even_where_none_is_created() -> None:
    found = built(agent({"serviceAccount": {"create": False}}))
    assert {"ClusterRole/default", "ClusterRoleBinding/default"} <= set(found)
    assert "ServiceAccount/default" not in found
    assert found["DaemonSet/edge"]["spec"]["template"]["spec"]["serviceAccountName"] == "default"


def test_annotations_of_the_account_are_its_own() -> None:
    wanted = {"name": "scraper", "annotations": {"iam": "role"}}
    found = built(agent({"serviceAccount": wanted}))
    assert found["ServiceAccount/scraper"]["metadata"]["annotations"] == {"iam": "role"}
    assert "annotations" not in found["ServiceAccount/edge-k8sensor"]["metadata"]
