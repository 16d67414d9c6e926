"""Audit logs sent to a receiver, as an API server's webhook sends events: for logs of the time before there was one."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

from hortus.domains.garden.audit.buffer.sinks.calling import SinkCaller

_LIST = b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[%b]}'
_MOST_BYTES = 1024 * 1024


async def send_log(path: Path, url: str, *, context: ssl.SSLContext | None) -> int:
    """Sends the lines of a log file to a receiver; returns their number. Raises SinkError, OSError."""
    caller, sent = SinkCaller(timeout=60.0, context=context), 0
    try:
        for lines in _groups(path):
            body = _LIST % b",".join(lines)
            await caller.send("POST", url, body, {"Content-Type": "application/json"})
            sent += len(lines)
    finally:
        await caller.close()
    return sent


def _groups(path: Path) -> Iterator[list[bytes]]:
    """The whole lines of a file, in requests of about a mebibyte."""
    group: list[bytes] = []
    size = 0
    with path.open("rb") as file:
        for line in file:
            if not line.endswith(b"\n"):
                # The log is being written: the rest of the line comes later.
                break
            group.append(line[:-1])
            size += len(line)
            if size >= _MOST_BYTES:
                yield group
                group, size = [], 0
    if group:
        yield group
