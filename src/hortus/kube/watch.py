"""Watching one collection: from lines of JSON to events, across the server's own time limits.

A `Watch` asks the server for a stream of one to two watch periods and, when that ends in good order, continues from the
last resourceVersion seen (events and bookmarks), so a caller sees one endless sequence. A stream with bookmarks that is
silent for two bookmark periods is ended. Failures are never hidden: a broken connection, an ERROR event and half a line
are raised as `KubeError`s; `resource_version` is then the start for a new watch. After `Expired` only a new list helps
(Kubernetes API Concepts, "Efficient detection of changes").
"""

from __future__ import annotations

import contextlib
import random
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from types import TracebackType
from typing import Any, NamedTuple, Self

import orjson

from hortus.kube.errors import Expired, Garbage, Gone, KubeError, ResponseTooLarge, from_status
from hortus.kube.objects import Object, is_object
from hortus.kube.transport import Transport

ADDED, MODIFIED, DELETED, BOOKMARK, ERROR = "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"
_BOOKMARK_BEGIN = b'{"type":"BOOKMARK",'
"""The begin of a bookmark as API servers write it. One that begins otherwise is an event like others."""
_BOOKMARK = re.compile(
    rb'\{"type":"BOOKMARK","object":\{(?:"(?:kind|apiVersion)":"[\w./-]*",){0,2}'
    rb'"metadata":\{"resourceVersion":"([0-9]+)"(?:,"creationTimestamp":null)?\}\}\}'
)
"""One of a custom resource or of metadata alone. Others are decoded."""
_KINDS = (ADDED, MODIFIED, DELETED, BOOKMARK)
INITIAL_EVENTS_END = "k8s.io/initial-events-end"
"""Annotation of the bookmark that ends the initial events (KEP-3157)."""
_GRACE = 30.0
"""Seconds beyond its own time limit after which a silent server is given up."""
_EMPTY_PAUSE = 1.0
"""Seconds to wait after a stream that ended without a single event, to spare a broken server."""


class WatchEvent(NamedTuple):
    """One line of a watch. `type` is ADDED, MODIFIED, DELETED or BOOKMARK."""

    type: str
    object: Object


class Watch:
    """An endless `AsyncIterator[WatchEvent]`; `async with` or `aclose()` ends it at once.

    It ends only when it cannot resume: it began without a resourceVersion (or with "0") and the server closed it before
    the first bookmark, so that the initial events may be incomplete.
    """

    def __init__(
        self,
        connection: Transport,
        target: Callable[[str, int], str],
        *,
        accept: str,
        resource_version: str,
        resumable: bool,
        bookmarks: bool,
        timeout: float | None,
        on_bookmark: Callable[[str], None] | None = None,
        decode: Callable[[bytes], Any] = orjson.loads,
    ) -> None:
        self.resource_version = resource_version
        """The newest version this watch has handed out; "" before the first."""
        self._connection = connection
        self._target = target
        self._accept = accept
        self._timeout = timeout
        self._bookmarks = bookmarks
        self._resumable = resumable
        self._on_bookmark = on_bookmark
        self._decode = decode
        self._longest = connection.settings.max_event
        self._events = self._run()

    def __aiter__(self) -> AsyncIterator[WatchEvent]:
        return self._events

    async def __anext__(self) -> WatchEvent:
        return await anext(self._events)

    async def aclose(self) -> None:
        """Ends the watch and its connection."""
        await self._events.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def _run(self) -> AsyncGenerator[WatchEvent, None]:
        while True:
            before = self.resource_version
            shortest = self._connection.settings.watch_period
            seconds = self._timeout or random.uniform(shortest, 2 * shortest)  # noqa: S311 - spreads a crowd
            target = self._target(self.resource_version, max(1, int(seconds)))
            splitter = LineSplitter(self._connection.host, self._connection.settings.max_event)
            stream = self._connection.stream(
                target,
                accept=self._accept,
                idle_timeout=self._silence(seconds),
                absorb=self._absorb if self._on_bookmark is not None else None,
            )
            with _gone_is_expired():
                async with stream as read:
                    while piece := await read():
                        for line in splitter.feed(piece):
                            yield self._event(line)
                    splitter.finish()
            if not self._resumable:
                return
            if self.resource_version == before:
                await self._connection.clock.sleep(_EMPTY_PAUSE)

    def _silence(self, seconds: float) -> float:
        """Seconds without a byte after which a stream of `seconds` is given up.

        TCP keeps a connection whose server hangs; bookmarks show that it lives.
        """
        longest = seconds + _GRACE
        return min(2 * self._connection.settings.bookmark_period, longest) if self._bookmarks else longest

    def _absorb(self, line: bytes) -> bool:
        """Takes a bookmark where it arrives, so that no task is woken for it. All before it has been read.

        An empty line says as much as one of the version that is known already.
        """
        if not line and self.resource_version and self._on_bookmark is not None:
            self._on_bookmark(self.resource_version)
            return True
        if not line.startswith(_BOOKMARK_BEGIN) or len(line) > self._longest or self._on_bookmark is None:
            return False
        if (plain := _BOOKMARK.fullmatch(line)) is not None:
            version = self.resource_version = plain[1].decode()
            self._resumable = True
            self._on_bookmark(version)
            return True
        return self._absorb_other(line, self._on_bookmark)

    def _absorb_other(self, line: bytes, on_bookmark: Callable[[str], None]) -> bool:
        """Takes a bookmark of another form; what only looks like one is left to the reader."""
        try:
            event = self._decoded(line)
        except Exception:
            return False  # the reader decodes it, too, and raises it where somebody catches it
        metadata = event.object["metadata"]
        version = metadata["resourceVersion"]
        if event.type != BOOKMARK or not version or metadata.get("annotations"):
            return False
        self._note(event)
        on_bookmark(version)
        return True

    def _event(self, line: bytes) -> WatchEvent:
        event = self._decoded(line)
        self._note(event)
        return event

    def _note(self, event: WatchEvent) -> None:
        if version := event.object["metadata"]["resourceVersion"]:
            self.resource_version = version
        if event.type == BOOKMARK:
            self._resumable = True

    def _decoded(self, line: bytes) -> WatchEvent:
        """The event in a line. Raises Garbage, and the error of an ERROR event."""
        try:
            event = self._decode(line)
            kind, obj = event["type"], event["object"]
            if kind == ERROR:
                raise self._error(obj)
            version = obj["metadata"]["resourceVersion"]
            if kind not in _KINDS or type(version) is not str or (kind != BOOKMARK and not is_object(obj)):
                raise TypeError
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            raise Garbage(self._connection.host, "a line of a watch is not a watch event", "watch again") from None
        return WatchEvent(kind, obj)

    def _error(self, status: Object) -> KubeError:
        code = status.get("code")
        return from_status(code if isinstance(code, int) else 500, status)


@contextlib.contextmanager
def _gone_is_expired() -> Iterator[None]:
    """Every 410 of a watch, as its answer or as an event, means the same: list again."""
    try:
        yield
    except Gone as error:
        raise Expired(error.message, details=error.details, retry_after=error.retry_after) from None


class LineSplitter:
    """Splits a stream into lines; holds at most one unfinished line of `limit` bytes."""

    def __init__(self, host: str, limit: int) -> None:
        self._host = host
        self._limit = limit
        self._rest: list[bytes] = []
        self._size = 0

    def feed(self, piece: bytes) -> list[bytes]:
        """The lines that `piece` completes, without empty ones. Raises ResponseTooLarge for a line beyond the limit."""
        *whole, last = piece.split(b"\n")
        if whole and self._rest:
            whole[0] = b"".join((*self._rest, whole[0]))
            self._rest, self._size = [], 0
        if last:
            self._rest.append(last)
            self._size += len(last)
            if self._size > self._limit:
                raise ResponseTooLarge(
                    self._host, f"one event of a watch is longer than {self._limit} bytes", "raise max_event"
                )
        return [line for line in whole if line]

    def finish(self) -> None:
        """Marks the end of the stream. Raises Garbage when half a line is left."""
        if b"".join(self._rest).strip():
            raise Garbage(self._host, "a watch ended in the middle of a line", "watch again")
