"""`hortus clusters` as people type it, against a real API server."""

from __future__ import annotations

import asyncio
import json
import subprocess

from tests.domains.inventory.test_rows import RUNTIME, SILENT, profile
from tests.domains.inventory.world import CRDS, FLEET, InventoryWorld
from tests.scenarios import running

from hortus.domains.inventory.types import CLUSTER_PROFILES
from hortus.engine.rollouts.types import PLACEMENT_DECISIONS, ROLLOUTS, Label, PlacementDecision, Rollout
from hortus.kube.objects import Object
from hortus.schema import crd
from hortus.testing import wait_gone

HOSTILE = "\x1b[2Jred\u202e"
NOBODY: Object = {"metadata": {"name": "theirs", "namespace": FLEET}, "spec": {"clusterManager": {"name": "ocm"}}}


async def typed(here: InventoryWorld, *words: str) -> subprocess.CompletedProcess[str]:
    path = str(here.server.kubeconfig_for(here.name))
    return await asyncio.to_thread(running.typed, "--kubeconfig", path, "clusters", *words)


async def given(here: InventoryWorld, *profiles: Object) -> None:
    for one in profiles:
        await here.create(CLUSTER_PROFILES, {name: one[name] for name in ("metadata", "spec")})
        if "status" in one:
            name, status = one["metadata"]["name"], {"status": one["status"]}
            await here.client.patch(CLUSTER_PROFILES, name, status, FLEET, subresource="status")


async def test_each_cluster_has_a_row_and_wide_explains_its_state(here: InventoryWorld) -> None:
    await given(here, profile("blue", source=RUNTIME), profile("silent", joined=SILENT, healthy=SILENT), NOBODY)
    head, *rows = (await typed(here)).stdout.splitlines()
    assert head.split() == ["NAME", "STATE", "VERSION", "REGION", "PROVIDER", "DISPLAY", "NAME"]
    assert [row.split()[:3] for row in rows] == [
        ["blue", "Ready", "1.34.1"],
        ["silent", "Unreachable", "1.34.1"],
        ["theirs", "Unknown", "<none>"],
    ]
    head, _, silent, _ = (await typed(here, "-o", "wide")).stdout.splitlines()
    assert (head.split()[-1], silent.split()[-1]) == ("MESSAGE", "Unreachable.")
    [found] = json.loads((await typed(here, "blue", "-o", "json")).stdout)
    assert (found["state"], found["why"], found["sources"]) == ("Ready", "", [RUNTIME])
    assert found["properties"] == {"uid.fleet.hortus.dev": "u-1"}
    named = await typed(here, "-l", "topology.kubernetes.io/region=eu-1", "-o", "name")
    assert named.stdout.splitlines() == [f"clusterprofile.multicluster.x-k8s.io/{name}" for name in ("blue", "silent")]


async def test_wide_names_the_rollouts_that_have_admitted_a_cluster(here: InventoryWorld) -> None:
    for kind in (Rollout, PlacementDecision):
        await here.client.create(CRDS, crd(kind))
    await given(here, profile("blue"), profile("green"))
    for name, phase in (("press-2", "Progressing"), ("press-1", "Succeeded")):
        rollout = {"spec": {"change": {"kind": "press", "subject": "press", "to": name[-1]}}}
        await here.create(ROLLOUTS, {"metadata": {"name": name, "namespace": FLEET}, **rollout})
        await here.client.patch(ROLLOUTS, name, {"status": {"phase": phase}}, FLEET, subresource="status")
        reference = {"name": "blue", "namespace": FLEET}
        await here.create(
            PLACEMENT_DECISIONS,
            {
                "metadata": {"name": name, "namespace": FLEET, "labels": {Label.DECISION_KEY: name}},
                "decisions": [{"clusterProfileRef": reference, "reason": "admitted in stage canary"}],
            },
        )
    _, blue, green = (await typed(here, "-o", "wide")).stdout.splitlines()
    assert "press 2 (canary)" in blue
    assert "press 1" not in blue, "it has ended"
    assert "press" not in green


async def test_what_cannot_be_shown_is_answered_with_the_way_on(here: InventoryWorld) -> None:
    empty = await typed(here)
    assert (empty.returncode, empty.stdout) == (0, "")
    assert "controllers with --inventory make them" in empty.stderr
    await given(here, profile("blue"))
    missing = await typed(here, "green")
    assert (missing.returncode, missing.stderr) == (1, "error: no cluster green in namespace fleet; there are: blue\n")
    none = await typed(here, "-l", "stage=x")
    assert none.stderr == "No clusters with labels stage=x in namespace fleet.\n"
    await here.client.delete(CRDS, "clusterprofiles.multicluster.x-k8s.io")
    await wait_gone(here.client, CRDS, "clusterprofiles.multicluster.x-k8s.io")
    unserved = await typed(here)
    assert "serves no ClusterProfiles" in unserved.stderr
    assert "install Hortus there, or their CRD" in unserved.stderr


async def test_a_hostile_text_moves_no_cursor(here: InventoryWorld) -> None:
    evil = profile("evil", joined=("False", "Unreachable"))
    evil["spec"]["displayName"] = HOSTILE
    evil["status"]["version"]["kubernetes"] = HOSTILE
    evil["status"]["conditions"][0]["message"] = HOSTILE
    await given(here, evil)
    for words in ((), ("-o", "wide")):
        printed = (await typed(here, *words)).stdout
        assert printed
        assert all(line.isprintable() for line in printed.splitlines())
