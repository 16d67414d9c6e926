"""The errors of the controllers of Gardenlets, and the deadlines of a decommissioning, without a server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from tests.domains.garden.gardenlets.world import configuration

from hortus.domains.garden.gardenlets.context import GardenletContext
from hortus.domains.garden.gardenlets.decommission import Decommission
from hortus.domains.garden.gardenlets.operator import GardenletOperator
from hortus.domains.garden.gardenlets.selfupgrade import GardenletSelfUpgrade
from hortus.domains.garden.gardenlets.settings import GardenletSettings
from hortus.domains.garden.types import Gardenlet
from hortus.engine import Actor, KindController, Result, StepError
from hortus.engine.leftovers import Debt
from hortus.kube import Client
from hortus.kube.errors import Conflict, ConnectionFailed
from hortus.kube.objects import Object, ObjectKey, format_time
from hortus.testing.clock import FakeClock

NOW = 1_700_000_000.0
HOUR = 3600.0
UNUSED: Any = None


def context(status: Object | None = None, *, now: float = NOW, **metadata: Any) -> GardenletContext:
    raw = {
        "apiVersion": "seedmanagement.gardener.cloud/v1alpha1",
        "kind": "Gardenlet",
        "metadata": {"name": "one", "namespace": "garden", "generation": 3, **metadata},
        "spec": {
            "deployment": {"helm": {"ociRepository": {"ref": "r.example.org/c:1"}}},
            "config": configuration(),
        },
        "status": status or {},
    }
    wiring: Any = SimpleNamespace(kind=Gardenlet, clock=FakeClock(now=now))
    return GardenletContext(wiring, raw)


def self_upgrade() -> GardenletSelfUpgrade:
    settings = GardenletSettings()
    return GardenletSelfUpgrade(
        UNUSED, seeds=UNUSED, deployer=UNUSED, settings=settings, open_seed=UNUSED, deputies=UNUSED
    )


def operator() -> GardenletOperator:
    settings = GardenletSettings()
    return GardenletOperator(
        UNUSED, seeds=UNUSED, deployer=UNUSED, settings=settings, gate=UNUSED, deputies=UNUSED, trust=UNUSED
    )


@pytest.mark.parametrize("controller", [self_upgrade(), operator()], ids=["self-upgrade", "operator"])
async def test_a_conflict_is_left_to_the_queue(controller: KindController[GardenletContext]) -> None:
    assert await controller.on_error(context(), Conflict("the object was changed")) is None
    failure = await controller.on_error(context(), ConnectionFailed("GET https://seed", "away"))
    assert failure is not None
    assert failure.reason == "RequestFailed"


@pytest.mark.parametrize(
    ("actor", "observed", "former", "expected"),
    [
        pytest.param(Actor.USER, 2, "True", ("False", 3), id="refused"),
        pytest.param(Actor.USER, 3, "True", ("False", 3), id="refused-later"),
        pytest.param(Actor.PROVIDER, 2, "True", ("False", 2), id="not-applied"),
        pytest.param(Actor.OPERATOR, 2, "False", ("False", 2), id="not-applied-twice"),
        pytest.param(Actor.PROVIDER, 3, "True", ("Progressing", 3), id="applied"),
        pytest.param(Actor.PROVIDER, 3, "Progressing", ("Progressing", 3), id="applied-twice"),
        pytest.param(Actor.PROVIDER, 3, "False", ("False", 3), id="refused-before"),
    ],
)
def test_a_generation_is_refused_by_an_error_of_its_author_alone(
    actor: Actor, observed: int, former: str, expected: tuple[str, int]
) -> None:
    condition = {"type": "GardenletReconciled", "status": former, "lastTransitionTime": format_time(NOW)}
    made = context({"observedGeneration": observed, "conditions": [condition]})
    self_upgrade().report(made, StepError("x", reason="X", actor=actor))
    (found,) = made.conditions
    assert (found.status, made.drafted("observedGeneration")) == expected


class Shoots:
    """The Shoots on every Seed."""

    def __init__(self) -> None:
        self.keys: list[ObjectKey] = []

    def add_index(self, name: str, function: object) -> None: ...

    def keys_by(self, index: str, value: str) -> list[ObjectKey]:
        return self.keys


class Garden:
    """A garden in which deletions take their time."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    async def delete(self, resource: object, name: str, namespace: str = "") -> None:
        self.deleted.append(name)


class Recorder:
    """The Leftovers."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    async def record(self, debt: Debt) -> None:
        self.reasons.append(debt.reason)


class World:
    """A decommissioning of one seed; `error` is that of its cluster."""

    def __init__(self, error: Exception | None = None) -> None:
        self.seeds: dict[ObjectKey, Object] = {}
        self.shoots, self.garden, self.leftovers = Shoots(), Garden(), Recorder()
        parts: Any = {
            "seeds": self.seeds,
            "shoots": self.shoots,
            "leftovers": self.leftovers,
        }

        @asynccontextmanager
        async def open_seed(name: str) -> AsyncIterator[Client | None]:
            if error is not None:
                raise error
            yield None

        garden: Any = self.garden
        self.steps = Decommission(garden, open_seed=open_seed, deadline=HOUR, **parts)

    def add_seed(self, **metadata: str) -> None:
        self.seeds[ObjectKey("", "one")] = {"metadata": {"name": "one", **metadata}}


async def test_a_seed_has_its_whole_time_after_a_shoot_that_left_late() -> None:
    world, made = World(), context(deletionTimestamp=format_time(NOW - 2 * HOUR))
    world.shoots.keys = [ObjectKey("garden-demo", "a")]
    world.add_seed()
    assert await world.steps.wait_for_shoots(made) == Result()
    world.shoots.keys = []
    assert await world.steps.wait_for_shoots(made) is None
    assert await world.steps.delete_seed(made) == Result(requeue_after=HOUR)
    world.add_seed(deletionTimestamp=format_time(NOW - 600))
    assert await world.steps.delete_seed(made) == Result(requeue_after=HOUR - 600)
    assert (world.garden.deleted, world.leftovers.reasons) == (["one", "one"], [])
    world.add_seed(deletionTimestamp=format_time(NOW - HOUR))
    assert await world.steps.delete_seed(made) is None
    assert world.leftovers.reasons == ["NotPruned"]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        pytest.param(ConnectionFailed("GET https://seed", "away"), "ClusterUnreachable", id="away"),
        pytest.param(StepError("no YAML", reason="KubeconfigInvalid"), "ClusterGone", id="kubeconfig"),
    ],
)
async def test_a_gardenlet_has_its_whole_time_after_a_seed_that_went_late(error: Exception, reason: str) -> None:
    world, deleted = World(error), format_time(NOW - 2 * HOUR)
    made = context(deletionTimestamp=deleted)
    with pytest.raises(type(error)):
        await world.steps.remove_objects(made)
    status = dict(made.draft.fields)
    with pytest.raises(type(error)):
        await world.steps.remove_objects(context(status, now=NOW + HOUR - 1, deletionTimestamp=deleted))
    assert world.leftovers.reasons == []
    later = context(status, now=NOW + HOUR, deletionTimestamp=deleted)
    assert await world.steps.remove_objects(later) is None
    assert world.leftovers.reasons == [reason]
    # A Seed that was not gone at its own deadline is not recorded at each attempt.
    world.add_seed(deletionTimestamp=deleted)
    assert await world.steps.delete_seed(later) is None
    assert world.leftovers.reasons == [reason]
