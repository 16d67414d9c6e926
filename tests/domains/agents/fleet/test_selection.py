"""The clusters, names and versions of configurations, as pure functions."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.domains.agents.fleet.counting import PlacementState, counted, summary, worst_of
from hortus.domains.agents.fleet.rendering import ClusterValues, RenderError, cluster_values, render
from hortus.domains.agents.fleet.selection import (
    AgentAt,
    agent_of,
    in_order,
    placement_name,
    placement_of,
    selected,
    winner,
)
from hortus.domains.agents.fleet.versions import secret_names
from hortus.domains.agents.fleet.versions import version_of as version_of_operator
from hortus.domains.agents.types import AgentConfiguration, AgentPlacement
from hortus.domains.inventory.types import ClusterProfile

ENDPOINT = {"endpointHost": "a.example.org", "endpointPort": "443"}


def configuration(name: str = "fleet", **spec: Any) -> AgentConfiguration:
    known = {"clusterSelector": {}, "template": {"agent": ENDPOINT}, **spec}
    return msgspec.convert({"metadata": {"name": name, "namespace": "fleet"}, "spec": known}, AgentConfiguration)


labels = st.dictionaries(st.sampled_from("ab"), st.sampled_from("12"), max_size=2)
configurations = st.lists(
    st.builds(
        lambda name, wanted, priority, agent: configuration(
            name, clusterSelector={"matchLabels": wanted}, priority=priority, agentName=agent
        ),
        st.sampled_from("uvwxyz"),
        labels,
        st.integers(-1, 1),
        st.sampled_from(["instana-agent", "other"]),
    ),
    unique_by=lambda one: one.metadata.name,
    max_size=5,
)
clusters = st.dictionaries(st.sampled_from(["one", "two", "three", "four"]), labels)


@settings(deadline=None, max_examples=150)
@given(configurations, clusters)
def test_each_agent_of_a_cluster_has_one_configuration_and_none_is_forgotten(
    found: list[AgentConfiguration], fleet: dict[str, dict[str, str]]
) -> None:
    ordered = in_order(found)
    taken: dict[tuple[AgentAt, str], str] = {}
    for one in found:
        result = selected(one, ordered, fleet)
        assert not set(result.won) & set(result.overruled)
        for cluster in result.won:
            key = (agent_of(one), cluster)
            assert key not in taken
            taken[key] = one.metadata.name
        for cluster, name in result.overruled.items():
            assert winner(ordered, agent_of(one), fleet[cluster]).metadata.name == name  # type: ignore[union-attr]
    for one in found:
        for cluster, known in fleet.items():
            if one.spec.cluster_selector["matchLabels"].items() <= known.items():
                assert (agent_of(one), cluster) in taken


@settings(deadline=None, max_examples=100)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "a-b", "instana-agent"]),
            st.sampled_from(["a", "instana-agent"]),
            st.sampled_from(["c", "b.c", "c" * 250, "c" * 253]),
        ),
        unique=True,
        min_size=2,
    )
)
def test_placements_of_different_agents_and_clusters_have_different_names(found: list[tuple[str, str, str]]) -> None:
    names = [placement_name(AgentAt(namespace, name), cluster) for namespace, name, cluster in found]
    assert len(set(names)) == len(names)
    assert all(len(name) <= 253 for name in names)


def test_a_placement_has_the_same_name_whichever_configuration_counts() -> None:
    one, other = (placement_of(configuration(name), "one", "v") for name in ("fleet", "special"))
    assert one["metadata"] == other["metadata"] == {"name": "instana-agent.one", "namespace": "fleet"}
    assert one["spec"] != other["spec"]


version_of = partial(version_of_operator, operator_version="v1")


def test_a_version_is_of_template_expression_secrets_and_operator_and_of_nothing_else() -> None:
    base = configuration(template={"agent": {**ENDPOINT, "keysSecret": "k"}})
    known = version_of(base, {"k": {"key": "1"}})
    same = configuration(
        "renamed",
        template={"agent": {"keysSecret": "k", **ENDPOINT}},
        priority=7,
        clusterSelector={"matchLabels": {"a": "b"}},
    )
    assert version_of(same, {"k": {"key": "1"}}) == known
    others = [
        version_of(base, {"k": {"key": "2"}}),
        version_of(base, {"k": {"key": "1", "downloadKey": "1"}}),
        version_of(configuration(template={"agent": ENDPOINT}), {}),
        version_of(configuration(template={"agent": {**ENDPOINT, "keysSecret": "k"}}, perCluster="{}"), {}),
        version_of(base, {"k": {"key": "1"}}, operator_version="v2"),
    ]
    assert len({known, *others}) == 6


def test_the_secrets_that_are_distributed_are_those_of_the_template_without_the_local_ones() -> None:
    template = {
        "agent": {
            **ENDPOINT,
            "keysSecret": "keys",
            "tls": {"secretName": "tls"},
            "image": {"pullSecrets": [{"name": "pull"}, {"name": "keys"}]},
        },
        "k8s_sensor": {"etcd": {"ca": {"secretName": "etcd"}}, "restClient": {"ca": {"secretName": "rest"}}},
    }
    found = configuration(template=template, localSecrets=["etcd"])
    assert secret_names(found) == ("keys", "tls", "rest", "pull")
    assert secret_names(configuration()) == ()


def test_the_inventory_gives_an_expression_its_values() -> None:
    profile = msgspec.convert(
        {
            "metadata": {
                "name": "one",
                "labels": {"fleet.hortus.dev/provider": "aws", "topology.kubernetes.io/region": "eu", "team": "a"},
            },
            "spec": {"clusterManager": {"name": "hortus"}},
            "status": {
                "properties": [
                    {"name": "nodes.fleet.hortus.dev", "value": "3"},
                    {"name": "zones.fleet.hortus.dev", "value": "eu-a,eu-b"},
                ]
            },
        },
        ClusterProfile,
    )
    values = cluster_values(profile)
    assert (values.display_name, values.nodes, values.zones) == ("one", 3, ("eu-a", "eu-b"))
    text = (
        "cluster.nodes > 2 && 'eu-b' in cluster.zones ? {'zone': {'name': cluster.labels.team + cluster.provider}} : {}"
    )
    agent = render(configuration(perCluster=text), values)
    assert (agent.spec.zone.name, agent.spec.cluster.name) == ("aaws", "one")
    assert agent.metadata.namespace == agent.metadata.name == "instana-agent"


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("[]", "the result is list: it must be a map"),
        ("{'agent': {'pod': {'env': 'a'}}}", "spec.agent.pod.env"),
        ("{'agent': null}", "spec.agent: Required value"),
        ("{'a': 1}", "spec.a: unknown field"),
        ("nothing", "undeclared reference to 'nothing'"),
    ],
)
def test_a_result_that_is_no_agent_names_the_field(expression: str, problem: str) -> None:
    with pytest.raises(RenderError) as raised:
        render(configuration(perCluster=expression), ClusterValues(name="one"))
    assert problem in str(raised.value)


def test_rendering_leaves_the_template_alone() -> None:
    found = configuration(template={"agent": {**ENDPOINT, "image": {"pullSecrets": [{}]}}, "cluster": {}})
    before = msgspec.json.encode(found)
    render(found, ClusterValues(name="one"))
    assert msgspec.json.encode(found) == before


def state(
    cluster: str, status: str, reason: str, *, desired: int, available: int, waits: bool = False
) -> PlacementState:
    placement = msgspec.convert(
        {
            "metadata": {"name": cluster},
            "spec": {
                "cluster": cluster,
                "configuration": "fleet",
                "version": "b",
                "agentName": "a",
                "agentNamespace": "a",
            },
            "status": {
                "version": "a" if waits else "b",
                "nodes": {"desired": desired, "available": available, "updated": available},
                "conditions": [
                    {
                        "type": "Ready",
                        "status": status,
                        "reason": reason,
                        "message": reason * 100,
                        "lastTransitionTime": "2026-01-01T00:00:00Z",
                    }
                ],
            },
        },
        AgentPlacement,
    )
    return PlacementState(placement, waits)


def test_the_worst_clusters_come_first_and_a_fleet_is_counted() -> None:
    states = [
        state("well", "True", "AgentsRunning", desired=3, available=3),
        state("rolling", "Unknown", "AgentsRolling", desired=9, available=1),
        state("slow", "Unknown", "AgentsRolling", desired=9, available=7),
        state("failed", "False", "ObjectsRefused", desired=2, available=2),
        state("waits", "True", "AgentsRunning", desired=1, available=1, waits=True),
    ]
    counts = counted(states, selected=5, overruled=1)
    assert msgspec.structs.asdict(counts) == {
        "selected": 5,
        "current": 4,
        "ready": 1,
        "waiting": 1,
        "failed": 1,
        "overruled": 1,
    }
    assert msgspec.structs.asdict(summary(states)) == {"desired": 24, "available": 14, "updated": 14}
    worst = worst_of(states)
    assert [one.name for one in worst] == ["failed", "rolling", "slow", "waits"]
    assert len(worst[0].message) == 300
