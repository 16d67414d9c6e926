"""The numbers of one replica at one moment, from the text of its metrics, and the rates between two moments. Pure.

Counters begin at zero when a process starts: a difference that is negative is that of a restart, and counts as none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

FAMILIES: Final = (
    "process_cpu_seconds_total",
    "process_resident_memory_bytes",
    "process_start_time_seconds",
    "hortus_watches",
    "hortus_cached_objects",
    "hortus_remote_sockets",
    "rest_client_requests_total",
    "workqueue_depth",
    "workqueue_longest_running_processor_seconds",
    "workqueue_queue_duration_seconds",
    "controller_runtime_reconcile_total",
    "controller_runtime_reconcile_time_seconds",
)
"""The families that are asked for (`name[]`) and read; of an exporter that sends all, the others are left out."""
_BUCKETS: Final = {
    "workqueue_queue_duration_seconds_bucket": "waited",
    "controller_runtime_reconcile_time_seconds_bucket": "worked",
}

Buckets = Mapping[float, float]
"""Counts up to an upper bound in seconds, all below included."""
_NO_BUCKETS: Final[Buckets] = {}


class ControllerReading(NamedTuple):
    """One controller and its queue."""

    waiting: float = 0.0
    """Keys in the queue."""
    longest: float = 0.0
    """Seconds since when the key longest in work is in work."""
    reconciles: float = 0.0
    errors: float = 0.0
    waited: Buckets = _NO_BUCKETS
    worked: Buckets = _NO_BUCKETS


class ReplicaReading(NamedTuple):
    """One replica at one moment. Numbers that it does not report are None, or empty."""

    at: float
    cpu: float | None
    """Seconds of processor time since the start."""
    memory: float | None
    """Bytes."""
    started: float | None
    watches: float | None
    behind: float | None
    """Watches that do not keep their cache current."""
    objects: float | None
    sockets: float | None
    """Connections to remote clusters."""
    calls: float
    refused: float
    """Calls of the API servers that were answered with 5xx, 429, or not at all."""
    controllers: Mapping[str, ControllerReading]

    @property
    def waiting(self) -> float:
        return sum(one.waiting for one in self.controllers.values())

    @property
    def reconciles(self) -> float:
        return sum(one.reconciles for one in self.controllers.values())

    @property
    def errors(self) -> float:
        return sum(one.errors for one in self.controllers.values())


def reading_of(text: str, at: float) -> ReplicaReading:
    """Reads a text in Prometheus' format. Raises ValueError for one that is not."""
    plain: dict[str, float] = {}
    calls = refused = 0.0
    controllers: dict[str, dict[str, float]] = {}
    buckets: dict[str, dict[str, dict[float, float]]] = {}
    for sample in _samples(text):
        name, labels, value = sample.name, sample.labels, sample.value
        controller = labels.get("controller") or labels.get("name", "")
        if kind := _BUCKETS.get(name):
            buckets.setdefault(controller, {}).setdefault(kind, {})[float(labels["le"])] = value
        elif name == "rest_client_requests_total":
            calls += value
            refused += value if _is_refused(labels.get("code", "")) else 0.0
        elif (field := _FIELDS.get(name)) is not None:
            own = controllers.setdefault(controller, {})
            own[field] = own.get(field, 0.0) + value
            if field == "reconciles" and labels.get("result") == "error":
                own["errors"] = own.get("errors", 0.0) + value
        else:
            plain[f"{name}/{labels.get('state', '')}"] = value
    watches = [plain.get(f"hortus_watches/{state}") for state in ("current", "behind")]
    return ReplicaReading(
        at=at,
        cpu=plain.get("process_cpu_seconds_total/"),
        memory=plain.get("process_resident_memory_bytes/"),
        started=plain.get("process_start_time_seconds/"),
        watches=None if watches[0] is None else watches[0] + (watches[1] or 0.0),
        behind=watches[1],
        objects=plain.get("hortus_cached_objects/"),
        sockets=plain.get("hortus_remote_sockets/"),
        calls=calls,
        refused=refused,
        controllers={
            name: ControllerReading(**own, **buckets.get(name, {}))  # type: ignore[arg-type]
            for name, own in sorted(controllers.items())
        },
    )


_FIELDS: Final = {
    "workqueue_depth": "waiting",
    "workqueue_longest_running_processor_seconds": "longest",
    "controller_runtime_reconcile_total": "reconciles",
}


def _samples(text: str) -> Iterator[Sample]:
    # Thousands of objects have tens of thousands of series; those of other families are never parsed.
    ours = "\n".join(line for line in text.splitlines() if line.startswith(FAMILIES))
    for family in text_string_to_metric_families(ours + "\n"):
        yield from family.samples


def _is_refused(code: str) -> bool:
    return not code.isdigit() or code == "429" or code.startswith("5")


def rate(before: float | None, after: float | None, seconds: float) -> float | None:
    """The growth of a counter each second; None where it is not known, or began again."""
    if before is None or after is None or seconds <= 0 or after < before:
        return None
    return (after - before) / seconds


def quantile(share: float, before: Sequence[Buckets], after: Sequence[Buckets]) -> float | None:
    """Seconds that this share of the observations between two moments did not exceed; None without observations.

    Within a bucket they are taken to be spread evenly, as by Prometheus' `histogram_quantile`.
    """
    counts: dict[float, float] = {}
    for sign, found in ((-1.0, before), (1.0, after)):
        for buckets in found:
            for bound, count in buckets.items():
                counts[bound] = counts.get(bound, 0.0) + sign * count
    bounds = sorted(counts)
    if not bounds or counts[bounds[-1]] <= 0 or any(count < 0 for count in counts.values()):
        return None
    wanted, low, below = share * counts[bounds[-1]], 0.0, 0.0
    for bound in bounds:
        if counts[bound] >= wanted:
            if bound == float("inf"):
                return low
            inside = counts[bound] - below
            return low + (bound - low) * ((wanted - below) / inside if inside else 1.0)
        low, below = bound, counts[bound]
    return low
