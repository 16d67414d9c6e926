"""A Kyma of the Go system is continued in the middle of its work, and given back: no object is made again.

The Go system stops after each of its writes in turn. What it left is then brought to its end by Hortus: every object
that was there keeps its uid, and no cluster is given anything that a deletion has removed.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from tests.domains.attempts import MOST_ATTEMPTS, is_killed
from tests.domains.killing import sampled
from tests.domains.modules.kyma.go_system import GO, MANIFEST, Call, GoSystem, applied_by, objects, uids
from tests.domains.modules.kyma.test_modules import ready_with
from tests.domains.modules.kyma.world import (
    HOME,
    INSIDE,
    NAME,
    KymaWorld,
    conditions,
    is_ready,
    kyma_world,
    modules,
)

from hortus.domains.modules.types import KYMAS
from hortus.testing.apiserver import TestServer

INSTALLATION, MOVE, DELETION = 17, 7, 7
"""Writes of the Go system in each work."""


async def world(here: KymaWorld) -> GoSystem:
    """All that the Go system needs before its first write."""
    await here.cluster()
    await here.module("istio", {"regular": "1.2.0", "fast": "1.3.0"})
    await here.kyma(modules=[{"name": "istio", "managed": True, "customResourcePolicy": "CreateAndDelete"}])
    return GoSystem(here)


async def run(calls: Sequence[Call]) -> None:
    for call in calls:
        await call()


async def kept(here: KymaWorld, before: dict[tuple[str, str, str], str]) -> None:
    """Fails where an object is another one, or gone."""
    after = uids(await objects(here))
    assert {key: after.get(key) for key in before} == before


async def test_a_kyma_at_rest_is_taken_over_without_a_write(here: KymaWorld) -> None:
    """Conditions, operation, modules, copies, metadata and status in the cluster: all as the Go system left them."""
    go = await world(here)
    await run(go.installation())
    before = await objects(here)
    async with here.controllers():
        await here.requests_of_a_reconcile(until=0)
    assert here.requests.writes == []
    assert await objects(here) == before


@pytest.mark.parametrize("writes", range(INSTALLATION + 1))
async def test_an_installation_is_continued_after_any_write(here: KymaWorld, writes: int) -> None:
    go = await world(here)
    assert len(go.installation()) == INSTALLATION
    await run(go.installation()[:writes])
    before = uids(await objects(here))
    async with here.controllers():
        kyma = await ready_with(here)
        await here.until(is_ready, KYMAS, "default", INSIDE, cluster="skr")
    await kept(here, before)
    assert kyma["metadata"]["finalizers"] == [f"{GO}/Kyma"]
    assert modules(kyma)["istio"]["manifest"]["metadata"]["name"] == MANIFEST
    assert set(conditions(kyma).values()) == {"True"}


@pytest.mark.parametrize("writes", range(MOVE + 1))
async def test_a_channel_move_is_continued_after_any_write(here: KymaWorld, writes: int) -> None:
    go = await world(here)
    await run(go.installation())
    await here.user_edits({"channel": "fast"})
    before = uids(await objects(here))
    assert len(go.channel_move()) == MOVE
    await run(go.channel_move()[:writes])
    async with here.controllers():
        await here.manifest("istio", lambda found: found["spec"]["version"] == "1.3.0")
        await here.set_manifest_state(MANIFEST, "Ready")
        kyma = await here.until(lambda found: is_ready(found) and modules(found)["istio"]["version"] == "1.3.0")
        await here.until(
            lambda found: is_ready(found) and modules(found)["istio"]["channel"] == "fast",
            KYMAS,
            "default",
            INSIDE,
            cluster="skr",
        )
    await kept(here, before)
    assert kyma["status"]["activeChannel"] == "fast"


@pytest.mark.parametrize("writes", range(DELETION + 1))
async def test_a_deletion_is_continued_after_any_step(here: KymaWorld, writes: int) -> None:
    """The cluster gets nothing back: no answer of it says Created."""
    go = await world(here)
    await run(go.installation())
    await here.delete_kyma()
    assert len(go.deletion()) == DELETION
    await run(go.deletion()[:writes])
    async with here.controllers():
        await here.until_gone()
    assert [one for one in here.requests.answers if one[1:] == ("remote", "201")] == []
    left = await objects(here)
    assert [key for key in left if key[1] == "Manifest"] == []
    assert [key for key in left if key[0] == "cluster" and GO in key[2]] == []


async def test_the_go_system_finds_its_own_objects_after_us(here: KymaWorld) -> None:
    """A further write of the Go system changes no spec, label, annotation or finalizer; it knows the managers."""
    go = await world(here)
    async with here.controllers():
        await ready_with(here)
        await here.until(is_ready, KYMAS, "default", INSIDE, cluster="skr")
        await here.requests_of_a_reconcile(until=0)
    before = await objects(here)
    await run(go.installation())
    after = await objects(here)
    assert uids(after) == uids(before)
    for key, obj in before.items():
        metadata = after[key]["metadata"]
        assert metadata.get("generation") == obj["metadata"].get("generation"), key
        for field in ("labels", "annotations", "finalizers", "ownerReferences"):
            assert metadata.get(field) == obj["metadata"].get(field), key
        assert modules(after[key]) == modules(obj), key
        assert conditions(after[key]) == conditions(obj), key
    ours, theirs = applied_by(before), applied_by(after)
    assert all(found <= theirs[key] for key, found in ours.items())
    copies = {key for key in ours if key[0] == "cluster" and key[1] != "Kyma"}
    assert {key: ours[key] for key in copies} == {key: theirs[key] for key in copies}


@sampled
async def test_the_go_system_continues_an_installation_after_any_request(server: TestServer, reads: int) -> None:
    """It is killed at each of its answers; the Go system ends it, and every object keeps its uid."""
    for answers in itertools.count():
        async with kyma_world(server) as here:
            go = await world(here)
            killed, seen = await is_killed("kyma", here, answers, lambda here: here.until(_is_listed), reads=reads)
            before = uids(await objects(here))
            await run(go.installation())
            await kept(here, before)
            assert is_ready(await here.client.get(KYMAS, NAME, HOME))
        if not killed:
            break
        assert answers < MOST_ATTEMPTS
    assert seen >= 12, "too few answers: the killer missed the controller"


@sampled
async def test_the_go_system_continues_a_deletion_after_any_request(server: TestServer, reads: int) -> None:
    """The Kyma is released when nothing is left; until then the Go system has all that it needs to end it."""
    for answers in itertools.count():
        async with kyma_world(server) as here:
            go = await world(here)
            await run(go.installation())
            await here.delete_kyma()
            killed, seen = await is_killed("kyma", here, answers, lambda here: here.until_gone(), reads=reads)
            if ("control plane", "Kyma", f"{HOME}/{NAME}") in await objects(here):
                await run([*go.deletion(), go.release])
            left = await objects(here)
            assert [key for key in left if key[1] in ("Kyma", "Manifest")] == []
            assert [key for key in left if key[0] == "cluster" and GO in key[2]] == []
        if not killed:
            break
        assert answers < MOST_ATTEMPTS
    assert seen >= 12, "too few answers: the killer missed the controller"


def _is_listed(kyma: dict[str, object]) -> bool:
    return "istio" in modules(kyma)
