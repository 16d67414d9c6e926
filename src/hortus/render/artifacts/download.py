"""Downloads that go on where they were cut off.

A source opens the transfer from a place in the bytes; a sink takes them. A try that brought something forward does not
count against the number of tries, so a large file comes through a bad line, and one that never moves ends soon.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

import aiohttp

from hortus.render.artifacts.digests import Digest, hasher, is_sum
from hortus.render.artifacts.errors import ArtifactError, BadAnswer, DigestMismatch, RateLimited, TooLarge, Unavailable
from hortus.render.artifacts.transfer import Transfer

Source = Callable[[int], AbstractAsyncContextManager[aiohttp.ClientResponse]]
"""Opens the answer that starts at a byte; that server's own refusals are its to raise."""

_RANGE = re.compile(r"bytes (\d{1,15})-(\d{1,15})/(\d{1,15}|\*)")
_MOST_TRIES = 50


class Sink(Protocol):
    """The receiver of the bytes of one artifact."""

    @property
    def size(self) -> int:
        """Bytes taken so far."""

    def write(self, piece: bytes) -> None:
        """Take the next bytes. Raises ArtifactError."""

    def restart(self) -> None:
        """Forget all bytes taken."""


class MemorySink:
    """Keeps the bytes in memory; `value()` gives them once they have the digest."""

    def __init__(self, digest: Digest | None = None) -> None:
        self._digest = digest
        self._parts: list[bytes] = []
        self.size = 0

    def write(self, piece: bytes) -> None:
        self._parts.append(piece)
        self.size += len(piece)

    def restart(self) -> None:
        self._parts.clear()
        self.size = 0

    def value(self, place: str) -> bytes:
        """All of it. Raises DigestMismatch, naming `place`."""
        data = b"".join(self._parts)
        if self._digest is not None:
            found = hasher(self._digest)
            found.update(data)
            if not is_sum(self._digest, found):
                raise mismatch(place, self._digest)
        return data


def mismatch(place: str, digest: Digest) -> DigestMismatch:
    advice = "the server or something on the way changed it; nothing of it is kept"
    return DigestMismatch(place, f"what came does not have the digest {digest}", advice)


async def download(
    transfer: Transfer, source: Source, sink: Sink, *, place: str, size: int | None, largest: int
) -> None:
    """Fill `sink` to `size` bytes, or to the end when it is None. Raises ArtifactError."""
    attempt, started = 0, transfer.clock.monotonic()
    for _ in range(_MOST_TRIES):
        attempt += 1
        before = sink.size
        try:
            await _pass(source, sink, place, size, largest)
            return
        except (Unavailable, RateLimited) as error:
            attempt = 1 if sink.size > before else attempt
            late = transfer.clock.monotonic() - started > transfer.settings.whole_timeout
            if late or not await transfer.pause(attempt, error.retry_after):
                raise
    raise Unavailable(place, f"not whole after {_MOST_TRIES} tries")


async def _pass(source: Source, sink: Sink, place: str, size: int | None, largest: int) -> None:
    if size is not None and sink.size > size:
        sink.restart()
    if size is not None and sink.size == size:
        return
    start = sink.size
    async with source(start) as response:
        if start and not _continues(response, start, size):
            sink.restart()
        if response.status == 416:
            raise Unavailable(place, "the server cannot go on from where it was cut off")
        if response.status not in (200, 206) or (response.status == 206 and not start):
            raise BadAnswer(place, f"the download was answered with HTTP status {response.status}")
        allowed = largest if size is None else size
        async for piece in response.content.iter_any():
            if sink.size + len(piece) > allowed:
                raise _too_large(place, allowed, stated=size is not None)
            sink.write(piece)
    if size is not None and sink.size != size:
        raise Unavailable(place, f"the download ended after {sink.size} of {size} bytes")


def _continues(response: aiohttp.ClientResponse, start: int, size: int | None) -> bool:
    """True when the answer is the part asked for; a server may send the whole instead."""
    if response.status != 206:
        return False
    found = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if found is None or int(found[1]) != start:
        raise BadAnswer("the download", "the server went on from another place than it was asked to")
    if size is not None and found[3] not in ("*", str(size)):
        raise BadAnswer("the download", f"the server says the whole has {found[3]} bytes instead of {size}")
    return True


def _too_large(place: str, allowed: int, *, stated: bool) -> ArtifactError:
    return TooLarge(place, f"longer than the {'stated' if stated else 'allowed'} {allowed} bytes")
