"""Lines of a spool sent again, without a lock and without a cursor: also of a copy, or next to a receiver."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from hortus.domains.garden.audit.buffer.making import sink_of
from hortus.domains.garden.audit.buffer.settings import BufferSettingsError, read_settings
from hortus.domains.garden.audit.buffer.sinks import AuditSink, SinkBatch
from hortus.domains.garden.audit.buffer.spool import (
    Gap,
    HashChain,
    SpoolDisk,
    SpoolMarks,
    SpoolReader,
    genesis,
)
from hortus.kube.clock import SystemClock

_BATCH = 1024 * 1024


class Replayed(NamedTuple):
    """The lines that were sent, and those that could not be read."""

    lines: int
    gaps: Sequence[Gap]


def sink_named(config: Path, name: str) -> AuditSink:
    """The sink of that name in a configuration file. Raises BufferSettingsError, OSError, ValueError."""
    settings = read_settings(config)
    for part in settings.sinks:
        if part.name == name:
            return sink_of(part, SystemClock())
    known = ", ".join(part.name for part in settings.sinks)
    raise BufferSettingsError(f"{config} has no sink {name!r}; there are: {known}")


async def replay(
    folder: Path, chain: HashChain, sink: AuditSink | None, output: BinaryIO, *, first: int, end: int
) -> Replayed:
    """Sends the lines from `first` to before `end` (0 for all) to `sink`, else to `output`.

    Raises SpoolError, SinkError, OSError.
    """
    marks = SpoolMarks(folder, chain, SpoolDisk())
    identity = marks.identify(create=False)
    begin = marks.anchor().position or genesis(identity, chain)
    lines, gaps = 0, list[Gap]()
    with SpoolReader(folder, chain, begin) as reader:
        while (batch := reader.read(most_bytes=_BATCH)) is not None:
            gaps += [gap for gap in batch.gaps if not gap.torn]
            # By frame: sequence numbers jump where lines were lost.
            for payload, at in zip(batch.payloads, batch.firsts, strict=True):
                some = _between(payload, at, first, end)
                if not some:
                    continue
                lines += len(some)
                content = b"\n".join(some) + b"\n"
                if sink is None:
                    output.write(content)
                    continue
                start = max(at, first)
                await sink.send(
                    SinkBatch(
                        identity.id, start, start + len(some), len(some), content, batch.after.digest, batch.time / 1e9
                    )
                )
            if end and reader.position.sequence >= end:
                break
    return Replayed(lines, gaps)


def _between(payload: bytes, at: int, first: int, end: int) -> list[bytes]:
    """The lines of a frame that begins at sequence `at`, without those before `first` and from `end` on."""
    lines = payload[:-1].split(b"\n")
    return lines[max(first - at, 0) : max(end - at, 0) if end else len(lines)]
