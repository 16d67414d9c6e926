"""Decisions, from values to values: when a kubeconfig is due, who may reach which cluster, whose a Secret is."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from hortus.domains.access import service
from hortus.domains.access.rotation import LEAST_WAIT, SPREAD, due_in, share_of, wait_of
from hortus.domains.access.service import Issued, Setback
from hortus.domains.access.types import Annotation, Label
from hortus.engine.kubeconfigs import sealed
from hortus.kube.objects import Object

NOW = 1_700_000_000.0


def access(**metadata: Any) -> Object:
    return {
        "apiVersion": "access.hortus.dev/v1alpha1",
        "kind": "ClusterAccess",
        "metadata": {"name": "reader", "namespace": "team", "uid": "u-1", **metadata},
        "spec": {"clusterRef": {"name": "tulip"}, "client": "broker", "secret": {"name": "s"}, "rules": []},
    }


def cluster(**metadata: Any) -> Object:
    reference = {"namespace": "kcp", "name": "kubeconfig-tulip", "key": "config"}
    return {
        "metadata": {"name": "tulip", "namespace": "kcp", "uid": "c-1", **metadata},
        "spec": {"shoot": {"name": "tulip"}, "kubeconfig": {"secret": reference}},
    }


def secret(**changes: Any) -> Object:
    """The Secret as the cache keeps it, written just now."""
    made = service.new_secret(access(), Issued(b"kubeconfig", NOW, NOW + 3600, "home"))
    made["metadata"] |= {"uid": "s-1", **changes}
    return sealed(made)


_SECONDS = some.floats(600, 86400)
_PERCENT = some.integers(10, 90)
_SHARE = some.floats(0, 1, exclude_max=True)


@given(_SECONDS, _PERCENT, _SHARE)
def test_a_kubeconfig_is_replaced_before_it_ends_and_never_far_before_its_share(
    lifetime: float, percent: int, share: float
) -> None:
    wait = wait_of(lifetime, percent, share)
    assert LEAST_WAIT <= wait < lifetime
    assert wait >= lifetime * percent / 100 * (1 - SPREAD) - 1e-6


@given(_SECONDS, _PERCENT, _SHARE, some.floats(-200, 100_000))
def test_looking_later_never_makes_it_due_later(lifetime: float, percent: int, share: float, age: float) -> None:
    def left(now: float) -> float:
        return due_in(NOW, NOW + lifetime, now, percent=percent, share=share)

    assert left(NOW + age) >= left(NOW + age + 1)
    assert left(NOW + lifetime) == 0


@pytest.mark.parametrize(("issued", "expires"), [(None, NOW), (NOW, None), (NOW + 3600, NOW + 7200), (NOW, NOW - 1)])
def test_times_that_cannot_be_make_it_due(issued: float | None, expires: float | None) -> None:
    assert due_in(issued, expires, NOW, percent=60, share=0.5) == 0


@given(some.lists(some.uuids(), min_size=200, max_size=200, unique=True))
def test_shares_are_spread(uids: list[object]) -> None:
    shares = [share_of(str(uid)) for uid in uids]
    assert all(0 <= share < 1 for share in shares)
    assert 0.3 < sum(shares) / len(shares) < 0.7


def test_a_fresh_secret_is_kept_and_each_damage_is_named() -> None:
    def why(found: Object | None, home: str = "home", now: float = NOW + 10) -> str:
        return service.renewal(access(), found, home, now)[0]

    assert why(secret()) == ""
    assert why(None) == "no secret yet"
    assert why(secret(), now=NOW + 3000) == service.DUE
    assert why(secret(), home="elsewhere") == "the cluster, its address or the account is another one now"
    assert why(secret() | {"data": {}}) == "the secret lacks key config"
    assert why(secret() | {"data": {"config": "sha256:0"}}) == "the secret's key config was changed"


def test_what_is_written_is_what_is_kept() -> None:
    found = secret()
    assert found["metadata"]["annotations"][Annotation.CHECKSUM] == found["data"]["config"]
    assert service.mended(access(), found) is None


def test_a_renewal_leaves_nothing_of_what_was_there() -> None:
    found = secret()
    found["data"]["old"] = "sha256:1"
    patch = service.replaced_content(access(), found, Issued(b"new", NOW, NOW + 60, "home"))
    assert patch["data"] == {"config": "bmV3", "old": None}


@pytest.mark.parametrize(
    ("owner", "ours"), [("u-1", True), ("u-2", False), ("", False)], ids=["its own", "a namesake's", "nobody's"]
)
def test_a_secret_is_ours_by_uid_and_not_by_name(owner: str, ours: bool) -> None:
    found = secret(ownerReferences=[{"uid": owner, "kind": "ClusterAccess", "name": "reader"}] if owner else [])
    assert service.is_ours(access(), found) is ours


@pytest.mark.parametrize(
    ("changes", "ours"),
    [
        ({}, True),
        ({"labels": {}}, True),
        ({"annotations": {}}, False),
        ({"annotations": None, "labels": None}, False),
        ({"labels": {Label.REQUEST: "another"}}, False),
    ],
)
def test_the_uid_in_a_status_makes_no_secret_of_others_ours(changes: Object, ours: bool) -> None:
    """Who may write statuses of ClusterAccesses, and no Secrets, would have any Secret overwritten or deleted."""
    request = {**access(), "status": {"secret": {"name": "s", "uid": "s-1"}}}
    assert service.is_ours(request, secret(ownerReferences=[], **changes)) is ours


@pytest.mark.parametrize("text", [None, "", "other", "team-2,xteam", "*", "TEAM"])
def test_a_cluster_of_another_namespace_is_out_of_reach(text: str | None) -> None:
    given_to = {} if text is None else {Annotation.ALLOWED_NAMESPACES: text}
    with pytest.raises(Setback, match="requests of namespace team may not reach GardenerCluster kcp/tulip") as refused:
        service.check_grant(access(), cluster(annotations=given_to))
    assert refused.value.withdraw


def test_a_cluster_is_reached_from_its_own_namespace_and_where_its_owner_says_so() -> None:
    service.check_grant(access(namespace="kcp"), cluster())
    service.check_grant(access(), cluster(annotations={Annotation.ALLOWED_NAMESPACES: "a, team ,b"}))


def owned(uid: str = "c-1", shoot: str = "tulip") -> Object:
    labels = {"kyma-project.io/shoot-name": shoot}
    owners = [{"uid": uid, "kind": "GardenerCluster", "name": "tulip"}]
    return {"metadata": {"name": "k", "namespace": "kcp", "labels": labels, "ownerReferences": owners}}


def test_the_way_in_is_the_secret_that_its_cluster_owns() -> None:
    assert service.place_of(cluster(), [owned()]) == ("kcp", "k", "config")


@pytest.mark.parametrize("found", [owned("c-2"), owned(shoot="rose")], ids=["another's", "of another shoot"])
def test_a_secret_of_another_cluster_is_no_way_in(found: Object) -> None:
    with pytest.raises(Setback, match="has no kubeconfig yet"):
        service.place_of(cluster(), [found])


def test_a_kubeconfig_in_another_namespace_is_no_way_in() -> None:
    far = cluster()
    far["spec"]["kubeconfig"]["secret"]["namespace"] = "elsewhere"
    with pytest.raises(Setback, match="kept in namespace elsewhere"):
        service.place_of(far, [owned()])
