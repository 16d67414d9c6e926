"""A plan as values: what the controllers did in the fork, per cluster, in groups of equal clusters, and in sum."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec

MISSING: Final = "its CRD is missing"
"""The reason of a wait."""
Action = Literal["Created", "Changed", "Replaced", "Deleted"]


class FieldChange(msgspec.Struct, frozen=True):
    """One field; null where it is absent. The values of Secrets read `(masked)`."""

    path: str
    before: Any = None
    after: Any = None


class ObjectChange(msgspec.Struct, frozen=True, kw_only=True):
    """One object that is another one, or no more, at the end of the plan."""

    where: str
    """The API server: root for the management cluster, garden, or the name of a member."""
    group: str
    kind: str
    namespace: str = ""
    name: str
    action: Action
    fields: tuple[FieldChange, ...] = ()
    rolls: bool = False
    """True for a workload whose pods are replaced, since their template changed."""
    data: bool = False
    """True for a deletion that takes data along, or a whole cluster."""


class PlannedProblem(msgspec.Struct, frozen=True, kw_only=True):
    """Something that needs somebody at the end of the plan, and did not before.

    Where everything rests, what is still not ready is a problem as well: nothing goes on by itself any more.
    """

    cluster: str = ""
    """The cluster that it is about; empty for none."""
    kind: str
    namespace: str
    name: str
    state: str
    reason: str
    message: str
    owner: str
    """The owner of the next step."""
    step: str


class ClusterPlan(msgspec.Struct, frozen=True, kw_only=True):
    """One cluster, with the objects about it in the management cluster and the garden."""

    name: str
    changes: tuple[ObjectChange, ...]
    begins: float = 0.0
    """Seconds after the change until the first write about it."""
    seconds: float = 0.0
    """Seconds in which it changes, without the times in between in which nothing is written about it."""
    calls: int = 0
    writes: int = 0


class ClusterGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Clusters to which the same happens. The names of the cluster in texts read CLUSTER."""

    clusters: tuple[str, ...]
    changes: tuple[ObjectChange, ...]
    """Equal ones are one, with their number in `counts`."""
    counts: tuple[int, ...]
    seconds: tuple[float, float] = (0.0, 0.0)
    """The shortest and the longest time of a cluster."""

    @property
    def count(self) -> int:
        return len(self.clusters)


class StagePlan(msgspec.Struct, frozen=True, kw_only=True):
    """One stage of a rollout."""

    rollout: str
    stage: str
    clusters: int
    succeeded: int
    failed: int
    skipped: int
    approved: bool
    """True where the plan took the approval for granted that people have to give."""
    seconds: float | None
    """Seconds in which its clusters change, from the end of the stage before or from the begin; null if it does not
    end."""
    soak: float = 0.0
    """Seconds that pass after that until the next stage begins."""


class Ongoing(msgspec.Struct, frozen=True, kw_only=True):
    """An object that never rests."""

    where: str
    kind: str
    name: str
    writes: int
    how: Literal["loop", "recurring"]
    managers: tuple[str, ...] = ()
    fields: tuple[FieldChange, ...] = ()
    period: float = 0.0


class UnknownPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the fleet that could not be read; what happens there is no part of the plan."""

    where: str
    kinds: tuple[str, ...]
    """Each as in the name of its CRD: PLURAL.GROUP, or PLURAL for one of Kubernetes' core."""
    reason: str
    fix: str = ""
    """The next step, where that is known."""


class WaitingKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind without which controllers do not work: nothing of theirs is in the plan."""

    where: str
    """The API server: root or garden."""
    kind: str
    """As in the name of its CRD: PLURAL.GROUP, or PLURAL for one of Kubernetes' core."""
    version: str
    reason: str
    controllers: tuple[str, ...]
    """The controllers that wait for it; none where only parts of reconciles need it."""


class Sums(msgspec.Struct, frozen=True, kw_only=True):
    created: int = 0
    changed: int = 0
    replaced: int = 0
    deleted: int = 0
    rolls: int = 0
    data: int = 0
    clusters: int = 0
    """Clusters to which something happens."""
    calls: int = 0
    writes: int = 0
    reads: int = 0
    """Lists that were sent to live clusters."""


class FleetPlan(msgspec.Struct, frozen=True, kw_only=True):
    began: str
    """The time at which the fork was made, RFC 3339."""
    change: tuple[str, ...]
    """The change, in words."""
    chosen: tuple[int, int] | None = None
    """The number of clusters that were chosen, and of all; null for a plan of all."""
    ended: str
    """Rest, Horizon, or Budget for a plan that was cut short."""
    settled: bool
    """False where the fleet did not come to rest before the change."""
    seconds: float
    """Seconds from the change until the last write."""
    sums: Sums
    passed: float = 0.0
    """Seconds from the change until the end of the plan."""
    groups: tuple[ClusterGroup, ...]
    shared: tuple[ObjectChange, ...]
    """Changes that are about no one cluster."""
    stages: tuple[StagePlan, ...] = ()
    problems: tuple[PlannedProblem, ...] = ()
    ongoing: tuple[Ongoing, ...] = ()
    unknown: tuple[UnknownPart, ...] = ()
    waits: tuple[WaitingKind, ...] = ()
    """The kinds for which controllers wait at the end."""
    clusters: tuple[ClusterPlan, ...] = ()

    @property
    def changes_something(self) -> bool:
        sums = self.sums
        return bool(sums.created or sums.changed or sums.replaced or sums.deleted)

    @property
    def fails(self) -> bool:
        return bool(self.problems) or self.ended == "Budget" or any(one.how == "loop" for one in self.ongoing)

    @property
    def exit_code(self) -> int:
        return 1 if self.fails else 2 if self.changes_something else 0
