"""Makes the plan of a run: what differs between two moments of a fork, attributed to clusters and judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
import orjson

from hortus.engine.fleet import OWNERS, FleetKind, FleetObjects, FleetRow, FleetView, RowStanding
from hortus.engine.outcomes import Actor
from hortus.engine.rollouts.types import ROLLOUTS, Rollout
from hortus.engine.typed import NotReadable, read
from hortus.kube import durations
from hortus.kube.objects import Object, ObjectKey, key_of, parse_time
from hortus.kube.selectors import LabelSelector
from hortus.simulation.capi.workload import logical_name
from hortus.simulation.fork import GARDEN, Fork
from hortus.simulation.garden.kinds import SHOOTS, technical_id
from hortus.simulation.plan.activity import Activity
from hortus.simulation.plan.differences import FieldDifference, differences
from hortus.simulation.plan.grouping import Aliases
from hortus.simulation.plan.model import (
    Action,
    FieldChange,
    ObjectChange,
    Ongoing,
    PlannedProblem,
    StagePlan,
)
from hortus.simulation.plan.snapshot import ForkSnapshot, StateChange

_WORKLOADS: Final = frozenset({"Deployment", "DaemonSet", "StatefulSet", "ReplicaSet"})
_WITH_DATA: Final = frozenset(
    {
        "PersistentVolumeClaim",
        "PersistentVolume",
        "Namespace",
        "CustomResourceDefinition",
        "Runtime",
        "Shoot",
        "Cluster",
        "LogicalCluster",
    }
)
RUNTIMES: Final = "root/infrastructuremanager.kyma-project.io/runtimes"
_CLUSTERS: Final = "root/cluster.x-k8s.io/clusters"
PROFILES: Final = "root/multicluster.x-k8s.io/clusterprofiles"
_SHOOTS: Final = f"{GARDEN}/{SHOOTS.group}/{SHOOTS.plural}"
_ROLLOUTS: Final = f"root/{ROLLOUTS.group}/{ROLLOUTS.plural}"
_SERVER_KINDS: Final = frozenset({"tenancy.hortus.dev/logicalclusters"})


def aliases_of(fork: Fork, *snapshots: ForkSnapshot) -> Aliases:
    """The names of all clusters. A cluster is called like its Runtime, Shoot, Cluster of Cluster API, ClusterProfile or
    Secret, the first of these that it has."""
    found, runtimes = Aliases(), {}
    for runtime in objects(RUNTIMES, snapshots):
        name = runtime["metadata"]["name"]
        runtimes[((runtime.get("spec") or {}).get("shoot") or {}).get("name") or name] = name
        found.add(name)
    for shoot in objects(_SHOOTS, snapshots):
        namespace, name = shoot["metadata"]["namespace"], shoot["metadata"]["name"]
        found.add(runtimes.get(name, name), name, technical_id(namespace, name))
    for cluster in objects(_CLUSTERS, snapshots):
        key = key_of(cluster)
        found.add(key.name, logical_name(key))
    for profile in objects(PROFILES, snapshots):
        for provider in (profile.get("status") or {}).get("accessProviders") or ():
            if server := (provider.get("cluster") or {}).get("server"):
                found.add(profile["metadata"]["name"], fork.names.of(server))
    for name, title in fork.members.items():
        if name not in found and name not in ("root", GARDEN):
            found.add(title, name)
    return found


def objects(bucket: str, snapshots: Iterable[ForkSnapshot]) -> Iterator[Object]:
    """The objects of a bucket in each of the snapshots."""
    for snapshot in snapshots:
        for value in snapshot.buckets.get(bucket, {}).values():
            yield orjson.loads(value)


def change_of(found: StateChange) -> ObjectChange | None:
    """The change as a plan reports it; None where only bookkeeping or times differ."""
    obj, action = found.either, _action(found)
    fields: Sequence[FieldDifference] = ()
    if action == "Changed":
        assert found.before is not None and found.after is not None, "a changed object was there before and is after"
        fields = tuple(differences(found.before, found.after))
        if not fields:
            return None
    kind = str(obj.get("kind", found.suffix))
    return ObjectChange(
        where=found.cluster,
        group=found.suffix.partition("/")[0].replace("core", ""),
        kind=kind,
        namespace=found.namespace,
        name=name_of(found),
        action=action,
        fields=tuple(FieldChange(*one) for one in fields),
        rolls=kind in _WORKLOADS and any(one.path.startswith("spec.template.") for one in fields),
        data=action in ("Deleted", "Replaced") and kind in _WITH_DATA,
    )


def name_of(found: StateChange) -> str:
    """The name of the object; with * in place of what the server chose."""
    prefix = found.either["metadata"].get("generateName") or ""
    return f"{prefix}*" if prefix and found.name.startswith(prefix) else found.name


def _action(found: StateChange) -> Action:
    if found.before is None:
        return "Created"
    if found.after is None:
        return "Deleted"
    uids = [one["metadata"].get("uid") for one in (found.before, found.after)]
    return "Changed" if uids[0] == uids[1] else "Replaced"


def is_reported(found: StateChange) -> bool:
    """False for what the fork itself needs to hold clusters."""
    return found.suffix not in _SERVER_KINDS


def problems(
    views: Iterable[FleetView[Any]], before: ForkSnapshot, after: ForkSnapshot, aliases: Aliases, *, rests: bool
) -> tuple[PlannedProblem, ...]:
    """The rows that need somebody after, and did not before or were another problem.

    Where everything `rests`, nothing comes by itself any more: rows that wait need somebody as well.
    """
    views, mildest = list(views), RowStanding.WAITING if rests else RowStanding.FAILED
    known = {_identity(row) for row in _rows(views, before, mildest)}
    found = [_stuck(row) for row in _rows(views, after, mildest) if _identity(row) not in known]
    return tuple(
        PlannedProblem(
            cluster=aliases.about("root", {"metadata": {"name": row.name}}),
            kind=row.kind,
            namespace=row.namespace,
            name=row.name,
            state=row.state,
            reason=row.reason,
            message=row.message,
            owner=OWNERS[row.owner],
            step=row.step,
        )
        for row in found
    )


def _stuck(row: FleetRow) -> FleetRow:
    if row.standing == RowStanding.FAILED or row.owner != Actor.NOBODY:
        return row
    step = row.step or "see its conditions: it waits for something that does not come in this plan"
    return msgspec.structs.replace(row, owner=Actor.OPERATOR, step=step)


def _identity(row: FleetRow) -> tuple[str, ...]:
    return (row.kind, row.namespace, row.name, row.state, row.reason)


def _rows(views: Sequence[FleetView[Any]], snapshot: ForkSnapshot, mildest: RowStanding) -> Iterator[FleetRow]:
    """The rows that are as bad as `mildest`, or worse."""
    values: dict[FleetKind, Mapping[ObjectKey, object]] = {}
    for kind in {kind: None for view in views for kind in view.kinds}:
        bucket = f"{GARDEN if kind.garden else 'root'}/{kind.resource.group or 'core'}/{kind.resource.plural}"
        objects = [orjson.loads(value) for value in snapshot.buckets.get(bucket, {}).values()]
        values[kind] = {key_of(obj): kind.taken(obj) for obj in objects if _selected(obj, kind.labels)}
    for view in views:
        objects_of = FleetObjects(values)
        for subject in view.subjects(objects_of):
            row = view.row(subject)
            if row.standing <= mildest:
                yield row


def _selected(obj: Object, labels: str) -> bool:
    return not labels or LabelSelector.parse(labels).matches(obj["metadata"].get("labels"))


def stages(before: ForkSnapshot, after: ForkSnapshot, approved: Sequence[str]) -> tuple[StagePlan, ...]:
    """The stages of the rollouts that went on during the run."""
    old = before.buckets.get(_ROLLOUTS, {})
    found: list[StagePlan] = []
    for key, value in sorted(after.buckets.get(_ROLLOUTS, {}).items()):
        if old.get(key) == value:
            continue
        try:
            rollout = read(Rollout, orjson.loads(value))
        except NotReadable:
            continue
        found += _stages(rollout, approved)
    return tuple(found)


def _stages(rollout: Rollout, approved: Sequence[str]) -> Iterator[StagePlan]:
    name = rollout.metadata.name
    at = parse_time(rollout.status.started_at) if rollout.status.started_at else None
    terms = rollout.spec.policy.stages if rollout.spec.policy is not None else ()
    soaks = {one.name: durations.parse(one.min_success_time) / durations.SECOND for one in terms}
    for stage in rollout.status.stages:
        ended = parse_time(stage.settled_at) if stage.settled_at else None
        soak = soaks.get(stage.name, 0.0) if stage.clusters else 0.0  # a stage without clusters ends at once
        yield StagePlan(
            rollout=name,
            stage=stage.name,
            clusters=stage.clusters,
            succeeded=stage.succeeded,
            failed=stage.failed,
            skipped=stage.skipped,
            approved=f"{name}/{stage.name}" in approved,
            seconds=ended - at if ended is not None and at is not None else None,
            soak=soak,
        )
        at = ended + soak if ended is not None else at


def ongoing(activity: Activity, aliases: Aliases) -> tuple[Ongoing, ...]:
    """The objects that never rest: those that go in circles first."""
    loops = [
        Ongoing(
            where=aliases.called(one.cluster),
            kind=one.kind,
            name=one.name,
            writes=one.writes,
            how="loop",
            managers=one.managers,
            fields=tuple(FieldChange(*field) for field in one.differences),
        )
        for one in activity.loops
    ]
    recurring = [
        Ongoing(
            where=aliases.called(one.cluster),
            kind=one.kind,
            name=one.name,
            writes=one.writes,
            how="recurring",
            period=one.period,
        )
        for one in activity.recurring
    ]
    return (*loops, *recurring)


def requests(fork: Fork, aliases: Aliases) -> tuple[Counter[str], Counter[str]]:
    """Calls and writes of the controllers, by cluster."""
    calls: Counter[str] = Counter()
    writes: Counter[str] = Counter()
    for found, counts in ((calls, fork.counts.calls), (writes, fork.counts.writes)):
        for where, count in counts.items():
            found[aliases.called(where)] += count
    return calls, writes
