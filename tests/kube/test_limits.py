"""Rate limit, retries and metrics."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest

from hortus.kube import errors
from hortus.kube.client import Client
from hortus.kube.metrics import RequestMetrics
from hortus.kube.ratelimit import RateLimiter
from hortus.kube.retries import Retries, retry_after
from hortus.kube.transport import ConnectionSettings

from .scripted import Script, failure, serving
from .test_tls import FakeTime


@given(st.floats(0.5, 100), st.integers(1, 50), st.lists(st.floats(0, 3), max_size=60))
def test_never_more_calls_pass_than_burst_and_rate_allow(qps: float, burst: int, pauses: list[float]) -> None:
    clock = FakeTime()
    limiter = RateLimiter(qps, burst, clock=clock)
    turns = []
    for pause in pauses:
        clock.time += pause
        turns.append(clock.time + limiter.reserve())
    assert turns == sorted(turns)
    for first in range(len(turns)):
        for last in range(first, len(turns)):
            assert last - first + 1 <= burst + (turns[last] - turns[first]) * qps + 1e-6


async def test_waiting_callers_pass_in_order_of_arrival() -> None:
    clock = FakeTime()
    limiter = RateLimiter(2, 1, clock=clock)
    assert [limiter.reserve() for _ in range(4)] == pytest.approx([0.0, 0.5, 1.0, 1.5])


async def test_a_cancelled_wait_gives_its_place_back() -> None:
    class Stuck(FakeTime):
        async def sleep(self, seconds: float) -> None:
            await asyncio.Event().wait()

    limiter = RateLimiter(1, 1, clock=Stuck())
    assert await limiter.acquire() == 0
    waiting = asyncio.create_task(limiter.acquire())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert limiter.reserve() == pytest.approx(1.0)


def test_a_limit_that_lets_nothing_pass_is_an_error() -> None:
    with pytest.raises(ValueError, match="qps > 0"):
        RateLimiter(0, 1, clock=FakeTime())


async def test_a_client_keeps_to_its_rate() -> None:
    clock = FakeTime()
    began = clock.time
    settings = ConnectionSettings(qps=10, burst=2)
    async with serving(Script({"a": 1})) as access, Client(access, settings=settings, clock=clock) as client:
        for _ in range(12):
            await client.get_raw("/version")
    assert clock.time - began == pytest.approx(1.0)


async def test_retry_after_is_waited_for_on_the_clock() -> None:
    clock = FakeTime()
    began = clock.time
    script = Script(failure(429, "TooManyRequests", Retry_After="7"), {"a": 1})
    async with serving(script) as access, Client(access, clock=clock) as client:
        await client.get_raw("/version")
    assert 7.0 <= clock.time - began <= 7.7


async def test_a_server_that_asks_for_no_pause_is_not_asked_again_at_once() -> None:
    clock = FakeTime()
    began = clock.time
    past = format_datetime(datetime.fromtimestamp(10, UTC), usegmt=True)
    answers = [failure(429, "TooManyRequests", Retry_After=wish) for wish in ("0", past, "0")]
    async with serving(Script(*answers, {"a": 1})) as access, Client(access, clock=clock) as client:
        await client.get_raw("/version")
    own = Retries()
    assert clock.time - began >= own.first_wait * (1 + 2 + 4) / 2


def test_clients_that_were_asked_to_wait_retry_at_different_times() -> None:
    error = errors.TooManyRequests("slow down", retry_after=5.0)
    delays = [Retries().delay(error, 1, repeatable=False) or 0.0 for _ in range(500)]
    assert 5.0 <= min(delays) < 5.05
    assert 5.45 < max(delays) <= 5.5


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5", 5.0),
        ("0", 0.0),
        ("9" * 30, 600.0),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        (format_datetime(datetime.fromtimestamp(1030, UTC), usegmt=True), 30.0),
        (format_datetime(datetime.fromtimestamp(10, UTC), usegmt=True), 0.0),
    ],
)
def test_retry_after_headers(text: str, seconds: float | None) -> None:
    assert retry_after({"Retry-After": text}, 1000.0) == seconds


@given(st.integers(1, 10), st.booleans())
def test_waits_grow_to_a_bound_and_attempts_end(attempt: int, repeatable: bool) -> None:
    retries = Retries(attempts=8, first_wait=0.1, longest_wait=2.0)
    delay = retries.delay(errors.InternalError("x"), attempt, repeatable=repeatable)
    if attempt >= 8 or not repeatable:
        assert delay is None
    else:
        assert delay is not None
        most = min(2.0, 0.1 * 2 ** (attempt - 1))
        assert most / 2 <= delay <= most


def test_errors_that_a_repetition_cannot_cure_are_final() -> None:
    retries = Retries()
    for error in (errors.NotFound("x"), errors.Conflict("x"), errors.TlsFailed("h", "p"), errors.Garbage("h", "p")):
        assert retries.delay(error, 1, repeatable=True) is None


async def test_calls_are_counted_under_client_gos_names() -> None:
    registry = CollectorRegistry()
    metrics = RequestMetrics(registry)
    script = Script({"a": 1}, failure(404, "NotFound"))
    async with serving(script) as access:
        async with Client(access, observer=metrics) as client:
            await client.get_raw("/version")
            with pytest.raises(errors.NotFound):
                await client.get_raw("/version")
        host = client.host
    async with Client(access, observer=metrics, settings=ConnectionSettings(retries=Retries(attempts=1))) as client:
        with pytest.raises(errors.ConnectionFailed):
            await client.get_raw("/version")
    for code in ("200", "404", "<error>"):
        labels = {"code": code, "method": "GET", "host": host}
        assert registry.get_sample_value("rest_client_requests_total", labels) == 1.0
    duration = "rest_client_request_duration_seconds"
    assert registry.get_sample_value(duration + "_count", {"verb": "GET", "host": ""}) == 3.0
    assert registry.get_sample_value(duration + "_bucket", {"verb": "GET", "host": "", "le": "60.0"}) == 3.0
    assert b"rest_client_requests_total" in generate_latest(registry)
    metrics.forget(host)
    assert registry.get_sample_value("rest_client_requests_total", labels) is None
