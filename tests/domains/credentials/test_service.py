"""The decisions of the GardenerCluster controller: whole objects compared, no network."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from hortus.domains.credentials import ownership, service
from hortus.domains.credentials.service import Action
from hortus.domains.credentials.settings import contract_policy
from hortus.domains.credentials.types import Annotation, GardenerCluster, Label, Reason
from hortus.engine import Actor, read
from hortus.engine.kubeconfigs import (
    IssuedKubeconfig,
    KubeconfigSecret,
    checksum,
    encoded,
    read_secret,
    restores_identity,
    sealed,
)
from hortus.kube.objects import Object, parse_time
from hortus.kube.patches import apply_merge_patch

NOW = parse_time("2023-01-01T12:00:00Z")
HOUR = 3600.0
POLICY = contract_policy()
KUBECONFIG = b"apiVersion: v1\nkind: Config\n"


def cluster(namespace: str = "kcp-system", **metadata: Any) -> GardenerCluster:
    """A GardenerCluster of kcp-system whose Secret is in `namespace`."""
    return read(
        GardenerCluster,
        {
            "metadata": {
                "name": "rt-1",
                "namespace": "kcp-system",
                "uid": "u-1",
                "generation": 1,
                "labels": {Label.SHOOT_NAME: "c-1", Label.RUNTIME_ID: "rt-1"},
                **metadata,
            },
            "spec": {
                "shoot": {"name": "c-1"},
                "kubeconfig": {"secret": {"name": "kubeconfig-rt-1", "namespace": namespace, "key": "config"}},
            },
        },
    )


def created(owner: GardenerCluster, *, now: float = NOW, expires: float | None = None) -> Object:
    return service.secret_plan(owner).created(IssuedKubeconfig(KUBECONFIG, now, expires, ""))


def raw(owner: GardenerCluster, *, age: float = 0.0, lifetime: float | None = 24 * HOUR) -> Object:
    """The Secret as the controller wrote it `age` seconds ago, and as the cache shows it."""
    written = NOW - age
    return sealed(created(owner, now=written, expires=None if lifetime is None else written + lifetime))


def stored(owner: GardenerCluster, *, age: float = 0.0, lifetime: float | None = 24 * HOUR) -> KubeconfigSecret:
    return read_secret(raw(owner, age=age, lifetime=lifetime))


def test_the_new_secret_is_as_the_contract_says() -> None:
    assert created(cluster(), expires=NOW + 24 * HOUR) == {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": "kubeconfig-rt-1",
            "namespace": "kcp-system",
            "labels": {
                "kyma-project.io/shoot-name": "c-1",
                "kyma-project.io/runtime-id": "rt-1",
                "operator.kyma-project.io/managed-by": "infrastructure-manager",
                "operator.kyma-project.io/cluster-name": "rt-1",
            },
            "annotations": {
                "operator.kyma-project.io/last-sync": "2023-01-01T12:00:00Z",
                "credentials.hortus.dev/checksum": checksum(encoded(KUBECONFIG)),
                "credentials.hortus.dev/expiration": "2023-01-02T12:00:00Z",
            },
            "ownerReferences": [
                {
                    "apiVersion": "infrastructuremanager.kyma-project.io/v1",
                    "kind": "GardenerCluster",
                    "name": "rt-1",
                    "uid": "u-1",
                }
            ],
        },
        "data": {"config": base64.b64encode(KUBECONFIG).decode()},
    }


def test_a_secret_in_another_namespace_has_no_owner_since_kubernetes_forbids_it() -> None:
    metadata = created(cluster("elsewhere"))["metadata"]
    assert "ownerReferences" not in metadata
    assert metadata["annotations"][Annotation.OWNER] == "kcp-system/rt-1/u-1"


@pytest.mark.parametrize(
    ("age", "action", "after"),
    [
        (0.0, Action.KEEP, 13 * HOUR + 40 * 60 + 48),
        (5 * HOUR, Action.KEEP, 8 * HOUR + 40 * 60 + 48),
        (13 * HOUR + 40 * 60 + 47, Action.KEEP, 1.0),
        (13 * HOUR + 40 * 60 + 48, Action.ROTATE, 13 * HOUR + 40 * 60 + 48),
        (30 * HOUR, Action.ROTATE, 13 * HOUR + 40 * 60 + 48),
    ],
)
def test_the_rotation_timeline_is_the_contracts(age: float, action: Action, after: float) -> None:
    decision = service.decide(cluster(), stored(cluster(), age=age), POLICY, NOW)
    assert decision.action is action
    assert decision.after == pytest.approx(after)


def test_without_a_secret_one_is_created() -> None:
    assert service.decide(cluster(), None, POLICY, NOW).action is Action.CREATE


@pytest.mark.parametrize("value", ["", "true", "false", "2023", "x" * 200])
def test_the_force_annotation_counts_whatever_its_value(value: str) -> None:
    forced = cluster(annotations={Annotation.FORCE_ROTATION: value})
    decision = service.decide(forced, stored(forced), POLICY, NOW)
    assert (decision.action, decision.why) == (Action.ROTATE, "forced")


@pytest.mark.parametrize(
    "damage",
    [
        {"data": {}},
        {"data": {"config": ""}},
        {"data": {"other": "sha256:1"}},
        {"data": {"config": "sha256:of-something-else"}},
    ],
)
def test_a_secret_whose_content_was_touched_is_written_again(damage: Object) -> None:
    decision = service.decide(cluster(), read_secret({**raw(cluster()), **damage}), POLICY, NOW)
    assert decision.action is Action.ROTATE
    assert "config" in decision.why


@pytest.mark.parametrize("stamp", ["", "yesterday", "2023-01-01T11:00:00", None, "2099-01-01T00:00:00Z"])
def test_a_last_sync_that_cannot_be_believed_means_now(stamp: str | None) -> None:
    secret = raw(cluster())
    if stamp is None:
        del secret["metadata"]["annotations"][Annotation.LAST_SYNC]
    else:
        secret["metadata"]["annotations"][Annotation.LAST_SYNC] = stamp
    assert service.decide(cluster(), read_secret(secret), POLICY, NOW).action is Action.ROTATE


def test_a_secret_of_the_go_system_is_taken_over_without_a_write() -> None:
    """It carries no checksum, no expiration and no owner, and is not due."""
    secret = raw(cluster(), age=HOUR)
    for ours in (Annotation.CHECKSUM, Annotation.EXPIRATION):
        del secret["metadata"]["annotations"][ours]
    assert service.decide(cluster(), read_secret(secret), POLICY, NOW).action is Action.KEEP


def test_a_kubeconfig_granted_for_less_than_asked_is_rotated_within_that() -> None:
    secret = stored(cluster(), age=6 * HOUR, lifetime=10 * HOUR)
    assert service.decide(cluster(), secret, POLICY, NOW).action is Action.ROTATE


def test_a_renewal_replaces_key_stamps_and_whatever_label_was_lost() -> None:
    secret = raw(cluster(), age=HOUR)
    secret["metadata"]["labels"].pop(Label.CLUSTER_NAME)
    secret["metadata"]["labels"]["somebody"] = "else"
    plan = service.secret_plan(cluster())
    patch = plan.renewal(read_secret(secret), IssuedKubeconfig(b"new", NOW, None, ""))
    assert patch == {
        "metadata": {
            "labels": {Label.CLUSTER_NAME: "rt-1"},
            "annotations": {
                Annotation.LAST_SYNC: "2023-01-01T12:00:00Z",
                Annotation.CHECKSUM: checksum(encoded(b"new")),
                Annotation.EXPIRATION: None,
                Annotation.CLUSTER: None,
            },
        },
        "data": {"config": base64.b64encode(b"new").decode()},
    }
    renewed = read_secret(apply_merge_patch(secret, patch))
    assert renewed.labels["somebody"] == "else"
    assert service.repair(cluster(), renewed) is None


def test_a_renewal_of_a_shared_secret_leaves_labels_and_owners_to_its_keeper() -> None:
    secret = raw(cluster())
    secret["metadata"]["annotations"][Annotation.FORCE_ROTATION] = "now"
    other = cluster(name="rt-2", uid="u-2")
    patch = service.secret_plan(other, shared=True).renewal(read_secret(secret), IssuedKubeconfig(b"n", NOW, None, ""))
    assert patch["metadata"].keys() == {"annotations"}
    assert patch["metadata"]["annotations"][Annotation.FORCE_ROTATION] is None


def test_a_healthy_secret_needs_no_repair() -> None:
    assert service.repair(cluster(), stored(cluster())) is None


def test_a_secret_of_a_cluster_that_was_made_again_gets_the_new_owner() -> None:
    patch = service.repair(cluster(uid="u-2"), stored(cluster()))
    assert patch is not None
    assert [owner["uid"] for owner in patch["metadata"]["ownerReferences"]] == ["u-2"]


def named(name: str, **metadata: Any) -> KubeconfigSecret:
    secret = raw(cluster())
    secret["metadata"] |= {"name": name, **metadata}
    return read_secret(secret)


def test_a_secret_is_found_by_its_shoot_label_whatever_its_name() -> None:
    other_name = named("old-name")
    assert ownership.choose_secret(cluster(), [other_name], None) is other_name


def test_two_secrets_for_one_shoot_are_an_error_that_names_both() -> None:
    with pytest.raises(ownership.AmbiguousSecret, match="kcp-system/kubeconfig-rt-1, kcp-system/second"):
        ownership.choose_secret(cluster(), [stored(cluster()), named("second")], None)


def test_a_foreign_secret_that_has_the_wanted_name_is_not_taken() -> None:
    foreign = named("kubeconfig-rt-1", labels={"app": "x"}, annotations={}, ownerReferences=[])
    assert ownership.choose_secret(cluster(), [], foreign) is None
    ours = named("kubeconfig-rt-1", labels={})
    assert ownership.choose_secret(cluster(), [], ours) is ours


def test_a_repair_that_only_stamps_is_no_damage() -> None:
    stamped: Object = {"metadata": {"annotations": {"a": "b"}}}
    assert not restores_identity(stamped)
    assert restores_identity({"metadata": {**stamped["metadata"], "labels": {"a": "b"}}})
    assert restores_identity({"metadata": {"ownerReferences": []}})


def test_a_secret_that_is_edited_again_and_again_names_where_to_look() -> None:
    error = service.edited_again(cluster(), "it was edited", 40.0)
    assert error.message == (
        "secret kcp-system/kubeconfig-rt-1 is changed by somebody else each time it was written: it was edited "
        "(operator: see its metadata.managedFields for who does; it is written less and less often)"
    )
    assert (error.actor, error.after, error.reason) == (Actor.OPERATOR, 40.0, Reason.UPDATE_FAILED)


def test_a_secret_that_was_deleted_meanwhile_is_made_again_at_once() -> None:
    error = service.secret_deleted()
    assert (error.after, error.reason) == (0.0, "SecretDeleted")
    assert error.message == "the secret was deleted while it was rotated"


def test_a_cluster_that_was_created_again_is_given_as_the_reason() -> None:
    issued = IssuedKubeconfig(KUBECONFIG, NOW, NOW + 24 * HOUR, "one")
    secret = read_secret(sealed(service.secret_plan(cluster()).created(issued)))
    assert service.decide(cluster(), secret, POLICY, NOW, home="one").action is Action.KEEP
    decision = service.decide(cluster(), secret, POLICY, NOW, home="another")
    assert (decision.action, decision.damaged) == (Action.ROTATE, False)
    assert decision.why == "the shoot was created again, or its API server has moved"
