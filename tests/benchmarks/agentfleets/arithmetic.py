"""The counts of instana/instana-agent-operator by arithmetic from its steps; none of it was measured.

Steps, by its sources: an operator runs in each cluster. A reconcile applies every object twice, first as a dry run, and
writes the ConfigMap of dependents before and after pruning, the status, and an event for each of three conditions.
Nothing is compared first. Every change of a DaemonSet's or Deployment's status is a reconcile. A Secret with keys that
users keep is not watched: the next reconcile, or the resync of ten hours, reads it. Somebody has to write that Secret
to each cluster.

Two things are left out, to its favour. `kubectl label node --all pool-` at the begin of each reconcile lists all nodes,
but the image has no kubectl. Where etcd is found in kube-system, ETCD_TARGETS comes and goes with every second
reconcile and the sensor is rolled out each time; managed clusters have no such Service.
"""

from __future__ import annotations

from tests.benchmarks.fleet import Figures

RESYNC = 36_000.0
"""Seconds: the resync of controller-runtime."""
RECORDS = 2
"""Writes of the ConfigMap of dependents."""
STATUS = 1
EVENTS = 3
"""One for each condition."""
CPU, MEMORY = 0.2, 200 / 1024
"""Cores and GiB that the Deployment of an operator requests."""


def instana_agent_operator(clusters: int, nodes: int, *, objects: int, replicas: int) -> Figures:
    """`objects` of one agent, whose sensor has so many `replicas`."""
    writes = objects + RECORDS + STATUS + EVENTS
    requests = writes + objects
    # The reconcile that reads the key, and one for each replica of the sensor that is replaced.
    rotated, rolled = 1 + replicas, 1 + nodes
    return {
        "operators": float(clusters),
        "cores_requested_by_operators": clusters * CPU,
        "gib_requested_by_operators": clusters * MEMORY,
        "writes_of_a_reconcile": float(writes),
        "requests_of_a_reconcile_with_dry_runs": float(requests),
        "writes_of_a_rotation_per_cluster": float(1 + rotated * writes),
        "writes_of_a_rotation": float(clusters * (1 + rotated * writes)),
        "requests_of_a_rotation": float(clusters * (1 + rotated * requests)),
        "most_seconds_until_a_rotated_key_is_read": RESYNC,
        "writes_of_a_changed_template_per_cluster": float(rolled * writes),
        "writes_an_hour_at_rest": clusters * writes * 3600 / RESYNC,
    }
