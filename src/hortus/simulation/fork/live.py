"""Reads from live clusters. Only GET is ever sent: `_Reading` is the one way to a cluster, and it has no other method.

The reads run on a thread and loop of their own, in real time, with the limits of a real client. A whole kind is read at
once, all of its pages at one revision; all kinds of one API server at the revision of its first list, where the server
still has that. A thousand members are read by few lists each: one has a connection, which trusts by a TLS context that
members with the same CA share.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
import orjson
import uvloop

from hortus.kube import Access, Client, ConnectionSettings
from hortus.kube.connection import Connection
from hortus.kube.dialing import Dialing
from hortus.kube.errors import ApiError, BadRequest, Forbidden, Gone, Invalid, KubeError, NotFound
from hortus.kube.objects import Object, Resource
from hortus.kube.tls import Contexts
from hortus.simulation.fork.time import VirtualLoop

_PAGE = 500
_AT_ONCE = 32
"""Lists in progress, of all clusters together."""
_KEPT = 3.0
"""Seconds for which an unused connection is kept: over TLS it holds a quarter of a megabyte."""
_MEMBER = ConnectionSettings(connections=1, timeout=30.0, connect_timeout=5.0, user_agent="hortus-plan")
CENTRAL = msgspec.structs.replace(_MEMBER, connections=8)
"""For the management cluster and the garden, of which all kinds are read at the start."""


class LiveCluster(NamedTuple):
    """A live API server, or a part of one, as one user."""

    access: Access
    settings: ConnectionSettings = _MEMBER


class LiveList(NamedTuple):
    objects: list[Object]
    revision: str


class _ListRequest(NamedTuple):
    cluster: str
    resource: Resource
    answer: concurrent.futures.Future[LiveList]


class LiveReadFailed(Exception):
    """A live cluster, or one of its kinds, that could not be read; the text says why."""


def allowing(resources: Iterable[Resource]) -> str:
    """The rules of a ClusterRole by which the kinds can be read."""
    plurals: dict[str, set[str]] = {}
    for one in resources:
        plurals.setdefault(one.group, set()).add(one.plural)
    rules = (
        f'{{apiGroups: ["{group}"], resources: [{", ".join(sorted(names))}], verbs: [get, list, watch]}}'
        for group, names in sorted(plurals.items())
    )
    return f"bind it to a ClusterRole with the rules {', '.join(rules)}"


class _Reading:
    """The only connection to one live cluster."""

    def __init__(self, cluster: LiveCluster, dialing: Dialing) -> None:
        self._connection = Connection(cluster.access, settings=cluster.settings, dialing=dialing)
        self._client = Client.over(self._connection)
        self._first = asyncio.Lock()
        self._lists = 0
        """Lists in progress."""
        self.revision = ""
        """The revision at which all kinds are read; empty before the first list."""
        self.failure = ""

    async def get(self, path: str, query: Mapping[str, str]) -> Object:
        answer = await self._client.request("GET", path, query={key: value for key, value in query.items() if value})
        found: Object = orjson.loads(answer.body)
        return found

    async def list(self, resource: Resource) -> LiveList:
        self._lists += 1
        try:
            if self.revision:
                return await self._at(resource, self.revision)
            async with self._first:
                found = await self._at(resource, self.revision)
                self.revision = self.revision or found.revision
                return found
        finally:
            self._lists -= 1
            if not self._lists:
                asyncio.get_running_loop().call_later(_KEPT, self._rest)

    def _rest(self) -> None:
        if not self._lists:
            self._connection.close_idle()

    async def _at(self, resource: Resource, revision: str) -> LiveList:
        """All objects at `revision`, or at the present one where the server has no longer, or not yet, that one."""
        objects: list[Object] = []
        token, version, exact = "", "", revision
        while True:
            query = {"limit": str(_PAGE), "continue": token}
            if exact and not token:
                query |= {"resourceVersion": exact, "resourceVersionMatch": "Exact"}
            try:
                page = await self.get(resource.path(), query)
            except (Gone, Invalid, BadRequest):
                if not exact and not token:
                    raise
                objects, token, exact = [], "", ""
                continue
            objects += page.get("items") or ()
            version, token = page["metadata"].get("resourceVersion", ""), page["metadata"].get("continue", "")
            if not token:
                return LiveList(objects, version)

    async def close(self) -> None:
        await self._client.close()


class LiveClusters:
    """Live clusters by the name that they have in the fork."""

    def __init__(self) -> None:
        self._known: dict[str, LiveCluster] = {}
        self._open: dict[str, _Reading] = {}
        self.reads: Counter[str] = Counter()
        """Lists that were sent, by cluster."""
        self.failures: dict[tuple[str, Resource], KubeError] = {}
        """By cluster and kind: the error for which it could not be read."""
        # A TLS connection takes much less memory there than on a loop of asyncio.
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="live clusters", daemon=True)
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self._asked: list[_ListRequest] = []
        """Lists that were asked for in the present turn of the virtual loop."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._dialing = Dialing(contexts=Contexts())

    def __enter__(self) -> LiveClusters:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def add(self, name: str, cluster: LiveCluster) -> None:
        """Makes a cluster known; the first of a name counts."""
        self._known.setdefault(name, cluster)

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def access(self, name: str) -> Access | None:
        """The access of a known cluster."""
        known = self._known.get(name)
        return None if known is None else known.access

    def is_silent(self, name: str) -> bool:
        """True for a cluster that did not answer at all."""
        reading = self._open.get(name)
        return reading is not None and bool(reading.failure)

    def forbidden(self, name: str) -> list[Resource]:
        """The kinds of a cluster that its user may not list."""
        return [one for (of, one), error in self.failures.items() if of == name and isinstance(error, Forbidden)]

    async def list(self, name: str, resource: Resource) -> LiveList:
        """All objects of a kind; none where it is not served. To be called on a virtual loop. Raises LiveReadFailed."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop), "live clusters are read from virtual time"
        self.reads[name] += 1
        asked = _ListRequest(name, resource, concurrent.futures.Future())
        if not self._asked:
            loop.call_soon(self._ask)
        self._asked.append(asked)
        try:
            return await loop.outside(asked.answer)
        except KubeError as error:
            self.failures[name, resource] = error.with_traceback(None)  # without the frames that it came through
            raise LiveReadFailed(f"{resource.plural} of cluster {name} could not be read: {error}") from error

    def _ask(self) -> None:
        """Wakes the thread once for all lists of a turn: a thousand members ask for theirs together."""
        asked, self._asked = self._asked, []
        self._loop.call_soon_threadsafe(self._begin, asked)

    def _begin(self, asked: Sequence[_ListRequest]) -> None:
        for one in asked:
            task = self._loop.create_task(self._answer(one))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer(self, asked: _ListRequest) -> None:
        try:
            asked.answer.set_result(await self._list(asked.cluster, asked.resource))
        except BaseException as error:  # the virtual loop raises it where the list was asked for
            asked.answer.set_exception(error)

    async def _list(self, name: str, resource: Resource) -> LiveList:
        reading = self._open.get(name)
        if reading is None:
            reading = self._open[name] = _Reading(self._known[name], self._dialing)
        if reading.failure:
            raise KubeError(reading.failure)
        async with self._slots:
            try:
                return await reading.list(resource)
            except NotFound:
                return LiveList([], reading.revision)
            except ApiError:
                raise
            except (KubeError, ValueError) as error:
                # One that does not answer is not asked for each of its kinds.
                reading.failure = str(error)
                raise KubeError(reading.failure) from None

    async def _close(self) -> None:
        for reading in self._open.values():
            await reading.close()
