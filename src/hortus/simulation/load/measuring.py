"""The counts of a run: calls by verb and resource, waits by their purpose, failures, bytes.

All of it is bounded: histograms, sums, and the first failures of many.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from hortus.simulation.load.histogram import Histogram

SHOWN_FAILURES = 100
"""Failures kept with their text; of more only the number is known."""


class Failure(NamedTuple):
    """Something that went wrong in the system under test."""

    object: str
    problem: str


class Recorder:
    """The numbers of one run."""

    def __init__(self) -> None:
        self.calls: dict[tuple[str, str], Histogram] = {}
        """Seconds of each call that was answered with success, its repetitions included, by (verb, resource)."""
        self.errors: Counter[tuple[str, str, str]] = Counter()
        """Calls that failed for good, by (verb, resource, reason)."""
        self.waits: dict[str, Histogram] = {}
        """Seconds by `time_to_ready` and its like."""
        self.lag = Histogram()
        """Seconds by which operations began later than planned: we were too slow, or waited for a worker."""
        self.done: Counter[str] = Counter()
        """Operations done, by verb; `ready` are objects seen to be ready."""
        self.sent = 0
        """Bytes of bodies."""
        self.received = 0
        """Bytes of bodies, those of watches too."""
        self.failures: list[Failure] = []
        self.failed = 0
        """The number of failures in all."""
        self._phase: Recorder | None = None

    def begin_phase(self) -> Recorder:
        """Returns an empty recorder that counts, besides this one, all that is counted until the next phase begins."""
        self._phase = Recorder()
        return self._phase

    def called(self, verb: str, resource: str, seconds: float, sent: int, received: int) -> None:
        """A call came to a good end."""
        found = self.calls.get((verb, resource))
        if found is None:
            found = self.calls[verb, resource] = Histogram()
        found.add(seconds)
        self.sent += sent
        self.received += received
        if self._phase is not None:
            self._phase.called(verb, resource, seconds, sent, received)

    def refused(self, verb: str, resource: str, error: Exception) -> None:
        """A call failed for good; what follows from that is the caller's."""
        reason = getattr(error, "status_reason", "") or type(error).__name__
        self.errors[verb, resource, reason] += 1
        if self._phase is not None:
            self._phase.refused(verb, resource, error)

    def waited(self, what: str, seconds: float) -> None:
        """Something that was waited for has happened."""
        found = self.waits.get(what)
        if found is None:
            found = self.waits[what] = Histogram()
        found.add(seconds)
        if self._phase is not None:
            self._phase.waited(what, seconds)

    def did(self, verb: str) -> None:
        """An operation is done, or (`ready`) an object was seen to be ready."""
        self.done[verb] += 1
        if self._phase is not None:
            self._phase.did(verb)

    def fail(self, name: str, problem: str) -> None:
        """The system under test did not do what it should."""
        self.failed += 1
        if len(self.failures) < SHOWN_FAILURES:
            self.failures.append(Failure(name, problem))
        if self._phase is not None:
            self._phase.fail(name, problem)

    def all_calls(self, prefix: str = "") -> Histogram:
        """The calls of a verb, of `verb.resource`, or (empty) all of them."""
        merged = Histogram()
        for (verb, resource), found in self.calls.items():
            if prefix in ("", verb, f"{verb}.{resource}"):
                merged.merge(found)
        return merged
