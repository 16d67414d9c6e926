"""Random schedules: what befalls the replicas, drawn from a seed, played, and judged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from tests.engine.shards.clusters import Cluster
from tests.engine.shards.world import KEYS, Process, World

STORM = 70.0
"""Seconds during which things happen."""
CALM = 80.0
"""Seconds in which everything has to come to order: two leases, a drain, what a slow network takes, a reflector's
longest pause."""
SETTLED = 15.0
"""Seconds before the end after which whatever somebody deletes in a cluster is there again."""


Blow = Callable[[World, Process], None]


class Outcome:
    """The result of one schedule."""

    def __init__(self, seed: object) -> None:
        self.seed = seed
        self.broken: list[str] = []
        self.log: list[str] = []
        self.reconciles = 0


def play(seed: object, *, storm: float = STORM, calm: float = CALM, blows: Sequence[Blow] = ()) -> Outcome:
    """One schedule from its seed; always the same. `blows` takes the place of all that may befall a replica."""
    with asyncio.Runner() as runner:
        return runner.run(_play(seed, storm, calm, blows or _BLOWS))


async def _play(seed: object, storm: float, calm: float, blows: Sequence[Blow]) -> Outcome:
    world = World(seed)
    for _ in range(world.random.choice((1, 2, 2, 3))):
        world.join()
    moments = sorted(world.random.uniform(0, storm) for _ in range(world.random.randint(2, 7)))
    for moment in moments:
        world.clock.call_later(moment, lambda: _strike(world, blows))
    for _ in range(world.random.randint(0, 5)):
        world.clock.call_later(world.random.uniform(0, storm), lambda: _strike(world, _CLUSTER_BLOWS))
    await world.clock.advance(storm)
    _heal(world)
    begun = world.begun
    await world.clock.advance(calm - SETTLED)
    for cluster in world.clusters.values():
        cluster.lose_binding()
    await world.clock.advance(SETTLED)
    _judge(world, begun)
    outcome = Outcome(seed)
    outcome.broken, outcome.log, outcome.reconciles = world.broken, world.log, world.begun
    await world.close()
    return outcome


def _strike(world: World, blows: Sequence[Blow]) -> None:
    """Something happens to somebody."""
    blow = world.random.choice(blows)
    victims = world.living
    if victims:
        victim = world.random.choice(victims)
        world.note(f"{blow.__name__.strip('_')} {victim.name}")
        blow(world, victim)


def _later(world: World, seconds: float, what: Callable[[], object]) -> None:
    world.clock.call_later(seconds, what)


def _kill(world: World, victim: Process) -> None:
    victim.kill()
    if not world.staying or world.random.random() < 0.5:
        _later(world, world.random.uniform(0, 10), world.join)


def pause(world: World, victim: Process) -> None:
    if not victim.paused:
        victim.pause()
        _later(world, world.random.choice((1, 4, 6, 9, 12, 16, 25, 60)) * world.random.uniform(0.8, 1.2), victim.resume)


def _cut_off(world: World, victim: Process) -> None:
    victim.cut_off = True

    def back() -> None:
        victim.cut_off = False
        victim.fault()
        victim.catch_up()
        world.networks_are_back()

    _later(world, world.random.uniform(1, 40), back)


def _server_away(world: World, victim: Process) -> None:
    world.up = False

    def back() -> None:
        world.up = True
        for process in world.living:
            process.catch_up()

    _later(world, world.random.uniform(1, 30), back)


def watch_hangs(world: World, victim: Process) -> None:
    victim.hang_watch(hangs=True)
    _later(world, world.random.uniform(5, 60), lambda: victim.hang_watch(hangs=False))


def _clock_jumps(world: World, victim: Process) -> None:
    victim.clock.jump(world.random.uniform(-7200, 7200))


def _join(world: World, victim: Process) -> None:
    if len(world.living) < 4:
        world.join()


def _stop(world: World, victim: Process) -> None:
    if len(world.staying) > 1 and not victim.leaving:
        victim.tasks.append(asyncio.get_running_loop().create_task(victim.leave()))


def _touch(world: World, victim: Process) -> None:
    """Somebody edits a lease by hand."""
    for name in list(world.server.leases)[:1]:
        world.server.patch(name, {"metadata": {"annotations": {"note": str(world.server.version)}}})


def _cluster_away(world: World, victim: Process) -> None:
    cluster, seconds = _some_cluster(world), world.random.uniform(1, 40)
    cluster.up = False
    cluster.fault(seconds)
    cluster.reset()
    _later(world, seconds, lambda: setattr(cluster, "up", True))


def _cluster_hangs(world: World, victim: Process) -> None:
    cluster, seconds = _some_cluster(world), world.random.uniform(1, 40)
    cluster.hangs = True
    cluster.fault(seconds)

    def back() -> None:
        cluster.hangs = False
        world.networks_are_back()

    _later(world, seconds, back)


def _cluster_recreated(world: World, victim: Process) -> None:
    cluster = _some_cluster(world)
    cluster.fault(0)
    cluster.recreate()
    if world.up:
        world.rotate(cluster)


def _rotate(world: World, victim: Process) -> None:
    if world.up:
        world.rotate(_some_cluster(world))


def _rotate_in_trouble(world: World, victim: Process) -> None:
    """Secrets change, and for a while nobody can read them."""
    world.secrets_readable = False
    for _ in range(3):
        _rotate(world, victim)
    _later(world, world.random.uniform(1, 20), lambda: setattr(world, "secrets_readable", True))


def _some_cluster(world: World) -> Cluster:
    return world.random.choice([*world.clusters.values()])


_BLOWS = (_kill, _kill, pause, pause, pause, _cut_off, _cut_off, _server_away, watch_hangs, _clock_jumps, _join)
_BLOWS = (*_BLOWS, _join, _stop, _touch)
_CLUSTER_BLOWS = (_cluster_away, _cluster_away, _cluster_hangs, _cluster_recreated, _rotate, _rotate_in_trouble)


def _heal(world: World) -> None:
    world.up, world.slow, world.secrets_readable = True, False, True
    for cluster in world.clusters.values():
        cluster.up, cluster.hangs = True, False
        cluster.fault(0)
    for process in world.living:
        if process.paused:
            process.resume()
        process.cut_off = False
        process.hang_watch(hangs=False)
        process.fault()
    world.networks_are_back()
    if not world.staying:
        world.join()


def _judge(world: World, begun: int) -> None:
    """Every object is held, by one, and its cluster is in order."""
    for key in KEYS:
        holders = [process.name for process in world.living if process.shards.holds(key)]
        if len(holders) != 1:
            problems = {process.name: process.shards.problem for process in world.living}
            world.broken.append(f"{key.name} is held by {holders or 'nobody'} in the end: {problems}")
    for process in world.living:
        world.broken += process.tending.problems(since=world.clock.monotonic() - SETTLED)
    if world.begun == begun:
        world.broken.append("nothing was reconciled in the end")
