"""Virtual time: it passes when nothing is left to do, and stands still for the world outside."""

from __future__ import annotations

import asyncio
import socketserver
import ssl
import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import pytest

from hortus.apiserver.authn.keys import open_keys
from hortus.apiserver.store import MemoryBackend
from hortus.simulation.fork import VirtualClock, VirtualLoop
from hortus.simulation.fork.time import _ANSWERED

DAY = 86400.0
SLOW, QUICK = b"slow\n", b"quick\n"


@pytest.fixture
def loop() -> Iterator[VirtualLoop]:
    made = VirtualLoop()
    yield made
    made.close()


def test_a_month_passes_in_the_time_that_its_work_takes(loop: VirtualLoop) -> None:
    clock = VirtualClock(loop, began=1_700_000_000.0)
    rung: list[float] = []

    async def work() -> None:
        clock.call_later(3 * DAY, lambda: rung.append(clock.now()))
        async with asyncio.timeout(31 * DAY):
            await clock.sleep(30 * DAY)

    began = time.monotonic()
    loop.run_until_complete(work())
    assert rung == [1_700_000_000.0 + 3 * DAY]
    assert clock.monotonic() == 30 * DAY
    assert time.monotonic() - began < 5.0


def test_a_timeout_comes_at_its_virtual_time(loop: VirtualLoop) -> None:
    async def work() -> float:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(DAY):
                await asyncio.Event().wait()
        return loop.time()

    assert loop.run_until_complete(work()) == DAY


def test_work_for_threads_is_done_at_once_on_the_loop(loop: VirtualLoop) -> None:
    async def work() -> tuple[int, float]:
        return await asyncio.to_thread(threading.get_ident), loop.time()

    assert loop.run_until_complete(work()) == (threading.get_ident(), 0.0)


def test_errors_of_such_work_reach_its_caller(loop: VirtualLoop) -> None:
    def fail() -> None:
        raise ValueError("broken")

    async def work() -> None:
        await asyncio.to_thread(fail)

    with pytest.raises(ValueError, match="broken"):
        loop.run_until_complete(work())


def test_time_stands_still_for_answers_from_outside_which_come_in_the_order_of_the_questions(
    loop: VirtualLoop,
) -> None:
    other = asyncio.new_event_loop()
    thread = threading.Thread(target=other.run_forever)
    thread.start()
    first_may_end, order = asyncio.Event(), []

    async def first() -> str:
        await first_may_end.wait()
        return "first"

    async def second() -> str:
        first_may_end.set()
        return "second"

    async def ask(step: object) -> None:
        answer = await loop.outside(asyncio.run_coroutine_threadsafe(step, other))  # type: ignore[arg-type]
        order.append((answer, loop.time()))

    async def work() -> None:
        loop.call_later(1.0, order.append, "timer")
        await asyncio.gather(ask(first()), ask(second()))
        await VirtualClock(loop, began=0.0).sleep(2.0)

    try:
        loop.run_until_complete(work())
    finally:
        other.call_soon_threadsafe(other.stop)
        thread.join()
        other.close()
    assert order == [("first", 0.0), ("second", 0.0), "timer"]


def test_an_offline_loop_refuses_servers_outside(loop: VirtualLoop) -> None:
    loop.go_offline()

    async def work() -> None:
        await asyncio.open_connection("127.0.0.1", 9)

    with pytest.raises(ConnectionRefusedError, match="nothing outside of the fleet"):
        loop.run_until_complete(work())


class _Echo(socketserver.StreamRequestHandler):
    """Answers each line, all but QUICK after a while that is long for a loop with nothing to do."""

    def handle(self) -> None:
        for line in self.rfile:
            if line != QUICK:
                time.sleep(5 * _ANSWERED)
            self.wfile.write(line)


class Registry(NamedTuple):
    """A server outside that keeps connections open."""

    port: int
    trusted: ssl.SSLContext | None

    async def connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=self.trusted)


@pytest.fixture(params=["plain", "TLS"])
def registry(request: pytest.FixtureRequest) -> Iterator[Registry]:
    trusted = None
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Echo) as server:
        server.daemon_threads = True
        if request.param == "TLS":
            keys = asyncio.run(open_keys(MemoryBackend(), now=time.time()))
            trusted = ssl.create_default_context(cadata=keys.ca_pem.decode())
            server.socket = keys.tls_context().wrap_socket(
                server.socket, server_side=True, do_handshake_on_connect=False
            )
        thread = threading.Thread(target=partial(server.serve_forever, poll_interval=0.01))
        thread.start()
        yield Registry(server.server_address[1], trusted)
        server.shutdown()
        thread.join()


async def _echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: bytes = SLOW) -> bytes:
    writer.write(line)
    async with asyncio.timeout(DAY):
        return await reader.readline()


def test_time_stands_still_for_each_answer_over_a_connection_that_is_used_again(
    loop: VirtualLoop, registry: Registry
) -> None:
    async def work() -> list[bytes]:
        connection = await registry.connected()
        answers = []
        for _ in range(2):
            answers.append(await _echo(*connection))
            await asyncio.sleep(60.0)  # virtual
        connection[1].transport.abort()
        await VirtualClock(loop, began=0.0).sleep(1.0)
        return answers

    assert loop.run_until_complete(work()) == [SLOW, SLOW]
    assert loop.time() == 121.0


def test_an_answer_that_comes_sooner_lets_no_time_pass_for_another_one(loop: VirtualLoop, registry: Registry) -> None:
    async def work() -> list[bytes]:
        slow, quick = await registry.connected(), await registry.connected()
        try:
            return await asyncio.gather(_echo(*slow), _echo(*quick, QUICK))
        finally:
            for _, writer in (slow, quick):
                writer.transport.abort()

    assert loop.run_until_complete(work()) == [SLOW, QUICK]
    assert loop.time() == 0.0


def test_a_loop_that_goes_offline_uses_no_connection_that_was_open(loop: VirtualLoop, registry: Registry) -> None:
    async def work() -> None:
        connection = await registry.connected()
        assert await _echo(*connection) == SLOW
        loop.go_offline()
        assert await connection[0].read() == b""
        await registry.connected()

    with pytest.raises(ConnectionRefusedError, match="nothing outside of the fleet"):
        loop.run_until_complete(work())
