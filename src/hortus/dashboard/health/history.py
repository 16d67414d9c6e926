"""The readings of each replica in the last hour, as blocks of a page: a table, queues, and lines over time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from hortus.dashboard.health.readings import Buckets, ControllerReading, ReplicaReading, quantile, rate
from hortus.engine.pages import Block, Cell, Grid, Plot, PlotGroup, PlotLine, StateMark, moment

EVERY: Final = 15.0
"""Seconds between readings."""
_POINTS: Final = 240
"""An hour."""
_RECENT: Final = 20
"""Readings that are kept whole: tables show the last five minutes."""
_GONE: Final = 120.0
"""Seconds after which a replica that is no longer listed leaves the table."""
_LINES: Final = 6
"""Lines of a plot; the style sheet has as many that differ without colour."""
_MIB: Final = 1 << 20


class Plotted(NamedTuple):
    """One plot: what is drawn of two readings that follow each other."""

    title: str
    unit: str
    value: Callable[[ReplicaReading, ReplicaReading], float | None]


def _busy(before: ReplicaReading, after: ReplicaReading) -> float | None:
    share = rate(before.cpu, after.cpu, after.at - before.at)
    return None if share is None else 100 * share


def _worked(before: ReplicaReading, after: ReplicaReading) -> float | None:
    return _thousandfold(_p99(before.controllers.values(), after.controllers.values(), lambda one: one.worked))


def _waited(before: ReplicaReading, after: ReplicaReading) -> float | None:
    return _thousandfold(_p99(before.controllers.values(), after.controllers.values(), lambda one: one.waited))


QUANTITIES: Final = (
    Plotted("Processor time", "% of one core", _busy),
    Plotted("Memory", "MiB", lambda _, now: None if now.memory is None else now.memory / _MIB),
    Plotted("Keys that wait in queues", "keys", lambda _, now: now.waiting),
    Plotted("Wait in a queue, 99th percentile", "ms", _waited),
    Plotted("Reconciles", "a second", lambda was, now: rate(was.reconciles, now.reconciles, now.at - was.at)),
    Plotted("Duration of a reconcile, 99th percentile", "ms", _worked),
    Plotted("Calls of API servers", "a second", lambda was, now: rate(was.calls, now.calls, now.at - was.at)),
    Plotted("Watches", "watches", lambda _, now: now.watches),
)


class ReplicaHistory:
    """One replica."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.problem = ""
        """The reason why the last attempt read nothing; empty if it did."""
        self.listed = 0.0
        """When it was last known, in seconds since 1970."""
        self.recent: deque[ReplicaReading] = deque(maxlen=_RECENT)
        self.points: dict[str, deque[tuple[float, float]]] = {}

    @property
    def last(self) -> ReplicaReading | None:
        return self.recent[-1] if self.recent else None

    def add(self, reading: ReplicaReading) -> None:
        self.problem = ""
        if self.recent and self.recent[-1].started != reading.started:
            self.recent.clear()  # counters began again
        before = self.recent[-1] if self.recent else reading
        self.recent.append(reading)
        for one in QUANTITIES:
            if (value := one.value(before, reading)) is not None:
                self.points.setdefault(one.title, deque(maxlen=_POINTS)).append((reading.at, value))


class HealthHistory:
    """All replicas of one source."""

    def __init__(self) -> None:
        self._known: dict[str, ReplicaHistory] = {}

    def add(self, found: Mapping[str, ReplicaReading | str], now: float) -> None:
        """Adds what was read of each replica, or the sentence that says why nothing was."""
        for name, one in found.items():
            known = self._known.setdefault(name, ReplicaHistory(name))
            known.listed = now
            if isinstance(one, str):
                known.problem = one
            else:
                known.add(one)
        self._known = {name: one for name, one in self._known.items() if now - one.listed < _POINTS * EVERY}

    def listed(self, now: float) -> list[ReplicaHistory]:
        return [one for name, one in sorted(self._known.items()) if now - one.listed < _GONE]

    def all(self) -> list[ReplicaHistory]:
        return [one for _, one in sorted(self._known.items())]


def health_blocks(histories: Iterable[HealthHistory], now: float) -> Sequence[Block]:
    """The page, from the histories that a viewer may see."""
    histories = list(histories)
    listed = [one for history in histories for one in history.listed(now)]
    known = [one for history in histories for one in history.all()]
    return (_replicas(listed), PlotGroup("The last hour", list(_plots(known))), _queues(listed))


def _replicas(listed: Iterable[ReplicaHistory]) -> Grid:
    heads = (
        "Replica", "State", "Because", "Processor, % of a core", "Memory, MiB", "Keys waiting", "Reconciles a minute",
        "Failing a minute", "Watches", "Objects kept", "Connections to clusters", "Started",
    )  # fmt: skip
    return Grid("Replicas", heads, [_replica(one) for one in listed], "No replica is found.")


def _replica(one: ReplicaHistory) -> list[Cell]:
    now = one.last
    if now is None:
        return [one.name, StateMark("failed", "silent"), one.problem, *[""] * 9]
    was = one.recent[0]
    seconds = now.at - was.at
    mark, why = StateMark("well", "answers"), ""
    if one.problem:
        mark, why = StateMark("failed", "silent"), one.problem
    elif now.behind:
        mark, why = StateMark("waiting", "behind"), f"{now.behind:.0f} of its watches are not current"
    return [
        one.name, mark, why,
        _number(_busy(was, now)), _number(None if now.memory is None else now.memory / _MIB), _number(now.waiting),
        _number(_minutely(rate(was.reconciles, now.reconciles, seconds))),
        _number(_minutely(rate(was.errors, now.errors, seconds))),
        _number(now.watches), _number(now.objects), _number(now.sockets), moment(now.started),
    ]  # fmt: skip


def _queues(listed: Iterable[ReplicaHistory]) -> Grid:
    """Each controller with its queue, over all replicas that answer; those with the most work first."""
    pairs = [(one.recent[0], one.recent[-1]) for one in listed if one.recent and not one.problem]
    names = dict.fromkeys(name for _, now in pairs for name in now.controllers)
    found: list[tuple[tuple[float, float], list[Cell]]] = []
    for name in sorted(names):
        own = [(was.controllers.get(name, _NOTHING), now.controllers.get(name, _NOTHING)) for was, now in pairs]
        was, now = [one for one, _ in own], [one for _, one in own]
        waiting, seconds = sum(one.waiting for one in now), max((after.at - before.at for before, after in pairs))
        grown = [rate(sum(map(count, was)), sum(map(count, now)), seconds) for count in (_reconciles, _errors)]
        cells: list[Cell] = [
            name, _number(waiting), _number(max(one.longest for one in now)),
            _short(_p99(was, now, lambda one: one.waited)), _short(_p99(was, now, lambda one: one.worked)),
            _number(_minutely(grown[0])), _number(_minutely(grown[1])),
        ]  # fmt: skip
        found.append(((-waiting, -(grown[0] or 0.0)), cells))
    heads = (
        "Controller", "Waiting", "Longest in work, s", "Wait, 99th percentile", "Duration, 99th percentile",
        "Reconciles a minute", "Failing a minute",
    )  # fmt: skip
    rows = [cells for _, cells in sorted(found, key=lambda one: one[0])]
    return Grid("Controllers and their queues, the last five minutes", heads, rows, "No controller reports a queue.")


_NOTHING: Final = ControllerReading()


def _reconciles(one: ControllerReading) -> float:
    return one.reconciles


def _errors(one: ControllerReading) -> float:
    return one.errors


def _plots(known: Sequence[ReplicaHistory]) -> Iterable[Plot]:
    for quantity in QUANTITIES:
        lines = [PlotLine(one.name, list(one.points[quantity.title])) for one in known if quantity.title in one.points]
        lines.sort(key=lambda line: -line.points[-1][1])
        title = quantity.title if len(lines) <= _LINES else f"{quantity.title}: the {_LINES} highest of {len(lines)}"
        if shown := sorted(lines[:_LINES], key=lambda line: line.name):
            yield Plot(title, quantity.unit, shown)


def _p99(
    before: Iterable[ControllerReading],
    after: Iterable[ControllerReading],
    pick: Callable[[ControllerReading], Buckets],
) -> float | None:
    return quantile(0.99, [pick(one) for one in before], [pick(one) for one in after])


def _thousandfold(value: float | None) -> float | None:
    return None if value is None else 1000 * value


def _minutely(each_second: float | None) -> float | None:
    return None if each_second is None else 60 * each_second


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _short(seconds: float | None) -> str:
    """A duration in the unit that fits."""
    if seconds is None:
        return ""
    return f"{seconds:.1f} s" if seconds >= 1 else f"{1000 * seconds:.0f} ms" if seconds >= 0.001 else "below 1 ms"
