"""The connections that the store opens to etcd, against a server that counts them."""

from __future__ import annotations

import asyncio
import base64

import pytest
from aiohttp import web
from hypothesis import example, given
from hypothesis import strategies as st
from tests.kube.scripted import json, serving

from hortus.apiserver.store._storewire import StoreWire, WriteUnsettled
from hortus.apiserver.store.backend import StoreFailed
from hortus.etcd import wire as etcdwire
from hortus.etcd.wire import CONNECTIONS, EtcdFailed, EtcdWire, span


class Etcd:
    """Answers nothing until the test lets it."""

    def __init__(self) -> None:
        self.going = 0
        self.most = 0
        self.sockets: set[object] = set()
        self.full = asyncio.Event()
        self.answer = asyncio.Event()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.sockets.add(request.transport)
        self.going += 1
        self.most = max(self.most, self.going)
        if self.going >= CONNECTIONS:
            self.full.set()
        try:
            await self.answer.wait()
        finally:
            self.going -= 1
        return json({"header": {"revision": "1"}})


@given(st.binary(max_size=4), st.lists(st.binary(max_size=6), max_size=20))
@example(b"\x01\xff", [b"\x01\xff\xff", b"\x02", b"\x01\xfe"])
@example(b"ab\xff\xff", [b"ab\xff\xff\x00", b"ac", b"bb"])
@example(b"\xff", [b"\xff", b"\xfe\xff"])
def test_a_span_holds_the_keys_that_begin_with_its_prefix(prefix: bytes, keys: list[bytes]) -> None:
    fields = span(prefix)
    first, end = (base64.b64decode(fields[name]) for name in ("key", "range_end"))
    for key in [prefix + key for key in keys] + keys:
        assert key.startswith(prefix) == (key >= first and (end == b"\0" or key < end))


def test_a_store_without_endpoints_is_refused() -> None:
    with pytest.raises(ValueError, match="no etcd endpoint given"):
        EtcdWire([])


async def test_however_many_calls_there_are_the_connections_to_etcd_are_bounded() -> None:
    etcd = Etcd()
    async with serving(etcd) as access:
        wire = EtcdWire([access.server])
        await wire.start()
        try:
            calls = [asyncio.create_task(wire.call("/v3/kv/range", {})) for _ in range(500)]
            async with asyncio.timeout(60):
                await etcd.full.wait()
                etcd.answer.set()
                answers = await asyncio.gather(*calls)
            assert len(answers) == 500
            assert etcd.most == CONNECTIONS
            assert len(etcd.sockets) <= CONNECTIONS
        finally:
            await wire.close()


async def test_calls_that_find_no_connection_in_time_fail_and_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    etcd = Etcd()
    async with serving(etcd) as access:
        wire = EtcdWire([access.server])
        await wire.start()
        try:
            hanging = [asyncio.create_task(wire.call("/v3/kv/range", {})) for _ in range(CONNECTIONS)]
            async with asyncio.timeout(60):
                await etcd.full.wait()
            monkeypatch.setattr(etcdwire, "_CALL_SECONDS", 0.05)
            with pytest.raises(EtcdFailed, match=f"{CONNECTIONS} calls hang"):
                await wire.call("/v3/kv/range", {})
            monkeypatch.undo()
            etcd.answer.set()
            await asyncio.gather(*hanging)
            assert await wire.call("/v3/kv/range", {}) == {"header": {"revision": "1"}}
        finally:
            await wire.close()


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (503, b'{"error":"no member","code":14}', "no member"),
        (503, b"", "HTTP status 503"),
        (200, b"", "ended the watch"),
        (200, b'{"result":{"created":true}}\n', "ended the watch"),
    ],
)
async def test_a_watch_that_ends_says_so_whether_its_last_line_is_whole_or_not(
    status: int, body: bytes, reason: str
) -> None:
    """The reader pauses after an error; an end without one would be answered by the next watch at once, for ever."""

    async def ending(_: web.Request) -> web.Response:
        return web.Response(status=status, body=body)

    async with serving(ending) as access:
        wire = EtcdWire([access.server])
        await wire.start()
        try:
            with pytest.raises(EtcdFailed, match=reason):
                async for message in wire.watch({}):
                    assert message == {"created": True}
        finally:
            await wire.close()


async def test_a_read_whose_leader_changes_is_asked_again_and_a_write_is_not() -> None:
    asked: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        if len(asked) in (1, 3):
            return json({"code": 14, "message": "etcdserver: leader changed"}, status=503)
        return json({"header": {"revision": "7"}})

    async with serving(answer) as access:
        wire = StoreWire([access.server])
        await wire.start()
        try:
            assert await wire.call("/v3/kv/range", {}) == {"header": {"revision": "7"}}
            with pytest.raises(StoreFailed, match="leader changed"):
                await wire.call("/v3/kv/txn", {})
        finally:
            await wire.close()
    assert asked == ["/v3/kv/range", "/v3/kv/range", "/v3/kv/txn"]


async def test_a_write_that_etcd_gives_up_on_is_unsettled() -> None:
    async def answer(_: web.Request) -> web.StreamResponse:
        return json(
            {"code": 14, "message": "etcdserver: request timed out, possibly due to connection lost"}, status=503
        )

    async with serving(answer) as access:
        wire = StoreWire([access.server])
        await wire.start()
        try:
            with pytest.raises(WriteUnsettled, match="possibly due to connection lost"):
                await wire.call("/v3/kv/txn", {})
        finally:
            await wire.close()
