"""The canary: one run after the other, each a cluster that is grown, used and deleted.

Objects it owns: one ConfigMap, the book of its runs; Runtimes with its label; a namespace inside each run's cluster; a
Leftover for each run that left something.
It watches: its book, its Runtimes, and their GardenerClusters, Secrets and Shoots.
Every phase begins and ends in the book, written against the version that was read: killed at any moment, or with
another replica in its place, the run goes on; two replicas cannot both begin one.
It never: touches a Runtime without its label, deletes a Shoot itself, grows a cluster while an earlier one is left.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec
import structlog

from hortus.domains.canary import book as books
from hortus.domains.canary import probe, service
from hortus.domains.canary.book import CONFIG_MAPS, Book, ConfigMap, Run
from hortus.domains.canary.context import CanaryContext
from hortus.domains.canary.debts import debt_of
from hortus.domains.canary.probe import FIELD_MANAGER
from hortus.domains.canary.service import PAUSE
from hortus.domains.canary.settings import Settings
from hortus.domains.canary.traces import Traces
from hortus.domains.clusters.types import RUNTIMES, Runtime
from hortus.engine import (
    NEVER,
    KindController,
    Result,
    StepError,
    Steps,
    TypedCache,
    Wiring,
    metadata_of,
)
from hortus.engine.deputies import Deputies, secret_reading
from hortus.engine.leftovers import LeftoverRecorder
from hortus.engine.remote import KubeconfigRef
from hortus.kube import Client
from hortus.kube.errors import AlreadyExists, ApiError, KubeError, TooManyRequests
from hortus.kube.objects import Object, ObjectKey, key_of

KUBECONFIG_KEY = "config"
"""The key of a kubeconfig Secret's data."""
LEAVING = 5.0
"""Seconds until objects that are being deleted are looked for again; for most of them a watch is quicker."""
AT_ONCE = Result(requeue_after=0.0)

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

Clusters = Callable[[KubeconfigRef], Client]
"""A client for the cluster whose kubeconfig lies at a place."""


class CanaryController(KindController[CanaryContext]):
    """Has one key: that of the book."""

    kind = ConfigMap
    field_manager = FIELD_MANAGER

    def __init__(
        self,
        wiring: Wiring[Any],
        *,
        runtimes: TypedCache[Runtime],
        traces: Traces,
        clusters: Clusters,
        deputies: Deputies,
        leftovers: LeftoverRecorder,
        settings: Settings,
    ) -> None:
        super().__init__(wiring)
        self._client = wiring.client
        self._runtimes = runtimes
        self._traces = traces
        self._clusters = clusters
        self._deputies = deputies
        self._leftovers = leftovers
        self._settings = settings
        self.key = ObjectKey(settings.namespace, books.NAME)
        self._phases: dict[str, Callable[[CanaryContext], Awaitable[Result | None]]] = {
            service.SWEEP: self._sweep,
            service.GROW: self._grow,
            service.USE: self._use,
            service.TIDY: self._tidy,
            service.DELETE: self._delete,
            service.VERIFY: self._verify,
        }

    def steps(self, context: CanaryContext) -> Steps:
        """One phase at a time, so that each begins and ends in the book."""
        run = context.book.run
        if run is None:
            return (self._note_period, self._begin)
        return (self._note_period, self._phases[run.phase], self._pass)

    def make_context(self, raw: Object) -> CanaryContext:
        return CanaryContext(self.wiring, raw)

    def context(self, key: ObjectKey) -> CanaryContext | None:
        return super().context(key) if key == self.key else None  # others are somebody else's

    async def gone(self, key: ObjectKey) -> Result | None:
        """Begin the book."""
        if key != self.key:
            return None
        empty = Book(opened=self.wiring.clock.now(), period=self._settings.period)
        try:
            made = await self._client.create(CONFIG_MAPS, books.config_map(empty, self.key.namespace))
        except AlreadyExists:
            return Result(requeue_after=PAUSE)  # the watch is behind, or it is not labelled as ours
        self.wiring.cache.raw.learn(made)
        return AT_ONCE

    # Sources.

    def keys(self) -> Iterable[ObjectKey]:
        """The one key, whether or not there is a book yet."""
        return (self.key,)

    def keys_of_runtime(self, runtime: Object) -> Iterable[ObjectKey]:
        return (self.key,) if service.run_of(metadata_of(runtime)) else ()

    def keys_of_trace(self, obj: Object) -> Iterable[ObjectKey]:
        """The key, for a GardenerCluster, Secret or Shoot that is named after the run under way."""
        config_map = self.wiring.cache.get(self.key)
        book = books.read_book(config_map) if config_map is not None else None
        run = book.run.name if book is not None and book.run is not None else ""
        return (self.key,) if run and run in key_of(obj).name else ()

    # Steps around the phases.

    async def _note_period(self, context: CanaryContext) -> None:
        context.book = msgspec.structs.replace(context.book, period=self._settings.period)

    async def _begin(self, context: CanaryContext) -> Result:
        """Begin a run when it is due or asked for."""
        now, asked = context.now, books.asked(context.object)
        if (pause := service.due_in(context.book, asked, now, self._settings.period)) > 0:
            return Result(requeue_after=pause)
        context.book = service.begun(context.book, asked, now)
        return AT_ONCE

    async def _pass(self, context: CanaryContext) -> Result:
        """Note that the phase has done its work."""
        context.book = service.passed(context.book, context.run, context.now)
        return AT_ONCE

    # The phases.

    async def _sweep(self, context: CanaryContext) -> None:
        """Delete what earlier runs left, whether or not the book knows of them."""
        earlier = self._earlier(context)
        for name in earlier:
            await self._traces.remove(name)
        if left := await self._traces.left(earlier):
            raise StepError(f"earlier runs left {', '.join(left)}", after=LEAVING)

    async def _grow(self, context: CanaryContext) -> None:
        name = context.run.name
        runtime = self._runtimes.get(ObjectKey(self.key.namespace, name))
        if runtime is None:
            await self._create(name)
            raise StepError("the Runtime was just made", after=PAUSE)
        if service.run_of(runtime.metadata) != name:
            raise StepError(f"there is a Runtime {name} that no canary made", after=NEVER)
        state, said = service.growth(runtime)
        if state != "Ready":
            raise StepError(said, after=NEVER if state == "Failed" else self._settings.grow_timeout)

    async def _create(self, name: str) -> None:
        wanted = service.runtime(self._settings.template, name, self.key.namespace)
        try:
            self._runtimes.raw.learn(await self._client.create(RUNTIMES, wanted, field_manager=FIELD_MANAGER))
        except AlreadyExists:
            raise StepError("the watch does not show the Runtime yet", after=LEAVING) from None
        except TooManyRequests:
            raise
        except ApiError as error:
            if error.http_code < 500:
                raise StepError(f"the Runtime is refused: {error}", after=NEVER) from error
            raise

    async def _use(self, context: CanaryContext) -> None:
        await probe.use(await self._cluster_of(context.run), context.run.name)

    async def _tidy(self, context: CanaryContext) -> None:
        await probe.tidy(await self._cluster_of(context.run), context.run.name)

    async def _cluster_of(self, run: Run) -> Client:
        """The cluster of the run, whose name every writer of the book may change. Raises StepError."""
        place = KubeconfigRef(self.key.namespace, f"kubeconfig-{run.name}", KUBECONFIG_KEY)
        await self._deputies.require(place.namespace, secret_reading(place.namespace, place.name))
        return self._clusters(place)

    async def _delete(self, context: CanaryContext) -> None:
        name = context.run.name
        await self._traces.remove_runtime(name)
        if self._traces.runtime(name) is not None:
            raise StepError("the Runtime is not gone yet", after=self._settings.delete_timeout)

    async def _verify(self, context: CanaryContext) -> None:
        if left := await self._traces.of(context.run.name):
            raise StepError(f"left behind: {', '.join(left)}", after=LEAVING)

    def _earlier(self, context: CanaryContext) -> set[str]:
        """Names of earlier runs that may have left something."""
        return {*self._traces.runs(), *context.book.unclean} - {context.run.name}

    # Failures.

    async def on_error(self, context: CanaryContext, error: StepError | KubeError) -> StepError:
        """A phase is tried again until its deadline, and fails then, or at once where trying again does not help."""
        run, text, after = context.run, str(error), PAUSE
        if isinstance(error, StepError) and error.after is not None:
            after = error.after
        left = service.deadline(run, self._settings) - context.now
        if after != NEVER and left > 0:
            return StepError(text, after=min(left, after))
        if run.phase not in service.GROWN:
            own = {run.name} if run.phase in (service.DELETE, service.VERIFY) else set()
            runs = self._earlier(context) | own
            context.leftovers = await self._traces.left(runs)
            for name in sorted(runs):
                await self._record(name, context.leftovers)
        return StepError(text if after == NEVER else f"not done in time: {text}", after=NEVER)

    async def _record(self, run: str, left: Iterable[str]) -> None:
        """Record the objects of a run that are left, before the book forgets the run. Raises KubeError."""
        await self._leftovers.record(debt_of(run, left, self.key.namespace, self._traces.garden_namespace))

    def report(self, context: CanaryContext, error: StepError) -> None:
        run = context.run
        if not error.is_final:
            _log.debug("canary waits", run=run.name, phase=run.phase, reason=error.message)
            return
        _log.warning("canary failed", run=run.name, phase=run.phase, reason=error.message)
        context.book = service.failed(context.book, run, error.message, context.now, leftovers=context.leftovers)

    def outcome(self, context: CanaryContext, error: StepError) -> Result:
        """The next phase at once, or the same one again: both are successes of this controller."""
        return AT_ONCE if error.is_final else Result(requeue_after=error.after)
