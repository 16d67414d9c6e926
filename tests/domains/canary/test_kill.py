"""Killed after any write, with two at work, with its book gone: one cluster at most, and none in the end."""

from __future__ import annotations

import asyncio

from tests.domains.canary.yard import Yard
from tests.domains.killing import Killer

from hortus.domains.canary import service
from hortus.domains.canary.book import CONFIG_MAPS, NAME, Book

MOST_LIVES = 60


def over(book: Book) -> bool:
    return book.run is None and bool(book.history)


async def test_killed_at_any_await_a_run_goes_on_and_leaves_nothing(here: Yard) -> None:
    killer = Killer("canary-controller", here.requests)
    for life in range(MOST_LIVES):
        # Each gets a call further than the one before, so that steps of several calls come to their end, too.
        killer.aim(life % 10)
        async with here.running():
            reached = asyncio.create_task(here.until(over))
            struck = asyncio.create_task(killer.struck.wait())
            await asyncio.wait((reached, struck), return_when=asyncio.FIRST_COMPLETED)
            struck.cancel()
            if reached.done():
                break
            reached.cancel()
        await asyncio.gather(reached, struck, return_exceptions=True)
    book = await here.until(over)
    assert life > 4
    assert [record.result for record in book.history] == ["succeeded"]
    assert here.grown == [book.history[0].name]
    assert await here.clean()


async def test_two_replicas_that_both_believe_it_is_their_turn_have_one_run(here: Yard) -> None:
    async with here.running(), here.running():
        book = await here.until_over()
        await here.advance(3700.0)
        book = await here.until_over(2)
        assert await here.clean()
    assert here.most == 1
    assert here.grown == [record.name for record in reversed(book.history)]
    assert {record.result for record in book.history} == {"succeeded"}


async def test_another_replica_goes_on_where_one_ended(here: Yard) -> None:
    here.outcome = "Pending"
    async with here.running():
        begun = await here.until_phase(service.GROW)
        await here.until(lambda book: len(here.grown) == 1)
    here.outcome = "Ready"
    await here.client.patch(
        service.RUNTIMES, here.grown[0], {"status": {"state": "Ready"}}, here.namespace, subresource="status"
    )
    async with here.running():
        book = await here.until_over()
    assert begun.run is not None
    assert [record.name for record in book.history] == [begun.run.name] == here.grown
    assert book.history[0].result == "succeeded"


async def test_without_its_book_a_cluster_is_found_by_its_label(here: Yard) -> None:
    here.outcome = "Pending"
    async with here.running():
        await here.until_phase(service.GROW)
        await here.until(lambda book: len(here.grown) == 1)
    here.outcome = "Ready"
    await here.client.delete(CONFIG_MAPS, NAME, here.namespace)
    here.clock.skip(60.0)
    async with here.running():
        book = await here.until(over)
        assert await here.clean()
    assert [record.result for record in book.history] == ["succeeded"]
    assert len(here.grown) == 2
    assert here.most == 1
