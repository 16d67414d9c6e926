"""Shoots as they are kept in memory, and the changes of them that are worth a reconcile."""

from __future__ import annotations

from typing import Any

import pytest

from hortus.domains.credentials.shoots import ShootFacts, became_usable, outline, outline_of
from hortus.engine import Change
from hortus.kube.objects import Object, ObjectKey

KEY = ObjectKey("garden-demo", "c-1")
EXTERNAL = {"name": "external", "url": "https://api.c-1"}
ISSUER = {"name": "service-account-issuer", "url": "https://issuer.c-1"}


def shoot(uid: str = "s-1", *, state: str = "Succeeded", addresses: Any = (EXTERNAL, ISSUER)) -> Object:
    return {
        "metadata": {
            "name": "c-1",
            "namespace": "garden-demo",
            "uid": uid,
            "resourceVersion": "7",
        },
        "spec": {"provider": {"type": "aws"}},
        "status": {
            "advertisedAddresses": list(addresses),
            "lastOperation": {"type": "Create", "state": state, "progress": 40},
            "conditions": [{"type": "APIServerAvailable", "status": "True"}],
        },
    }


def test_of_a_shoot_only_what_decides_is_kept() -> None:
    kept = outline(shoot())
    assert kept["metadata"] == {"name": "c-1", "namespace": "garden-demo", "uid": "s-1", "resourceVersion": "7"}
    assert outline_of(kept) == ShootFacts("s-1", ("https://api.c-1",), True)
    assert outline_of(kept).home == "s-1 https://api.c-1"


def test_a_shoot_that_was_only_just_made_has_no_home() -> None:
    bare = outline({"metadata": {"name": "c-1", "namespace": "garden-demo", "uid": "s-1"}})
    assert outline_of(bare) == ShootFacts("s-1", (), False)
    assert outline_of(bare).home == ""


@pytest.mark.parametrize(
    ("old", "new", "usable"),
    [
        (None, shoot(), True),
        (shoot(), None, False),
        (shoot(), shoot(), False),
        (shoot(), shoot("s-2"), True),
        (shoot(addresses=()), shoot(), True),
        (shoot(state="Processing"), shoot(), True),
        (shoot(), shoot(state="Processing"), False),
    ],
    ids=["appeared", "gone", "the same", "made again", "has moved", "was built", "is being changed"],
)
def test_a_shoot_that_may_have_become_usable_is_worth_a_reconcile(
    old: Object | None, new: Object | None, usable: bool
) -> None:
    kept = [None if one is None else outline(one) for one in (old, new)]
    assert became_usable(Change(KEY, *kept)) is usable
