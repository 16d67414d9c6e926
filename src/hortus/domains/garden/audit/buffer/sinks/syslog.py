"""Sink `syslog`: RFC 5424 messages over TCP or TLS, with the octet counting of RFC 5425 and RFC 6587.

The protocol has no acknowledgement. On Linux a batch counts as confirmed when the other machine's kernel has it, which
the socket reports; a receiver that fails with lines in its memory loses them all the same.
"""

from __future__ import annotations

import asyncio
import fcntl
import ssl
import struct
import sys

from hortus.domains.garden.audit.buffer.sinks.lines import seconds_of
from hortus.domains.garden.audit.buffer.sinks.sink import SinkBatch, SinkError
from hortus.kube.clock import Clock
from hortus.kube.objects import format_micro_time

_UNSENT = 0x5411
"""SIOCOUTQ of Linux: bytes that the other side's kernel has not confirmed."""
_LOOK_EVERY = 0.005
_PRIORITY = 13 * 8 + 6
"""Facility 13 (log audit), severity 6 (informational)."""


class SyslogSink:
    """`context` is the TLS context; None sends plain TCP."""

    def __init__(
        self,
        host: str,
        port: int,
        *,
        clock: Clock,
        context: ssl.SSLContext | None = None,
        name: str = "-",
        timeout: float = 30.0,
    ) -> None:
        self._place = f"{host}:{port}"
        self._host, self._port = host, port
        self._clock = clock
        self._context = context
        self._name = name
        self._timeout = timeout
        self._writer: asyncio.StreamWriter | None = None

    async def send(self, batch: SinkBatch) -> None:
        messages = b"".join(map(self._message, batch.split(), [batch.time] * batch.lines))
        try:
            async with asyncio.timeout(self._timeout):
                await self._sent(messages)
        except TimeoutError as error:
            await self.close()
            raise SinkError(f"{self._place}: {str(error) or f'no answer within {self._timeout:g} s'}") from error
        except (OSError, EOFError) as error:
            await self.close()
            raise SinkError(f"{self._place}: {str(error) or type(error).__name__}") from error

    async def close(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def _message(self, line: bytes, received: float) -> bytes:
        time = format_micro_time(seconds_of(line, received))
        message = f"<{_PRIORITY}>1 {time} {self._name} kube-apiserver - audit - ".encode() + line
        return b"%d %b" % (len(message), message)

    async def _sent(self, messages: bytes) -> None:
        if self._writer is None:
            reader, self._writer = await asyncio.open_connection(self._host, self._port, ssl=self._context)
            self._reader = reader
        if self._reader.at_eof():
            raise EOFError("the connection was closed")
        self._writer.write(messages)
        await self._writer.drain()
        while self._unconfirmed(self._writer):
            if self._reader.at_eof():
                raise EOFError("the connection was closed before all was confirmed")
            await self._clock.sleep(_LOOK_EVERY)

    def _unconfirmed(self, writer: asyncio.StreamWriter) -> int:
        waiting = writer.transport.get_write_buffer_size()
        if waiting or sys.platform != "linux":
            return waiting
        file: int = writer.get_extra_info("socket").fileno()
        return int(struct.unpack("i", fcntl.ioctl(file, _UNSENT, bytes(4)))[0])
