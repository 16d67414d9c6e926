"""`hortus leftovers` as people type it, against a real API server."""

from __future__ import annotations

import asyncio
import json
import subprocess

from tests.domains.access.world import CONFIGMAPS
from tests.domains.leftovers.world import Ledger
from tests.scenarios import running

from hortus.engine.leftovers import infrastructure_item, object_item
from hortus.engine.leftovers.types import LEFTOVERS
from hortus.kube.objects import Object

HOSTILE = "\x1b[2Jred\u202e; rm -rf /"


async def _typed(here: Ledger, *words: str) -> subprocess.CompletedProcess[str]:
    path = str(here.access.server.kubeconfig)
    return await asyncio.to_thread(running.typed, "--kubeconfig", path, "leftovers", *words, "-n", here.namespace)


async def _recorded(here: Ledger) -> str:
    return await here.record(
        [
            object_item(CONFIGMAPS, "default", "left", where="Cluster", actor="ClusterOwner"),
            infrastructure_item("disks of c-1", "c-1", look="look at the provider", remove="delete them"),
        ]
    )


async def test_a_leftover_is_listed_shown_and_acknowledged_by_the_user_of_the_kubeconfig(here: Ledger) -> None:
    name = await _recorded(here)
    listed = await _typed(here, "list")
    assert listed.stdout.splitlines()[1].split()[:2] == [name, f"{here.namespace}/tulip"]
    assert "no route to host" in (await _typed(here, "list", "-o", "wide")).stdout
    [found] = json.loads((await _typed(here, "list", "-o", "json")).stdout)
    assert (found["state"], found["left"], found["items"], found["acknowledgement"]) == ("Open", 2, 2, None)
    shown = (await _typed(here, "show", name)).stdout
    assert "look    kubectl get configmaps left -n default" in shown
    assert '"disks of c-1", at the provider' in shown
    assert f"hortus leftovers acknowledge {name} --reason TEXT" in shown
    refused = await _typed(here, "acknowledge", name, "--reason", "known")
    assert refused.returncode == 2
    assert "give -y to agree" in refused.stderr
    agreed = await _typed(here, "acknowledge", name, "--reason", "known", "-y")
    assert agreed.stdout == f"leftover {name} acknowledged: it raises no alert any more\n", agreed.stderr
    entry = (await here.only()).spec.acknowledgement
    assert entry is not None
    assert (entry.by, entry.reason) != ("", "")
    assert entry.at
    again = await _typed(here, "acknowledge", name, "--reason", "other", "-y")
    assert again.stdout == f"leftover {name} is acknowledged already by {entry.by}: known\n"


async def test_a_wrong_name_is_answered_with_the_right_ones(here: Ledger) -> None:
    name = await _recorded(here)
    done = await _typed(here, "show", "nothing")
    assert done.stderr == f"error: no Leftover nothing in namespace {here.namespace}; there are: {name}\n"
    empty = await _typed(here, "acknowledge", name, "--reason", " ", "-y")
    assert "--reason is empty" in empty.stderr


async def test_an_empty_ledger_says_so(here: Ledger) -> None:
    done = await _typed(here, "list")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"Nothing is left in namespace {here.namespace}.\n"


async def test_a_hostile_text_moves_no_cursor(here: Ledger) -> None:
    name = await _recorded(here)
    spec: Object = {"spec": {"message": HOSTILE, "cluster": {"name": HOSTILE, "namespace": HOSTILE}}}
    await here.client.patch(LEFTOVERS, name, spec, here.namespace)
    for words in (("list", "-o", "wide"), ("show", name)):
        printed = (await _typed(here, *words)).stdout
        assert all(line.isprintable() for line in printed.splitlines())
