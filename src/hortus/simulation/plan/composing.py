"""Puts a plan together from the end of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hortus.engine.fleet import FleetView
from hortus.engine.manager import StalledKind
from hortus.kube.objects import format_time
from hortus.simulation.fork import Fork
from hortus.simulation.plan.activity import Activity, Burst, busy
from hortus.simulation.plan.building import (
    aliases_of,
    change_of,
    is_reported,
    ongoing,
    problems,
    requests,
    stages,
)
from hortus.simulation.plan.choosing import ClusterChoice
from hortus.simulation.plan.gaps import unknown, waits
from hortus.simulation.plan.grouping import Aliases, groups
from hortus.simulation.plan.model import ClusterPlan, FleetPlan, ObjectChange, Sums
from hortus.simulation.plan.snapshot import ForkSnapshot


class PlanRun(NamedTuple):
    """The end of a run."""

    before: ForkSnapshot
    changed: ForkSnapshot
    """The moment at which the change was applied, and nothing had followed from it."""
    after: ForkSnapshot
    activity: Activity
    fork: Fork
    ended: str
    """Rest, Horizon or Budget."""
    settled: bool
    """False where the fleet did not rest even without the change."""
    began: float
    """The fork's monotonic time at which the change was applied."""
    stalled: Sequence[StalledKind]
    """The kinds for which controllers wait at the end."""
    approved: Sequence[str]
    """Stages that were approved in the plan, as people would have to, each as ROLLOUT/STAGE."""
    choice: ClusterChoice | None = None
    """The clusters of the plan, where it is not about all."""


def plan_of(run: PlanRun, change: Sequence[str], views: Iterable[FleetView[Any]]) -> FleetPlan:
    """The plan that a run comes to; `change` says in words what was changed, `views` judge what needs somebody."""
    aliases = aliases_of(run.fork, run.before, run.after)
    reported, anyhow = [], run.activity.repeated
    bursts: dict[str, list[Burst]] = {}
    for found in run.before.changes(run.after, run.fork.store.initial):
        if is_reported(found) and found.key not in anyhow and (one := change_of(found)) is not None:
            cluster = aliases.about(one.where, found.either)
            reported.append((one, cluster))
            bursts.setdefault(cluster, []).extend(run.activity.bursts.get(found.key, ()))
    clusters = _clusters(run, reported, aliases, bursts)
    return FleetPlan(
        began=format_time(run.fork.clock.began),
        change=tuple(change),
        chosen=run.choice and (run.choice.chosen, run.choice.all),
        ended=run.ended,
        settled=run.settled,
        seconds=max(run.activity.last - run.began, 0.0),
        passed=run.fork.clock.monotonic() - run.began,
        sums=_sums([one for one, _ in reported], clusters, run),
        groups=groups(clusters, aliases),
        shared=tuple(one for one, cluster in reported if not cluster),
        stages=stages(run.before, run.after, run.approved),
        problems=problems(views, run.before, run.after, aliases, rests=run.ended == "Rest"),
        ongoing=ongoing(run.activity, aliases),
        unknown=unknown(run.fork, aliases),
        waits=waits(run.stalled),
        clusters=tuple(clusters),
    )


def _clusters(
    run: PlanRun,
    reported: Sequence[tuple[ObjectChange, str]],
    aliases: Aliases,
    bursts: Mapping[str, Sequence[Burst]],
) -> list[ClusterPlan]:
    calls, writes = requests(run.fork, aliases)
    by_cluster: dict[str, list[ObjectChange]] = {}
    for one, cluster in reported:
        if cluster:
            by_cluster.setdefault(cluster, []).append(one)
    made = []
    for name, changes in sorted(by_cluster.items()):
        times = busy(bursts.get(name, ()))
        made.append(
            ClusterPlan(
                name=name,
                changes=tuple(changes),
                begins=times[0].begin - run.began if times else 0.0,
                seconds=sum(one.end - one.begin for one in times),
                calls=calls[name],
                writes=writes[name],
            )
        )
    return made


def _sums(reported: Sequence[ObjectChange], clusters: Sequence[ClusterPlan], run: PlanRun) -> Sums:
    def count(action: str) -> int:
        return sum(one.action == action for one in reported)

    return Sums(
        created=count("Created"),
        changed=count("Changed"),
        replaced=count("Replaced"),
        deleted=count("Deleted"),
        rolls=sum(one.rolls for one in reported),
        data=sum(one.data for one in reported),
        clusters=len(clusters),
        calls=run.fork.counts.calls.total(),
        writes=run.fork.counts.writes.total(),
        reads=run.fork.live.reads.total(),
    )
