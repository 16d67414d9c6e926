"""The coordinator's reports, its ends, and kills of its process, over simulated control planes."""

from __future__ import annotations

import json

from tests.domains.attempts import Attempts, one_of
from tests.domains.garden.migration.conftest import Worlds
from tests.domains.garden.migration.garden import NEW, OLD, STEP, GardenWorld, conditions, is_over, operation

from hortus.domains.garden.migration.context import PHASES
from hortus.domains.garden.migration.coordinator import COORDINATOR
from hortus.gardener.livemigration import ABORT, RECORD, WITHOUT_HA, Site
from hortus.kube.objects import Object
from hortus.simulation.garden.livemigration.controlplane import KEYS


async def test_a_shoot_moves_and_reports_each_phase_with_its_members(worlds: Worlds) -> None:
    async with worlds() as world:
        await world.create()
        phases: list[str] = []
        pictures: list[list[str]] = []

        def note(shoot: Object) -> bool:
            found = conditions(shoot)
            if found:
                phases.append(next((one for one in PHASES if found[one][0] != "True"), "end"))
                pictures.append(shoot["status"]["liveMigration"]["members"])
            return is_over(shoot)

        async with world.controllers():
            await world.ask()
            shoot = await world.until(note)
    assert list(dict.fromkeys(phases)) == [*PHASES[:-1], "end"]
    assert conditions(shoot) == dict.fromkeys(map(str, PHASES), ("True", "Succeeded"))
    assert operation(shoot) == ("LiveMigrate", "Succeeded")
    assert (shoot["spec"]["seedName"], shoot["status"]["seedName"]) == (NEW, NEW)
    sizes = [len(one) for one in pictures]
    assert (sizes[0], max(sizes), sizes[-1]) == (3, 6, 3)
    assert all(sum("*" in member for member in one) == 1 for one in pictures)
    assert pictures[-1][0].startswith(NEW)


async def test_a_last_operation_whose_time_is_null_holds_up_no_migration(worlds: Worlds) -> None:
    async with worlds() as world:
        await world.create()
        assert (await world.get())["status"]["lastOperation"]["lastUpdateTime"] is None
        async with world.controllers():
            await world.ask()
            shoot = await world.until(is_over)
    assert operation(shoot) == ("LiveMigrate", "Succeeded")


async def test_an_abort_takes_back_the_seed_and_the_members(worlds: Worlds) -> None:
    async with worlds() as world:
        await world.create()
        async with world.controllers():
            await world.ask()
            await world.until(lambda shoot: conditions(shoot).get("DestinationEtcdPeersJoined", ("", ""))[0] == "True")
            plane = await world.plane()
            await world.annotate(**{ABORT: "true"})
            shoot = await world.until(is_over)
    assert operation(shoot) == ("LiveMigrate", "Aborted")
    assert (shoot["spec"]["seedName"], shoot["status"]["seedName"]) == (OLD, OLD)
    assert sorted(one.name for one in plane.etcd.members.values()) == [f"{OLD}-etcd-main-{n}" for n in range(3)]
    assert conditions(shoot) == dict.fromkeys(map(str, PHASES), ("False", "Aborted"))


async def test_an_abort_after_the_first_removal_is_too_late(worlds: Worlds) -> None:
    async with worlds() as world:
        await world.create()
        async with world.controllers():
            await world.ask()
            await world.until(lambda shoot: conditions(shoot).get("EtcdMigrationComplete", ("", ""))[0] == "True")
            await world.annotate(**{ABORT: "true"})
            shoot = await world.until(is_over)
    assert operation(shoot) == ("LiveMigrate", "Succeeded")
    assert shoot["status"]["seedName"] == NEW


async def test_one_member_moves_only_where_that_is_allowed(worlds: Worlds) -> None:
    async with worlds() as world:
        await world.create(is_ha=False)
        async with world.controllers():
            await world.ask()
            shoot = await world.until(lambda shoot: operation(shoot) == ("LiveMigrate", "Error"))
            assert conditions(shoot)["SourceEtcdPreparedForPeerJoin"] == ("False", "NoHighAvailability")
            assert RECORD not in shoot["metadata"]["annotations"]
            await world.annotate(**{WITHOUT_HA: "true"})
            shoot = await world.until(lambda shoot: operation(shoot) == ("LiveMigrate", "Succeeded"))
    assert shoot["status"]["seedName"] == NEW


async def test_other_keys_at_the_destination_are_refused_before_anything_moves(worlds: Worlds) -> None:
    async with worlds() as world:
        await world.create()
        shoot = await world.ask()
        plane = world.planes.of(shoot)
        assert plane is not None
        keys = plane.sites[Site.DESTINATION].keys
        keys["service-account-key"] = "another"
        async with world.controllers():
            shoot = await world.until(lambda shoot: operation(shoot) == ("LiveMigrate", "Error"))
            assert conditions(shoot)["SourceEtcdPreparedForPeerJoin"] == ("False", "KeysDiffer")
            assert RECORD not in shoot["metadata"]["annotations"]
            assert len(plane.etcd.members) == 3
            keys.clear()
            shoot = await world.until(is_over)
    assert shoot["status"]["seedName"] == NEW
    assert plane.sites[Site.DESTINATION].keys.keys() == set(KEYS)


async def test_a_key_that_changes_on_the_way_is_reported_and_only_a_fingerprint_of_it(worlds: Worlds) -> None:
    async with worlds() as world:
        await world.create()
        async with world.controllers():
            await world.ask()
            shoot = await world.until(lambda shoot: RECORD in shoot["metadata"].get("annotations", {}))
            plane = await world.plane()
            keys = plane.sites[Site.SOURCE].keys
            assert json.loads(shoot["metadata"]["annotations"][RECORD])["keys"] == keys
            before, keys["ca"] = keys["ca"], "another"
            shoot = await world.until(lambda shoot: operation(shoot) == ("LiveMigrate", "Error"))
            assert (
                "keys at the source are not those of the start: ca." in shoot["status"]["lastOperation"]["description"]
            )
            keys["ca"] = before
            await world.until(is_over)


async def test_an_alarm_is_reported_and_the_walk_goes_on_once_it_is_disarmed(worlds: Worlds) -> None:
    async with worlds() as world:
        await world.create()
        async with world.controllers():
            await world.ask()
            await world.until(lambda shoot: RECORD in shoot["metadata"].get("annotations", {}))
            plane = await world.plane()
            next(iter(plane.etcd.members.values())).alarms = ("NOSPACE",)
            shoot = await world.until(lambda shoot: operation(shoot) == ("LiveMigrate", "Error"))
            assert "NOSPACE" in shoot["status"]["lastOperation"]["description"]
            for one in plane.etcd.members.values():
                one.alarms = ()
            await world.until(is_over)


async def test_a_learner_that_does_not_catch_up_is_given_ten_minutes(worlds: Worlds) -> None:
    async with worlds() as world:
        await world.create()
        async with world.controllers():
            await world.ask()
            await world.until(lambda shoot: RECORD in shoot["metadata"].get("annotations", {}))
            plane = await world.plane()
            plane.etcd.pace = 10_000.0
            began = world.clock.now()
            world.step = 20 * STEP
            shoot = await world.until(is_over)
    assert operation(shoot) == ("LiveMigrate", "Aborted")
    assert world.clock.now() - began > 598
    assert shoot["spec"]["seedName"] == OLD


async def _state(world: GardenWorld) -> Object:
    shoot = await world.get()
    return {
        "seeds": (shoot["spec"]["seedName"], shoot["status"]["seedName"]),
        "operation": operation(shoot),
        "conditions": conditions(shoot),
        "annotations": shoot["metadata"].get("annotations"),
    }


PARTS = 16
ATTEMPTS = Attempts(COORDINATOR, _state, parts=PARTS)


async def _moved(world: GardenWorld) -> None:
    await world.until(is_over)


async def _asked(world: GardenWorld) -> None:
    await world.create()
    await world.ask()


async def _asked_to_abort(world: GardenWorld) -> None:
    """A migration whose destination has two members, and that is to go back."""
    await _asked(world)
    async with world.controllers():
        await world.until(lambda shoot: conditions(shoot).get("DestinationEtcdPeersJoined", ("", ""))[0] == "True")
    await world.annotate(**{ABORT: "true"})


@one_of(PARTS)
async def test_a_kill_at_any_answer_of_a_migration_leaves_no_trace(worlds: Worlds, part: int) -> None:
    await ATTEMPTS.assert_no_kill_shows(worlds, part, _asked, _moved, least=10)


@one_of(PARTS)
async def test_a_kill_at_any_answer_of_an_abort_leaves_no_trace(worlds: Worlds, part: int) -> None:
    await ATTEMPTS.assert_no_kill_shows(worlds, part, _asked_to_abort, _moved, least=3)
