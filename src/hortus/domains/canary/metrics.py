"""This domain's metrics, read from the book: every replica shows the same, also one that has just begun."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from hortus.domains.canary.book import Book, ConfigMap, read_book
from hortus.engine import TypedCache
from hortus.kube.objects import ObjectKey


class CanaryMetrics(Collector):
    """Collects nothing before there is a book."""

    def __init__(self, registry: CollectorRegistry, cache: TypedCache[ConfigMap], key: ObjectKey) -> None:
        self._cache = cache
        self._key = key
        registry.register(self)

    def describe(self) -> Iterator[Metric]:
        yield from families(Book(opened=0.0))

    def collect(self) -> Iterator[Metric]:
        config_map = self._cache.get(self._key)
        book = read_book(config_map) if config_map is not None else None
        if book is not None:
            yield from families(book)


def families(book: Book) -> Iterator[Metric]:
    last = book.history[0] if book.history else None
    for name, text, value in (
        ("period_seconds", "Time from the start of one run to the next.", book.period),
        ("last_success_timestamp_seconds", "When a run last succeeded; 0 for never.", book.last_success),
        (
            "last_run_timestamp_seconds",
            "When a run last ended; before the first, when the canary was switched on.",
            last.ended if last else book.opened,
        ),
        ("consecutive_failures", "Runs that failed since one succeeded.", float(book.consecutive_failures)),
        ("leftovers", "Objects of runs that could not be removed.", float(len(book.leftovers))),
        ("running", "1 while a run is under way.", float(book.run is not None)),
    ):
        yield GaugeMetricFamily(f"hortus_canary_{name}", text, value=value)
    runs = CounterMetricFamily("hortus_canary_runs", "Runs that are over, by result.", labels=("result",))
    runs.add_metric(("succeeded",), float(book.succeeded))
    runs.add_metric(("failed",), float(book.failed))
    yield runs
    phases = GaugeMetricFamily(
        "hortus_canary_phase_duration_seconds", "What each phase of the last run took.", labels=("phase",)
    )
    for phase, seconds in (last.seconds if last else {}).items():
        phases.add_metric((phase,), seconds)
    yield phases
