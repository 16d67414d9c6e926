"""Remote clusters in simulated time, and what a replica does in them: without sockets, over its own network.

Each object of the world has a cluster. Its reconcile sees to it that one ConfigMap, the binding, is there. Half of the
clusters are watched for that, with a watch that a reconcile begins and all that follow share; the others are asked each
time. Broken rules are added to those of `world`:

- a replica has never more watches open than its budget lets it;
- a cluster that is well and can be reached is never left alone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import orjson
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from hortus.engine.backoff import Backoff
from hortus.engine.cache import Cache
from hortus.engine.reflector import Selection
from hortus.engine.remote import KubeconfigRef, Phase, RemoteSettings, RemoteState, RemoteWatch
from hortus.kube import Access, Answer, yaml
from hortus.kube.errors import (
    AlreadyExists,
    ApiError,
    ConnectionFailed,
    Expired,
    KubeError,
    NotFound,
    RequestTimedOut,
    Unauthorized,
    from_status,
)
from hortus.kube.fencing import check_fence
from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.kube.transport import Absorb

if TYPE_CHECKING:
    from tests.engine.shards.world import Process, World

CONFIGMAPS = Resource("", "v1", "configmaps", "ConfigMap")
NAMESPACE = "default"
BINDING = ObjectKey(NAMESPACE, "binding")
_NO_HEADERS = CIMultiDictProxy(CIMultiDict[str]())
SLACK = 25.0
"""Seconds for which a fault explains that a cluster is left alone: a call's deadline and what the network holds up."""


def settings(*, scarce: bool) -> RemoteSettings:
    """Limits that a schedule of two minutes can reach."""
    return RemoteSettings(
        sockets=6 if scarce else 60,
        watch_share=0.5,
        timeout=8.0,
        connect_timeout=8.0,
        deadline=16.0,
        idle=8.0,
        probe_every=20.0,
        bookmark_period=5.0,
        breaker=Backoff(first=1.0, cap=12.0, jitter=0.5),
        deny=(),
    )


class Cluster:
    """One remote cluster; `up` and `hangs` are its faults."""

    def __init__(self, key: ObjectKey, world: World, *, watched: bool) -> None:
        self.key = key
        self.world = world
        self.watched = watched
        self.place = KubeconfigRef(NAMESPACE, f"kubeconfig-{key.name}", "config")
        self.up = True
        self.hangs = False
        self.faulty_until = float("-inf")
        self.answered_at = float("-inf")
        self.streams: list[Stream] = []
        self._lives = 0
        self._tokens = 0
        self.rotate()
        self.recreate()

    # Events in the life of the cluster.

    def rotate(self) -> None:
        """Hand out another token; the former ones are good as before."""
        self._tokens += 1
        document = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "a", "cluster": {"server": f"https://{self.key.name}.example.com"}}],
            "users": [{"name": "a", "user": {"token": f"token-{self._tokens}"}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
            "current-context": "a",
        }
        self.kubeconfig = yaml.dump(document).encode()

    def recreate(self) -> None:
        self._lives += 1
        self.uid = f"{self.key.name}-{self._lives}"
        self.version = 10
        self.objects: dict[str, Object] = {}
        self.history: list[tuple[int, bytes]] = []
        self.reset()

    def reset(self) -> None:
        """Every connection breaks."""
        for stream in list(self.streams):
            stream.broken()

    def fault(self, seconds: float) -> None:
        self.faulty_until = max(self.faulty_until, self.world.clock.monotonic() + seconds)

    @property
    def answers(self) -> bool:
        return self.up and not self.hangs

    def lose_binding(self) -> None:
        """Somebody deletes it."""
        found = self.objects.pop("binding", None)
        if found is not None:
            self._tell("DELETED", found)

    # Its answers.

    def answer(self, method: str, target: str, body: bytes | None, token: str) -> bytes:
        self._authenticate(token)
        self.answered_at = self.world.clock.monotonic()
        path = URL(target).path
        if path.endswith("/namespaces/kube-system"):
            return orjson.dumps({"kind": "Namespace", "metadata": {"name": "kube-system", "uid": self.uid}})
        if method == "POST":
            if "binding" in self.objects:
                raise AlreadyExists("binding")
            made = orjson.loads(body or b"{}")
            self.objects["binding"] = made
            self._tell("ADDED", made)
            return orjson.dumps(made)
        if path.endswith("/binding"):
            if "binding" not in self.objects:
                raise NotFound("binding")
            return orjson.dumps(self.objects["binding"])
        return orjson.dumps({"metadata": {"resourceVersion": str(self.version)}, "items": [*self.objects.values()]})

    def subscribe(self, stream: Stream, version: int, token: str) -> None:
        self._authenticate(token)
        if version > self.version:
            raise from_status(504, {"kind": "Status", "message": "Too large resource version"})
        if self.history and version < self.history[0][0] - 1:
            raise Expired("too old resource version")
        self.streams.append(stream)
        for number, line in self.history:
            if number > version:
                stream.send(line)

    def _authenticate(self, token: str) -> None:
        if not 1 <= int(token.removeprefix("token-")) <= self._tokens:
            raise Unauthorized("Unauthorized")

    def _tell(self, kind: str, obj: Object) -> None:
        self.version += 1
        obj["metadata"] = {**obj["metadata"], "resourceVersion": str(self.version), "uid": self.uid}
        line = orjson.dumps({"type": kind, "object": obj}) + b"\n"
        self.history = [*self.history[-20:], (self.version, line)]
        for stream in list(self.streams):
            stream.send(line)


class Stream:
    """One watch of one process: lines come in order, none while the network or the cluster is away."""

    def __init__(self, process: Process, cluster: Cluster) -> None:
        self._process = process
        self._cluster = cluster
        self._outbox: list[bytes | Exception] = []
        self._inbox: deque[bytes | Exception] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._last = 0.0

    @property
    def alive(self) -> bool:
        return self in self._cluster.streams and self._cluster.answers and not self._process.cut_off

    def send(self, item: bytes | Exception) -> None:
        self._outbox.append(item)
        self.flush()

    def flush(self) -> None:
        """Send what has not been sent yet, if it can be."""
        if self._process.cut_off or self._cluster.hangs:
            return
        clock = self._process.world.clock
        items, self._outbox = self._outbox, []
        for item in items:
            at = self._last = max(self._last, clock.monotonic() + self._process.random.expovariate(1 / 0.05))
            clock.call_later(at - clock.monotonic(), lambda item=item: self._process.deliver(lambda: self.take(item)))

    def broken(self) -> None:
        self.close()
        self.send(ConnectionFailed(self._cluster.key.name, "the connection broke in the middle of the answer"))

    def take(self, item: bytes | Exception) -> None:
        self._inbox.append(item)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def close(self) -> None:
        if self in self._cluster.streams:
            self._cluster.streams.remove(self)

    async def read(self, idle_timeout: float) -> bytes:
        while not self._inbox:
            self._waiter = asyncio.get_running_loop().create_future()
            timer = self._process.clock.call_later(idle_timeout, self._wake)
            try:
                await self._waiter
            finally:
                timer.cancel()
            # Bookmarks come all the time; only where none could have come has it been silent.
            if not self._inbox and not self.alive:
                raise RequestTimedOut(self._cluster.key.name, "silent")
        item = self._inbox.popleft()
        if isinstance(item, Exception):
            raise item
        return item


class SimulatedConnection:
    """The `hortus.kube.Connection` of a process of the world. Its account counts sockets that are none."""

    def __init__(self, process: Process, access: Access, *, dialing: Any, settings: Any, **_: Any) -> None:
        self._process = process
        self._account = dialing.make_socket.__self__
        self._opened = dialing.opened
        self._idle = 0
        self._closed = False
        self._open: list[Stream] = []
        token = access.credentials.token
        self._token = token.reveal() if token is not None else ""
        self.access = access
        self.settings = settings
        self.clock = process.clock
        self.host = str(URL(access.server).host)
        name = self.host.partition(".")[0]
        self._cluster = next(cluster for cluster in process.world.clusters.values() if cluster.key.name == name)

    def become(self, access: Access) -> None:
        raise TypeError

    async def call(self, method: str, target: str, body: bytes | None = None, **options: Any) -> Answer:
        check_fence()
        self._take_socket()
        whole = False
        try:
            content = await self._send(lambda: self._cluster.answer(method, target, body, self._token))
            whole = True
        except ApiError:
            whole = True
            raise
        finally:
            self._leave_socket(keep=whole)
        return Answer(200, _NO_HEADERS, content)

    @asynccontextmanager
    async def stream(
        self, target: str, *, accept: str = "", idle_timeout: float | None = None, absorb: Absorb | None = None
    ) -> AsyncIterator[Callable[[], Awaitable[bytes]]]:
        check_fence()
        process = self._process
        version = int(URL(target).query["resourceVersion"])
        stream = Stream(process, self._cluster)
        self._take_socket()
        self._open.append(stream)
        try:
            await self._send(lambda: self._cluster.subscribe(stream, version, self._token))
            process.streams += 1
            if process.streams > process.pool.budget.watch_limit:
                process.world.breaks(f"{process.name} has {process.streams} watches open")
            try:
                yield lambda: stream.read(idle_timeout or 60.0)
            finally:
                process.streams -= 1
        finally:
            stream.close()
            self._open.remove(stream)
            self._leave_socket(keep=False)

    async def _send(self, operation: Callable[[], Any]) -> Any:
        cluster = self._cluster
        return await self._process.exchange(
            operation, up=lambda: cluster.up, answers=lambda: cluster.answers, timeout=self.settings.timeout
        )

    def _take_socket(self) -> None:
        if self._idle:
            self._idle -= 1
        else:
            self._account.opened_socket()
            self._opened()

    def _leave_socket(self, *, keep: bool) -> None:
        if keep and not self._closed:
            self._idle += 1
        else:
            self._account.closed_socket()

    def close_idle(self) -> int:
        closed, self._idle = self._idle, 0
        for _ in range(closed):
            self._account.closed_socket()
        return closed

    def end_streams(self) -> None:
        for stream in self._open:
            stream.take(ConnectionFailed(self.host, "ended"))

    async def close(self) -> None:
        self._closed = True
        self.end_streams()
        self.close_idle()


class Secrets:
    """The kubeconfigs, as one process reads them from the management cluster and hears of them."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.changed: Callable[[str, str], None] = lambda namespace, name: None

    async def read(self, place: KubeconfigRef) -> bytes:
        world = self._process.world
        return await self._process.exchange(lambda: world.secret(place), up=lambda: world.up)

    def subscribe(self, changed: Callable[[str, str], None]) -> Callable[[], None]:
        self.changed = changed
        return lambda: None


class Tending:
    """The work of a process in the clusters of its objects."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.members = Cache("members")
        self.members.replace((), 0)
        self.watch = RemoteWatch(
            process.pool,
            self.members,
            place=lambda member: KubeconfigRef(*member["place"]),
            selection=Selection(CONFIGMAPS, NAMESPACE),
            random=process.random,
        )
        process.pool.subscribe(self._state_changed)

    async def keep_asking(self) -> None:
        """Somebody else in the process, who does not wait until a cluster is well again."""
        process = self._process
        while True:
            await process.clock.sleep(3.0)
            for cluster in process.world.clusters.values():
                if not cluster.watched and process.shards.holds(cluster.key):
                    with suppress(KubeError):
                        await process.pool.at(cluster.place).get(CONFIGMAPS, BINDING.name, BINDING.namespace)

    async def tend(self, key: ObjectKey) -> None:
        cluster = self._process.world.clusters[key]
        if cluster.watched:
            metadata = {"namespace": key.namespace, "name": key.name, "resourceVersion": "1"}
            self.members.put({"metadata": metadata, "place": cluster.place})
        if not await self._has_binding(cluster):
            remote = self._process.pool.at(cluster.place)
            try:
                await remote.create(CONFIGMAPS, {"metadata": {"name": "binding", "namespace": NAMESPACE}})
            except AlreadyExists:
                return

    async def _has_binding(self, cluster: Cluster) -> bool:
        cache, problem = self.watch.cache(cluster.key), self.watch.problem(cluster.key)
        if cache is not None and cache.has_synced and problem is None and self._process.random.random() < 0.7:
            return BINDING in cache
        try:
            await self._process.pool.at(cluster.place).get(CONFIGMAPS, BINDING.name, BINDING.namespace)
        except NotFound:
            return False
        return True

    def shed(self, gained: object) -> int:
        """Follow no more what has become another replica's."""
        for member in list(self.members):
            if not self._process.shards.holds(member):
                self.members.drop(member)
        return 0

    def _state_changed(self, place: KubeconfigRef, before: RemoteState, after: RemoteState) -> None:
        world, process = self._process.world, self._process
        cluster = next(one for one in world.clusters.values() if one.place == place)
        now = world.clock.monotonic()
        if after.phase in (Phase.UNREACHABLE, Phase.REFUSED) and before.usable:
            trouble = max(cluster.faulty_until, process.faulty_until)
            if cluster.answers and not process.cut_off and now > trouble + SLACK:
                world.breaks(f"{process.name} leaves {cluster.key.name} alone, which is well: {after.message}")

    def problems(self, since: float) -> list[str]:
        """Faults of the clusters of those objects that this process holds."""
        process, found = self._process, []
        waiting = 0
        for cluster in process.world.clusters.values():
            if not process.shards.holds(cluster.key):
                continue
            state, health = process.pool.state(cluster.place), process.pool.remote(cluster.place).health
            if not state.usable or cluster.answered_at < since:
                found.append(f"{cluster.key.name} is not called: {state}")
            if "binding" not in cluster.objects:
                found.append(f"{cluster.key.name} has no binding: {state}")
            link = process.pool.remote(cluster.place).link
            if link is not None and link.connection._token != f"token-{cluster._tokens}":  # type: ignore[attr-defined]
                found.append(f"{cluster.key.name} is called with a former credential: {state}")
            if cluster.watched and health.watches_waiting and state.phase is not Phase.READY:
                waiting += 1
            elif cluster.watched:
                cache, problem = self.watch.cache(cluster.key), self.watch.problem(cluster.key)
                if (
                    cache is None
                    or problem is not None
                    or not any(s in cluster.streams for s in self._streams(cluster))
                ):
                    found.append(f"{cluster.key.name} is not watched: {problem!r} {state}")
        if waiting and process.streams < process.pool.budget.watch_limit:
            found.append(f"{waiting} watches wait although only {process.streams} are open")
        return [f"{process.name}: {one}" for one in found]

    def _streams(self, cluster: Cluster) -> list[Stream]:
        link = self._process.pool.remote(cluster.place).link
        return list(link.connection._open) if link is not None else []  # type: ignore[attr-defined]
