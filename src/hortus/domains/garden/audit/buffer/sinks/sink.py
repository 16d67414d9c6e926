"""The seam between delivery and sinks: one batch in, a confirmation or a SinkError out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol


class SinkError(Exception):
    """A batch was not confirmed; the message holds no credential."""

    def __init__(
        self,
        message: str,
        *,
        retry_after: float = 0.0,
        too_large: bool = False,
        refused: bool = False,
        refused_lines: tuple[int, ...] = (),
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds that the sink asked for."""
        self.too_large = too_large
        """True where a smaller batch may be accepted."""
        self.refused = refused
        """True where the same batch will be refused again."""
        self.refused_lines = refused_lines
        """The lines of the batch that were refused, by index, where the sink has confirmed all others."""


class SinkBatch(NamedTuple):
    """Lines in order, as NDJSON."""

    spool: str
    first: int
    """Sequence number of the first line."""
    end: int
    """Sequence number behind the last line."""
    lines: int
    payload: bytes
    digest: str
    """Digest of the chain behind the last line: a place that a verification can be compared with."""
    time: float
    """Seconds since the Unix epoch at which the first line was received."""
    numbers: tuple[int, ...] = ()
    """Sequence number of each line, where some between them are missing; else empty."""

    @property
    def sequence(self) -> Sequence[int]:
        """Sequence number of each line."""
        return self.numbers or range(self.first, self.first + self.lines)

    def split(self) -> list[bytes]:
        """The lines without their ends."""
        return self.payload[:-1].split(b"\n")

    def halves(self) -> Iterator[SinkBatch]:
        middle = self.lines // 2
        yield self.part(slice(middle))
        yield self.part(slice(middle, None))

    def part(self, which: slice) -> SinkBatch:
        """Some lines that follow on each other, at least one."""
        lines, numbers = self.split()[which], self.sequence[which]
        return self._replace(
            first=numbers[0],
            end=numbers[-1] + 1,
            lines=len(lines),
            payload=b"\n".join(lines) + b"\n",
            numbers=tuple(numbers) if self.numbers else (),
        )


class AuditSink(Protocol):
    """A destination of audit events. `send` returns once the other side has confirmed the whole batch."""

    async def send(self, batch: SinkBatch) -> None:
        """Raises SinkError."""

    async def close(self) -> None:
        """Closes connections."""
