"""The faults of a migration, on real processes under load: each row of the table in docs/garden/migration.md."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.apiserver.store.etcdserver import find_etcd
from tests.domains.garden.migration.faults import FaultyWalk, faulty_walk, random_walk

from hortus.gardener.livemigration import Backends, MigrationView, next_step, steps

pytestmark = [
    pytest.mark.skipif(find_etcd() is None, reason="there is no etcd here"),
    pytest.mark.soak,
]
PHASES = (
    steps.UpdatePeerUrls,
    steps.AddLearner,
    steps.StartMember,
    steps.Promote,
    steps.MoveExtensions,
    steps.StartServers,
    steps.MoveControllers,
    steps.RouteTo,
    steps.DrainServers,
    steps.StopServers,
    steps.TransferLeadership,
    steps.Swing,
)
"""A step of each phase before the first removal."""


async def _members(walk: FaultyWalk) -> set[tuple[str, str, tuple[str, ...], bool]]:
    state = await walk.plane.etcd.state()
    return {(one.id, one.name, tuple(sorted(one.peer_urls)), one.is_learner) for one in state.members}


@pytest.mark.parametrize("at", [*PHASES, steps.Remove])
async def test_a_member_of_the_source_that_is_killed_at_any_step_delays_and_loses_nothing(
    tmp_path: Path, at: type
) -> None:
    async with faulty_walk(tmp_path) as walk:
        await walk.reach(at)
        left = [one for one in walk.plane.source.members if one.is_running]
        walk.begin(walk.kill(left[-1]))
        await walk.end()
    assert walk.clients.load.failed == []


@pytest.mark.parametrize("at", PHASES)
async def test_an_abort_at_any_step_before_the_first_removal_restores_the_members(tmp_path: Path, at: type) -> None:
    async with faulty_walk(tmp_path) as walk:
        before = await _members(walk)
        await walk.reach(at)
        await walk.end(aborting=True)
        assert await _members(walk) == before
        assert walk.plane.backends == Backends.SOURCE
        assert not any(one.folder.exists() for one in walk.plane.destination.members)
        assert not walk.plane.destination.keys.exists()
        assert walk.plane.controllers.are_at("source")
        assert not walk.plane.controllers.are_at("destination")
    assert walk.clients.load.failed == []


async def test_a_frozen_destination_at_three_and_two_is_waited_for(tmp_path: Path) -> None:
    async with faulty_walk(tmp_path) as walk:
        await walk.reach(steps.MoveExtensions)
        walk.begin(walk.freeze(*walk.plane.destination.members))
        await walk.end()
    assert walk.clients.load.failed == []


async def test_a_link_that_is_cut_at_three_and_three_heals_by_itself(tmp_path: Path) -> None:
    async with faulty_walk(tmp_path) as walk:
        await walk.reach(steps.Swing)
        seen = await walk.plane.observe()
        swing = next_step(MigrationView(walk.record, seen)).step
        assert isinstance(swing, steps.Swing)
        await walk.plane.act(steps.Promote(id=swing.id, name=swing.name))
        walk.begin(walk.cut)
        await asyncio.sleep(0)
        assert not walk.plane.links.whole
        await walk.end()


async def test_a_coordinator_that_is_killed_between_add_and_start_adds_no_second_member(tmp_path: Path) -> None:
    async with faulty_walk(tmp_path) as walk:
        await walk.reach(steps.StartMember)
        await walk.reach(steps.StartMember)
        assert len(await _members(walk)) == 4
        await walk.end()
    assert walk.clients.load.failed == []


async def test_a_learner_that_never_catches_up_can_be_aborted_without_its_site(tmp_path: Path) -> None:
    async with faulty_walk(tmp_path) as walk:
        before = await _members(walk)
        await walk.reach(steps.StartMember)
        walk.plane.links.cut()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(3):
                await walk.plane.walk(walk.record)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(8):
                await walk.plane.walk(walk.record, aborting=True)
        assert await _members(walk) == before, "the members are restored before the destination answers"
        walk.plane.links.heal()
        await walk.end(aborting=True)
    assert walk.clients.load.failed == []


async def test_an_alarm_stops_the_walk_until_it_is_disarmed(tmp_path: Path) -> None:
    async with faulty_walk(tmp_path) as walk:
        await walk.reach(steps.AddLearner)
        state = await walk.plane.observe()
        await walk.alarm("ACTIVATE")
        halted = next_step(MigrationView(walk.record, await walk.plane.observe())).step
        await walk.alarm("DEACTIVATE")
        assert isinstance(halted, steps.Halt)
        assert "CORRUPT" in halted.message
        assert len(state.members) == 3
        await walk.end()


async def test_a_leadership_that_flaps_back_is_moved_again(tmp_path: Path) -> None:
    async with faulty_walk(tmp_path) as walk:
        await walk.reach(steps.Swing)
        await walk.flap()
        assert (await walk.leader()).site == "source"
        await walk.reach(steps.Remove)
        await walk.flap()
        await walk.end()
    assert walk.clients.load.failed == []


@pytest.mark.parametrize("seed", range(30))
async def test_random_faults_neither_lose_a_write_nor_keep_a_walk_from_its_end(tmp_path: Path, seed: int) -> None:
    faults = await random_walk(tmp_path, seed)
    print(faults)
    assert {"kill", "freeze", "cut"} & set(faults), "no fault was injected"
