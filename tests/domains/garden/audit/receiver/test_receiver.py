"""A receiver over sockets: who may send, what is acknowledged, what happens without room, and how sinks are served."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from tests.domains.garden.audit.receiver.receivers import (
    TlsFiles,
    events,
    numbers_in,
    passing,
    post,
    receiving,
    settings_in,
)
from tests.domains.garden.audit.sinks.servers import Seen, SinkServer, sink_server
from tests.kube.certificates import issue
from tests.waiting import PATIENCE, until

from hortus.domains.garden.audit.buffer.server import LARGEST_BODY
from hortus.domains.garden.audit.buffer.settings import BufferSettingsError
from hortus.domains.garden.audit.buffer.spool import HashChain, verify
from hortus.kube.listeners import ListenerLimits
from hortus.testing import FakeClock

SMALL = {"folder": "spool", "maxBytes": "256Ki", "segmentBytes": "64Ki", "retainBytes": "0"}


def ok(seen: Seen) -> web.Response:
    return web.Response()


def to(server: SinkServer, **more: object) -> list[dict[str, object]]:
    return [{"name": "remote", "http": {"url": server.url}, **more}]


def received(server: SinkServer) -> list[int]:
    return [number for seen in server.seen for number in numbers_in(seen.body)]


async def test_events_reach_the_file_and_the_spool_verifies(tmp_path: Path) -> None:
    async with receiving(settings_in(tmp_path)) as running:
        for start in range(0, 100, 10):
            assert await post(running, events(*range(start, start + 10))) == 200
        await until(lambda: running.deliveries["archive"].waiting == 0)
    assert numbers_in((tmp_path / "audit.ndjson").read_bytes()) == list(range(100))
    assert verify(tmp_path / "spool", HashChain()).findings == []


async def test_only_clients_with_a_certificate_and_a_name_may_send(tmp_path: Path) -> None:
    files = TlsFiles(tmp_path)
    known, unknown = issue("kube-apiserver", files.ca), issue("somebody", files.ca)
    async with receiving(settings_in(tmp_path, tls=files.part(["kube-apiserver"]))) as running:
        assert await files.post(running, events(1), known) == 200
        assert await files.post(running, events(2), unknown) == 403
        for client in (None, issue("kube-apiserver")):
            with pytest.raises((aiohttp.ClientError, OSError)):
                await files.post(running, events(3), client)
        assert running.spool.committed.sequence == 1


async def test_a_renewed_certificate_is_shown_and_a_broken_one_is_not(tmp_path: Path) -> None:
    files = TlsFiles(tmp_path)
    client = issue("kube-apiserver", files.ca)
    async with receiving(settings_in(tmp_path, tls=files.part())) as running:

        async def shown() -> int:
            context = files.context(client)
            _, writer = await asyncio.open_connection("127.0.0.1", running.webhook.port, ssl=context)
            found = writer.get_extra_info("peercert")["serialNumber"]
            writer.close()
            return int(found, 16)

        async def is_shown(number: int) -> bool:
            return await shown() == number

        renewed = files.write_server().certificate.serial_number
        await until(lambda: is_shown(renewed))
        (tmp_path / "tls.crt").write_bytes(b"broken")
        assert await shown() == renewed


async def test_bodies_that_are_no_events_or_too_large_are_refused_and_counted(tmp_path: Path) -> None:
    async with receiving(settings_in(tmp_path)) as running:
        assert await post(running, b"{}") == 400
        assert await post(running, events()) == 200
        assert await post(running, b" " * (17 << 20)) == 413
        assert running.spool.committed.sequence == 0
        assert running.health is not None
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"http://127.0.0.1:{running.health.port}/metrics") as answer,
        ):
            text = await answer.text()
        assert 'hortus_audit_refused_requests_total{reason="body"} 1.0' in text
        assert 'hortus_audit_refused_requests_total{reason="size"} 1.0' in text


async def test_a_client_that_stalls_does_not_keep_others_waiting(tmp_path: Path) -> None:
    """A body reserves what has arrived of it, not what its head announces."""
    limits = ListenerLimits(bodies=4 * LARGEST_BODY, body=0.3)
    head = f"POST /audit HTTP/1.1\r\nHost: a\r\nContent-Length: {LARGEST_BODY}\r\n\r\n{{".encode()
    async with receiving(settings_in(tmp_path, spool=SMALL | {"maxBytes": "1Gi"}), limits=limits) as running:
        stalled = [await asyncio.open_connection("127.0.0.1", running.webhook.port) for _ in range(8)]
        for _, writer in stalled:
            writer.write(head)
        assert await post(running, events(1)) == 200
        assert [(await reader.readline())[:12] for reader, _ in stalled] == [b"HTTP/1.1 408"] * 8
        for _, writer in stalled:
            writer.close()


async def test_a_sender_has_half_of_the_memory_for_bodies(tmp_path: Path) -> None:
    limits = ListenerLimits(bodies=1 << 20, body=PATIENCE)
    head = b"POST /audit HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n"
    async with receiving(settings_in(tmp_path, spool=SMALL | {"maxBytes": "1Gi"}), limits=limits) as running:
        refused, writer = await asyncio.open_connection("127.0.0.1", running.webhook.port, local_addr=("127.0.0.2", 0))
        writer.write(head + b" " * 999_999)
        assert (await refused.readline())[:12] == b"HTTP/1.1 429"
        assert (await refused.readuntil(b"\r\n\r\n")).count(b"Retry-After: 5") == 1
        assert await post(running, events(1)) == 200
        writer.close()


async def test_a_full_spool_refuses_in_strict_mode_and_accepts_when_the_sink_is_back(tmp_path: Path) -> None:
    async with sink_server(lambda seen: web.Response(status=503)) as server:
        settings = settings_in(tmp_path, spool=SMALL, sinks=to(server), hold=0.0)
        clock = FakeClock()
        async with receiving(settings, clock=clock) as running:
            sent = 0
            while await post(running, events(sent, size=10_000)) == 200:
                sent += 1
            assert running.health is not None
            async with (
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{running.health.port}/api/v1/health") as answer,
            ):
                assert answer.status == 500
            server.usual, server.seen = ok, []
            await passing(clock, lambda: not running.deliveries["remote"].waiting)
            assert await post(running, events(sent)) == 200
            await until(lambda: running.deliveries["remote"].waiting == 0)
    assert sorted(set(received(server))) == list(range(sent + 1))


async def test_a_body_that_never_fits_is_refused_and_smaller_ones_always_fit(tmp_path: Path) -> None:
    async with receiving(settings_in(tmp_path, spool=SMALL, hold=0.0)) as running:
        assert await post(running, events(0, size=140_000)) == 413
        for number in range(1, 6):
            assert await post(running, events(number, size=120_000)) == 200
            await until(lambda: running.deliveries["archive"].waiting == 0)
    assert numbers_in((tmp_path / "audit.ndjson").read_bytes()) == [1, 2, 3, 4, 5]


async def test_a_request_is_held_until_there_is_room(tmp_path: Path) -> None:
    async with sink_server(lambda seen: web.Response(status=503)) as server:
        settings = settings_in(tmp_path, spool=SMALL, sinks=to(server), hold=30.0)
        clock = FakeClock()
        async with receiving(settings, clock=clock) as running:
            sent = 0
            while not running.spool.full:
                posting = asyncio.create_task(post(running, events(sent, size=10_000)))
                await until(lambda: posting.done() or running.spool.full)  # noqa: B023
                sent += 1
            assert not posting.done()
            await until(lambda: running.deliveries["remote"].problem)
            server.usual = ok
            await clock.advance(1.0)  # longer than the pause after one failure, much shorter than the hold
            await until(posting.done)
            assert await posting == 200


async def test_a_full_spool_drops_the_oldest_in_mode_batch_and_says_so(tmp_path: Path) -> None:
    async with sink_server(lambda seen: web.Response(status=503)) as server:
        settings = settings_in(tmp_path, spool=SMALL, sinks=to(server), mode="batch")
        clock = FakeClock()
        async with receiving(settings, clock=clock) as running:
            for number in range(60):
                assert await post(running, events(number, size=10_000)) == 200
            server.usual, server.seen = ok, []
            await passing(clock, lambda: not running.deliveries["remote"].waiting)
            dropped = running.spool.dropped
    numbers = received(server)
    assert (numbers[-1], dropped > 0) == (59, True)
    assert any(b'"reason":"Dropped"' in seen.body for seen in server.seen)


async def test_a_line_that_a_sink_refuses_is_set_aside_and_reported(tmp_path: Path) -> None:
    def picky(seen: Seen) -> web.Response:
        return web.Response(status=400 if b'"000003"' in seen.body else 200)

    async with sink_server(picky) as server:
        clock = FakeClock()
        async with receiving(settings_in(tmp_path, sinks=to(server)), clock=clock) as running:
            assert await post(running, events(*range(6))) == 200
            await passing(clock, lambda: not running.deliveries["remote"].waiting)
            await until(lambda: any(b'"Refused"' in seen.body for seen in server.seen))
    assert numbers_in((tmp_path / "spool" / "refused-remote.ndjson").read_bytes()) == [3]
    good = [number for seen in server.seen if picky(seen).status == 200 for number in numbers_in(seen.body)]
    assert sorted(set(good)) == [0, 1, 2, 4, 5]


async def test_a_batch_that_is_too_large_is_halved(tmp_path: Path) -> None:
    def small(seen: Seen) -> web.Response:
        return web.Response(status=413 if len(numbers_in(seen.body)) > 2 else 200)

    async with sink_server(small) as server:
        clock = FakeClock()
        async with receiving(settings_in(tmp_path, sinks=to(server)), clock=clock) as running:
            await post(running, events(*range(8)))
            await until(lambda: running.deliveries["remote"].waiting == 0)
    kept = [numbers_in(seen.body) for seen in server.seen if small(seen).status == 200]
    assert kept == [[0, 1], [2, 3], [4, 5], [6, 7]]


async def test_a_receiver_goes_on_where_the_one_before_ended(tmp_path: Path) -> None:
    async with sink_server(ok) as server:
        settings = settings_in(tmp_path, sinks=to(server))
        for start in (0, 10):
            async with receiving(settings) as running:
                assert await post(running, events(*range(start, start + 10))) == 200
                await until(lambda: running.deliveries["remote"].waiting == 0)
    assert received(server) == list(range(20))


async def test_altered_lines_are_reported_to_the_sink_in_their_place(tmp_path: Path) -> None:
    async with sink_server(lambda seen: web.Response(status=503)) as server:
        settings = settings_in(tmp_path, sinks=to(server))
        async with receiving(settings) as running:
            for number in range(3):
                await post(running, events(number))
        path = next((tmp_path / "spool").glob("*.segment"))
        path.write_bytes(path.read_bytes().replace(b'"000001"', b'"000009"'))
        server.usual, server.seen = ok, []
        async with receiving(settings) as running:
            await until(lambda: any(b'"Altered"' in seen.body for seen in server.seen))
    assert received(server) == [0, 2]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"plainHTTP": False}, "exactly one of tls and plainHTTP"),
        ({"sinks": []}, "at least one is required"),
        ({"sinks": [{"name": "a"}]}, "must have exactly one of file, http"),
        ({"sinks": [{"name": "A!", "file": {"path": "x"}}]}, "small letters, digits and dashes"),
        ({"sinks": [{"name": "a", "file": {"path": "x"}}] * 2}, "two with the name a"),
        ({"spool": {"folder": "x", "maxBytes": "many"}}, "spool.maxBytes: 'many' is not a quantity"),
        ({"spool": {"folder": "x", "maxBytes": "1Mi"}}, "must hold two segments"),
        ({"mode": "strict"}, "Invalid enum value 'strict'"),
        ({"listen": "here"}, "listen: address 'here'"),
        ({"typo": 1}, "unknown field `typo`"),
    ],
)
def test_settings_that_cannot_be_used_name_the_field(tmp_path: Path, given: dict[str, object], problem: str) -> None:
    with pytest.raises(BufferSettingsError, match=problem):
        settings_in(tmp_path, **given)
