"""The part of a saved plan besides the plan: the states of the objects that it changes."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import orjson

from hortus.engine.planfile import ABSENT, PlanFile, PlanFileObject, state_of
from hortus.kube.objects import Object
from hortus.simulation.plan.composing import PlanRun
from hortus.simulation.plan.model import FleetPlan
from hortus.simulation.plan.snapshot import ForkSnapshot


def plan_file(run: PlanRun, plan: FleetPlan) -> PlanFile:
    """The file of a plan."""
    server = run.fork.settings.management.server
    return PlanFile(server=server, cluster=_cluster(run), objects=tuple(_planned(run)), plan=msgspec.to_builtins(plan))


def _cluster(run: PlanRun) -> str:
    value = run.fork.store.initial.get("root/core/namespaces", {}).get("/kube-system")
    return str(orjson.loads(value)["metadata"]["uid"]) if value is not None else ""


def _planned(run: PlanRun) -> Iterator[PlanFileObject]:
    registry, repeated = run.fork.server.context.registry, run.activity.repeated
    for found in run.before.changes(run.after, run.fork.store.initial):
        kind = registry.by_suffix("root", found.suffix)
        if found.cluster != "root" or kind is None or kind.resource.kind == "Secret" or found.key in repeated:
            continue
        states = [state_of(found.before), _state_in(run.changed, found.key), state_of(found.after)]
        resource = kind.resource
        yield PlanFileObject(
            group=resource.group,
            version=resource.version,
            plural=resource.plural,
            kind=resource.kind,
            namespace=found.namespace,
            name=found.name,
            states=tuple(dict.fromkeys(states)),
        )


def _state_in(snapshot: ForkSnapshot, key: tuple[str, str]) -> str:
    value = snapshot.buckets.get(key[0], {}).get(key[1])
    if value is None:
        return ABSENT
    obj: Object = orjson.loads(value)
    return state_of(obj)
