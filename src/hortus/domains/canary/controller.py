"""The canary: one run after the other, each a cluster that is grown, used and deleted.

Objects it owns: one ConfigMap, the book of its runs; Runtimes with its label; a namespace inside each run's cluster.
It watches: its book, its Runtimes, and their GardenerClusters, Secrets and Shoots.
Every phase begins and ends in the book, written against the version that was read: killed at any moment, or with
another replica in its place, the run goes on; two replicas cannot both begin one.
It never: touches a Runtime without its label, deletes a Shoot itself, grows a cluster while an earlier one is left.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

import msgspec
import structlog

from hortus.domains.canary import book as books
from hortus.domains.canary import probe, service
from hortus.domains.canary.book import CONFIG_MAPS, Book, Run
from hortus.domains.canary.outcomes import PAUSE, Broken, Pending
from hortus.domains.canary.settings import Settings
from hortus.domains.canary.traces import Traces
from hortus.domains.clusters.types import RUNTIMES
from hortus.engine import Cache, Result
from hortus.engine.remote import Place, RemoteUnavailable
from hortus.kube import Client, Clock
from hortus.kube.errors import AlreadyExists, ApiError, KubeError, NotFound, TooManyRequests
from hortus.kube.objects import Object, ObjectKey, key_of

KUBECONFIG_KEY = "config"
"""Of a kubeconfig Secret's data (infrastructure-manager, section 1)."""
LEAVING = 5.0
"""Seconds until what is being deleted is looked at again; for most of it a watch is quicker."""
AT_ONCE = Result(requeue_after=0.0)
FIELD_MANAGER = "hortus-canary"

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Clusters = Callable[[Place], Client]
"""A client for the cluster whose kubeconfig lies at a place."""


class CanaryController:
    """Has one key: that of the book."""

    def __init__(
        self,
        *,
        client: Client,
        book: Cache,
        runtimes: Cache,
        traces: Traces,
        clusters: Clusters,
        settings: Settings,
        clock: Clock,
    ) -> None:
        self._client = client
        self._book = book
        self._runtimes = runtimes
        self._traces = traces
        self._clusters = clusters
        self._settings = settings
        self._clock = clock
        self.key = ObjectKey(settings.namespace, books.NAME)
        self._steps: dict[str, Callable[[Book, Run], Awaitable[None]]] = {
            service.SWEEP: self._sweep,
            service.GROW: self._grow,
            service.USE: self._use,
            service.TIDY: self._tidy,
            service.DELETE: self._delete,
            service.VERIFY: self._verify,
        }

    def keys(self) -> Iterable[ObjectKey]:
        """What there is to do, whether or not there is a book yet."""
        return (self.key,)

    def keys_of_runtime(self, runtime: Object) -> Iterable[ObjectKey]:
        return (self.key,) if service.run_of(runtime) else ()

    def keys_of_trace(self, obj: Object) -> Iterable[ObjectKey]:
        """For GardenerClusters, Secrets and Shoots: those named after the run under way."""
        run = self._under_way()
        return (self.key,) if run and run in obj["metadata"]["name"] else ()

    async def reconcile(self, key: ObjectKey) -> Result | None:
        if key != self.key:
            return None  # somebody else's, in another namespace
        config_map = self._book.get(key)
        if config_map is None:
            return await self._open()
        book = books.read(config_map) or Book(opened=self._clock.now())
        if book.period != self._settings.period:
            book = msgspec.structs.replace(book, period=self._settings.period)
            return await self._write(config_map, book)
        if book.run is None:
            return await self._rest(config_map, book)
        return await self._advance(config_map, book, book.run)

    async def _open(self) -> Result:
        """Begin the book."""
        empty = Book(opened=self._clock.now(), period=self._settings.period)
        try:
            made = await self._client.create(CONFIG_MAPS, books.config_map(empty, self.key.namespace))
        except AlreadyExists:
            return Result(requeue_after=PAUSE)  # the watch is behind, or it is not labelled as ours
        self._book.learn(made)
        return AT_ONCE

    async def _rest(self, config_map: Object, book: Book) -> Result:
        """Between two runs."""
        now, asked = self._clock.now(), books.asked(config_map)
        if (pause := service.due_in(book, asked, now, self._settings.period)) > 0:
            return Result(requeue_after=pause)
        return await self._write(config_map, service.begun(book, asked, now))

    async def _advance(self, config_map: Object, book: Book, run: Run) -> Result:
        """Do what the phase is for; when it is over, one way or the other, say so in the book."""
        try:
            await self._steps[run.phase](book, run)
        except Broken as error:
            return await self._fail(config_map, book, run, str(error))
        except (Pending, KubeError, RemoteUnavailable) as error:
            left = service.deadline(run, self._settings) - self._clock.now()
            if left <= 0:
                return await self._fail(config_map, book, run, f"not done in time: {error}")
            _log.debug("canary waits", run=run.name, phase=run.phase, reason=str(error))
            after = error.after if isinstance(error, Pending) else PAUSE
            return Result(requeue_after=min(left, after))
        return await self._write(config_map, service.passed(book, run, self._clock.now()))

    async def _fail(self, config_map: Object, book: Book, run: Run, message: str) -> Result:
        _log.warning("canary failed", run=run.name, phase=run.phase, reason=message)
        leftovers = () if run.phase in service.GROWN else await self._left(book, run)
        return await self._write(config_map, service.failed(book, run, message, self._clock.now(), leftovers=leftovers))

    async def _write(self, config_map: Object, book: Book) -> Result:
        """Raises Conflict when somebody wrote since `config_map` was read: then the turn is theirs."""
        patch = {
            "metadata": {"resourceVersion": config_map["metadata"]["resourceVersion"]},
            "data": {books.KEY: books.text(book)},
        }
        self._book.learn(await self._client.patch(CONFIG_MAPS, self.key.name, patch, self.key.namespace))
        return AT_ONCE

    # The phases.

    async def _sweep(self, book: Book, run: Run) -> None:
        """What earlier runs left goes, whether or not the book knows of them."""
        for name in self._earlier(book, run):
            await self._remove_runtime(name)
            if self._own_runtime(name) is None:
                await self._traces.remove(name)
        if left := await self._left(book, run):
            raise Pending(f"earlier runs left {', '.join(left)}", after=LEAVING)

    async def _grow(self, book: Book, run: Run) -> None:
        runtime = self._runtimes.get(ObjectKey(self.key.namespace, run.name))
        if runtime is None:
            await self._create(run)
            raise Pending("the Runtime was just made")
        if service.run_of(runtime) != run.name:
            raise Broken(f"there is a Runtime {run.name} that no canary made")
        state, said = service.growth(runtime)
        if state == "Failed":
            raise Broken(said)
        if state != "Ready":
            raise Pending(said, after=self._settings.grow_timeout)

    async def _create(self, run: Run) -> None:
        wanted = service.runtime(self._settings.template, run.name, self.key.namespace)
        try:
            self._runtimes.learn(await self._client.create(RUNTIMES, wanted, field_manager=FIELD_MANAGER))
        except AlreadyExists:
            raise Pending("the watch does not show the Runtime yet", after=LEAVING) from None
        except TooManyRequests:
            raise
        except ApiError as error:
            if error.http_code < 500:
                raise Broken(f"the Runtime is refused: {error}") from error
            raise

    async def _use(self, book: Book, run: Run) -> None:
        await probe.use(self._cluster(run), run.name)

    async def _tidy(self, book: Book, run: Run) -> None:
        await probe.tidy(self._cluster(run), run.name)

    async def _delete(self, book: Book, run: Run) -> None:
        await self._remove_runtime(run.name)
        if self._own_runtime(run.name) is not None:
            raise Pending("the Runtime is not gone yet", after=self._settings.delete_timeout)

    async def _verify(self, book: Book, run: Run) -> None:
        if left := await self._traces.of(run.name):
            raise Pending(f"left behind: {', '.join(left)}", after=LEAVING)

    # What they have in common.

    def _cluster(self, run: Run) -> Client:
        return self._clusters(Place(self.key.namespace, f"kubeconfig-{run.name}", KUBECONFIG_KEY))

    def _own_runtime(self, name: str) -> Object | None:
        runtime = self._runtimes.get(ObjectKey(self.key.namespace, name))
        return runtime if runtime is not None and service.run_of(runtime) == name else None

    async def _remove_runtime(self, name: str) -> None:
        runtime = self._own_runtime(name)
        if runtime is None or runtime["metadata"].get("deletionTimestamp"):
            return
        try:
            await self._client.delete(RUNTIMES, name, self.key.namespace, uid=runtime["metadata"]["uid"])
        except NotFound:
            return  # the watch will say so

    def _earlier(self, book: Book, run: Run) -> set[str]:
        """Names of earlier runs that may have left something."""
        namespace = self.key.namespace
        labelled = {
            key.name
            for key in map(key_of, self._runtimes.values())
            if key.namespace == namespace and self._own_runtime(key.name)
        }
        return {*labelled, *book.unclean} - {run.name}

    async def _left(self, book: Book, run: Run) -> tuple[str, ...]:
        """What could not be removed, as far as it can be told now."""
        names = self._earlier(book, run)
        if run.phase in (service.DELETE, service.VERIFY):
            names.add(run.name)
        found: list[str] = []
        for name in sorted(names):
            if self._own_runtime(name) is not None:
                found.append(f"runtime/{name}")
            try:
                found.extend(await self._traces.of(name))
            except KubeError as error:
                found.append(f"shoot/{name} (the garden cannot be asked: {error})")
        return tuple(found)

    def _under_way(self) -> str:
        config_map = self._book.get(self.key)
        book = books.read(config_map) if config_map is not None else None
        return book.run.name if book is not None and book.run is not None else ""
