"""WATCH: changes of the store as lines of ADDED, MODIFIED, DELETED, BOOKMARK and ERROR events.

Each event is encoded once per kind and version however many watchers there are: a small table per kind holds the newest
lines by revision. With a selector, MODIFIED becomes ADDED or DELETED as the object enters or leaves the selection.
Sources: "Kubernetes API Concepts", efficient detection of changes; KEP-3157 (sendInitialEvents).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from typing import NamedTuple

import orjson

from hortus.apiserver.http.queries import Query, flag, seconds
from hortus.apiserver.resources.context import OperationContext
from hortus.apiserver.resources.failures import forbidden_field, invalid_options
from hortus.apiserver.resources.kind import Kind, cut_revision
from hortus.apiserver.resources.reading import any_age, check_not_future, revision_in
from hortus.apiserver.resources.scope import RequestScope
from hortus.apiserver.resources.selection import ObjectSelection, selection_of
from hortus.apiserver.resources.versions import presented_changes, presented_page
from hortus.apiserver.store.backend import Commit, RevisionCompacted, RevisionInFuture, StoreWatch
from hortus.kube.errors import ApiError, BadRequest, Expired, InternalError
from hortus.kube.selectors import FieldRequirement, FieldSelector

_BOOKMARK_EVERY = 60.0
"""Seconds between bookmarks (kube-apiserver sends one about each minute)."""
_SHORTEST_TIMEOUT, _LONGEST_TIMEOUT = 1.0, 24 * 3600.0
_DEFAULT_TIMEOUT = 45 * 60.0
"""Default seconds for which a watch stays open (kube-apiserver: 30 to 60 minutes)."""
_KEPT_LINES, _KEPT_BYTES = 2048, 16 * 1024 * 1024
_PIECE = 256 * 1024
"""Bytes that are sent before the server waits for the client, to bound the buffer of a slow one."""

Send = Callable[[bytes], Awaitable[None]]
"""Writes whole lines to the client; raises ConnectionError when it has gone."""


class EncodedEvent(NamedTuple):
    type: str
    value: bytes


class WatchOptions(NamedTuple):
    selection: ObjectSelection | None
    after: int
    initial: bool
    """Begin with the present state as ADDED events."""
    initial_end: bool
    """Send a bookmark at the end of the initial events."""
    bookmarks: bool
    timeout: float
    fresh: bool = True
    """True if the present state must be that of the whole store, not just the state known to this server."""


async def watch_options(ctx: OperationContext, scope: RequestScope, query: Query) -> WatchOptions:
    """The options of a watch. Raises Invalid, BadRequest, Timeout (initial events of a revision in the future)."""
    selection = selection_of(scope.kind, query.get("labelSelector", ""), _fields(scope, query))
    revision = revision_in(query)
    sent = query.get("sendInitialEvents")
    match = query.get("resourceVersionMatch", "")
    if sent is not None and match != "NotOlderThan":
        raise invalid_options(
            "ListOptions",
            [
                forbidden_field(
                    "resourceVersionMatch", "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
                )
            ],
        )
    if sent is None and match:
        problem = forbidden_field(
            "resourceVersionMatch", "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        )
        raise invalid_options("ListOptions", [problem])
    streaming = flag(query, "sendInitialEvents")
    if streaming:
        await check_not_future(ctx, revision)
    timeout = seconds(query, "timeoutSeconds") or _DEFAULT_TIMEOUT
    return WatchOptions(
        selection,
        after=revision,
        initial=streaming or (sent is None and not revision),
        initial_end=streaming and flag(query, "allowWatchBookmarks"),
        bookmarks=flag(query, "allowWatchBookmarks"),
        timeout=min(max(timeout, _SHORTEST_TIMEOUT), _LONGEST_TIMEOUT),
        fresh=not any_age(query),
    )


def _fields(scope: RequestScope, query: Query) -> str:
    """The field selector; a watch of one object by its path selects that one alone. Raises BadRequest."""
    fields = query.get("fieldSelector", "")
    if not scope.name:
        return fields
    if not fields:
        return str(FieldSelector([FieldRequirement("metadata.name", scope.name)]))
    try:
        selected = FieldSelector.parse(fields).required("metadata.name")
    except ValueError as error:
        raise BadRequest(str(error)) from None
    if selected != scope.name:
        raise BadRequest("fieldSelector metadata.name doesn't match requested name")
    return fields


class SharedLines:
    """The newest event lines, so that a hundred watchers of one kind cost one encoding.

    A revision belongs to one write of one object, so it names the event wherever that is watched.
    """

    def __init__(self) -> None:
        self._lines: dict[tuple[int, str, str], bytes] = {}
        self._bytes = 0

    def of(self, revision: int, type_: str, form: str, make: Callable[[], bytes]) -> bytes:
        key = (revision, type_, form)
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = make()
            self._bytes += len(line)
            while len(self._lines) > _KEPT_LINES or self._bytes > _KEPT_BYTES:
                self._bytes -= len(self._lines.pop(next(iter(self._lines))))
        return line


class EventEncoder:
    """Encodes events as plain JSON; subclasses encode other representations."""

    form = "json"
    content_type = "application/json"
    bookmark_head = b""
    """The begin of a bookmark's object, up to its metadata; empty for the kind's own type."""

    def __init__(self, kind: Kind, shared: SharedLines) -> None:
        self.kind = kind
        self._shared = shared
        # By the group too: events belong to two groups in one store.
        self._form = f"{self.form} {kind.resource.api_version}"

    def line(self, type_: str, value: bytes, revision: int) -> bytes:
        """One event with its line end. `revision` is that of the change, 0 for an initial event."""
        if not revision:
            return self._line(type_, value)
        return self._shared.of(revision, type_, self._form, lambda: self._line(type_, value))

    def _line(self, type_: str, value: bytes) -> bytes:
        return b'{"type":"%s","object":%s}\n' % (type_.encode(), self.object(self.kind.shown(value)))

    def object(self, shown: bytes) -> bytes:
        return shown

    def error(self, error: ApiError) -> bytes:
        return b'{"type":"ERROR","object":%s}\n' % orjson.dumps(error.status())

    def bookmark(self, revision: int, annotations: bytes = b"") -> bytes:
        head = self.bookmark_head or self.kind.type_head[: -len(b'"metadata":{')]
        return b'{"type":"BOOKMARK","object":%s"metadata":{"resourceVersion":"%d"%s}}}\n' % (
            head,
            revision,
            annotations,
        )


async def watch(
    ctx: OperationContext,
    scope: RequestScope,
    options: WatchOptions,
    encoder: EventEncoder,
    send: Send,
    opened: Callable[[StoreWatch], None],
) -> None:
    """Sends events until the time is over, the store closes, or the watch is closed that was passed to `opened`.

    A watch from a future revision is silent up to it. Raises ConnectionError when the client has gone.
    """
    prefix = f"{scope.namespace}/" if scope.namespace else ""
    after = options.after
    try:
        if options.initial:
            after = await _send_initial(ctx, scope, options, encoder, send, prefix)
        elif not after:
            after = ctx.storage.revision
        elif after > ctx.storage.revision:
            current = await ctx.storage.backend.sync()  # another server on the same store may have issued it
            after = min(after, current)
        changes = ctx.storage.watch(scope.bucket, after=after, prefix=prefix)
    except InternalError as error:
        await send(encoder.error(error))
        return
    except (RevisionCompacted, RevisionInFuture):
        await send(encoder.error(too_old(after, ctx.storage.backend.compacted)))
        return
    opened(changes)
    async with aclosing(changes):
        try:
            await _follow(scope, options, encoder, send, changes)
        except InternalError as error:
            await send(encoder.error(error))
        except RevisionCompacted:
            await send(encoder.error(too_old(changes.seen, ctx.storage.backend.compacted)))


async def _send_initial(
    ctx: OperationContext, scope: RequestScope, options: WatchOptions, encoder: EventEncoder, send: Send, prefix: str
) -> int:
    stored = await ctx.storage.list(scope.bucket, prefix=prefix, fresh=options.fresh)
    page = await presented_page(scope.kind, scope.cluster, stored)
    pace = ctx.pace(scope)
    lines: list[bytes] = []
    size = 0
    for record in page.records:
        if pace.due:
            await pace.turn()
        if _visible(scope.kind, options.selection, record.value):
            lines.append(encoder.line("ADDED", record.value, 0))
            size += len(lines[-1])
        if size >= _PIECE:
            await send(b"".join(lines))
            lines, size = [], 0
    if options.initial_end:
        lines.append(encoder.bookmark(page.revision, b',"annotations":{"k8s.io/initial-events-end":"true"}'))
    if lines:
        await send(b"".join(lines))
    return page.revision


def _pieces(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Lines joined to what is sent at once."""
    joined: list[bytes] = []
    size = 0
    for line in lines:
        joined.append(line)
        size += len(line)
        if size >= _PIECE:
            yield b"".join(joined)
            joined, size = [], 0
    if joined:
        yield joined[0] if len(joined) == 1 else b"".join(joined)


async def _follow(
    scope: RequestScope, options: WatchOptions, encoder: EventEncoder, send: Send, changes: StoreWatch
) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + options.timeout
    outgoing = _Outgoing(scope, options, encoder, send)
    while True:
        next_bookmark = loop.time() + _BOOKMARK_EVERY
        try:
            # One timer for many batches: with a hundred watchers of one change, a timer each would cost as much as TLS.
            async with asyncio.timeout_at(min(end, next_bookmark) if options.bookmarks else end):
                await outgoing.send_all(changes)
            return
        except TimeoutError:
            if loop.time() >= end:
                return
        # A watch from the future leaves out what comes before, so it may not claim to have delivered it.
        if not outgoing.behind and changes.seen >= options.after:
            await send(encoder.bookmark(changes.seen))


class _Outgoing:
    """Changes on their way to one client. When cancelled at any point and called again, none is lost and none sent
    twice."""

    __slots__ = ("_batch", "_encoder", "_options", "_pieces", "_scope", "_send")

    def __init__(self, scope: RequestScope, options: WatchOptions, encoder: EventEncoder, send: Send) -> None:
        self._scope = scope
        self._options = options
        self._encoder = encoder
        self._send = send
        self._batch: Sequence[Commit] = ()
        self._pieces: Iterator[bytes] | None = None

    @property
    def behind(self) -> bool:
        """True if changes that the watch has handed over are not sent yet."""
        return bool(self._batch) or self._pieces is not None

    async def send_all(self, changes: StoreWatch) -> None:
        """Sends all changes until the watch ends."""
        await self._rest()
        async for batch in changes:
            self._batch = batch
            await self._rest()

    async def _rest(self) -> None:
        scope, options, batch = self._scope, self._options, self._batch
        if batch:
            if batch[0].revision <= options.after:
                batch = [change for change in batch if change.revision > options.after]
            batch = await presented_changes(scope.kind, scope.cluster, batch)
            self._pieces, self._batch = _pieces(_lines(scope.kind, options.selection, self._encoder, batch)), ()
        if self._pieces is not None:
            for piece in self._pieces:
                # Bytes passed to `send` are sent, also when the wait for the client is cancelled.
                await self._send(piece)
            self._pieces = None


def _lines(
    kind: Kind, selection: ObjectSelection | None, encoder: EventEncoder, batch: Sequence[Commit]
) -> Iterator[bytes]:
    for change in batch:
        event = event_of(kind, selection, change)
        if event is not None:
            yield encoder.line(event.type, event.value, change.revision)


def event_of(kind: Kind, selection: ObjectSelection | None, change: Commit) -> EncodedEvent | None:
    """The event of a change for a watcher with this selection; None without one."""
    value, previous = change.value, change.previous
    if value is None:
        last = change.final or previous or b""
        return EncodedEvent("DELETED", last) if _visible(kind, selection, previous or last) else None
    if previous is None:
        return EncodedEvent("ADDED", value) if _visible(kind, selection, value) else None
    if selection is None:
        return EncodedEvent("MODIFIED", value)
    before, now = _visible(kind, selection, previous), _visible(kind, selection, value)
    if now:
        return EncodedEvent("MODIFIED" if before else "ADDED", value)
    if before:
        # The object left the selection: its last visible state, at the revision that made it leave.
        return EncodedEvent("DELETED", _at_revision(previous, change.revision))
    return None


def _at_revision(value: bytes, revision: int) -> bytes:
    return cut_revision(value).at(revision)


def _visible(kind: Kind, selection: ObjectSelection | None, value: bytes) -> bool:
    return selection is None or (selection.may_show(value) and selection.shows(kind.decode(value)))


def too_old(revision: int, compacted: int) -> ApiError:
    return Expired(f"too old resource version: {revision} ({compacted})")
