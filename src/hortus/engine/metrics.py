"""The metrics of controllers and queues, named as by controller-runtime and client-go, so that existing boards work.

The hot path adds to plain numbers; they become Prometheus families only when somebody scrapes. That costs a tenth of
the client library's own histograms for each reconcile, and needs no lock because scrapes run on the same event loop.
Labels are the controller's name and nothing of an object.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence, Sized
from typing import Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

RECONCILE_BUCKETS: Sequence[float] = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0),
    *(50.0, 60.0),
)
"""Seconds; those of controller-runtime."""

QUEUE_BUCKETS: Sequence[float] = tuple(10.0 ** (exponent - 8) for exponent in range(12))
"""Seconds, 10 ns to 1000 s by tens; those of client-go."""


class BucketCounts:
    """A histogram as two numbers and a list; `observe` is one bisection."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)

    def buckets(self) -> list[tuple[str, float]]:
        """Cumulative (upper bound, count) pairs, as the exposition format wants them."""
        running, pairs = 0, []
        for bound, count in zip(self.bounds, self.counts, strict=False):
            running += count
            pairs.append((str(bound), float(running)))
        pairs.append(("+Inf", float(running + self.counts[-1])))
        return pairs


class ObservedQueue(Protocol):
    def __len__(self) -> int: ...

    def ages(self) -> list[float]:
        """Seconds since when each key in work is in work."""


class ObservedCounts(Protocol):
    changes: int
    gained: int
    interrupted: int
    lost: int


class ObservedShards(Protocol):
    @property
    def members(self) -> list[str]: ...

    @property
    def joined(self) -> bool: ...

    @property
    def counts(self) -> ObservedCounts: ...


class ObservedCaches(Protocol):
    def problems(self) -> Iterable[tuple[Sized, Exception | None]]:
        """Every cache, with why it is not kept current now."""


class QueueMeter:
    """The numbers of one queue."""

    __slots__ = ("adds", "name", "queue", "retries", "waited", "worked")

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.adds = 0
        self.retries = 0
        self.waited = BucketCounts(QUEUE_BUCKETS)
        self.worked = BucketCounts(QUEUE_BUCKETS)
        self.queue: ObservedQueue | None = None

    def observes(self, queue: ObservedQueue) -> None:
        self.queue = queue

    @property
    def depth(self) -> int:
        return 0 if self.queue is None else len(self.queue)

    def ages(self) -> list[float]:
        return [] if self.queue is None else self.queue.ages()


class ControllerMeter:
    """The numbers of one controller."""

    __slots__ = ("active", "errors", "name", "panics", "reconciled", "results", "terminal", "timeouts", "workers")

    def __init__(self, name: str = "", workers: int = 0) -> None:
        self.name = name
        self.workers = workers
        self.active = 0
        self.results = {"success": 0, "requeue_after": 0, "requeue": 0, "error": 0}
        self.errors = 0
        self.terminal = 0
        self.panics = 0
        self.timeouts = 0
        self.reconciled = BucketCounts(RECONCILE_BUCKETS)


class EngineMetrics(Collector):
    """Turns every meter it has handed out into families at scrape time; one for each registry."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._controllers: dict[str, ControllerMeter] = {}
        self._queues: dict[str, QueueMeter] = {}
        self._leading: dict[str, Callable[[], bool]] = {}
        self._shards: dict[str, ObservedShards] = {}
        self._held: dict[str, Callable[[], int]] = {}
        self._rivals: dict[str, Callable[[], bool]] = {}
        self._caches: list[ObservedCaches] = []
        if registry is not None:
            registry.register(self)

    def controller(self, name: str, *, workers: int) -> ControllerMeter:
        """The meter of a new controller; raises ValueError when the name is taken."""
        if name in self._controllers:
            raise ValueError(f"two controllers are named {name!r}: their metrics could not be told apart")
        meter = self._controllers[name] = ControllerMeter(name, workers)
        return meter

    def queue(self, name: str) -> QueueMeter:
        meter = self._queues[name] = QueueMeter(name)
        return meter

    def leader(self, name: str, leading: Callable[[], bool]) -> None:
        """Report whether this process leads the election `name`."""
        self._leading[name] = leading

    def rival(self, lease: str, is_held_by_others: Callable[[], bool]) -> None:
        """Report whether another operator holds a Lease of the name `lease`."""
        self._rivals[lease] = is_held_by_others

    def sharded(self, group: str, shards: ObservedShards) -> None:
        """Report how the shards of `group` are."""
        self._shards[group] = shards

    def held(self, controller: str, count: Callable[[], int]) -> None:
        """Report how many objects of `controller` this replica holds."""
        self._held[controller] = count

    def watching(self, caches: ObservedCaches) -> None:
        """Report the watches of `caches`, and the objects that they keep."""
        self._caches.append(caches)

    def describe(self) -> Iterable[Metric]:
        return self.collect()

    def collect(self) -> Iterable[Metric]:
        yield from self._collect_controllers()
        yield from self._collect_queues()
        yield from self._collect_watches()
        if self._leading:
            family = GaugeMetricFamily(
                "leader_election_master_status",
                "Whether this process leads the election (1) or stands by (0).",
                labels=("name",),
            )
            for name, leading in self._leading.items():
                family.add_metric((name,), float(leading()))
            yield family
        if self._rivals:
            family = GaugeMetricFamily(
                "hortus_rival_lease_held",
                "Whether another operator holds a lease of this name (1), so that its work is not done here.",
                labels=("lease",),
            )
            for name, is_held in self._rivals.items():
                family.add_metric((name,), float(is_held()))
            yield family
        yield from self._collect_shards()

    def _collect_watches(self) -> Iterable[Metric]:
        if not self._caches:
            return
        known = [found for caches in self._caches for found in caches.problems()]
        behind = sum(1 for _, problem in known if problem is not None)
        watches = GaugeMetricFamily(
            "hortus_watches",
            "Watches of this process: those that keep their cache current, and others.",
            labels=("state",),
        )
        watches.add_metric(("current",), len(known) - behind)
        watches.add_metric(("behind",), behind)
        yield watches
        yield GaugeMetricFamily(
            "hortus_cached_objects", "Objects that watches keep in memory.", value=sum(len(one) for one, _ in known)
        )

    def _collect_shards(self) -> Iterable[Metric]:
        if not self._shards:
            return
        for name, text, number_of in _SHARD_GAUGES:
            gauge = GaugeMetricFamily(name, text, labels=("group",))
            for group, shards in self._shards.items():
                gauge.add_metric((group,), number_of(shards))
            yield gauge
        for name, text, read in _SHARD_COUNTERS:
            family = _counter(name, text, "group")
            for group, shards in self._shards.items():
                family.add_metric((group,), read(shards.counts))
            yield family
        objects = GaugeMetricFamily(
            "hortus_shard_objects", "Objects that this replica works on.", labels=("controller",)
        )
        for controller, count in self._held.items():
            objects.add_metric((controller,), count())
        yield objects

    def _collect_controllers(self) -> Iterable[Metric]:
        meters = self._controllers.values()
        results = _counter("controller_runtime_reconcile", "Reconciles by result.", "controller", "result")
        for meter in meters:
            for result, count in meter.results.items():
                results.add_metric((meter.name, result), count)
        yield results
        for name, text, read in _CONTROLLER_COUNTERS:
            family = _counter(name, text, "controller")
            for meter in meters:
                family.add_metric((meter.name,), read(meter))
            yield family
        for name, text, read in _CONTROLLER_GAUGES:
            gauge = GaugeMetricFamily(name, text, labels=("controller",))
            for meter in meters:
                gauge.add_metric((meter.name,), read(meter))
            yield gauge
        times = HistogramMetricFamily(
            "controller_runtime_reconcile_time_seconds", "Seconds a reconcile took.", labels=("controller",)
        )
        for meter in meters:
            times.add_metric((meter.name,), meter.reconciled.buckets(), meter.reconciled.total)
        yield times

    def _collect_queues(self) -> Iterable[Metric]:
        meters = self._queues.values()
        labels = ("controller", "name")
        for name, text, read in _QUEUE_COUNTERS:
            family = _counter(name, text, *labels)
            for meter in meters:
                family.add_metric((meter.name, meter.name), read(meter))
            yield family
        for name, text, measure in _QUEUE_GAUGES:
            gauge = GaugeMetricFamily(name, text, labels=labels)
            for meter in meters:
                gauge.add_metric((meter.name, meter.name), measure(meter))
            yield gauge
        for name, text, pick in _QUEUE_HISTOGRAMS:
            times = HistogramMetricFamily(name, text, labels=labels)
            for meter in meters:
                times.add_metric((meter.name, meter.name), pick(meter).buckets(), pick(meter).total)
            yield times


def _counter(name: str, text: str, *labels: str) -> CounterMetricFamily:
    return CounterMetricFamily(name, text, labels=labels)


_CONTROLLER_COUNTERS: Sequence[tuple[str, str, Callable[[ControllerMeter], int]]] = (
    ("controller_runtime_reconcile_errors", "Reconciles that failed.", lambda meter: meter.errors),
    (
        "controller_runtime_terminal_reconcile_errors",
        "Reconciles that failed and are not tried again before the object changes.",
        lambda meter: meter.terminal,
    ),
    (
        "controller_runtime_reconcile_panics",
        "Reconciles that failed with an exception nobody planned for.",
        lambda meter: meter.panics,
    ),
    ("controller_runtime_reconcile_timeouts", "Reconciles cut off at their deadline.", lambda meter: meter.timeouts),
)
_CONTROLLER_GAUGES: Sequence[tuple[str, str, Callable[[ControllerMeter], int]]] = (
    (
        "controller_runtime_max_concurrent_reconciles",
        "How many objects may be in work at once.",
        lambda meter: meter.workers,
    ),
    ("controller_runtime_active_workers", "How many objects are in work now.", lambda meter: meter.active),
)
_QUEUE_COUNTERS: Sequence[tuple[str, str, Callable[[QueueMeter], int]]] = (
    ("workqueue_adds", "Keys put into the queue.", lambda meter: meter.adds),
    ("workqueue_retries", "Keys put back after a failure.", lambda meter: meter.retries),
)
_QUEUE_GAUGES: Sequence[tuple[str, str, Callable[[QueueMeter], float]]] = (
    ("workqueue_depth", "Keys that wait for a worker.", lambda meter: meter.depth),
    (
        "workqueue_unfinished_work_seconds",
        "Seconds spent so far on the keys in work, summed; grows without end when workers are stuck.",
        lambda meter: sum(meter.ages()),
    ),
    (
        "workqueue_longest_running_processor_seconds",
        "Seconds since when the key longest in work is in work.",
        lambda meter: max(meter.ages(), default=0.0),
    ),
)
_QUEUE_HISTOGRAMS: Sequence[tuple[str, str, Callable[[QueueMeter], BucketCounts]]] = (
    (
        "workqueue_queue_duration_seconds",
        "Seconds a key waited in the queue before a worker took it.",
        lambda meter: meter.waited,
    ),
    ("workqueue_work_duration_seconds", "Seconds a worker had a key in work.", lambda meter: meter.worked),
)
_SHARD_GAUGES: Sequence[tuple[str, str, Callable[[ObservedShards], float]]] = (
    (
        "hortus_shard_members",
        "Replicas that share the objects, as this one sees it.",
        lambda shards: len(shards.members),
    ),
    (
        "hortus_shard_joined",
        "Whether this replica may hold objects (1) or waits (0).",
        lambda shards: float(shards.joined),
    ),
)
_SHARD_COUNTERS: Sequence[tuple[str, str, Callable[[ObservedCounts], int]]] = (
    ("hortus_shard_changes", "Changes of who the members are.", lambda counts: counts.changes),
    ("hortus_shard_objects_gained", "Objects that this replica took over.", lambda counts: counts.gained),
    (
        "hortus_shard_reconciles_interrupted",
        "Reconciles cut off since their object had moved or the lease was lost.",
        lambda counts: counts.interrupted,
    ),
    ("hortus_shard_leases_lost", "Leases that this replica could not renew in time.", lambda counts: counts.lost),
)
