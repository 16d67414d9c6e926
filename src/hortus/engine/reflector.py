"""Keeps a cache current: list once, then watch, and carry on from where the watch broke.

In flows an API client, out come calls on a `Cache`. A watch that ends is resumed at the last resource version seen,
bookmarks included; one that the server no longer can resume (410) is followed by a new list, of which the cache works
out the difference, so that deletions during the gap are noticed. Failures back off with jitter, at least as long as the
server asks, and are only logged: callers ask `Reflector.problem` or wait for `Cache.synced`. An object that
is not understood is reported and passed over; it stops nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from random import Random
from typing import Protocol

import msgspec
import orjson
import structlog

from hortus.engine.backoff import Backoff
from hortus.engine.cache import Cache, number_of
from hortus.engine.within import being_cancelled
from hortus.kube.clock import Clock
from hortus.kube.errors import Gone, KubeError, NotServed, ResponseTooLarge
from hortus.kube.objects import Object, ObjectKey, Resource, key_of
from hortus.kube.selectors import LabelSelector

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

RETRY = Backoff(first=0.8, cap=30.0, jitter=0.5)
"""Between attempts to list or watch: client-go's reflector has 0.8 s to 30 s as well."""

UNSERVED_RETRY = Backoff(first=0.8, cap=4.0, jitter=0.25)
"""While the own cluster does not serve a kind: work begins within seconds of the installation of its CRD."""

STEADY_SECONDS = 10.0
"""A watch that lasted so long, and ended well or brought something, was healthy: it is resumed at once."""


class Page(Protocol):
    @property
    def items(self) -> Sequence[Object]: ...

    @property
    def resource_version(self) -> str: ...

    @property
    def restarted(self) -> bool:
        """True when the list expired and starts from scratch with this page."""


class Event(Protocol):
    @property
    def type(self) -> str:
        """ADDED, MODIFIED, DELETED or BOOKMARK."""

    @property
    def object(self) -> Object: ...


class EventStream(Protocol):
    def __aiter__(self) -> AsyncIterator[Event]: ...

    async def aclose(self) -> None: ...


class ListerWatcher(Protocol):
    """The part of `hortus.kube.Client` that a cache uses."""

    def pages(
        self, resource: Resource, namespace: str = "", labels: object = "", fields: object = "", limit: int = 500
    ) -> AsyncIterator[Page]:
        """All matching objects in pages of `limit`."""

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str = "",
        labels: object = "",
        fields: object = "",
        bookmarks: bool = True,
        on_bookmark: Callable[[str], None] | None = None,
    ) -> EventStream:
        """Changes after `resource_version`; raises Expired when the server does not keep them any more. A bookmark is
        an event, or a call of `on_bookmark` with its version."""


class Selection(msgspec.Struct, frozen=True):
    """The objects to follow: a resource, a namespace or all (empty), a label and a field selector."""

    resource: Resource
    namespace: str = ""
    labels: str = ""
    fields: str = ""

    def __str__(self) -> str:
        group = f".{self.resource.group}" if self.resource.group else ""
        parts = [self.namespace, self.labels, self.fields]
        return f"{self.resource.plural}{group}[{','.join(part for part in parts if part)}]"

    @property
    def unserved(self) -> str:
        """The report for a server that does not serve the resource, with the fix."""
        resource = self.resource
        if not resource.group:
            return f"{resource.plural} ({resource.api_version}) are not served by this cluster"
        return (
            f"the CRD {resource.plural}.{resource.group} is not installed or does not serve version "
            f"{resource.version}: apply it, with the chart of its operator or by "
            f"`hortus manifests MODULE --crds | kubectl apply --server-side -f -`; work goes on when it is there"
        )

    def belongs(self, obj: Object) -> bool:
        """True when a newly written object is certainly selected; with a field selector only the server knows."""
        metadata = obj["metadata"]
        if self.fields or (self.namespace and metadata.get("namespace", "") != self.namespace):
            return False
        return not self.labels or LabelSelector.parse(self.labels).matches(metadata.get("labels"))


class Reflector:
    """Runs one cache until cancelled."""

    def __init__(
        self,
        client: ListerWatcher,
        selection: Selection,
        cache: Cache,
        *,
        clock: Clock,
        backoff: Backoff = RETRY,
        random: Random | None = None,
        unserved_backoff: Backoff = RETRY,
        optional: bool = False,
        largest: int = 0,
        on_problem: Callable[[], None] | None = None,
    ) -> None:
        """`unserved_backoff` is for the time during which the server does not serve the resource, which is no error of
        one that is `optional`; `largest` is how many bytes the cache may hold of a server that is not trusted; 0: any.
        `on_problem` is called once the cache cannot be kept current, which one failure alone does not mean.
        """
        self._client = client
        self._selection = selection
        self._cache = cache
        self._clock = clock
        self._backoff = backoff
        self._unserved_backoff = unserved_backoff
        self._random = random or Random()  # noqa: S311 - jitter, not secrecy
        self._optional = optional
        self._largest = largest
        self._on_problem = on_problem
        self._held = 0
        """Bytes that the cache holds, about, where they are bounded."""
        self._version = ""
        self._failures = 0
        self._watching_since: float | None = None
        self._heard = False
        """True when the present watch has brought anything."""
        self.problem: Exception | None = None
        """The reason why the cache is not kept current now, or None."""
        self._reported = False
        """True since `on_problem` was called for the present problem."""
        self._unserved = False
        """True since the server was found not to serve the resource."""

    async def run(self) -> None:
        """List and watch for ever; ends by cancellation only."""
        while True:
            self._watching_since = None
            failure: BaseException | None = None
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except Gone as error:
                _log.info("the watch is too old, listing again", cache=self._cache.name)
                self._version, failure = "", error
            except NotServed as error:
                failure = error
                self._fail(NotServed(self._selection.unserved), quietly=self._optional and not self._cache.has_synced)
                self._report_unserved()
            except (KubeError, OSError) as error:
                failure = error
                self._fail(error)
                _log.warning("list or watch failed", cache=self._cache.name, error=str(error), failures=self._failures)
            except asyncio.CancelledError as error:
                if being_cancelled():
                    raise
                failure = error
                _log.warning("list or watch was cancelled by somebody else", cache=self._cache.name)
            except Exception as error:
                # An answer of a shape that nobody planned for; a cache that silently stopped would be worse.
                failure = error
                self._fail(error)
                _log.exception("list or watch was not understood", cache=self._cache.name)
            asked, steady = getattr(failure, "retry_after", None) or 0.0, self._was_steady(failure)
            backoff = self._unserved_backoff if isinstance(failure, NotServed) else self._backoff
            failure = None  # it would keep the answer, and all that led to it, for as long as the pause
            if steady:
                self._failures = 0
            if asked or not steady:
                await self._pause(asked, backoff)

    def _fail(self, problem: Exception, *, quietly: bool = False) -> None:
        self.problem = problem
        # A watch that breaks once goes on where it stopped.
        if self._failures and not self._reported and not quietly and self._on_problem is not None:
            self._reported = True
            self._on_problem()

    def _recover(self) -> None:
        self.problem, self._reported = None, False

    def _was_steady(self, failure: BaseException | None) -> bool:
        """True when the watch that has just ended was a healthy one. A list that took long, to fail, is none."""
        began = self._watching_since
        if began is None or self._clock.monotonic() - began < STEADY_SECONDS:
            return False
        return failure is None or self._heard

    async def _pause(self, asked: float, backoff: Backoff) -> None:
        delay = backoff.delay(self._failures, random=self._random)
        self._failures += 1
        await self._clock.sleep(max(delay, backoff.stretched(asked, random=self._random)))

    def _report_unserved(self) -> None:
        """Log once that the resource is not served; /readyz fails as long as that is so."""
        if not self._unserved:
            self._unserved = True
            if self._optional:
                _log.debug("the kind is not served", cache=self._cache.name, error=str(self.problem))
            else:
                _log.error("the kind is not served", cache=self._cache.name, error=str(self.problem))

    async def _list(self) -> None:
        chosen, cache = self._selection, self._cache
        items: list[Object] = []
        refused: set[ObjectKey] = set()
        version = ""
        async for page in self._client.pages(chosen.resource, chosen.namespace, chosen.labels, chosen.fields):
            if page.restarted:
                items.clear()
                refused.clear()
            # Shrunk page by page: the peak of a first list is what is kept, plus one page.
            for item in page.items:
                if (kept := cache.taken(item)) is not None:
                    items.append(kept)
                else:
                    refused.add(key_of(item))
            version = page.resource_version
        if self._largest:
            self._held = 0
            self._hold(sum(map(_size, items)))
        cache.replace(items, number_of(version), refused=refused)
        self._version = version
        self._recover()
        if self._unserved:
            self._unserved = False
            _log.info("the kind is served now", cache=cache.name)

    async def _watch(self) -> None:
        chosen = self._selection
        events = self._client.watch(
            chosen.resource,
            chosen.namespace,
            resource_version=self._version,
            labels=chosen.labels,
            fields=chosen.fields,
            bookmarks=True,
            on_bookmark=self._advance,
        )
        self._watching_since, self._heard = self._clock.monotonic(), False
        async with aclosing(events):
            async for event in events:
                self._take(event.type, event.object)

    def _take(self, kind: str, obj: Object) -> None:
        cache = self._cache
        if kind == "DELETED":
            self._replaced(cache.get(key_of(obj)), None)
            cache.drop(key_of(obj), cache.taken(obj))
        elif kind != "BOOKMARK" and (kept := cache.taken(obj)) is not None:
            self._replaced(cache.get(key_of(obj)), kept)
            cache.observe(kept)
        self._advance(obj["metadata"]["resourceVersion"])

    def _advance(self, version: str) -> None:
        """The watch has shown everything up to `version`."""
        self._version, self._heard = version, True
        self._cache.advance(number_of(version))
        if self.problem is not None:
            self._recover()

    def _replaced(self, old: Object | None, new: Object | None) -> None:
        """Count what the cache holds from now on. Raises ResponseTooLarge, and the cache stays as it is."""
        if self._largest:
            self._hold((_size(new) if new is not None else 0) - (_size(old) if old is not None else 0))

    def _hold(self, more: int) -> None:
        if more > 0 and self._held + more > self._largest:
            problem = f"holds more than {self._largest} bytes of {self._selection.resource.plural}"
            raise ResponseTooLarge(self._cache.name, problem, "what comes later is not seen; let it hold less")
        self._held += more


def _size(obj: Object) -> int:
    return len(orjson.dumps(obj))
