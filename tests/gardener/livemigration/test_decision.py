"""The decisions of a migration over random histories, judged by an observer of the simulated etcd."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gardener.livemigration.histories import FAULT, History

from hortus.gardener.livemigration import MigrationPhase, MigrationView, Site, next_step, steps


def members(history: History) -> set[tuple[str, tuple[str, ...], bool]]:
    return {(one.name, one.peer_urls, one.is_learner) for one in history.plane.etcd.members.values()}


@pytest.mark.parametrize("size", [1, 3, 5])
async def test_a_control_plane_moves_by_as_many_members_as_it_has(size: int) -> None:
    history = History(size)
    await history.begin()
    await history.end()
    assert {one[0] for one in members(history)} == {f"new-etcd-main-{number}" for number in range(size)}
    assert not any(one[2] for one in members(history))


@pytest.mark.parametrize("size", [1, 3, 5])
@settings(max_examples=60, deadline=None)
@given(faults=st.lists(st.lists(FAULT, max_size=3), max_size=40))
def test_no_history_of_faults_breaks_an_invariant_or_keeps_the_walk_from_its_end(
    size: int, faults: list[list[tuple[str, int]]]
) -> None:
    async def check() -> None:
        history = History(size)
        await history.begin()
        for between in faults:
            for fault, number in between:
                await history.strike(fault, number)
            await history.turn()
        await history.end()
        assert {one[0] for one in members(history)} == {f"new-etcd-main-{number}" for number in range(size)}

    asyncio.run(check())


@settings(max_examples=150, deadline=None)
@given(
    size=st.sampled_from([1, 3]),
    at=st.integers(0, 60),
    faults=st.lists(st.lists(FAULT, max_size=2), max_size=30),
)
def test_an_abort_before_the_first_removal_restores_the_member_list_and_later_is_ignored(
    size: int, at: int, faults: list[list[tuple[str, int]]]
) -> None:
    async def check() -> None:
        history = History(size)
        await history.begin()
        before = members(history)
        for _ in range(at):
            await history.turn()
            await history.clock.advance(1.0)
        is_past = len([one for one in history.plane.etcd.members if one.startswith("a")]) < size
        history.aborting = True
        for between in faults:
            for fault, number in between:
                await history.strike(fault, number)
            await history.turn()
        await history.end()
        if is_past:
            assert {one[0] for one in members(history)} == {f"new-etcd-main-{number}" for number in range(size)}
        else:
            assert members(history) == before
            assert history.plane.backends == "source"

    asyncio.run(check())


async def test_a_learner_without_a_name_is_started_and_not_added_again() -> None:
    history = History()
    await history.begin()
    while not any(one.is_learner for one in history.plane.etcd.members.values()):
        await history.turn()
        await history.clock.advance(1.0)
    seen = await history.plane.observe()
    assert [one.name for one in seen.learners] == [""]
    decision = next_step(MigrationView(history.record, seen))
    assert decision.phase == MigrationPhase.PEERS_JOINED
    assert isinstance(decision.step, steps.StartMember)
    assert dict(decision.step.initial_cluster).keys() == {
        "old-etcd-main-0",
        "old-etcd-main-1",
        "old-etcd-main-2",
        "new-etcd-main-0",
    }


async def test_a_leader_that_flaps_back_is_moved_again_before_each_removal() -> None:
    history = History()
    await history.begin()
    moved = 0
    for _ in range(400):
        found = await history.turn()
        if found is not None and isinstance(found.step, steps.Moved):
            break
        if found is not None and isinstance(found.step, steps.TransferLeadership):
            moved += 1
        left = sorted(one for one in history.plane.etcd.members if one.startswith("a"))
        if found is not None and left and isinstance(found.step, steps.Swing | steps.Remove):
            history.plane.etcd.leader_id = left[0]
        await history.clock.advance(1.0)
    assert moved == 3


async def test_an_alarm_stops_the_walk_until_it_is_disarmed() -> None:
    history = History()
    await history.begin()
    first = next(iter(history.plane.etcd.members.values()))
    first.alarms = ("NOSPACE",)
    found = await history.turn()
    assert found is not None
    assert found.step == steps.Halt(
        reason="EtcdAlarm",
        message="etcd has raised alarms: old-etcd-main-0: NOSPACE. Free space and disarm them",
    )
    first.alarms = ()
    await history.end()


async def test_members_that_neither_site_knows_stop_the_walk() -> None:
    history = History()
    await history.begin()
    history.plane.etcd.add("https://unplanned:2380", "source", history.clock.monotonic())
    found = await history.turn()
    assert found is not None
    assert isinstance(found.step, steps.Halt)
    assert found.step.reason == "StrangeMember"
    assert "https://unplanned:2380" in found.step.message


async def test_nothing_is_removed_while_the_destination_is_not_whole_unless_forced() -> None:
    history = History()
    await history.begin()
    decision = None
    while decision is None or not isinstance(decision.step, steps.Remove):
        await history.turn()
        await history.clock.advance(1.0)
        seen = await history.plane.observe()
        decision = next_step(MigrationView(history.record, seen))
    frozen = next(one for one in seen.voters if one.name.startswith("new") and not one.is_leader)
    members = tuple(msgspec.structs.replace(one, is_healthy=one.id != frozen.id) for one in seen.members)
    seen = msgspec.structs.replace(seen, members=members)
    assert next_step(MigrationView(history.record, seen)).step == steps.Wait(
        reason="MembersUnhealthy", message=f"etcd members do not answer: {frozen.name}"
    )
    assert next_step(MigrationView(history.record, seen, is_forced=True)).step == decision.step


async def test_keys_are_copied_before_the_first_member_joins_and_removed_from_the_site_that_is_left() -> None:
    history = History()
    await history.begin()
    here, there = (history.plane.sites[site].keys for site in Site)
    kept = dict(here)
    while not history.plane.etcd.members.keys() - {one.id for one in history.record.members}:
        await history.turn()
    assert history.plane.sites[Site.DESTINATION].keys == kept != there
    await history.end()
    assert [history.plane.sites[site].keys for site in Site] == [{}, kept]


@pytest.mark.parametrize("site", Site)
@pytest.mark.parametrize("turns", [4, 12, 20])
async def test_a_changed_key_stops_the_walk_until_it_is_restored_and_an_abort_is_free(site: Site, turns: int) -> None:
    history = History()
    await history.begin()
    before = members(history)
    for _ in range(turns):
        await history.turn()
        await history.clock.advance(1.0)
    keys = history.plane.sites[site].keys
    kept, keys["service-account-key"] = dict(keys), "another"
    there = members(history)
    found = await history.turn()
    assert found is not None
    assert found.step == steps.Halt(
        reason="KeysChanged",
        message=f"keys at the {site} are not those of the start: service-account-key. Restore them, or abort",
    )
    assert members(history) == there
    if site == Site.SOURCE:
        keys.update(kept)
        await history.end()
        assert {one[0] for one in members(history)} == {f"new-etcd-main-{number}" for number in range(3)}
        return
    history.aborting = True
    await history.end()
    assert members(history) == before
    assert history.plane.sites[Site.DESTINATION].keys == {}
    assert history.plane.sites[Site.SOURCE].keys == history.record.keys


async def test_a_key_that_is_missing_at_the_destination_is_copied_again_before_its_servers_start() -> None:
    history = History()
    await history.begin()
    copies = 0
    for _ in range(400):
        found = await history.turn()
        if found is not None and isinstance(found.step, steps.CopyKeys):
            copies += 1
        if found is not None and isinstance(found.step, steps.MoveExtensions):
            history.plane.sites[Site.DESTINATION].keys.clear()
        if found is not None and isinstance(found.step, steps.Moved):
            break
        await history.clock.advance(1.0)
    assert copies == 2
    assert history.plane.sites[Site.DESTINATION].keys == history.record.keys
