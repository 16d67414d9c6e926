"""The canary's book for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hortus.domains.canary import service
from hortus.domains.canary.book import Book, FinishedRun, Run
from hortus.kube import durations
from hortus.kube.objects import format_time
from hortus.terminal import Table


def lines(book: Book, now: float) -> Iterator[str]:
    """The summary: the run under way or the next one, and the totals."""
    if book.run is not None:
        took = durations.from_seconds(round(max(0.0, now - book.run.since)))
        yield f"Run {book.run.name} is in phase {book.run.phase} for {took}"
        if book.run.failed:
            yield f"It failed in phase {book.run.failed}: {book.run.message}"
    else:
        pause = service.due_in(book, "", now, book.period)
        yield f"The next run begins in {durations.from_seconds(round(pause))}"
    total = book.succeeded + book.failed
    yield f"Runs: {total}, failed: {book.failed}, in a row until now: {book.consecutive_failures}"
    if book.leftovers:
        yield f"Left behind: {', '.join(book.leftovers)}"


def history(book: Book) -> Table:
    heads = ("RUN", "STARTED", "TOOK", "GREW IN", "DELETED IN", "RESULT", "MESSAGE")
    return Table(heads, [_row(record) for record in book.history])


def _row(record: FinishedRun) -> tuple[str, ...]:
    result = f"failed in {record.failed}" if record.failed else "succeeded"
    return (
        record.name,
        format_time(record.started),
        _seconds(record.ended - record.started),
        _seconds(record.seconds.get(service.GROW)),
        _seconds(record.seconds.get(service.DELETE)),
        result,
        record.message,
    )


def _seconds(value: float | None) -> str:
    return "" if value is None else durations.from_seconds(round(value, 1))


def shown(book: Book) -> dict[str, Any]:
    """The object for `-o json`: times as RFC 3339."""
    return {
        "periodSeconds": book.period,
        "run": _run(book.run) if book.run is not None else None,
        "succeeded": book.succeeded,
        "failed": book.failed,
        "consecutiveFailures": book.consecutive_failures,
        "lastSuccess": format_time(book.last_success) if book.last_success else None,
        "leftovers": list(book.leftovers),
        "history": [_record(record) for record in book.history],
    }


def _run(run: Run) -> dict[str, Any]:
    return {
        "name": run.name,
        "started": format_time(run.started),
        "phase": run.phase,
        "phaseStarted": format_time(run.since),
        "seconds": dict(run.seconds),
        "failedIn": run.failed or None,
        "message": run.message or None,
    }


def _record(record: FinishedRun) -> dict[str, Any]:
    return {
        "name": record.name,
        "started": format_time(record.started),
        "ended": format_time(record.ended),
        "result": record.result,
        "seconds": dict(record.seconds),
        "failedIn": record.failed or None,
        "message": record.message or None,
    }
