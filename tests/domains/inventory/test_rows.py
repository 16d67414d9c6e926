"""The rows of clusters in `hortus top`: those that no Runtime and no GardenerCluster shows, and those that are ill."""

from __future__ import annotations

import pytest

from hortus.domains.inventory.rows import ProfilePart, ProfileRows, ProfileSubject
from hortus.domains.inventory.types import ProfileAnnotation, Property
from hortus.engine import Actor
from hortus.engine.fleet import FleetObjects, RowStanding
from hortus.kube.objects import Object, key_of

SINCE = "2026-01-01T12:00:00Z"
SECRET, RUNTIME = "Secret/kcp/press", "Runtime/kcp/blue"


def profile(
    name: str = "press",
    *,
    source: str = SECRET,
    joined: tuple[str, str] = ("True", "Joined"),
    healthy: tuple[str, str] = ("True", "ApiServerAnswers"),
    fresh: tuple[str, str] = ("True", "Accepted"),
    proven: tuple[str, str] = ("True", "MarkRead"),
    reached: bool = True,
    manager: str = "hortus",
) -> Object:
    given = {"Joined": joined, "ControlPlaneHealthy": healthy, "CredentialsFresh": fresh, "IdentityProven": proven}
    conditions = [
        {"type": kind, "status": status, "reason": reason, "message": f"{reason}.", "lastTransitionTime": SINCE}
        for kind, (status, reason) in given.items()
    ]
    uid = [{"name": Property.UID, "value": "u-1", "lastObservedTime": SINCE}] if reached else []
    return {
        "metadata": {
            "name": name,
            "namespace": "fleet",
            "labels": {"topology.kubernetes.io/region": "eu-1"},
            "annotations": {ProfileAnnotation.SOURCES: source},
        },
        "spec": {"clusterManager": {"name": manager}, "displayName": name},
        "status": {"version": {"kubernetes": "1.34.1"}, "conditions": conditions, "properties": uid},
    }


def shown(*profiles: Object) -> list[str]:
    view = ProfileRows()
    [kind] = view.kinds
    objects = FleetObjects({kind: {key_of(one): kind.taken(one) for one in profiles}})
    return sorted(subject.part.row.name for subject in view.subjects(objects))


SILENT = ("False", "Unreachable")


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (profile(), (RowStanding.WELL, "Ready", "Joined", Actor.NOBODY)),
        (
            profile(proven=("False", "IdentityConflict"), reached=False, source=RUNTIME),
            (RowStanding.FAILED, "Disputed", "IdentityConflict", Actor.OPERATOR),
        ),
        (profile(joined=SILENT, healthy=SILENT), (RowStanding.FAILED, "Unreachable", "Unreachable", Actor.USER)),
        (
            profile(fresh=("False", "Expired"), joined=("False", "CredentialRefused")),
            (RowStanding.FAILED, "NoAccess", "Expired", Actor.USER),
        ),
        (
            profile(source=RUNTIME, healthy=("False", "ShootUnhealthy")),
            (RowStanding.FAILED, "Unhealthy", "ShootUnhealthy", Actor.PROVIDER),
        ),
        (profile(joined=("False", "NoKubeconfig")), (RowStanding.WAITING, "Pending", "NoKubeconfig", Actor.NOBODY)),
        (
            profile(manager="ocm", healthy=("False", "Down")),
            (RowStanding.FAILED, "Unhealthy", "Down", Actor.OPERATOR),
        ),
    ],
)
def test_a_row_has_the_state_and_the_owner_of_the_next_step(
    obj: Object, expected: tuple[RowStanding, str, str, Actor]
) -> None:
    row = ProfileRows().row(ProfileSubject(ProfilePart.of(obj)))
    assert (row.standing, row.state, row.reason, row.owner) == expected
    assert (row.kind, row.namespace, row.region, row.version) == ("ClusterProfile", "fleet", "eu-1", "1.34.1")


def test_a_cluster_that_another_row_shows_has_one_of_its_own_only_while_it_is_ill() -> None:
    well = profile("well", source=RUNTIME)
    silent = profile("silent", source=f"GardenerCluster/kcp/silent,{RUNTIME}", joined=SILENT, healthy=SILENT)
    made_now = profile("made-now", source=RUNTIME, joined=SILENT, healthy=SILENT, reached=False)
    expired = profile("expired", source=RUNTIME, fresh=("False", "Expired"))
    foreign = profile("foreign", source="", manager="ocm")
    copy = profile("copy", source=RUNTIME, proven=("False", "IdentityConflict"), reached=False)
    assert shown(well, silent, made_now, expired, foreign, copy, profile()) == ["copy", "foreign", "press", "silent"]
