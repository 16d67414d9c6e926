"""Decisions, from values to values: when a kubeconfig is due, who may reach which cluster, whose a Secret is."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from hortus.domains.access import service
from hortus.domains.access.service import LEAST_WAIT, SPREAD
from hortus.domains.access.types import Annotation, ClusterAccess, Label
from hortus.domains.credentials.types import GardenerCluster
from hortus.engine import StepError, read
from hortus.engine.kubeconfigs import IssuedKubeconfig, KubeconfigSecret, read_secret

NOW = 1_700_000_000.0
HOUR = 3600.0


def access(*, uid: str = "u-1", namespace: str = "team", status: Any = None, **spec: Any) -> ClusterAccess:
    wanted = {"clusterRef": {"name": "tulip"}, "client": "broker", "secret": {"name": "s"}, **spec}
    metadata = {"name": "reader", "namespace": namespace, "uid": uid}
    return read(ClusterAccess, {"metadata": metadata, "spec": wanted, "status": status or {}})


def cluster(*, place: str = "kcp", **metadata: Any) -> GardenerCluster:
    reference = {"namespace": place, "name": "kubeconfig-tulip", "key": "config"}
    spec = {"shoot": {"name": "tulip"}, "kubeconfig": {"secret": reference}}
    return read(
        GardenerCluster, {"metadata": {"name": "tulip", "namespace": "kcp", "uid": "c-1", **metadata}, "spec": spec}
    )


def secret(*, issued: float = NOW, expires: float = NOW + HOUR, data: Any = None, **changes: Any) -> KubeconfigSecret:
    """The Secret as the cache keeps it."""
    made = service.plan_of(access()).created(IssuedKubeconfig(b"kubeconfig", issued, expires, "home"))
    made["metadata"] |= {"uid": "s-1", **changes}
    return read_secret(made if data is None else {**made, "data": data})


@given(some.integers(600, 86400), some.integers(10, 90), some.uuids())
def test_a_kubeconfig_is_replaced_before_it_ends_and_never_far_before_its_share(
    lifetime: int, percent: int, uid: object
) -> None:
    request = access(uid=str(uid), rotateAtPercent=percent)
    due = service.due_of(request, secret(expires=NOW + lifetime), NOW)
    assert not due.now
    assert LEAST_WAIT <= due.after < lifetime
    assert due.after >= lifetime * percent / 100 * (1 - SPREAD) - 1e-6
    assert service.due_of(request, secret(expires=NOW + lifetime), NOW + lifetime).now


@pytest.mark.parametrize("times", [(NOW + HOUR, NOW + 2 * HOUR), (NOW, NOW - 1)])
def test_times_that_cannot_be_make_it_due(times: tuple[float, float]) -> None:
    assert service.due_of(access(), secret(issued=times[0], expires=times[1]), NOW).now


def test_a_fresh_secret_is_kept_and_each_damage_is_named() -> None:
    def why(found: KubeconfigSecret, home: str = "home", now: float = NOW + 10) -> str:
        return service.renewal(access(), found, home, now)

    assert why(secret()) == ""
    assert why(secret(), now=NOW + 3000) == service.DUE
    assert why(secret(), home="elsewhere") == "the cluster, its address or the account is another one now"
    assert why(secret(data={})) == "the secret lacks key config"
    assert why(secret(data={"config": "sha256:0"})) == "the secret's key config was changed"


def test_a_secret_that_was_just_written_and_edited_is_written_again_a_little_later() -> None:
    edited = secret(data={"config": "sha256:0"})
    assert service.edit_pause(access(), edited, NOW + 4) == 6.0
    assert service.edit_pause(access(), edited, NOW + 11) == 0.0
    assert service.edit_pause(access(), secret(), NOW + 4) == 0.0


def test_what_is_written_is_what_is_kept() -> None:
    found = secret()
    assert found.annotations[Annotation.CHECKSUM] == found.data["config"]
    assert service.plan_of(access()).repair(found) is None


def test_a_renewal_leaves_nothing_of_what_was_there() -> None:
    found = secret()
    found.data["old"] = "sha256:1"
    patch = service.plan_of(access()).renewal(found, IssuedKubeconfig(b"new", NOW, NOW + 60, "home"))
    assert patch["data"] == {"config": "bmV3", "old": None}


@pytest.mark.parametrize(
    ("owner", "ours"), [("u-1", True), ("u-2", False), ("", False)], ids=["its own", "a namesake's", "nobody's"]
)
def test_a_secret_is_ours_by_uid_and_not_by_name(owner: str, ours: bool) -> None:
    reference = {"apiVersion": "access.hortus.dev/v1alpha1", "uid": owner, "kind": "ClusterAccess", "name": "reader"}
    found = secret(ownerReferences=[reference] if owner else [])
    assert service.is_ours(access(), found) is ours


@pytest.mark.parametrize(
    ("changes", "ours"),
    [
        ({}, True),
        ({"labels": {}}, True),
        ({"annotations": {}}, False),
        ({"annotations": {}, "labels": {}}, False),
        ({"labels": {Label.REQUEST: "another"}}, False),
    ],
)
def test_the_uid_in_a_status_makes_no_secret_of_others_ours(changes: Any, ours: bool) -> None:
    """A user who may write statuses of ClusterAccesses, and no Secrets, would overwrite or delete any Secret."""
    request = access(status={"secret": {"name": "s", "uid": "s-1"}})
    assert service.is_ours(request, secret(ownerReferences=[], **changes)) is ours


def owned(uid: str = "c-1", shoot: str = "tulip") -> KubeconfigSecret:
    labels = {"kyma-project.io/shoot-name": shoot}
    owner = {"apiVersion": "v1", "uid": uid, "kind": "GardenerCluster", "name": "tulip"}
    metadata = {"name": "k", "namespace": "kcp", "labels": labels, "ownerReferences": [owner]}
    return msgspec.convert({"metadata": metadata}, KubeconfigSecret)


def test_the_way_in_is_the_secret_that_its_cluster_owns() -> None:
    assert service.place_of(cluster(), [owned()]) == ("kcp", "k", "config")


@pytest.mark.parametrize("found", [owned("c-2"), owned(shoot="rose")], ids=["another's", "of another shoot"])
def test_a_secret_of_another_cluster_is_no_way_in(found: KubeconfigSecret) -> None:
    with pytest.raises(StepError, match="has no kubeconfig yet"):
        service.place_of(cluster(), [found])


def test_a_kubeconfig_in_another_namespace_is_no_way_in() -> None:
    with pytest.raises(StepError, match="kept in namespace elsewhere"):
        service.place_of(cluster(place="elsewhere"), [owned()])
