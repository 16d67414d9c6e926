"""Leftovers where people look for a cluster: in `hortus top`, `problems`, `tree` and `why`, until they are settled."""

from __future__ import annotations

import asyncio
import json
import subprocess

import pytest
from tests.domains.access.world import CONFIGMAPS, NAMESPACES
from tests.domains.leftovers.world import Ledger
from tests.scenarios import running

from hortus.domains.leftovers.rows import LeftoverRows, LeftoverSubject
from hortus.engine import Actor, read
from hortus.engine.fleet import RowStanding
from hortus.engine.leftovers import Debt, infrastructure_item, leftovers_of, object_item, sentence_of, thing_of
from hortus.engine.leftovers.types import LEFTOVERS, Leftover, LeftoverItem, LeftoverSource
from hortus.kube.objects import Object
from hortus.schema import encode

LEFT = object_item(CONFIGMAPS, "default", "left", where="Cluster", actor="ClusterOwner")
DISKS = infrastructure_item("disks of c-1", "c-1", look="look at the provider", remove="delete them")


def made(*items: LeftoverItem, gone: tuple[LeftoverItem, ...] = (), acknowledged: bool = False) -> Leftover:
    debt = Debt(LeftoverSource(kind="Runtime", name="blue", namespace="kcp"), "DeletionForced", "", items)
    [leftover] = leftovers_of(debt, "fleet")
    document = encode(leftover)
    document["status"] = {"items": [{"id": item.id, "state": "Gone"} for item in gone]}
    if acknowledged:
        document["spec"]["acknowledgement"] = {"by": "alice", "reason": "known"}
    return read(Leftover, document)


@pytest.mark.parametrize(
    ("leftover", "standing", "owner", "message"),
    [
        (made(LEFT), RowStanding.FAILED, Actor.USER, "ConfigMap default/left may be left of Runtime kcp/blue"),
        (made(DISKS), RowStanding.FAILED, Actor.OPERATOR, '"disks of c-1" may be left of Runtime kcp/blue'),
        (made(LEFT, DISKS, gone=(DISKS,)), RowStanding.FAILED, Actor.USER, "ConfigMap default/left may be left"),
        (made(DISKS, acknowledged=True), RowStanding.WELL, Actor.NOBODY, '"disks of c-1" may be left of'),
    ],
)
def test_a_row_names_an_open_item_and_the_owner_of_the_next_step(
    leftover: Leftover, standing: RowStanding, owner: Actor, message: str
) -> None:
    row = LeftoverRows().row(LeftoverSubject(leftover))
    assert (row.standing, row.owner, row.reason) == (standing, owner, "DeletionForced")
    assert row.message.startswith(message)
    assert row.step == f"`hortus leftovers show {leftover.metadata.name}`"


def test_a_sentence_counts_what_it_does_not_name() -> None:
    both = made(LEFT, DISKS, acknowledged=True)
    first, _ = both.spec.items
    assert sentence_of(both) == (
        f"{thing_of(first)} and 1 more may be left (DeletionForced, acknowledged by alice): "
        f"`hortus leftovers show {both.metadata.name}`"
    )


async def typed(here: Ledger, *words: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(running.typed, "--kubeconfig", str(here.access.server.kubeconfig), *words)


async def test_commands_about_a_cluster_show_what_may_be_left_of_it(here: Ledger) -> None:
    await here.client.apply(NAMESPACES, {"metadata": {"name": "fleet"}}, field_manager="tests")
    await here.access.cluster()
    name = await here.record([LEFT, DISKS], namespace="fleet")
    place = ("-n", here.namespace)
    command = f"`hortus leftovers show {name}`"
    try:
        tree = await typed(here, "tree", "tulip", *place)
        assert tree.returncode == 1, "an open one is unhealthy"
        assert f"✗ Leftover fleet/{name}" in tree.stdout
        assert command in tree.stdout
        why = await typed(here, "why", "tulip", *place)
        assert "no Runtime tulip in namespace" in why.stderr
        assert command in why.stderr
        assert command not in (await typed(here, "why", "other", *place)).stderr
        top = json.loads((await typed(here, "top", "-n", "fleet", "-o", "json")).stdout)
        [row] = [one for one in top["items"] if one["name"] == name]
        assert (row["kind"], row["standing"], row["reason"]) == ("Leftover", "failed", "ClusterUnreachable")
        problems = await typed(here, "problems", "--once", "-n", "fleet")
        assert problems.returncode == 1
        assert name in problems.stdout

        entry: Object = {"spec": {"acknowledgement": {"by": "alice", "reason": "known"}}}
        await here.client.patch(LEFTOVERS, name, entry, "fleet")
        assert f"· Leftover fleet/{name}" in (await typed(here, "tree", "tulip", *place)).stdout
        assert name not in (await typed(here, "problems", "--once", "-n", "fleet")).stdout
        gone = {"status": {"phase": "Settled", "items": [{"id": one.id, "state": "Gone"} for one in (LEFT, DISKS)]}}
        await here.client.patch(LEFTOVERS, name, gone, "fleet", subresource="status")
        assert "Leftover" not in (await typed(here, "tree", "tulip", *place)).stdout
        assert name not in (await typed(here, "top", "-n", "fleet", "-o", "json")).stdout
    finally:
        await here.client.delete(LEFTOVERS, name, "fleet")
