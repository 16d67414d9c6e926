"""The record of a rollout under deciders with stale caches: together they admit no more than one would."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hortus.domains.rollouts import slices
from hortus.domains.rollouts.decisions import AdmittedCluster
from hortus.domains.rollouts.slices import PERIOD, RecordConflict, SliceRecord
from hortus.engine import Cache
from hortus.engine.rollouts.types import PlacementDecision, Rollout, RolloutChange, RolloutSpec
from hortus.kube.errors import AlreadyExists, Conflict
from hortus.kube.objects import Object
from hortus.schema import ObjectMeta
from hortus.testing.clock import FakeClock

ROLLOUT = Rollout(
    metadata=ObjectMeta(name="r", namespace="fleet", uid="u"),
    spec=RolloutSpec(change=RolloutChange(kind="k", subject="s", to="2")),
)
DECIDERS = 3


class RecordBroken(AssertionError):
    """The record holds what it must not."""


class Server:
    """The slices, with every state that a watch would show."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.limit = 1
        self.objects: dict[str, Object] = {}
        self.states: list[Object] = []

    def put(self, obj: Object) -> Object:
        obj["metadata"]["resourceVersion"] = str(len(self.states) + 1)
        self.objects[obj["metadata"]["name"]] = obj
        self.states.append(obj)
        names = self.admitted
        if len(names) > self.limit:
            raise RecordBroken(f"{len(names)} admitted, {self.limit} allowed")
        if len(set(names)) < len(names):
            raise RecordBroken("a cluster was admitted twice")
        return deepcopy(obj)

    @property
    def admitted(self) -> list[str]:
        return [one["clusterProfileRef"]["name"] for each in self.objects.values() for one in each["decisions"]]


class Decider:
    """A decider whose cache shows a prefix of the states, and its own writes; its client is itself."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.cache = Cache("slices")
        self.cache.replace([], 0)
        self.shown = 0
        self.writes: dict[str, float] = {}
        client: Any = self
        self.record = SliceRecord(client, self.cache, field_manager="test", clock=server.clock)

    def see(self, count: int) -> None:
        for obj in self.server.states[self.shown : self.shown + count]:
            self.cache.observe(deepcopy(obj))
            self.shown += 1
            self.cache.advance(self.shown)

    async def decide(self) -> None:
        known = self.record.admitted("u")
        names = (f"c{number}" for number in range(self.server.limit))
        admit = [AdmittedCluster(name, "all", 0.0) for name in names if name not in known]
        if self.record.wait("u") == 0:
            try:
                await self.record.append(ROLLOUT, admit[: self.server.limit - len(known)])
            except RecordConflict:
                self.see(len(self.server.states))

    async def create(self, resource: object, obj: Object, **_: object) -> Object:
        if obj["metadata"]["name"] in self.server.objects:
            raise AlreadyExists("there is one")
        return self._written(obj)

    async def patch(self, resource: object, name: str, patch: Object, *_: object, **__: object) -> Object:
        obj = deepcopy(self.server.objects[name])
        if obj["metadata"]["resourceVersion"] != patch["metadata"]["resourceVersion"]:
            raise Conflict("it has changed")
        return self._written({**obj, "decisions": patch["decisions"]})

    def _written(self, obj: Object) -> Object:
        name, now = obj["metadata"]["name"], self.server.clock.monotonic()
        if now - self.writes.get(name, -PERIOD) < PERIOD:
            raise RecordBroken(f"slice {name} was written twice within a second")
        self.writes[name] = now
        return self.server.put(obj)


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("decide"), st.integers(0, DECIDERS - 1), st.just(0)),
        st.tuples(st.just("see"), st.integers(0, DECIDERS - 1), st.integers(1, 4)),
        st.tuples(st.just("outcomes"), st.just(0), st.integers(1, 7)),
        st.tuples(st.just("touch"), st.just(0), st.integers(0, 5)),
        st.tuples(st.just("wait"), st.just(0), st.integers(1, 6)),
    ),
    min_size=25,
    max_size=60,
)


async def _play(steps: list[tuple[str, int, int]]) -> Server:
    server = Server(FakeClock())
    deciders = [Decider(server) for _ in range(DECIDERS)]
    for what, which, number in steps:
        match what:
            case "decide":
                await deciders[which].decide()
            case "see":
                deciders[which].see(number)
            case "outcomes":
                server.limit += number
            case "touch" if server.objects:
                # Somebody else writes a slice, such as its labels.
                server.put(deepcopy(list(server.objects.values())[number % len(server.objects)]))
            case "wait":
                await server.clock.advance(number / 4)
    return server


@settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
@given(_STEPS)
def test_deciders_with_stale_caches_admit_no_more_than_one_would(steps: list[tuple[str, int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "CAPACITY", 3)
        server = asyncio.run(_play(steps))
    assert len(server.admitted) == len(set(server.admitted)) <= server.limit


def _in_turn() -> Callable[[Sequence[PlacementDecision]], PlacementDecision | None]:
    """Chooses by what was asked before, and not by the record."""
    calls = itertools.count()

    def choose(parts: Sequence[PlacementDecision]) -> PlacementDecision | None:
        having_room = [one for one in parts if len(one.decisions) < slices.CAPACITY]
        return having_room[next(calls) % len(having_room)] if len(having_room) > 1 else None

    return choose


@pytest.mark.parametrize(
    ("name", "mutated", "message"),
    [
        ("_next", _in_turn, "allowed|twice"),
        ("PERIOD", lambda: 0.5, "within a second"),
    ],
)
def test_a_mutation_breaks_the_record(name: str, mutated: Callable[[], object], message: str) -> None:
    @settings(
        max_examples=3000,
        deadline=None,
        database=None,
        derandomize=True,
        report_multiple_bugs=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(_STEPS)
    def search(steps: list[tuple[str, int, int]]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(slices, "CAPACITY", 3)
            patch.setattr(slices, name, mutated())
            asyncio.run(_play(steps))

    with pytest.raises(RecordBroken, match=message):
        search()


async def test_while_a_slice_has_its_second_clusters_go_to_the_other_one() -> None:
    server = Server(FakeClock())
    decider = Decider(server)
    for limit in (1, 2, 3):
        server.limit = limit
        await decider.decide()
        await server.clock.advance(0.25)
    assert [len(one["decisions"]) for one in server.objects.values()] == [1, 1]
    assert decider.record.wait("u") == 0.25
    await server.clock.advance(0.25)
    await decider.decide()
    assert [len(one["decisions"]) for one in server.objects.values()] == [2, 1]
