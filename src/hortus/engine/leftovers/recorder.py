"""The recorder of Leftovers: domains call it before they release something.

A debt is written before the finalizer is removed, under a name that follows from its source: a process killed between
the two, or a repeated reconcile, leaves one object. Where Leftovers are not served, or the API server refuses one for
good, the deletion ends all the same: its event and its log line report the items then, and a metric counts it.
"""

from __future__ import annotations

import structlog
from prometheus_client import CollectorRegistry, Counter

from hortus.engine.leftovers.debts import Debt, leftovers_of, safe_text
from hortus.engine.leftovers.types import LEFTOVERS, Leftover
from hortus.kube import Client
from hortus.kube.errors import BadRequest, Forbidden, Invalid, MethodNotAllowed, NotFound, RequestEntityTooLarge
from hortus.kube.objects import Object
from hortus.schema import encode

RECORDER = "hortus-leftovers-recorder"
"""Our field manager; the one of the controller and those of people own other fields."""

_REFUSALS = (NotFound, Forbidden, Invalid, BadRequest, MethodNotAllowed, RequestEntityTooLarge)
"""Answers that stay the same however often a record is repeated. NotFound: no such kind, or no such namespace."""

_LOGGED = 20
"""Items that one log line names."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class LeftoverRecorder:
    """Records debts. Without a client it records nothing."""

    def __init__(self, client: Client | None, namespace: str, *, registry: CollectorRegistry | None = None) -> None:
        """`client` is the management cluster, None where Leftovers are not served."""
        self._client = client
        self._namespace = namespace
        self._failed = Counter(
            "hortus_leftovers_unrecorded",
            "Debts that the API server refused to record; their events and log lines name the items.",
            registry=registry,
        )

    @property
    def records(self) -> bool:
        """True where Leftovers are served."""
        return self._client is not None

    async def record(self, debt: Debt) -> bool:
        """Write the Leftovers of a debt; returns whether they are recorded. Raises KubeError where a repetition may
        succeed: then nothing may be released yet."""
        if self._client is None or not debt.items:
            return False
        for leftover in leftovers_of(debt, self._namespace):
            try:
                await self._client.apply(LEFTOVERS, _document(leftover), field_manager=RECORDER)
            except _REFUSALS as error:
                self._refused(debt, leftover, error)
                return False
        return True

    async def withdraw(self, debt: Debt) -> None:
        """Delete the Leftovers of a debt: nothing was released after all. Raises KubeError."""
        if self._client is None:
            return
        for leftover in leftovers_of(debt, self._namespace):
            try:
                await self._client.delete(LEFTOVERS, leftover.metadata.name, self._namespace)
            except (NotFound, Forbidden):
                continue

    def _refused(self, debt: Debt, leftover: Leftover, error: Exception) -> None:
        self._failed.inc()
        _log.error(
            "a leftover could not be recorded",
            leftover=f"{self._namespace}/{leftover.metadata.name}",
            source=f"{debt.source.kind} {debt.source.namespace}/{debt.source.name}",
            items=[item.what for item in debt.items[:_LOGGED]],
            count=len(debt.items),
            error=safe_text(str(error)),
        )


def _document(leftover: Leftover) -> Object:
    made = encode(leftover)
    made.pop("status", None)
    return made
