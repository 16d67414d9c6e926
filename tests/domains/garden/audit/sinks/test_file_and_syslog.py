"""The sinks `file` and `syslog`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.domains.garden.audit.sinks.servers import LINES, batch

from hortus.domains.garden.audit.buffer.sinks import SinkError
from hortus.domains.garden.audit.buffer.sinks.file import FileSink
from hortus.domains.garden.audit.buffer.sinks.syslog import SyslogSink
from hortus.kube.clock import SystemClock


async def test_a_file_is_continued_without_the_half_line_that_a_crash_left(tmp_path: Path) -> None:
    path = tmp_path / "sub" / "audit.ndjson"
    path.parent.mkdir()
    path.write_bytes(b'{"a":1}\n{"a":')
    sink = FileSink(path)
    await sink.send(batch())
    await sink.close()
    assert path.read_bytes().splitlines() == [b'{"a":1}', *LINES]


async def test_a_file_is_rotated_between_batches(tmp_path: Path) -> None:
    path = tmp_path / "audit.ndjson"
    sink = FileSink(path, largest=len(batch().payload) * 2, kept=2)
    for _ in range(7):
        await sink.send(batch())
    await sink.close()
    sizes = {file.name: len(file.read_bytes().splitlines()) for file in tmp_path.iterdir()}
    assert sizes == {"audit.ndjson": 3, "audit.ndjson.1": 6, "audit.ndjson.2": 6}


async def test_a_file_that_cannot_be_written_is_an_error_and_is_tried_again(tmp_path: Path) -> None:
    path = tmp_path / "audit.ndjson"
    path.mkdir()
    sink = FileSink(path)
    with pytest.raises(SinkError, match="Is a directory"):
        await sink.send(batch())
    path.rmdir()
    await sink.send(batch())
    await sink.close()
    assert path.read_bytes() == batch().payload


async def test_syslog_messages_are_counted_and_in_order() -> None:
    received = bytearray()
    done = asyncio.Event()

    async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            received.extend(data)
        writer.close()
        done.set()

    server = await asyncio.start_server(read, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    sink = SyslogSink("127.0.0.1", port, clock=SystemClock(), name="shoot")
    await sink.send(batch())
    await sink.close()
    await done.wait()
    server.close()
    await server.wait_closed()
    times = ["2026-11-23T10:00:00.250000Z", "2026-11-23T10:00:01.000000Z", "2026-11-23T10:00:00.500000Z"]
    for time, line in zip(times, LINES, strict=True):
        size, _, rest = bytes(received).partition(b" ")
        message, received = rest[: int(size)], bytearray(rest[int(size) :])
        assert message == f"<110>1 {time} shoot kube-apiserver - audit - ".encode() + line
    assert not received


async def test_syslog_that_hangs_up_confirms_nothing() -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    sink = SyslogSink("127.0.0.1", port, clock=SystemClock())
    large = batch(*[b'{"pad":"%b"}' % (b"x" * 1000)] * 20_000)
    with pytest.raises(SinkError):
        await sink.send(large)
        await sink.send(large)
    server.close()
    await server.wait_closed()
    with pytest.raises(SinkError, match=f"127.0.0.1:{port}"):
        await sink.send(batch())
