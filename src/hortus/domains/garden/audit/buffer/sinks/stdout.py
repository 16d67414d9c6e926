"""Sink `stdout`: lines on the standard output of the process, where a node's log collector takes them."""

from __future__ import annotations

import asyncio
import os

from hortus.domains.garden.audit.buffer.sinks.sink import SinkBatch, SinkError

_STANDARD_OUTPUT = 1


class StdoutSink:
    """`file` is the descriptor that is written to."""

    def __init__(self, file: int = _STANDARD_OUTPUT) -> None:
        self._file = file

    async def send(self, batch: SinkBatch) -> None:
        try:
            await asyncio.to_thread(self._write, batch.payload)
        except OSError as error:
            raise SinkError(f"standard output: {error.strerror or error}") from error

    async def close(self) -> None:
        """The output belongs to the process."""

    def _write(self, payload: bytes) -> None:
        rest = memoryview(payload)
        while rest:
            rest = rest[os.write(self._file, rest) :]
