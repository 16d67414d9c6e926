"""Plans every operation and strike of a run, with its time, from a scenario and a seed. Pure: the same each time.

Randomness comes from one generator for each track, seeded with the run's seed and the track's place, so that a change
of one track leaves the others as they were. Times are seconds after the begin of the phase. What a run does then
depends on the system under test (an operation waits for the one before it on the same object); what it is asked to do
does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from random import Random
from typing import Literal

import msgspec

from hortus.simulation.load.faultkinds import lasting
from hortus.simulation.load.scenario import Fleet, Load, Scenario, ScheduledFaults, Track
from hortus.simulation.load.templates import LoadTemplate

Verb = Literal["create", "rotate", "fail", "delete"]
_VERBS: tuple[Verb, ...] = ("create", "rotate", "fail", "delete")
_SEEDS = 2**31


class Operation(msgspec.Struct, frozen=True):
    """Something to be done to one object."""

    at: float
    verb: Verb
    object: str
    """Its name without the load id: the track's letter and a number."""
    index: int
    seed: int
    """For what is left to chance in the object; with `fail`, odd deletes the Secret, even overwrites it."""


class Strike(msgspec.Struct, frozen=True):
    """One time that a fault strikes."""

    at: float
    ends: float
    event: int
    """The index among the track's events."""
    seed: int
    """For what is left to chance while it lasts."""


class TrackPlan(msgspec.Struct, frozen=True):
    """The actions of one track."""

    letter: str
    track: Track
    operations: tuple[Operation, ...] = ()
    strikes: tuple[Strike, ...] = ()


class LoadPlan(msgspec.Struct, frozen=True):
    """The actions of a run."""

    scenario: Scenario
    seed: int
    stages: tuple[tuple[TrackPlan, ...], ...]
    """One for each phase: what goes on side by side."""

    @property
    def objects(self) -> int:
        """The number of objects that are created in all."""
        return sum(one.verb == "create" for track in self.tracks for one in track.operations)

    @property
    def tracks(self) -> tuple[TrackPlan, ...]:
        """All of them."""
        return tuple(track for stage in self.stages for track in stage)


def plan_of(scenario: Scenario, templates: Mapping[str, LoadTemplate], *, seed: int | None = None) -> LoadPlan:
    """The plan; `templates` by name as the tracks have it, `seed` in place of the scenario's own."""
    seed = scenario.seed if seed is None else seed
    letters = _letters()
    stages = tuple(
        tuple(_track(track, next(letters), Random(f"{seed}/{number}/{place}"), templates)  # noqa: S311 - to be repeated
              for place, track in enumerate(phase.tracks))
        for number, phase in enumerate(scenario.phases)
    )  # fmt: skip
    return LoadPlan(scenario, seed, stages)


def _track(track: Track, letter: str, random: Random, templates: Mapping[str, LoadTemplate]) -> TrackPlan:
    if track.load is not None:
        return TrackPlan(letter, track, tuple(_load(track.load, letter, random)))
    if track.fleet is not None:
        cluster = templates[track.fleet.template].is_cluster
        return TrackPlan(letter, track, tuple(_fleet(track.fleet, letter, random, cluster=cluster)))
    if track.faults is not None:
        return TrackPlan(letter, track, strikes=_strikes(track.faults, random))
    return TrackPlan(letter, track)


def _load(load: Load, letter: str, random: Random) -> Iterator[Operation]:
    for index in range(load.count):
        at = creation_time(index, load.rate, load.ramp)
        yield Operation(at, "create", f"{letter}{index}", index, random.randrange(_SEEDS))


def creation_time(index: int, rate: float, ramp: float) -> float:
    """The time of the object with number `index`: the rate grows evenly from 0 to `rate` within `ramp`, then stays."""
    if rate <= 0:
        return 0.0
    within = rate * ramp / 2
    if index < within:
        return math.sqrt(2 * ramp * index / rate)
    return ramp + (index - within) / rate


def _fleet(fleet: Fleet, letter: str, random: Random, *, cluster: bool) -> Iterator[Operation]:
    """The clusters to begin with, then operations at random distances, each on a cluster that is there by then."""
    living: list[int] = []
    at, index = 0.0, 0
    for index in range(fleet.clusters):
        at = creation_time(index, fleet.rate, 0.0)
        living.append(index)
        yield Operation(at, "create", f"{letter}{index}", index, random.randrange(_SEEDS))
    end = at + fleet.duration
    weights = [getattr(fleet.weights, verb) if cluster or verb in ("create", "delete") else 0.0 for verb in _VERBS]
    if not fleet.churn or not sum(weights):
        return
    while (at := at + random.expovariate(fleet.churn)) < end:
        verb = random.choices(_VERBS, weights)[0]
        if verb == "create" or not living:
            if not weights[0]:
                return
            index += 1
            living.append(index)
            yield Operation(at, "create", f"{letter}{index}", index, random.randrange(_SEEDS))
            continue
        place = random.randrange(len(living))
        chosen = living[place]
        if verb == "delete":
            living[place] = living[-1]
            living.pop()
        yield Operation(at, verb, f"{letter}{chosen}", chosen, random.randrange(_SEEDS))


def _strikes(faults: ScheduledFaults, random: Random) -> tuple[Strike, ...]:
    found = []
    for number, event in enumerate(faults.events):
        at = event.at
        while at < faults.duration:
            ends = min(at + lasting(event), faults.duration)
            found.append(Strike(at, ends, number, random.randrange(_SEEDS)))
            if not event.every:
                break
            at += event.every * random.uniform(0.5, 1.5)
    return tuple(sorted(found, key=lambda strike: (strike.at, strike.event)))


def _letters() -> Iterator[str]:
    """a, b, ... z, aa, ab, ...: what the names of a track's objects begin with."""
    number = 0
    while True:
        text, rest = "", number
        while rest >= 0:
            text, rest = chr(ord("a") + rest % 26) + text, rest // 26 - 1
        yield text
        number += 1


def lines(plan: LoadPlan) -> Iterator[str]:
    """The plan for people and for `diff`: one line for each operation and strike."""
    yield f"scenario {plan.scenario.name}, seed {plan.seed}, {plan.objects} objects"
    for number, stage in enumerate(plan.stages):
        for track in stage:
            yield f"phase {number + 1}, track {track.letter}: {track.track.kind}"
            for one in track.operations:
                yield f"{one.at:10.3f}  {one.verb:<7} {one.object}  seed {one.seed}"
            for strike in track.strikes:
                event = track.track.faults.events[strike.event] if track.track.faults else None
                settings = msgspec.to_builtins(event)
                kind = settings.pop("fault")
                shown = " ".join(
                    f"{key}={_shown(value)}"
                    for key, value in settings.items()
                    if key not in ("at", "every") and value != ()
                )
                yield f"{strike.at:10.3f}  {kind:<7} until {strike.ends:.3f}  seed {strike.seed}  {shown}"


def _shown(value: object) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
