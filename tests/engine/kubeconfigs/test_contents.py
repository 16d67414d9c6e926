"""The contents of a kubeconfig Secret: written, recognised, renewed and repaired. Whole objects compared."""

from __future__ import annotations

from typing import Any

import pytest

from hortus.engine.kubeconfigs import (
    IssuedKubeconfig,
    KubeconfigSecret,
    SecretPlan,
    Stamps,
    checksum,
    encoded,
    read_secret,
    sealed,
)
from hortus.kube.objects import Object, ObjectKey
from hortus.kube.patches import apply_merge_patch
from hortus.schema import OwnerReference

NOW = 1_700_000_000.0
STAMPS = Stamps(issued="a/issued", expires="a/expires", checksum="a/checksum", made_for="a/made-for")
ADOPTING = Stamps(issued="a/issued", expires="a/expires", checksum="a/checksum", made_for="a/made-for", adopts=True)
OWNER = OwnerReference(api_version="a/v1", kind="Access", name="reader", uid="u-1", controller=True)
FIRST = IssuedKubeconfig(b"first", NOW, NOW + 3600, "cluster-1")
PLAN = SecretPlan(
    key=ObjectKey("team", "s"),
    data_key="config",
    stamps=STAMPS,
    labels={"a/request": "r"},
    annotations={"a/mark": "m", "a/asked": None},
    owner=OWNER,
)


def stored(plan: SecretPlan = PLAN, **metadata: Any) -> Object:
    """The Secret as a cache holds it."""
    made = sealed(plan.created(FIRST))
    made["metadata"] |= {"uid": "s-1", **metadata}
    return made


def secret(plan: SecretPlan = PLAN, **metadata: Any) -> KubeconfigSecret:
    return read_secret(stored(plan, **metadata))


def test_a_created_secret_holds_kubeconfig_stamps_labels_and_owner() -> None:
    assert PLAN.created(FIRST) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "s",
            "namespace": "team",
            "labels": {"a/request": "r"},
            "annotations": {
                "a/mark": "m",
                "a/issued": "2023-11-14T22:13:20Z",
                "a/expires": "2023-11-14T23:13:20Z",
                "a/checksum": checksum(encoded(b"first")),
                "a/made-for": "cluster-1",
            },
            "ownerReferences": [
                {"apiVersion": "a/v1", "kind": "Access", "name": "reader", "uid": "u-1", "controller": True}
            ],
        },
        "data": {"config": encoded(b"first")},
    }


def test_a_written_secret_is_recognised_and_needs_no_repair() -> None:
    found = secret()
    assert (STAMPS.issued_at(found), STAMPS.expires_at(found)) == (NOW, NOW + 3600)
    assert STAMPS.damage(found, "config") == ""
    assert STAMPS.is_for(found, "cluster-1")
    assert PLAN.repair(found) is None


def test_sealing_twice_is_sealing_once_and_keeps_no_value() -> None:
    once = stored()
    assert encoded(b"first") not in repr(once)
    assert sealed(once) == once


@pytest.mark.parametrize(
    ("data", "damage"),
    [
        ({}, "the secret lacks key config"),
        ({"config": ""}, "the secret's key config was changed"),
        ({"other": "sha256:0"}, "the secret lacks key config"),
        ({"config": "sha256:0"}, "the secret's key config was changed"),
    ],
)
def test_each_damage_is_named(data: dict[str, str], damage: str) -> None:
    found = read_secret(stored() | {"data": data})
    assert STAMPS.damage(found, "config") == damage
    assert ADOPTING.damage(found, "config") == damage


def test_a_secret_without_stamps_is_damaged_unless_secrets_of_others_are_adopted() -> None:
    bare = secret(annotations={})
    assert STAMPS.damage(bare, "config") == "the secret's key config was changed"
    assert not STAMPS.is_for(bare, "cluster-1")
    assert ADOPTING.damage(bare, "config") == ""
    assert ADOPTING.is_for(bare, "cluster-1")


def test_a_secret_for_another_cluster_is_recognised() -> None:
    for stamps in (STAMPS, ADOPTING):
        assert not stamps.is_for(secret(), "cluster-2")
    assert ADOPTING.is_for(secret(), "")


@pytest.mark.parametrize("text", ["", "yesterday", "2023-01-01T11:00:00"])
def test_a_time_that_cannot_be_read_is_not_known(text: str) -> None:
    assert STAMPS.issued_at(secret(annotations={"a/issued": text})) is None


def test_a_renewal_replaces_stamps_and_value_and_repairs_the_rest() -> None:
    found = secret(labels={"theirs": "stays"})
    patch = PLAN.renewal(found, IssuedKubeconfig(b"second", NOW, None, ""))
    assert patch == {
        "metadata": {
            "labels": {"a/request": "r"},
            "annotations": {
                "a/issued": "2023-11-14T22:13:20Z",
                "a/expires": None,
                "a/made-for": None,
                "a/checksum": checksum(encoded(b"second")),
            },
        },
        "data": {"config": encoded(b"second")},
    }
    renewed = read_secret(apply_merge_patch(stored(labels={"theirs": "stays"}), patch))
    assert renewed.labels == {"theirs": "stays", "a/request": "r"}
    assert STAMPS.damage(renewed, "config") == ""
    assert STAMPS.expires_at(renewed) is None


def test_an_exclusive_renewal_leaves_nothing_of_what_was_there() -> None:
    plan = SecretPlan(key=PLAN.key, data_key="config", stamps=STAMPS, exclusive=True)
    found = read_secret(stored() | {"data": {"old": "sha256:1", "config": "sha256:2"}})
    assert plan.renewal(found, FIRST)["data"] == {"old": None, "config": encoded(b"first")}


def test_annotations_come_back_and_those_that_are_to_be_absent_go() -> None:
    annotations = {**secret().annotations, "a/asked": "yes"}
    del annotations["a/mark"]
    assert PLAN.repair(secret(annotations=annotations)) == {
        "metadata": {"annotations": {"a/mark": "m", "a/asked": None}}
    }


def test_an_owner_replaces_those_of_its_kind_and_other_controllers() -> None:
    namesake = {"apiVersion": "a/v1", "kind": "Access", "name": "reader", "uid": "u-0"}
    controller = {"apiVersion": "b/v1", "kind": "B", "name": "b", "uid": "b-1", "controller": True}
    other = {"apiVersion": "c/v1", "kind": "C", "name": "c", "uid": "c-1", "blockOwnerDeletion": True}
    patch = PLAN.repair(secret(ownerReferences=[namesake, controller, other]))
    assert patch is not None
    ours = {"apiVersion": "a/v1", "kind": "Access", "name": "reader", "uid": "u-1", "controller": True}
    assert patch["metadata"]["ownerReferences"] == [other, ours]
