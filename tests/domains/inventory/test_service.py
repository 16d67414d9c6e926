"""Names, labels, properties and states, as pure functions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.domains.inventory import views
from hortus.domains.inventory.claims import ClusterClaim, Origin, label_value, other_name, profile_name
from hortus.domains.inventory.registry import format_sources, parse_sources
from hortus.domains.inventory.service import ClusterFacts, LabelFilter, labels, minor, properties
from hortus.domains.inventory.types import ClusterProfile, ProfileAnnotation, ProfileLabel, Property
from hortus.engine.rollouts.types import PlacementDecision, Rollout
from hortus.kube import naming
from hortus.kube.objects import ObjectKey
from hortus.schema import decode


def claim(name: str = "prod", **fields: Any) -> ClusterClaim:
    return ClusterClaim(Origin("Secret", ObjectKey("home", "prod")), 9, "", name, **fields)


@given(st.text(max_size=300))
def test_every_id_becomes_a_name_that_an_object_can_have(text: str) -> None:
    for name in (profile_name(claim(text)), other_name(claim(text))):
        assert naming.dns_subdomain(name) == []


@pytest.mark.parametrize("name", ["../../etc/passwd", "..", "a/b", "A_B", "", "-", "a..b", "x" * 300])
def test_an_id_that_is_no_name_never_is_used_as_it_is(name: str) -> None:
    assert profile_name(claim(name)) != name


@given(st.text(max_size=300))
def test_every_text_becomes_a_label_or_nothing(text: str) -> None:
    assert naming.label_value(label_value(text)) == [] or label_value(text) == ""


@given(
    st.lists(st.tuples(st.from_regex(r"[a-z]{1,8}", fullmatch=True), st.sampled_from(["", "0a1b2c3d"])), unique=True)
)
def test_the_annotation_of_sources_reads_as_it_was_written(entries: list[tuple[str, str]]) -> None:
    given_ = {Origin("Secret", ObjectKey("home", name)): mark for name, mark in entries}
    assert dict(parse_sources({ProfileAnnotation.SOURCES: format_sources(given_.items())})) == given_


@pytest.mark.parametrize(
    ("version", "expected"),
    [("1.33.4", "1.33"), ("v1.29.3-eks-a5ec690", "1.29"), ("1.30+", "1.30"), ("", ""), ("new", ""), ("1", "")],
)
def test_the_minor_version_of_what_servers_report(version: str, expected: str) -> None:
    assert minor(version) == expected


@pytest.mark.parametrize("text", ["*", "a*b", "a.org/*x"])
def test_a_filter_of_labels_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="prefix of keys"):
        LabelFilter(text)


def test_labels_stay_until_all_facts_are_known() -> None:
    before = {ProfileLabel.REGION: "eu-1", ProfileLabel.KUBERNETES: "1.33", "other": "x"}
    waiting = ClusterFacts([claim(shoot="rt-1")], shoots_known=False)
    assert labels(waiting, LabelFilter(""), before)[ProfileLabel.REGION] == "eu-1"
    known = ClusterFacts([claim()])
    assert ProfileLabel.REGION not in labels(known, LabelFilter(""), before)
    assert labels(known, LabelFilter(""), before)[ProfileLabel.KUBERNETES] == "1.33"


def test_a_source_cannot_set_a_label_that_is_ours() -> None:
    facts = ClusterFacts([claim(labels={ProfileLabel.CLUSTER_MANAGER: "ocm"}, region="eu-1")])
    found = labels(facts, LabelFilter("x-k8s.io/*"), {})
    assert found[ProfileLabel.CLUSTER_MANAGER] == "hortus"


def test_a_cluster_cannot_set_a_property_that_is_ours_nor_too_many() -> None:
    many = {f"p{number:03}": "x" for number in range(200)}
    facts = ClusterFacts([claim()], properties={Property.NODES: "9000", **many, "empty": "", "long": "x" * 1025})
    found = properties(facts, {})
    assert Property.NODES not in found
    assert len(found) == 100


def _profile(**status: Any) -> ClusterProfile:
    body = {"metadata": {"name": "a"}, "spec": {"clusterManager": {"name": "hortus"}}, "status": status}
    return decode(ClusterProfile, body)


def _condition(kind: str, status: str, reason: str = "Because") -> dict[str, str]:
    times = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    return {"type": kind, "status": status, "reason": reason, "message": "why", **times}


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({}, "Connecting"),
        ({"conditions": [_condition("Joined", "True")]}, "Ready"),
        ({"conditions": [_condition("Joined", "False", "NoKubeconfig")]}, "Pending"),
        ({"conditions": [_condition("Joined", "False", "NoAnswer")]}, "Unreachable"),
        ({"conditions": [_condition("Joined", "False", "Leaving")]}, "Leaving"),
        ({"conditions": [_condition("CredentialsFresh", "False"), _condition("Joined", "False")]}, "NoAccess"),
        ({"conditions": [_condition("Joined", "True"), _condition("ControlPlaneHealthy", "False")]}, "Unhealthy"),
        ({"properties": [{"name": Property.HIBERNATED, "value": "true"}]}, "Hibernated"),
    ],
)
def test_one_word_for_the_state_of_a_cluster(status: dict[str, Any], state: str) -> None:
    assert views.state_of(_profile(**status))[0] == state


def test_a_profile_of_another_manager_is_ready_by_its_health() -> None:
    body = {"metadata": {"name": "a"}, "spec": {"clusterManager": {"name": "ocm"}}}
    assert views.state_of(decode(ClusterProfile, body))[0] == "Unknown"
    healthy = {**body, "status": {"conditions": [_condition("ControlPlaneHealthy", "True")]}}
    assert views.state_of(decode(ClusterProfile, healthy))[0] == "Ready"


def test_the_waves_of_a_cluster_are_the_rollouts_under_way_that_admitted_it() -> None:
    def rollout(name: str, phase: str) -> Rollout:
        change = {"kind": "kubernetes", "subject": "kubernetes", "to": "1.34"}
        return decode(Rollout, {"metadata": {"name": name}, "spec": {"change": change}, "status": {"phase": phase}})

    def part(name: str, cluster: str) -> PlacementDecision:
        decision = {"clusterProfileRef": {"name": cluster}, "reason": "admitted 2026-01-01T00:00:00Z in stage canary"}
        labels = {"multicluster.x-k8s.io/decision-key": name}
        return decode(PlacementDecision, {"metadata": {"name": "s", "labels": labels}, "decisions": [decision]})

    found = views.waves_of(
        [rollout("new", "Progressing"), rollout("old", "Succeeded")],
        [part("new", "a"), part("old", "b"), part("gone", "c")],
    )
    assert {name: [str(wave) for wave in waves] for name, waves in found.items()} == {"a": ["kubernetes 1.34 (canary)"]}
