"""Runs of the canary: good ones, ill ones, and what is never touched."""

from __future__ import annotations

import re

import msgspec
from prometheus_client import generate_latest
from tests.domains.canary.yard import NAMESPACES, TEMPLATE, Yard, set_ready

from hortus.domains.canary import book as books
from hortus.domains.canary import service
from hortus.domains.canary.book import CONFIG_MAPS, NAME
from hortus.domains.canary.traces import SHOOTS
from hortus.domains.clusters.types import RUNTIMES
from hortus.kube import Client
from hortus.kube.access import Access, Credentials, Secret


async def test_a_run_grows_uses_and_deletes_a_cluster_and_leaves_nothing(here: Yard) -> None:
    async with here.running():
        book = await here.until_over()
        [record] = book.history
        assert (record.result, record.message, set(record.seconds)) == ("succeeded", "", set(service.PHASES))
        assert here.grown == [record.name]
        assert await here.clean()
        exported = generate_latest(here.metrics).decode()
    assert 'hortus_canary_runs_total{result="succeeded"} 1.0' in exported
    [value] = re.findall(r"^hortus_canary_last_success_timestamp_seconds (.+)$", exported, re.MULTILINE)
    assert float(value) == book.last_success
    assert 'hortus_canary_phase_duration_seconds{phase="Grow"}' in exported


async def test_the_next_run_begins_after_the_period_and_not_before(here: Yard) -> None:
    async with here.running():
        first = await here.until_over()
        await here.advance(first.history[0].started + 3590.0 - here.clock.now())
        assert len(here.grown) == 1
        await here.advance(20.0)
        second = await here.until_over(2)
    assert second.history[0].started - first.history[0].started >= 3600.0
    assert here.most == 1


async def test_a_run_can_be_asked_for(here: Yard) -> None:
    async with here.running():
        await here.until_over()
        asked = {"metadata": {"annotations": {books.ASKED: "please"}}}
        await here.client.patch(CONFIG_MAPS, NAME, asked, here.namespace)
        book = await here.until_over(2)
    assert book.answered == "please"


async def test_a_runtime_that_fails_is_reported_with_its_message_and_deleted(here: Yard) -> None:
    here.outcome = "Failed"
    async with here.running():
        book = await here.until_over()
        assert await here.clean()
    [record] = book.history
    assert (record.failed, record.message) == (service.GROW, "Provisioned: quota exceeded")
    assert (book.leftovers, book.consecutive_failures) == ((), 1)


async def test_a_runtime_that_does_not_become_ready_is_given_up_at_the_deadline(here: Yard) -> None:
    here.outcome = "Pending"
    here.choose(grow_timeout=600.0)
    async with here.running():
        await here.until(lambda book: len(here.grown) == 1)
        await here.advance(599.0)
        await here.advance(30.0)
        book = await here.until_over()
        assert await here.clean()
    assert book.history[0].failed == service.GROW
    assert "not done in time" in book.history[0].message


async def test_a_template_that_the_api_server_refuses_is_reported(here: Yard) -> None:
    shoot = {**TEMPLATE.spec["shoot"], "provider": {"type": "nowhere", "workers": []}}
    here.choose(template=msgspec.structs.replace(TEMPLATE, spec={**TEMPLATE.spec, "shoot": shoot}))
    async with here.running():
        book = await here.until_over()
    assert book.history[0].failed == service.GROW
    assert "spec.shoot.provider.type" in book.history[0].message
    assert here.grown == []


async def test_a_kubeconfig_that_does_not_work_fails_the_run(here: Yard) -> None:
    here.choose(use_timeout=30.0)
    known = here.inside.access
    wrong = Access(server=known.server, ca=known.ca, credentials=Credentials(token=Secret("wrong")))
    async with Client(wrong) as shut, here.running():
        here.way_in = shut
        book = await here.until_over()
        assert await here.clean()
    assert book.history[0].failed == service.USE
    assert "Unauthorized" in book.history[0].message


async def test_nodes_that_are_not_ready_fail_the_run(here: Yard) -> None:
    here.choose(use_timeout=30.0)
    await set_ready(here.inside, ready=False)
    async with here.running():
        book = await here.until_over()
    assert book.history[0].message == "not done in time: 0 of 1 nodes are Ready node-1"


async def test_a_stuck_deletion_is_reported_and_no_further_cluster_is_grown_until_it_is_gone(here: Yard) -> None:
    here.holds = True
    here.choose(delete_timeout=600.0)
    async with here.running():
        await here.until_phase(service.DELETE)
        await here.advance(700.0)
        book = await here.until_over()
        stuck = book.history[0].name
        assert (book.history[0].failed, book.unclean) == (service.DELETE, (stuck,))
        assert book.leftovers == (f"runtime/{stuck}", f"shoot/{stuck}")
        await here.advance(3600.0)
        book = await here.until_over(2)
        assert (book.history[0].failed, here.grown) == (service.SWEEP, [stuck])
        assert f"earlier runs left runtime/{stuck}" in book.history[0].message
        here.holds = False
        await here.release(stuck)
        await here.advance(3600.0)
        book = await here.until_over(3)
        assert await here.clean()
    assert (book.history[0].result, book.leftovers, book.unclean) == ("succeeded", (), ())


async def test_a_shoot_that_stays_is_reported_and_not_deleted(here: Yard) -> None:
    here.leaves_shoot = True
    here.choose(use_timeout=60.0, delete_timeout=60.0)
    async with here.running():
        book = await here.until_over()
        left = book.history[0].name
        assert (book.history[0].failed, book.leftovers) == (service.VERIFY, (f"shoot/{left}",))
        await here.advance(3600.0)
        book = await here.until_over(2)
        assert book.history[0].failed == service.SWEEP
        assert [shoot["metadata"]["name"] for shoot in (await here.garden.list(SHOOTS, here.garden_namespace)).items]
        here.leaves_shoot = False
        await here.remove_shoot(left)
        await here.advance(3600.0)
        book = await here.until_over(3)
    assert (book.history[0].result, book.leftovers) == ("succeeded", ())


async def test_what_a_forgotten_run_left_is_swept_up_and_what_is_not_ours_stays(here: Yard) -> None:
    forgotten = service.runtime(TEMPLATE, "cn-old", here.namespace)
    theirs = service.runtime(TEMPLATE, "theirs", here.namespace)
    del theirs["metadata"]["labels"][service.RUN]
    renamed = service.runtime(TEMPLATE, "renamed", here.namespace)
    renamed["metadata"]["labels"][service.RUN] = "cn-other"
    for runtime in (forgotten, theirs, renamed):
        await here.client.create(RUNTIMES, runtime)
    await here.inside.create(NAMESPACES, {"metadata": {"name": "theirs"}})
    async with here.running():
        book = await here.until_over()
        names = {found["metadata"]["name"] for found in (await here.client.list(RUNTIMES, here.namespace)).items}
    assert book.history[0].result == "succeeded"
    assert names == {"theirs", "renamed"}
    assert (await here.inside.get(NAMESPACES, "theirs"))["metadata"].get("deletionTimestamp") is None


async def test_a_runtime_of_somebody_else_with_the_runs_name_is_left_alone(here: Yard) -> None:
    name = service.name_of_run(here.clock.now())
    theirs = service.runtime(TEMPLATE, name, here.namespace)
    del theirs["metadata"]["labels"][service.RUN]
    await here.client.create(RUNTIMES, theirs)
    async with here.running():
        book = await here.until_over()
        assert (await here.client.get(RUNTIMES, name, here.namespace))["metadata"].get("deletionTimestamp") is None
    assert book.history[0].message == f"there is a Runtime {name} that no canary made"
    assert book.leftovers == ()


async def test_a_namespace_of_somebody_else_in_the_cluster_stays(here: Yard) -> None:
    await here.inside.create(NAMESPACES, {"metadata": {"name": NAME}})
    async with here.running():
        book = await here.until_over()
    assert book.history[0].failed == service.USE
    assert (await here.inside.get(NAMESPACES, NAME))["metadata"].get("deletionTimestamp") is None


async def test_the_canary_of_a_namespace_that_is_not_trusted_enters_what_its_deputy_may(here: Yard) -> None:
    """The book is a ConfigMap: whoever may write it chooses the Secret by the name of the run."""
    here.trusted = ""
    here.choose(use_timeout=120.0)
    async with here.running():
        await here.until(lambda book: book.run is not None and book.run.phase == service.USE)
        for _ in range(4):
            await here.advance(60.0)
        book = await here.until_over()
    [record] = book.history
    assert record.failed == service.USE
    assert f"may not get secrets/kubeconfig-{record.name} in namespace {here.namespace}" in record.message
