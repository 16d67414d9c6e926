"""The rows of ClusterAccesses in `hortus top` and `hortus problems`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from hortus.domains.access.types import CLUSTER_ACCESSES, ClusterAccess, Reason
from hortus.engine import FALSE, TRUE, Actor
from hortus.engine.fleet import (
    FleetKind,
    FleetObjects,
    FleetRow,
    FleetView,
    RowStanding,
    changed_at,
    reading,
    seconds_of,
)

_ACCESSES: Final = FleetKind(CLUSTER_ACCESSES, reading(ClusterAccess))
_WAITING: Final = frozenset({Reason.REMOVING, Reason.NOT_PROVEN})
_CLUSTER_OWNERS: Final = frozenset({Reason.UNREACHABLE, Reason.REFUSED, Reason.MORE_THAN_ASKED})


class AccessSubject(NamedTuple):
    access: ClusterAccess


class AccessRows(FleetView[AccessSubject]):
    """One row for each ClusterAccess."""

    kinds = (_ACCESSES,)
    page = "access"

    def subjects(self, objects: FleetObjects) -> Iterable[AccessSubject]:
        return map(AccessSubject, objects.all(_ACCESSES, ClusterAccess))

    def row(self, subject: AccessSubject) -> FleetRow:
        access = subject.access
        metadata, status = access.metadata, access.status
        ready = next((one for one in status.conditions if one.type == "Ready"), None)
        failed = ready is not None and ready.status == FALSE and ready.reason not in _WAITING
        well = ready is not None and ready.status == TRUE
        return FleetRow(
            kind=CLUSTER_ACCESSES.kind,
            namespace=metadata.namespace,
            name=metadata.name,
            standing=RowStanding.FAILED if failed else RowStanding.WELL if well else RowStanding.WAITING,
            state="Failed" if failed else "Ready" if well else "Pending",
            reason="" if ready is None else ready.reason,
            message="" if ready is None else ready.message,
            owner=_owner(ready.reason) if failed and ready is not None else Actor.NOBODY,
            step=_step(ready.reason) if failed and ready is not None else "",
            since=changed_at(metadata, ready),
            expires=seconds_of(status.expires_at),
        )


def _owner(reason: str) -> Actor:
    return Actor.OPERATOR if reason == Reason.NOT_PERMITTED else Actor.USER


def _step(reason: str) -> str:
    if reason == Reason.NOT_PERMITTED:
        return "the operator grants what the message names"
    who = "the owner of the cluster" if reason in _CLUSTER_OWNERS else "who asked for the access"
    return f"{who} sees the message; it is tried again after a change"
