"""Clusters to which the same happens are one group, and the odd ones stand out."""

from __future__ import annotations

from hortus.simulation.plan.grouping import Aliases, groups, opened_text
from hortus.simulation.plan.model import ClusterPlan, FieldChange, ObjectChange


def _aliases(count: int) -> Aliases:
    found = Aliases()
    for number in range(count):
        found.add(f"rt-{number}", f"c-{number}", f"shoot--demo--c-{number}")
    return found


def _plan(number: int, version: str = "1.35.0") -> ClusterPlan:
    fields = (FieldChange("spec.kubernetes.version", "1.34.1", version),)
    changes = (
        ObjectChange(
            where="root",
            group="g",
            kind="Runtime",
            namespace="kcp",
            name=f"rt-{number}",
            action="Changed",
            fields=fields,
        ),
        ObjectChange(
            where=f"shoot--demo--c-{number}",
            group="",
            kind="Node",
            name=f"shoot--demo--c-{number}-pool-z1-{number:05x}1-{number + 7:05x}2",
            action="Created",
        ),
        ObjectChange(
            where=f"shoot--demo--c-{number}",
            group="",
            kind="Node",
            name=f"shoot--demo--c-{number}-pool-z1-{number:05x}3-{number + 7:05x}4",
            action="Created",
        ),
    )
    return ClusterPlan(name=f"rt-{number}", changes=changes, seconds=60.0 + number)


def test_five_thousand_equal_clusters_are_one_line_and_the_odd_one_another() -> None:
    count = 5000
    plans = [_plan(number, "1.34.3" if number == 4711 else "1.35.0") for number in range(count)]
    large, odd = groups(plans, _aliases(count))
    assert (large.count, odd.clusters) == (count - 1, ("rt-4711",))
    assert [(change.kind, change.name, number) for change, number in zip(large.changes, large.counts, strict=True)] == [
        ("Node", "CLUSTER-pool-z1-*-*", 2),
        ("Runtime", "CLUSTER", 1),
    ]
    assert large.seconds == (60.0, 60.0 + count - 1)


def test_an_object_is_about_the_cluster_that_its_labels_or_its_name_name() -> None:
    aliases = _aliases(30)
    named = {"metadata": {"name": "kubeconfig-c-2"}}
    labelled = {"metadata": {"name": "anything", "labels": {"kyma-project.io/runtime-id": "rt-3"}}}
    assert aliases.about("root", named) == "rt-2"
    assert aliases.about("root", {"metadata": {"name": "kubeconfig-c-21"}}) == "rt-21"
    assert aliases.about("garden", labelled) == "rt-3"
    assert aliases.about("shoot--demo--c-4", {}) == "rt-4"
    assert aliases.about("root", {"metadata": {"name": "template-operator"}}) == ""


def test_texts_are_open_where_equal_clusters_differ() -> None:
    text = "node 10.250.3.4 of 2026-11-28T13:00:00Z, sha256:9f2446b8, 3c9f0b7e-0f3a-4d51-8d55-2132b0b9271c"
    assert opened_text(text) == "node * of *, sha256:*, *"
    assert opened_text("version 1.35.0 of pool cpu-worker-0") == "version 1.35.0 of pool cpu-worker-0"
    assert opened_text(3) == 3


def test_a_random_suffix_may_be_of_letters_alone() -> None:
    assert opened_text("c-1-cpu-worker-z1-5f9d1-cbcec") == opened_text("c-1-cpu-worker-z1-5f9d2-12345")
    assert opened_text("pool-large") == "pool-large"
