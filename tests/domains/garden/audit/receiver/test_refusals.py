"""Lines that a sink does not take: those set aside, and those that are sent until the sink takes them."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from aiohttp import web
from tests.domains.garden.audit.receiver.receivers import events, numbers_in, passing, post, receiving, settings_in
from tests.domains.garden.audit.sinks.servers import Seen, SinkServer, sink_server

from hortus.testing import FakeClock


def to(server: SinkServer) -> list[dict[str, object]]:
    return [{"name": "remote", "http": {"url": server.url}}]


@pytest.mark.parametrize("status", [400, 413])
async def test_a_line_that_is_refused_for_itself_does_not_hold_up_the_others(tmp_path: Path, status: int) -> None:
    def picky(seen: Seen) -> web.Response:
        return web.Response(status=status if b'"000001"' in seen.body else 200)

    async with sink_server(picky) as server:
        clock = FakeClock()
        async with receiving(settings_in(tmp_path, sinks=to(server)), clock=clock) as running:
            assert await post(running, events(0, 1, 2)) == 200
            await passing(clock, lambda: any(b'"Refused"' in seen.body for seen in server.seen))
    assert numbers_in((tmp_path / "spool" / "refused-remote.ndjson").read_bytes()) == [1]
    taken = {number for seen in server.seen if picky(seen).status == 200 for number in numbers_in(seen.body)}
    assert taken == {0, 2}


async def test_a_line_is_set_aside_whole_and_once_by_a_disk_that_is_nearly_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, write, asked = tmp_path / "spool" / "refused-remote.ndjson", os.write, list[int]()

    def short(file: int, content: bytes) -> int:
        if not (kept.exists() and os.path.samestat(os.fstat(file), kept.stat())):
            return write(file, content)
        asked.append(len(content))
        if len(asked) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, content[:20])

    monkeypatch.setattr(os, "write", short)

    async with sink_server(lambda seen: web.Response(status=400 if b'"000001"' in seen.body else 200)) as server:
        clock = FakeClock()
        async with receiving(settings_in(tmp_path, sinks=to(server)), clock=clock) as running:
            assert await post(running, events(1)) == 200
            await passing(clock, lambda: any(b'"Refused"' in seen.body for seen in server.seen))
    assert asked[:2] == [asked[0], asked[0] - 20]
    assert numbers_in(kept.read_bytes()) == [1]


async def test_a_report_that_is_refused_is_not_reported(tmp_path: Path) -> None:
    def picky(seen: Seen) -> web.Response:
        return web.Response(status=400 if b'"000001"' in seen.body or b'"SpoolReport"' in seen.body else 200)

    async with sink_server(picky) as server:
        clock = FakeClock()
        async with receiving(settings_in(tmp_path, sinks=to(server)), clock=clock) as running:
            assert await post(running, events(1)) == 200
            kept = tmp_path / "spool" / "refused-remote.ndjson"
            await passing(clock, lambda: kept.exists() and b'"Refused"' in kept.read_bytes())
            assert await post(running, events(2)) == 200
            await passing(clock, lambda: running.deliveries["remote"].waiting == 0)
            # The two events and the report of the first one.
            assert running.spool.committed.sequence == 3


async def test_an_address_that_is_gone_for_a_while_costs_no_line(tmp_path: Path) -> None:
    async with sink_server(lambda seen: web.Response(status=404)) as server:
        clock = FakeClock()
        async with receiving(settings_in(tmp_path, sinks=to(server)), clock=clock) as running:
            assert await post(running, events(0, 1)) == 200
            await passing(clock, lambda: len(server.seen) > 10)
            server.usual, server.seen = lambda seen: web.Response(), []
            await passing(clock, lambda: running.deliveries["remote"].waiting == 0)
    assert numbers_in(server.seen[-1].body) == [0, 1]
    assert not (tmp_path / "spool" / "refused-remote.ndjson").exists()
