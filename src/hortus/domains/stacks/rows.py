"""The rows of stacks, releases and addons in `hortus top` and `hortus problems`, with the condition that counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from hortus.domains.stacks.types import (
    CLUSTER_ADDONS,
    CLUSTER_STACK_RELEASES,
    CLUSTER_STACKS,
    ClusterAddon,
    ClusterStack,
    ClusterStackRelease,
    SeverityCondition,
)
from hortus.engine import Actor
from hortus.engine.conditions import FALSE, READY
from hortus.engine.fleet import FleetKind, FleetObjects, FleetRow, FleetView, RowStanding, reading, seconds_of
from hortus.schema import ObjectMeta

_STACKS: Final = FleetKind(CLUSTER_STACKS, reading(ClusterStack))
_RELEASES: Final = FleetKind(CLUSTER_STACK_RELEASES, reading(ClusterStackRelease))
_ADDONS: Final = FleetKind(CLUSTER_ADDONS, reading(ClusterAddon))
_FAILED: Final = "Error"
"""The severity of a condition that does not mend by waiting."""


class StackSubject(NamedTuple):
    """A stack."""

    stack: ClusterStack


class ReleaseSubject(NamedTuple):
    """A release."""

    release: ClusterStackRelease


class AddonSubject(NamedTuple):
    """The addons of a Cluster."""

    addon: ClusterAddon


class StackRows(FleetView[StackSubject]):
    """One row for each ClusterStack; the catalogue of the dashboard has them without rows."""

    kinds = (_STACKS,)
    order = 4

    def subjects(self, objects: FleetObjects) -> Iterable[StackSubject]:
        return map(StackSubject, objects.all(_STACKS, ClusterStack))

    def row(self, subject: StackSubject) -> FleetRow:
        conditions = subject.stack.status.conditions
        ready = any(one.type == READY for one in conditions)
        return _row(CLUSTER_STACKS.kind, subject.stack.metadata, conditions, ready=ready)


class ReleaseRows(FleetView[ReleaseSubject]):
    """One row for each ClusterStackRelease."""

    kinds = (_RELEASES,)
    page = "stacks"
    order = 4

    def subjects(self, objects: FleetObjects) -> Iterable[ReleaseSubject]:
        return map(ReleaseSubject, objects.all(_RELEASES, ClusterStackRelease))

    def row(self, subject: ReleaseSubject) -> FleetRow:
        release = subject.release
        return _row(
            CLUSTER_STACK_RELEASES.kind, release.metadata, release.status.conditions, ready=release.status.ready
        )


class AddonRows(FleetView[AddonSubject]):
    """One row for each ClusterAddon."""

    kinds = (_ADDONS,)
    page = "stacks"
    order = 5

    def subjects(self, objects: FleetObjects) -> Iterable[AddonSubject]:
        return map(AddonSubject, objects.all(_ADDONS, ClusterAddon))

    def row(self, subject: AddonSubject) -> FleetRow:
        addon = subject.addon
        return _row(CLUSTER_ADDONS.kind, addon.metadata, addon.status.conditions, ready=addon.status.ready)


def _row(kind: str, metadata: ObjectMeta, conditions: Sequence[SeverityCondition], *, ready: bool) -> FleetRow:
    summary = next((one for one in conditions if one.type == READY), None)
    ill = summary is not None and summary.status == FALSE
    failed = ill and summary is not None and summary.severity == _FAILED
    well = ready and not ill
    standing = RowStanding.FAILED if failed else RowStanding.WELL if well else RowStanding.WAITING
    return FleetRow(
        kind=kind,
        namespace=metadata.namespace,
        name=metadata.name,
        standing=standing,
        state="Ready" if well else "Failed" if failed else "Waiting",
        reason=summary.reason if summary is not None and ill else "",
        message=summary.message if summary is not None and ill else "",
        owner=Actor.OPERATOR if failed else Actor.NOBODY,
        step="see its conditions; it is tried again" if failed else "",
        since=seconds_of(summary.last_transition_time) if summary is not None else None,
        region="",
    )
