"""Delivery to one sink: in order, at least once, again and again until it is confirmed.

A batch is confirmed as a whole, and only then does the cursor move; a crash in between sends it again. A sink that is
down costs one attempt per pause. A batch that is too large is halved. A line that the sink refuses for itself is set
aside in a file after some attempts, counted, and reported in the chain, so that it does not hold up all that follow.
"""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path
from typing import Protocol

import structlog

from hortus.domains.garden.audit.buffer.metrics import BufferMetrics
from hortus.domains.garden.audit.buffer.sinks.sink import AuditSink, SinkBatch, SinkError
from hortus.domains.garden.audit.buffer.spool import (
    Gap,
    ReportReason,
    Spool,
    SpoolBatch,
    SpoolReader,
    SpoolReport,
    is_report,
)
from hortus.engine.backoff import Backoff
from hortus.engine.redaction import redact_text
from hortus.kube.clock import Clock

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_PAUSES = Backoff(first=0.5, cap=60.0, jitter=0.2)
_LONGEST_PAUSE = 300.0
"""Seconds that a sink may ask for."""
_REFUSALS = 5
"""Attempts after which a line that the sink refuses for itself is set aside."""


class DeliveryListener(Protocol):
    """The part of the committer that deliveries use."""

    def report(self, report: SpoolReport) -> None: ...

    def made_room(self) -> None: ...


class SinkDelivery:
    """Empties the spool into one sink; `run` until cancelled."""

    def __init__(
        self,
        name: str,
        sink: AuditSink,
        spool: Spool,
        listener: DeliveryListener,
        metrics: BufferMetrics,
        *,
        clock: Clock,
        batch_bytes: int,
        linger: float = 0.0,
    ) -> None:
        self.name = name
        self.problem = ""
        """The reason for which the last attempt failed; empty when it did not."""
        self.news = asyncio.Event()
        self._sink = sink
        self._spool = spool
        self._listener = listener
        self._metrics = metrics
        self._clock = clock
        self._batch_bytes = batch_bytes
        self._linger = linger
        self._random = random.Random()  # noqa: S311 - jitter, not secrecy
        self._reader = SpoolReader(spool.folder, spool.chain, spool.cursor(name), live=spool)

    @property
    def waiting(self) -> int:
        """Lines that the sink has not confirmed."""
        return self._spool.committed.sequence - self._spool.cursor(self.name).sequence

    async def run(self) -> None:
        try:
            while True:
                self.news.clear()
                batch = await self._read()
                if batch is None:
                    await self.news.wait()
                    if self._linger:
                        await self._clock.sleep(self._linger)
                    continue
                await self._deliver(batch)
        finally:
            self._reader.close()

    async def _read(self) -> SpoolBatch | None:
        """The next batch, read by a thread that is waited for even when this is cancelled: it uses open files."""
        failures = 0
        while True:
            reading = asyncio.ensure_future(asyncio.to_thread(self._reader.read, most_bytes=self._batch_bytes))
            try:
                return await asyncio.shield(reading)
            except asyncio.CancelledError:
                await asyncio.wait([reading])
                raise
            except OSError as error:
                self.problem = f"the spool cannot be read: {error}"
                _log.error("the spool cannot be read", sink=self.name, error=str(error))
                await self._clock.sleep(_PAUSES.delay(failures, random=self._random))
                failures += 1

    async def _deliver(self, batch: SpoolBatch) -> None:
        for gap in batch.gaps:
            self._report_gap(gap)
        if batch.payloads:
            await self._send(self._sink_batch(batch))
        try:
            self._spool.confirm(self.name, batch.after)
        except OSError as error:
            _log.warning("a cursor cannot be written", sink=self.name, error=str(error))
        self._metrics.delivered.labels(self.name).inc(batch.lines)
        self._listener.made_room()

    def _sink_batch(self, batch: SpoolBatch) -> SinkBatch:
        return SinkBatch(
            spool=self._spool.identity.id,
            first=batch.first,
            end=batch.end,
            lines=batch.lines,
            payload=b"".join(batch.payloads),
            digest=batch.after.digest,
            time=batch.time / 1e9,
            numbers=_numbers(batch) if batch.end - batch.first != batch.lines else (),
        )

    async def _send(self, batch: SinkBatch) -> None:
        """Returns when all lines are confirmed, or set aside."""
        failures = 0
        while True:
            try:
                await self._sink.send(batch)
            except SinkError as error:
                failures += 1
                self._failed(error)
                if error.too_large and batch.lines > 1:
                    return await self._halved(batch)
                if (error.refused or error.too_large) and failures >= _REFUSALS:
                    if error.refused_lines:
                        return await self._without(batch, error)
                    if batch.lines > 1:
                        return await self._halved(batch)
                    return await self._set_aside(batch, error)
                pause = _PAUSES.delay(failures - 1, random=self._random)
                await self._clock.sleep(max(pause, min(error.retry_after, _LONGEST_PAUSE)))
            else:
                self.problem = ""
                return None

    def _failed(self, error: SinkError) -> None:
        text = redact_text(str(error))
        if text != self.problem:
            _log.warning("a sink did not confirm", sink=self.name, error=text)
        self.problem = text
        self._metrics.failures.labels(self.name).inc()

    async def _halved(self, batch: SinkBatch) -> None:
        for half in batch.halves():
            await self._send(half)

    async def _without(self, batch: SinkBatch, error: SinkError) -> None:
        """Sets the refused lines aside; the sink has the others."""
        for index in error.refused_lines:
            await self._set_aside(batch.part(slice(index, index + 1)), error)

    async def _set_aside(self, batch: SinkBatch, error: SinkError) -> None:
        path = self._spool.folder / f"refused-{self.name}.ndjson"
        await self._keep(path, batch.payload)
        self._metrics.refused.labels(self.name).inc()
        if is_report(batch.payload):
            # A sink that refuses reports would be sent one more for each.
            return
        text = f"sink {self.name} refused the line, which is kept in {path.name}: {redact_text(str(error))}"
        self._listener.report(SpoolReport(reason=ReportReason.REFUSED, message=text, first=batch.first, end=batch.end))

    async def _keep(self, path: Path, content: bytes) -> None:
        """Returns when `content` is in the file; a disk without room is waited for."""
        failures = 0
        while True:
            try:
                return await asyncio.to_thread(_append, path, content)
            except OSError as error:
                self.problem = f"a refused line cannot be kept in {path.name}: {error.strerror or error}"
                _log.error("a refused line cannot be kept", sink=self.name, file=path.name, error=str(error))
                await self._clock.sleep(_PAUSES.delay(failures, random=self._random))
                failures += 1

    def _report_gap(self, gap: Gap) -> None:
        self._metrics.damaged.labels(self.name).inc()
        where = f"segment {gap.segment}, offset {gap.offset}: {gap.reason}"
        text = f"found on the way to sink {self.name}: {where}"
        self._listener.report(SpoolReport(reason=ReportReason.ALTERED, message=text, first=gap.first, end=gap.end))


def _numbers(batch: SpoolBatch) -> tuple[int, ...]:
    """Sequence number of each line; they jump where lines were lost."""
    frames = zip(batch.firsts, batch.payloads, strict=True)
    return tuple(number for first, payload in frames for number in range(first, first + payload.count(b"\n")))


def _append(path: Path, content: bytes) -> None:
    """Appends all of `content`, or raises OSError and leaves the file as it was."""
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(file).st_size
        try:
            rest = memoryview(content)
            while rest:
                rest = rest[os.write(file, rest) :]
            os.fsync(file)
        except OSError:
            os.ftruncate(file, size)
            raise
    finally:
        os.close(file)
