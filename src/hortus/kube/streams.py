"""Streams whose lines may be taken as they arrive, without waking the task that reads them.

Ten thousand watches at rest each get a bookmark a minute. The line costs less than its way: the HTTP parser, a timer
that is set again, a future, and a task with its generators. A chunk of a single line that arrives while the reader has
nothing left to read is offered to a function first; when that takes it, nothing else runs. All other bytes go the usual
way.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final

from aiohttp.client_exceptions import ClientPayloadError
from aiohttp.client_proto import ResponseHandler
from aiohttp.streams import StreamReader

from hortus.kube.transport import Absorb

_CHUNK_END: Final = b"\n\r\n"
"""The end of a line and of its chunk; JSON has no line end within. An answer's head ends so, too."""
_LONGEST_SIZE: Final = 10
"""Bytes of the size of a chunk, with the end of its line."""
_TOGETHER: Final = 5.0
"""Seconds by which a silent server may be given up later than asked for."""


def sole_line(data: bytes) -> bytes | None:
    """The line, without its end, of bytes that are one whole chunk with one whole line; None for any others.

    A chunk begins with its size (RFC 9112, section 7.1); one with zeros in front or extensions is not recognised.
    """
    begin, end = data.find(b"\r\n", 0, _LONGEST_SIZE) + 2, len(data) - len(_CHUNK_END)
    if begin < 2 or end < begin or not data.endswith(_CHUNK_END) or data.find(b"\n", begin, end) >= 0:
        return None
    return data[begin:end] if data[: begin - 2].lower() == b"%x" % (end + 1 - begin) else None


class StreamHandler(ResponseHandler):
    """One connection of aiohttp. A stream sets `absorb`; its reader sets `awaited` when it has read all there was."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self.absorb: Absorb | None = None
        self.awaited = False
        """True while the reader waits and nothing is on its way to it."""
        self._between = False
        """True when the parser stands between two chunks."""
        self._heard = 0.0

    def data_received(self, data: bytes) -> None:
        # No bytes are aiohttp's way to let the parser continue with what it has.
        if data and self.absorb is not None:
            if self.awaited and self._between and (line := sole_line(data)) and self.absorb(line):
                self._heard = self._loop.time()
                return
            self.awaited, self._between = False, data.endswith(_CHUNK_END)
        super().data_received(data)

    # A session that closes its connections forgets who reads from them: a watch would wait for ever.

    def close(self) -> None:
        unfinished = self._payload
        super().close()
        _end(unfinished)

    def abort(self) -> None:
        unfinished = self._payload
        super().abort()
        _end(unfinished)

    # aiohttp sets its timer for a silent server again at each piece; here it is, at its end, set for what is left. The
    # timers of many streams end together, since each wake of the loop costs more than what one of them does.

    def _reschedule_timeout(self) -> None:
        self._heard = self._loop.time()
        if self._read_timeout_handle is None:
            super()._reschedule_timeout()

    def _on_read_timeout(self) -> None:
        self._read_timeout_handle = None
        left = self._heard + (self._read_timeout or 0.0) - self._loop.time()
        if left > 0.0:
            end = self._loop.time() + left
            end = math.ceil(end / _TOGETHER) * _TOGETHER if left > _TOGETHER else end
            self._read_timeout_handle = self._loop.call_at(end, self._on_read_timeout)
        else:
            super()._on_read_timeout()


def _end(body: StreamReader | None) -> None:
    if body is not None and not body.is_eof():
        body.set_exception(ClientPayloadError("the connection was closed"))
