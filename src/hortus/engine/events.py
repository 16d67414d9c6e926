"""Kubernetes Events about objects: seen by `kubectl describe` and `kubectl events`, kept an hour, never load-bearing.

`event` puts a word into memory and returns; one task writes. The same event again raises a count instead of making a
new object, many similar ones of an object become one, and an object that will not be quiet is cut off by a token bucket
of its own. What cannot be written is dropped. Messages pass the redaction of `hortus.engine.redaction`, and are
otherwise what the caller says: constants and names, nothing from inside of secrets.

Numbers are those of client-go's event correlator: 25 events at once and one more in five minutes for an object; ten
similar ones within ten minutes are combined.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import NamedTuple, Protocol, TypeVar

import structlog

from hortus.engine.redaction import redact_text
from hortus.engine.within import being_cancelled
from hortus.kube import PatchKind
from hortus.kube.clock import Clock
from hortus.kube.errors import ApiError, KubeError, NotFound, TooManyRequests
from hortus.kube.objects import Object, Resource, format_time

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_K = TypeVar("_K")
_V = TypeVar("_V")

EVENTS = Resource("", "v1", "events", "Event")
NORMAL = "Normal"
WARNING = "Warning"

BURST = 25
REFILL_SECONDS = 300.0
SIMILAR = 10
SIMILAR_SECONDS = 600.0
REMEMBERED = 4096
"""Series, groups and buckets that are kept, the least used of each forgotten first."""
MOST_PENDING = 1000
"""Events that wait to be written; beyond that the oldest is dropped."""
ATTEMPTS = 3
RETRY_SECONDS = 5.0
_LONGEST_MESSAGE = 1024
"""Characters; events.k8s.io allows a note of 1 kB."""
_LONGEST_NAME = 236
"""The most characters of the object's name in the event's: 253 less a dot and 16 hexadecimal digits."""


class EventClient(Protocol):
    """The part of `hortus.kube.Client` that the recorder uses."""

    async def create(self, resource: Resource, obj: Object, *, namespace: str = "") -> Object: ...

    async def patch(
        self, resource: Resource, name: str, patch: Object, namespace: str = "", kind: PatchKind = PatchKind.MERGE
    ) -> Object: ...


class _About(NamedTuple):
    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str


class _Series:
    """One event as far as it is known: how often it happened, and under which name it was written."""

    __slots__ = ("about", "attempts", "count", "first", "last", "message", "name", "reason", "type", "version")

    def __init__(self, about: _About, kind: str, reason: str, message: str, now: float) -> None:
        self.about = about
        self.type = kind
        self.reason = reason
        self.message = message
        self.version = ""
        self.count = 0
        self.first = self.last = now
        self.name = ""
        self.attempts = 0


class _Bucket:
    __slots__ = ("filled", "left")

    def __init__(self, now: float) -> None:
        self.left = float(BURST)
        self.filled = now

    def take(self, now: float) -> bool:
        self.left = min(BURST, self.left + (now - self.filled) / REFILL_SECONDS)
        self.filled = now
        if self.left < 1:
            return False
        self.left -= 1
        return True


class _Group:
    """The different messages of one object, type and reason within the window."""

    __slots__ = ("messages", "since")

    def __init__(self, now: float) -> None:
        self.messages: set[str] = set()
        self.since = now


class EventRecorder:
    """Writes events as one component. A server of `Manager`: started before and stopped after the controllers."""

    def __init__(self, client: EventClient, *, component: str, instance: str = "", clock: Clock) -> None:
        self._client = client
        self._component = component
        self._instance = instance or component
        self._clock = clock
        self._series: OrderedDict[tuple[_About, str, str, str], _Series] = OrderedDict()
        self._groups: OrderedDict[tuple[_About, str, str], _Group] = OrderedDict()
        self._buckets: OrderedDict[_About, _Bucket] = OrderedDict()
        self._pending: OrderedDict[int, _Series] = OrderedDict()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._writing = self._stopping = False
        self._named = 0
        """Makes the names of two events of one instant differ."""
        self.dropped = 0
        """Events that were not written: too many, or not to be written."""

    def event(self, obj: Object, kind: str, reason: str, message: str) -> None:
        """Note that `reason` happened to `obj`. `kind` is NORMAL or WARNING. Never waits, never fails."""
        try:
            self._note(obj, kind, reason, message)
        except Exception:
            # An event is a courtesy: what cannot be said must not be what fails a reconcile.
            self.dropped += 1
            _log.exception("an event was not understood")

    def _note(self, obj: Object, kind: str, reason: str, message: str) -> None:
        now = self._clock.monotonic()
        about = _about(obj)
        message = redact_text(message)[:_LONGEST_MESSAGE]
        message = self._combined(about, kind, reason, message, now)
        if not _kept(self._buckets, about, lambda: _Bucket(now)).take(now):
            self.dropped += 1
            return
        wall = self._clock.now()
        series = _kept(
            self._series, (about, kind, reason, message), lambda: _Series(about, kind, reason, message, wall)
        )
        series.count += 1
        series.last = wall
        self._pending[id(series)] = series
        if len(self._pending) > MOST_PENDING:
            self._pending.popitem(last=False)
            self.dropped += 1
        self._wake.set()

    @property
    def idle(self) -> bool:
        """True when all recorded events are written or dropped."""
        return not self._pending and not self._writing

    async def start(self) -> None:
        self._stopping = False
        self._task = asyncio.create_task(self._run(), name="events")

    async def stop(self) -> None:
        """Write what is pending, each once and within a few seconds, then end."""
        if self._task is None:
            return
        task, self._task = self._task, None
        self._stopping = True
        if not self._writing:
            task.cancel()
        flush = asyncio.ensure_future(self._last_flush(task))
        timer = self._clock.call_later(RETRY_SECONDS, flush.cancel)
        await asyncio.gather(flush, return_exceptions=True)
        timer.cancel()

    async def _last_flush(self, task: asyncio.Task[None]) -> None:
        # A write in flight runs to its end: an event that is cut off would be lost or written twice.
        await asyncio.gather(task, return_exceptions=True)
        await self._flush()

    def _combined(self, about: _About, kind: str, reason: str, message: str, now: float) -> str:
        group = _kept(self._groups, (about, kind, reason), lambda: _Group(now))
        if now - group.since > SIMILAR_SECONDS:
            group.messages.clear()
            group.since = now
        if len(group.messages) < SIMILAR:
            group.messages.add(message)
            return message
        return message if message in group.messages else f"(combined from similar events) {reason}"

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            self._writing = True
            done = await self._flush()
            self._writing = False
            if self._stopping:
                return
            if not done:
                await self._clock.sleep(RETRY_SECONDS)
                self._wake.set()

    async def _flush(self) -> bool:
        """Write what is pending; False when something is left to be tried again."""
        for _ in range(len(self._pending)):
            _, series = self._pending.popitem(last=False)
            try:
                await self._write(series)
                series.attempts = 0
            except (KubeError, OSError) as error:
                series.attempts += 1
                if series.attempts >= ATTEMPTS or not _worth_another(error):
                    self._give_up(series)
                    _log.debug("an event was not written", reason=series.reason, error=str(error))
                else:
                    self._pending.setdefault(id(series), series)
                    return False
            except asyncio.CancelledError:
                self._give_up(series)
                if being_cancelled():
                    raise
            except Exception as error:
                # It cannot be encoded, say. Others can: the recorder lives on.
                self._give_up(series)
                _log.warning("an event cannot be written", reason=series.reason, error=type(error).__name__)
        return True

    def _give_up(self, series: _Series) -> None:
        self.dropped += 1
        series.attempts = 0

    async def _write(self, series: _Series) -> None:
        if series.name:
            body: Object = {"count": series.count, "lastTimestamp": format_time(series.last)}
            try:
                await self._client.patch(EVENTS, series.name, body, _home(series.about))
                return
            except NotFound:
                # The server forgot it, an hour having passed: a new series begins.
                series.first, series.count, series.name = series.last, 1, ""
        body = self._body(series)
        await self._client.create(EVENTS, body, namespace=_home(series.about))
        series.name = body["metadata"]["name"]

    def _body(self, series: _Series) -> Object:
        about = series.about
        involved = {
            "apiVersion": about.api_version,
            "kind": about.kind,
            "namespace": about.namespace,
            "name": about.name,
            "uid": about.uid,
        }
        self._named += 1
        stamp = f"{int(self._clock.now() * 1e9) + self._named:016x}"
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{about.name[:_LONGEST_NAME]}.{stamp}", "namespace": _home(about)},
            "involvedObject": {key: value for key, value in involved.items() if value},
            "type": series.type,
            "reason": series.reason,
            "message": series.message,
            "count": series.count,
            "firstTimestamp": format_time(series.first),
            "lastTimestamp": format_time(series.last),
            "source": {"component": self._component},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
        }


def _about(obj: Object) -> _About:
    metadata = obj["metadata"]
    return _About(
        obj.get("apiVersion", ""),
        obj.get("kind", ""),
        metadata.get("namespace", ""),
        metadata["name"],
        metadata.get("uid", ""),
    )


def _home(about: _About) -> str:
    """Events of cluster-scoped objects live in `default`."""
    return about.namespace or "default"


def _worth_another(error: KubeError | OSError) -> bool:
    return not isinstance(error, ApiError) or isinstance(error, TooManyRequests) or error.http_code >= 500


def _kept(held: OrderedDict[_K, _V], key: _K, make: Callable[[], _V]) -> _V:
    """The value of `key`, made when there is none, now the most recently used of a bounded number."""
    found = held.get(key)
    if found is None:
        found = held[key] = make()
        if len(held) > REMEMBERED:
            held.popitem(last=False)
    else:
        held.move_to_end(key)
    return found
