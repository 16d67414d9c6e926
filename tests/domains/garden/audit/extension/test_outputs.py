"""Outputs of buffers that retry for long are seen in the conditions of the Extension; pods are real HTTP servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from tests.domains.garden.audit.extension.audited import SETTINGS, TID, add_secrets, audit_config, audited_shoot
from tests.domains.garden.world import SeedWorld, seed_world
from tests.waiting import until

from hortus.domains.garden.audit.names import PODS
from hortus.domains.garden.audit.outputs import (
    DELIVERED,
    LOOKS,
    PERIOD,
    OutputCounts,
    OutputHistory,
    add_output_looks,
    read_counts,
)
from hortus.domains.garden.audit.topic import AuditTopic
from hortus.domains.garden.extension.topic import TopicCondition
from hortus.domains.garden.types import EXTENSIONS
from hortus.kube.objects import Object
from hortus.testing.apiserver import TestServer
from hortus.testing.clock import FakeClock

READY = "ExtensionsReady"
PATH = "/api/v2/metrics/prometheus"
FLUENT_BIT = """\
# HELP fluentbit_output_retries_total Number of output retries.
# TYPE fluentbit_output_retries_total counter
fluentbit_output_retries_total{{name="splunk.0"}} {failures}
fluentbit_output_retries_total{{name="null.1"}} 0
# TYPE fluentbit_output_proc_records_total counter
fluentbit_output_proc_records_total{{name="splunk.0"}} {confirmed}
fluentbit_output_proc_records_total{{name="null.1"}} {asked}
"""


class BufferPod:
    """The counters of one pod: with each look there are more failures, or more events that were confirmed."""

    def __init__(self) -> None:
        self.asked = 0
        self.fails = False
        self.answers = True
        self.port = 0
        self._failures = 0
        self._confirmed = 0

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[BufferPod]:
        app = web.Application()
        app.router.add_get(PATH, self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]
        try:
            yield self
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        self.asked += 1
        self._failures += self.fails
        self._confirmed += not self.fails
        text = FLUENT_BIT.format(failures=self._failures, confirmed=self._confirmed, asked=self.asked)
        return web.Response(text=text, status=200 if self.answers else 503)


class Writes:
    """The writes of the controllers to objects; an Event reports a reconcile that the clock of the test overtook."""

    def __init__(self) -> None:
        self.methods: list[str] = []

    def answered(self, method: str, host: str, code: str, seconds: float) -> None:
        if method == "PATCH":
            self.methods.append(method)


class Audited:
    """A Shoot whose buffer has one pod."""

    def __init__(self, seed: SeedWorld, clock: FakeClock, pod: BufferPod) -> None:
        self.seed = seed
        self.pod = pod
        self._clock = clock

    async def looks(self, count: int = LOOKS + 1) -> None:
        """Returns when the pod was asked so many times more; the first look shows where its counters stand."""
        wanted = self.pod.asked + count

        async def asked() -> bool:
            await self._clock.advance(PERIOD)
            return self.pod.asked >= wanted

        await until(asked)

    async def has(self, type_: str, status: str, reason: str) -> str:
        """The message of a condition, as soon as it says this; time passes meanwhile."""

        async def look() -> str:
            await self._clock.advance(PERIOD)
            found = (await self.conditions()).get(type_)
            return found.message if found is not None and (found.status, found.reason) == (status, reason) else ""

        return await until(look)

    async def conditions(self) -> dict[str, TopicCondition]:
        found: Object = await self.seed.extension(TID, "audit")
        made = [
            TopicCondition(*(one[field] for field in ("type", "status", "reason", "message")))
            for one in (found.get("status") or {}).get("conditions") or ()
        ]
        return {one.type: one for one in made}

    async def add_pod(self) -> None:
        annotations = {"prometheus.io/port": str(self.pod.port), "prometheus.io/path": PATH}
        metadata = {"labels": {"app": "audit-webhook-backend"}, "annotations": annotations}
        spec = {"containers": [{"name": "fluent-bit", "image": "fluent-bit"}]}
        status = {"phase": "Running", "podIP": "127.0.0.1", "podIPs": [{"ip": "127.0.0.1"}]}
        await self.seed.create(PODS, "audit-webhook-backend-0", TID, spec=spec, metadata=metadata, status=status)


@pytest.fixture
async def audited(server: TestServer) -> AsyncIterator[Audited]:
    clock = FakeClock()
    async with seed_world(server, clock) as seed, BufferPod().serving() as pod:
        await seed.add_shoot(audited_shoot())
        await add_secrets(seed)
        made = Audited(seed, clock, pod)
        await made.add_pod()
        yield made


def audit(view: Any) -> AuditTopic:
    return AuditTopic(SETTINGS, view, add_output_looks(view))


async def test_an_output_that_retries_for_long_is_a_condition_until_it_delivers_again(audited: Audited) -> None:
    async with audited.seed.running(audit):
        await audited.seed.add_extension(TID, "audit", audit_config("splunk"))
        await audited.seed.operated(TID, "audit")
        await audited.has(DELIVERED, "True", "OutputsDeliver")
        await audited.has(READY, "True", "HealthCheckSuccessful")
        audited.pod.fails = True
        message = await audited.has(DELIVERED, "False", "OutputsRetrying")
        assert "splunk.0 (audit-webhook-backend-0)" in message
        assert "null" not in message
        assert await audited.has(READY, "False", "OutputsRetrying") == message
        audited.pod.fails = False
        await audited.has(READY, "True", "HealthCheckSuccessful")
        assert (await audited.conditions())[DELIVERED].status == "True"


async def test_a_condition_that_lasts_is_written_once(audited: Audited) -> None:
    writes = Writes()
    async with audited.seed.running(audit, observer=writes):
        await audited.seed.add_extension(TID, "audit", audit_config("splunk"))
        await audited.seed.operated(TID, "audit")
        audited.pod.fails = True
        await audited.has(READY, "False", "OutputsRetrying")
        before = len(writes.methods)
        await audited.looks(5)
        assert writes.methods[before:] == []


async def test_a_restart_leaves_the_condition_until_there_were_enough_looks(audited: Audited) -> None:
    async with audited.seed.running(audit):
        await audited.seed.add_extension(TID, "audit", audit_config("splunk"))
        await audited.seed.operated(TID, "audit")
        audited.pod.fails = True
        await audited.has(READY, "False", "OutputsRetrying")
    before = await audited.seed.extension(TID, "audit")
    async with audited.seed.running(audit):
        await audited.looks()
    assert await audited.seed.extension(TID, "audit") == before


async def test_a_pod_that_does_not_answer_is_named_and_no_failure_of_the_extension(audited: Audited) -> None:
    async with audited.seed.running(audit):
        await audited.seed.add_extension(TID, "audit", audit_config("splunk"))
        await audited.seed.operated(TID, "audit")
        audited.pod.answers = False
        message = await audited.has(DELIVERED, "Unknown", "PodsUnreachable")
        assert "audit-webhook-backend-0" in message
        assert (await audited.conditions())[READY].status == "True"


async def test_a_problem_of_the_objects_is_reported_before_the_retries(audited: Audited) -> None:
    async with audited.seed.running(audit, resources=False):
        await audited.seed.add_extension(TID, "audit", audit_config("splunk"))
        await audited.seed.operated(TID, "audit")
        audited.pod.fails = True
        await audited.has(DELIVERED, "False", "OutputsRetrying")
        assert (await audited.conditions())[READY].reason == "ManagedResourceOutdated"


async def test_a_buffer_whose_pods_are_gone_is_asked_no_more(audited: Audited) -> None:
    async with audited.seed.running(audit):
        await audited.seed.add_extension(TID, "audit", audit_config("splunk"))
        await audited.seed.operated(TID, "audit")
        await audited.has(DELIVERED, "True", "OutputsDeliver")
        await audited.seed.client.delete(PODS, "audit-webhook-backend-0", TID)
        await audited.has(DELIVERED, "Unknown", "NoPods")
        asked = audited.pod.asked
        await audited.seed.client.patch(EXTENSIONS, "audit", {"metadata": {"labels": {"a": "b"}}}, TID)
        await audited.has(DELIVERED, "Unknown", "NoPods")
        assert audited.pod.asked == asked


# The rules alone.


def seen(*looks: dict[str, OutputCounts] | None) -> TopicCondition:
    history = OutputHistory()
    for counts in looks:
        history.see({"pod-0": counts})
    return history.verdict


def rising(count: int, **step: float) -> list[dict[str, OutputCounts] | None]:
    return [{"out": OutputCounts(**{name: value * index for name, value in step.items()})} for index in range(count)]


@pytest.mark.parametrize(
    ("looks", "status"),
    [
        (rising(LOOKS, failures=1), "True"),
        (rising(LOOKS + 1, failures=1), "False"),
        (rising(LOOKS + 1, failures=1, confirmed=9), "False"),
        (rising(9, confirmed=1), "True"),
        ([*rising(LOOKS + 1, failures=1), rising(LOOKS + 1, failures=1)[-1]], "False"),
        ([*rising(LOOKS + 1, failures=1), {"out": OutputCounts(failures=LOOKS, confirmed=1)}], "True"),
        ([*rising(LOOKS + 1, failures=1), None], "False"),
        ([*rising(LOOKS, failures=1), {"out": OutputCounts(failures=1)}], "False"),
        ([*rising(LOOKS + 1, failures=1), {}], "True"),
        ([None] * (LOOKS - 1), "True"),
        ([None] * LOOKS, "Unknown"),
    ],
    ids=[
        "not long enough",
        "long enough",
        "one chunk is stuck while others pass",
        "nothing fails",
        "a pause without events changes nothing",
        "confirmed without a failure",
        "a pod that was not reached keeps its record",
        "counters that began again go on failing",
        "an output that was taken out",
        "a pod that was not reached for a while",
        "a pod that is not reached",
    ],
)
def test_the_verdict_follows_from_the_looks(looks: list[dict[str, OutputCounts] | None], status: str) -> None:
    assert seen(*looks).status == status


def test_counters_of_both_buffers_are_read() -> None:
    assert read_counts(FLUENT_BIT.format(failures=3, confirmed=7, asked=9)) == {
        "splunk.0": OutputCounts(failures=3, confirmed=7),
        "null.1": OutputCounts(failures=0, confirmed=9),
    }


def test_counters_of_our_receiver_are_those_that_it_serves() -> None:
    from prometheus_client import CollectorRegistry, generate_latest

    from hortus.domains.garden.audit.buffer.metrics import BufferMetrics

    metrics = BufferMetrics(CollectorRegistry())
    metrics.failures.labels("loki").inc(2)
    metrics.delivered.labels("loki").inc(5)
    metrics.follow_sink("loki", lambda: 4.0)
    text = generate_latest(metrics.registry).decode()
    assert read_counts(text) == {"loki": OutputCounts(failures=2, confirmed=5)}
