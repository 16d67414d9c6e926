"""Debts as Leftovers: the same names each time, every item in one of them, texts that may be shown and copied."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.engine.applysets.inventory import InventoryEntry, Member
from hortus.engine.leftovers import Debt, infrastructure_item, items_of_inventory, leftovers_of, object_item, safe_text
from hortus.engine.leftovers.types import LONGEST_TEXT, MOST_ITEMS, LeftoverReason, LeftoverSource
from hortus.kube.objects import Resource

ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
HOSTILE = "\u202ereader; rm -rf / #\n$(curl evil)\x1b[2J"
TOKEN = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhZG1pbiJ9.c2lnbmF0dXJl"


def debt(names: list[str], *, message: str = "", name: str = "reader", uid: str = "u-1") -> Debt:
    return Debt(
        source=LeftoverSource(kind="ClusterAccess", name=name, namespace="team", uid=uid),
        reason=LeftoverReason.CLUSTER_UNREACHABLE,
        message=message,
        items=[object_item(ROLES, "default", one, where="Cluster", uid=f"uid-{one}") for one in names],
    )


@given(st.lists(st.text("abc0", min_size=1, max_size=6), min_size=1, max_size=3 * MOST_ITEMS, unique=True))
def test_every_item_is_in_one_leftover_and_none_holds_too_many(names: list[str]) -> None:
    made = list(leftovers_of(debt(names), "fleet"))
    assert all(0 < len(one.spec.items) <= MOST_ITEMS for one in made)
    assert sorted(item.object.name for one in made for item in one.spec.items if item.object) == sorted(names)
    assert len({one.metadata.name for one in made}) == len(made)
    assert len({item.id for one in made for item in one.spec.items}) == len(names)


@given(st.permutations(["a", "b", "c", "d"]))
def test_the_same_debt_has_the_same_leftovers_in_any_order(names: list[str]) -> None:
    assert list(leftovers_of(debt(names), "fleet")) == list(leftovers_of(debt(sorted(names)), "fleet"))


def test_an_item_named_twice_is_one() -> None:
    [one] = leftovers_of(debt(["a", "a"]), "fleet")
    assert len(one.spec.items) == 1


def test_an_object_made_again_under_a_name_has_a_leftover_of_its_own() -> None:
    [first], [second] = (list(leftovers_of(debt(["a"], uid=uid), "fleet")) for uid in ("u-1", "u-2"))
    assert first.metadata.name != second.metadata.name


@given(st.text(max_size=300))
def test_a_leftover_has_a_name_that_kubernetes_takes(name: str) -> None:
    [one] = leftovers_of(debt(["a"], name=name), "fleet")
    assert len(one.metadata.name) <= 63
    assert all(character in "abcdefghijklmnopqrstuvwxyz0123456789-" for character in one.metadata.name)
    assert one.metadata.name.strip("-") == one.metadata.name


def test_a_hostile_name_is_one_quoted_word_and_moves_no_cursor() -> None:
    item = object_item(ROLES, "default", HOSTILE, where="Cluster")
    for command in (item.look, item.remove):
        assert command.isprintable()
        assert len(shlex.split(command)) == 6, "kubectl get roles NAME -n default"
    assert item.what.isprintable()


@pytest.mark.parametrize("text", [f"the answer was Bearer {TOKEN}", "https://admin:hunter22@evil.example"])
def test_a_message_shows_no_credential(text: str) -> None:
    [one] = leftovers_of(debt(["a"], message=text), "fleet")
    assert TOKEN not in one.spec.message
    assert "hunter22" not in one.spec.message


@given(st.text(max_size=5 * LONGEST_TEXT))
def test_a_text_is_printable_and_short(text: str) -> None:
    assert len(safe_text(text)) <= LONGEST_TEXT
    assert safe_text(text).isprintable()


def test_the_members_of_a_set_become_items_with_their_identity() -> None:
    member = Member(ROLES.group, ROLES.kind, "default", "reader")
    [item] = items_of_inventory({member: InventoryEntry("v1", "roles", "u-9")})
    assert (item.where, item.actor, item.what) == ("Cluster", "ClusterOwner", "Role default/reader")
    assert item.look == "kubectl get roles.rbac.authorization.k8s.io reader -n default"
    assert item.object is not None
    assert (item.object.resource, item.object.version, item.object.uid) == ("roles", "v1", "u-9")


def test_infrastructure_has_no_object_to_look_at() -> None:
    item = infrastructure_item("disks of c-1", "c-1/u-1", look="in the account", remove="by hand")
    assert (item.where, item.object, item.actor) == ("Infrastructure", None, "Operator")
