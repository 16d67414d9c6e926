"""The way of accepted events, and the standing of watchers."""

from __future__ import annotations

from typing import Any

from hortus.domains.modules.watching.events import PROBE_NAME
from hortus.domains.modules.watching.health import AFTER_FAILURE, PATIENCE, Hearing, WatcherHealth, probe
from hortus.domains.modules.watching.routing import EVENT, HEARD, SPACING, EventRouter
from hortus.engine import Cache, Trigger
from hortus.kube.errors import NotFound
from hortus.kube.objects import ObjectKey
from hortus.testing import FakeClock

KYMA = ObjectKey("kcp-system", "kyma-1")
HOUR = 3600.0


class Remote:
    """A managed cluster that records dry runs."""

    def __init__(self, error: Exception | None = None) -> None:
        self.created: list[tuple[str, bool]] = []
        self.error = error

    async def create(self, resource: Any, obj: Any, *, field_manager: str = "", dry_run: bool = False) -> Any:
        if self.error is not None:
            raise self.error
        self.created.append((obj["metadata"]["name"], dry_run))
        return obj


class Replica:
    """One replica's router, with the annotations that it writes."""

    def __init__(self, clock: FakeClock, *, holds: bool = True) -> None:
        self.health = WatcherHealth(every=HOUR, namespace="kyma-system", clock=clock)
        self.queued: list[ObjectKey] = []
        self.annotations: list[str] = []
        trigger = Trigger()
        trigger.attach(lambda key, priority: self.queued.append(key), clock)
        self.router = EventRouter(
            self,  # type: ignore[arg-type]
            health=self.health,
            trigger=trigger,
            holds=lambda key: holds,
            clock=clock,
        )

    async def patch(self, resource: Any, name: str, patch: Any, namespace: str) -> Any:
        self.annotations += patch["metadata"]["annotations"]


async def test_a_flood_of_events_is_two_reconciles_in_a_second() -> None:
    clock = FakeClock()
    replica = Replica(clock)
    for _ in range(1000):
        replica.router.accept(KYMA, is_probe=False)
    assert replica.queued == [KYMA]
    await clock.advance(SPACING)
    assert replica.queued == [KYMA, KYMA]
    await clock.advance(10 * SPACING)
    assert len(replica.queued) == 2
    replica.router.accept(KYMA, is_probe=False)
    assert len(replica.queued) == 3


async def test_clusters_that_all_report_at_once_are_forgotten_when_their_second_is_over() -> None:
    clock = FakeClock()
    replica = Replica(clock)
    kymas = [ObjectKey("kcp-system", f"kyma-{number}") for number in range(5000)]
    for kyma in kymas:
        replica.router.accept(kyma, is_probe=False)
        replica.router.accept(kyma, is_probe=False)
    assert replica.queued == kymas
    assert replica.router.paced == 5000
    await clock.advance(SPACING)
    assert replica.queued == kymas * 2
    await clock.advance(SPACING)
    replica.router.accept(KYMA, is_probe=False)
    assert replica.router.paced == 1


async def test_an_event_at_another_replica_reaches_the_owner_by_an_annotation() -> None:
    clock = FakeClock()
    other, owner = Replica(clock, holds=False), Replica(clock)
    cache = Cache("kymas")
    owner.router.follow(cache)
    cache.learn(_kyma("1", {}))
    other.router.accept(KYMA, is_probe=False)
    other.router.accept(KYMA, is_probe=True)
    await clock.settle()
    assert (other.queued, sorted(other.annotations)) == ([], sorted([EVENT, HEARD]))
    cache.learn(_kyma("2", {HEARD: "1"}))
    assert (owner.queued, owner.health.hearing(KYMA)) == ([], Hearing.HEARD)
    cache.learn(_kyma("3", {HEARD: "1", EVENT: "1"}))
    assert owner.queued == [KYMA]
    cache.learn(_kyma("4", {HEARD: "1", EVENT: "1"}))
    assert owner.queued == [KYMA]


def _kyma(version: str, annotations: dict[str, str]) -> Any:
    metadata = {"name": KYMA.name, "namespace": KYMA.namespace, "resourceVersion": version, "uid": "u"}
    return {"metadata": {**metadata, "annotations": annotations}}


async def test_a_cluster_that_speaks_is_never_asked() -> None:
    clock, remote = FakeClock(), Remote()
    health = WatcherHealth(every=HOUR, namespace="kyma-system", clock=clock)
    for _ in range(5):
        await clock.advance(HOUR - 1)
        health.heard(KYMA)
        assert await health.check(KYMA, remote) is Hearing.HEARD  # type: ignore[arg-type]
    assert remote.created == []


async def test_a_cluster_that_was_silent_for_long_is_asked_by_a_dry_run() -> None:
    clock, remote = FakeClock(), Remote()
    health = WatcherHealth(every=HOUR, namespace="kyma-system", clock=clock)
    await health.check(KYMA, remote)  # type: ignore[arg-type]
    await clock.advance(HOUR)
    for _ in range(3):
        await health.check(KYMA, remote)  # type: ignore[arg-type]
    assert remote.created == [(PROBE_NAME, True)]
    assert not health.heard(KYMA, is_probe=True)  # its answer reconciles nothing
    assert health.hearing(KYMA) is Hearing.HEARD
    assert health.heard(KYMA, is_probe=True)  # one that nobody asked for does


async def test_two_checks_without_an_answer_are_silence_and_the_next_ones_are_rare() -> None:
    clock, remote = FakeClock(), Remote()
    health = WatcherHealth(every=HOUR, namespace="kyma-system", clock=clock)
    await health.check(KYMA, remote)  # type: ignore[arg-type]
    await clock.advance(HOUR)
    standings = []
    for _ in range(3):
        await health.check(KYMA, remote)  # type: ignore[arg-type]
        await clock.advance(PATIENCE)
        standings.append(health.hearing(KYMA))
    assert standings == [Hearing.UNPROVEN, Hearing.SILENT, Hearing.SILENT]
    assert health.counts() == {"Unproven": 0, "Heard": 0, "Silent": 1}
    asked = len(remote.created)
    await health.check(KYMA, remote)  # type: ignore[arg-type]
    assert len(remote.created) == asked
    await clock.advance(AFTER_FAILURE)
    await health.check(KYMA, remote)  # type: ignore[arg-type]
    assert len(remote.created) == asked + 1
    health.heard(KYMA)
    assert health.hearing(KYMA) is Hearing.HEARD


async def test_a_cluster_that_refuses_the_dry_run_is_not_called_silent() -> None:
    clock, remote = FakeClock(), Remote(NotFound("no kymas here"))
    health = WatcherHealth(every=HOUR, namespace="kyma-system", clock=clock)
    await health.check(KYMA, remote)  # type: ignore[arg-type]
    for _ in range(5):
        await clock.advance(HOUR)
        assert await health.check(KYMA, remote) is Hearing.UNPROVEN  # type: ignore[arg-type]


async def test_without_an_interval_nothing_is_asked() -> None:
    clock, remote = FakeClock(), Remote()
    health = WatcherHealth(every=0.0, namespace="kyma-system", clock=clock)
    await clock.advance(100 * HOUR)
    await health.check(KYMA, remote)  # type: ignore[arg-type]
    assert remote.created == []
    health.forget(KYMA)
    assert health.hearing(KYMA) is Hearing.UNPROVEN


def test_the_probe_is_selected_by_the_webhook_of_kymas() -> None:
    metadata = probe("kyma-system")["metadata"]
    assert metadata["namespace"] == "kyma-system"
    assert metadata["labels"]["operator.kyma-project.io/watched-by"] == "kyma"
