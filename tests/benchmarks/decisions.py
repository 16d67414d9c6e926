"""One decision of a rollout, without a server: `python -m tests.benchmarks.decisions [CLUSTERS]`.

Half of the clusters have changed. Each decision finds the members, judges them, and lists the objects to set, as the
controller does; the first one evaluates the expressions of all objects besides.
"""

from __future__ import annotations

import sys
import time

import msgspec
from tests.benchmarks.rollouts import STAGES, ring_of
from tests.domains.rollouts.world import APPLIANCE_KIND

from hortus.domains.rollouts.changekinds import CompiledKind
from hortus.domains.rollouts.decisions import AdmittedCluster, Orders, RolloutMemory, decide
from hortus.domains.rollouts.fleet import FleetClusters
from hortus.domains.rollouts.membership import Membership
from hortus.domains.rollouts.terms import terms_of
from hortus.domains.rollouts.tracking import ChangeTracker
from hortus.engine import Cache
from hortus.engine.rollouts.types import ChangeKind, PolicyTerms, Rollout
from hortus.kube.objects import Object
from hortus.kube.selectors import LabelSelector
from hortus.schema import decode

REPEATS = 20


def _metadata(name: str, version: int, **labels: str) -> Object:
    return {"name": name, "namespace": "fleet", "resourceVersion": str(version), "labels": labels}


def run(*, clusters: int = 5000) -> dict[str, dict[str, float]]:
    """Returns the processor time of a decision."""
    kind = decode(ChangeKind, {**APPLIANCE_KIND, "metadata": {"name": "appliance", "generation": 1}})
    objects, profiles = Cache("appliances"), Cache("profiles")
    for number in range(clusters):
        name, version = f"c{number}", "2" if number < clusters // 2 else "1"
        manager = {"clusterManager": {"name": "bench"}}
        profiles.put({"metadata": _metadata(name, number + 1, ring=ring_of(number)), "spec": manager})
        spec, status = {"product": "press", "version": version}, {"version": version, "state": "Works"}
        objects.put({"metadata": _metadata(name, number + 1), "spec": spec, "status": status})
    tracker = ChangeTracker(CompiledKind(kind), objects, lambda kind, subject: None)
    fleet = FleetClusters(profiles, changed=lambda: None)
    terms = terms_of(msgspec.convert({"stages": STAGES}, PolicyTerms))
    change = {"kind": "appliance", "subject": "press", "to": "2"}
    rollout = decode(Rollout, {"metadata": {"name": "r-1"}, "spec": {"change": change, "execute": "Patch"}})
    names = (f"c{number}" for number in range(clusters // 2))
    admitted = {name: AdmittedCluster(name, ring_of(int(name[1:])), 0.0) for name in names}

    def once() -> None:
        made = Membership(rollout, LabelSelector.from_object({}), tracker, fleet, admitted, refusals={}, now=10.0)
        decided = decide(terms, made.members(), made.admitted, RolloutMemory(), Orders(), now=10.0)
        assert decided.admit and not list(made.to_set(admitted))

    began = time.process_time()
    once()
    first = time.process_time() - began
    for _ in range(REPEATS):
        once()
    each = (time.process_time() - began - first) / REPEATS
    return {"decision": {"clusters": clusters, "first_cpu_ms": first * 1000, "cpu_ms": each * 1000}}


if __name__ == "__main__":
    print(run(clusters=int(sys.argv[1]) if len(sys.argv) > 1 else 5000))
