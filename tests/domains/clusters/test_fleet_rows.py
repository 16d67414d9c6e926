"""The rows of Runtimes in `hortus top`: state, reason and owner of the next step as in `hortus why`."""

from __future__ import annotations

from typing import Any

import pytest

from hortus.domains.clusters.rows import RuntimeRows, RuntimeSubject, ShootPart
from hortus.domains.clusters.turns import CODES
from hortus.domains.clusters.types import Annotation, Runtime
from hortus.domains.credentials.types import Annotation as ClusterAnnotation
from hortus.domains.credentials.types import GardenerCluster
from hortus.engine import Actor, read
from hortus.engine.fleet import FleetRow, RowStanding
from hortus.kube.objects import parse_time
from hortus.schema import ObjectMeta

SINCE = "2026-01-01T12:00:00Z"
EXPIRES = "2026-01-02T12:00:00Z"


def made(state: str, *conditions: tuple[str, str, str], **annotations: str) -> Runtime:
    shown = [
        {"type": kind, "status": status, "reason": reason, "message": f"{reason}.", "lastTransitionTime": SINCE}
        for kind, status, reason in conditions
    ]
    metadata = {"name": "rt-1", "namespace": "kcp", "labels": {"kyma-project.io/runtime-id": "id-1"}}
    status = {"status": {"state": state, "conditions": shown}} if state else {}
    return read(Runtime, {"metadata": metadata | {"annotations": annotations}, **status})


def cluster(state: str, message: str = "") -> GardenerCluster:
    failed = {"type": "KubeconfigManagement", "status": "False", "reason": "R", "message": message}
    secret = {"name": "s", "namespace": "kcp", "key": "config"}
    return read(
        GardenerCluster,
        {
            "metadata": {"name": "id-1", "namespace": "kcp"},
            "spec": {"shoot": {"name": "c-1"}, "kubeconfig": {"secret": secret}},
            "status": {"state": state, "conditions": [failed | {"lastTransitionTime": SINCE}] if message else []},
        },
    )


SECRET = ObjectMeta(name="s", namespace="kcp", annotations={ClusterAnnotation.EXPIRATION: EXPIRES})
READY = ("Provisioned", "True", "ConfigurationCompleted")


def row(runtime: Runtime, of: GardenerCluster | None = None, shoot: Any = None) -> FleetRow:
    part = ShootPart.of(shoot) if shoot is not None else None
    return RuntimeRows().row(RuntimeSubject(runtime, of, SECRET if of is not None else None, part))


@pytest.mark.parametrize(
    ("runtime", "of", "expected"),
    [
        (made("Ready", READY), cluster("Ready"), (RowStanding.WELL, "Ready", "ConfigurationCompleted", Actor.NOBODY)),
        (made("Ready", READY), None, (RowStanding.FAILED, "Ready", "KubeconfigNotReady", Actor.OPERATOR)),
        (
            made("Ready", READY),
            cluster("Error", "No."),
            (RowStanding.FAILED, "Ready", "KubeconfigNotReady", Actor.OPERATOR),
        ),
        (
            made("Failed", ("Provisioned", "False", "ConversionErr")),
            None,
            (RowStanding.FAILED, "Failed", "ConversionErr", Actor.USER),
        ),
        (
            made("Pending", ("Provisioned", "Unknown", "Pending")),
            None,
            (RowStanding.WAITING, "Pending", "Pending", Actor.NOBODY),
        ),
        (made(""), None, (RowStanding.WAITING, "New", "", Actor.NOBODY)),
        (made("", **{Annotation.ADOPTION: "locked"}), None, (RowStanding.WAITING, "Locked", "", Actor.OPERATOR)),
        (
            made("Ready", READY, **{Annotation.SUSPEND_PATCH: "true"}),
            cluster("Ready"),
            (RowStanding.WELL, "Ready", "Suspended", Actor.NOBODY),
        ),
    ],
)
def test_the_row_of_a_runtime_has_its_state_and_the_owner_of_the_next_step(
    runtime: Runtime, of: GardenerCluster | None, expected: tuple[Any, ...]
) -> None:
    found = row(runtime, of)
    assert (found.standing, found.state, found.reason, found.owner) == expected


def test_times_are_those_of_the_condition_and_of_the_secret() -> None:
    found = row(made("Ready", READY), cluster("Ready"))
    assert (found.since, found.expires) == (parse_time(SINCE), parse_time(EXPIRES))
    assert row(made("Ready", READY)).expires is None


def test_a_code_of_the_shoot_says_more_than_the_reason() -> None:
    code = "ERR_INFRA_QUOTA_EXCEEDED"
    failed = made("Failed", ("Provisioned", "False", "CreationErr"))
    shoot = {"metadata": {"name": "c-1"}, "status": {"lastErrors": [{"codes": [code]}]}}
    shoot["spec"] = {"kubernetes": {"version": "1.34.1"}}
    found = row(failed, None, shoot)
    assert (found.owner, found.step) == CODES[code]
    assert found.version == "1.34.1"
