from __future__ import annotations

import re
import threading
from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
from structlog.testing import capture_logs

from hortus.engine.exposition import LazySeries
from hortus.engine.health import Address, Checks, HealthServer, HttpServer, parse_address, serve_metrics
from hortus.engine.metrics import QUEUE_BUCKETS, RECONCILE_BUCKETS, EngineMetrics
from hortus.engine.queue import Queue
from hortus.testing import FakeClock


@pytest.mark.parametrize(
    ("text", "address"),
    [
        (":8081", Address(None, 8081)),
        ("127.0.0.1:8080", Address("127.0.0.1", 8080)),
        ("[::1]:8080", Address("::1", 8080)),
        ("localhost:0", Address("localhost", 0)),
        ("0", None),
        ("", None),
    ],
)
def test_addresses_are_written_as_go_flags_have_them(text: str, address: Address | None) -> None:
    assert parse_address(text) == address
    if address is not None:
        assert str(address) == text


@pytest.mark.parametrize("text", ["8081", "host:", "::1:80", ":http", ":99999", "a:b:1"])
def test_an_address_that_is_none_says_how_to_write_one(text: str) -> None:
    with pytest.raises(ValueError, match="as in ':8081'"):
        parse_address(text)


class Probe:
    def __init__(self, server: HttpServer, session: aiohttp.ClientSession) -> None:
        self.server, self.session = server, session

    async def get(self, path: str) -> tuple[int, str]:
        async with self.session.get(f"http://127.0.0.1:{self.server.port}{path}") as answer:
            return answer.status, await answer.text()


@pytest.fixture
async def server() -> AsyncIterator[HealthServer]:
    made = HealthServer(Address("127.0.0.1", 0))
    yield made
    await made.stop()


@pytest.fixture
async def probe(server: HealthServer) -> AsyncIterator[Probe]:
    async with aiohttp.ClientSession() as session:
        yield Probe(server, session)


async def test_probes_are_answered_and_say_more_when_asked(server: HealthServer, probe: Probe) -> None:
    synced = False

    def check() -> None:
        if not synced:
            raise RuntimeError("widgets: listing with token=c4n4ryc4n4ry")

    async def fine() -> None:
        return

    server.readiness.add("cache-sync", check)
    server.readiness.add("webhook", fine)
    await server.start()
    assert await probe.get("/healthz") == (200, "ok")
    with capture_logs() as logs:
        failed = "[+]ping ok\n[-]cache-sync failed: reason withheld\n[+]webhook ok\nreadyz check failed\n"
        assert await probe.get("/readyz") == (500, failed)
        assert (await probe.get("/readyz/cache-sync"))[0] == 500
    assert {entry["check"] for entry in logs} == {"cache-sync"}
    assert "c4n4ry" not in str(logs)
    assert await probe.get("/readyz?exclude=cache-sync") == (200, "ok")
    assert await probe.get("/readyz/ping") == (200, "ok")
    assert (await probe.get("/readyz/nothing"))[0] == 404
    synced = True
    assert await probe.get("/readyz") == (200, "ok")
    _, verbose = await probe.get("/readyz?verbose")
    assert verbose == "[+]ping ok\n[+]cache-sync ok\n[+]webhook ok\nreadyz check passed\n"


async def test_a_taken_address_is_named(server: HealthServer) -> None:
    await server.start()
    second = HealthServer(Address("127.0.0.1", server.port))
    with pytest.raises(OSError, match=f"cannot listen on 127.0.0.1:{server.port}"):
        await second.start()
    await second.stop()


def test_two_checks_of_one_name_are_refused() -> None:
    checks = Checks()
    with pytest.raises(ValueError, match="health check 'ping'"):
        checks.add("ping", lambda: None)


async def test_metrics_carry_the_names_that_boards_know(server: HealthServer, probe: Probe) -> None:
    registry, clock = CollectorRegistry(), FakeClock()
    metrics = EngineMetrics(registry)
    meter = metrics.controller("widgets", workers=25)
    meter.results["success"] += 3
    meter.terminal += 1
    meter.reconciled.observe(0.005)
    meter.reconciled.observe(0.3)
    meter.reconciled.observe(100)
    queue: Queue[str] = Queue(clock=clock, meter=metrics.queue("widgets"))
    for key in "abc":
        queue.add(key)
    queue.take()
    clock.skip(2)
    metrics.leader("lock", lambda: True)
    serve_metrics(server, registry)
    await server.start()
    status, text = await probe.get("/metrics")
    assert status == 200
    found = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert found["controller_runtime_reconcile_total", "success", "widgets"] == 3
    assert found["controller_runtime_reconcile_total", "error", "widgets"] == 0
    assert found["controller_runtime_terminal_reconcile_errors_total", "widgets"] == 1
    assert found["controller_runtime_reconcile_panics_total", "widgets"] == 0
    assert found["controller_runtime_max_concurrent_reconciles", "widgets"] == 25
    assert found["controller_runtime_reconcile_time_seconds_bucket", "0.005", "widgets"] == 1
    assert found["controller_runtime_reconcile_time_seconds_bucket", "0.3", "widgets"] == 2
    assert found["controller_runtime_reconcile_time_seconds_bucket", "60.0", "widgets"] == 2
    assert found["controller_runtime_reconcile_time_seconds_count", "widgets"] == 3
    assert found["workqueue_adds_total", "widgets", "widgets"] == 3
    assert found["workqueue_depth", "widgets", "widgets"] == 2
    assert found["workqueue_unfinished_work_seconds", "widgets", "widgets"] == 2
    assert found["workqueue_longest_running_processor_seconds", "widgets", "widgets"] == 2
    assert found["workqueue_queue_duration_seconds_count", "widgets", "widgets"] == 1
    assert found["leader_election_master_status", "lock"] == 1
    assert not re.search(r"# TYPE \S+_created", text)


@pytest.mark.parametrize("accept", ["text/plain", "application/openmetrics-text"])
async def test_series_are_written_outside_the_event_loop(server: HealthServer, accept: str) -> None:
    registry, threads = CollectorRegistry(), set()

    def samples() -> Iterator[Sample]:
        threads.add(threading.current_thread())
        yield Sample("beds", {"name": "one"}, 2.0)

    class Beds(Collector):
        def collect(self) -> list[Metric]:
            return [LazySeries("beds", "Beds.", samples, labels=["name"])]

    registry.register(Beds())
    threads.clear()
    serve_metrics(server, registry)
    await server.start()
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{server.port}/metrics", headers={"Accept": accept}) as answer,
    ):
        text = await answer.text()
    assert 'beds{name="one"} 2.0' in text
    assert threading.main_thread() not in threads


def test_buckets_are_those_of_the_go_libraries() -> None:
    assert QUEUE_BUCKETS == (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0)
    assert [str(bound) for bound in QUEUE_BUCKETS][:2] == ["1e-08", "1e-07"]
    assert (RECONCILE_BUCKETS[0], RECONCILE_BUCKETS[-1], len(RECONCILE_BUCKETS)) == (0.005, 60.0, 40)


async def test_a_scraper_may_ask_for_some_families_alone(server: HealthServer, probe: Probe) -> None:
    registry = CollectorRegistry()
    EngineMetrics(registry).controller("widgets", workers=25)
    serve_metrics(server, registry)
    await server.start()
    _, some = await probe.get("/metrics?name[]=controller_runtime_reconcile_total&name[]=nothing")
    families = {family.name for family in text_string_to_metric_families(some)}
    assert families == {"controller_runtime_reconcile"}
    _, everything = await probe.get("/metrics")
    assert len(list(text_string_to_metric_families(everything))) > 5
