"""The figures of kyma-project/lifecycle-manager by arithmetic from its defaults and its steps; none of it was measured.

Defaults: one worker a kind (`max-concurrent-kyma-reconciles`, `max-concurrent-manifest-reconciles`), Ready objects
again after 300 s, a delay of up to 300 s after a change of a release. Steps: a reconcile of a Kyma applies namespace,
three CRDs, catalog and status and reads the Kyma in the cluster; one of a Manifest applies every object of its module
and reads a workload. Nothing is compared first, so all of it is repeated for what is Ready.
"""

from __future__ import annotations

from tests.benchmarks.fleet import Figures

PERIOD = 300.0
"""Seconds: `kyma-requeue-success-interval` and `manifest-requeue-success-interval`."""
KYMA_WRITES = 1 + 3 + 1
"""Namespace, CRDs, status of the Kyma in the cluster; the catalog is counted apart."""
KYMA_READS = 1 + 2
"""The Kyma, and two lists for the objects of the catalog that have to go."""
KYMA_ROUNDS = 7
"""Round trips one after the other: namespace, three CRDs, the Kyma, the catalog, the status."""
MANIFEST_ROUNDS = 2
"""All objects at once, then the workload."""
ROUND_TRIP = 0.02
"""Seconds; an assumption, generous for clusters on several continents."""


def lifecycle_manager(kymas: int, *, modules: int, catalog: int, objects: float) -> Figures:
    """`catalog` objects are copied to each cluster; a module has `objects` on average."""
    manifests = kymas * modules
    kyma_writes, manifest_writes = kymas * (KYMA_WRITES + catalog), manifests * objects
    reads = kymas * KYMA_READS + manifests
    one_kyma, one_manifest = KYMA_ROUNDS * ROUND_TRIP, MANIFEST_ROUNDS * ROUND_TRIP
    return {
        "writes_a_second_at_rest": (kyma_writes + manifest_writes) / PERIOD,
        "reads_a_second_at_rest": reads / PERIOD,
        "seconds_for_all_kymas_by_one_worker": kymas * one_kyma,
        "seconds_for_all_manifests_by_one_worker": manifests * one_manifest,
        "channel_move_seconds": max(PERIOD, kymas * one_kyma),
        "event_behind_all_kymas_seconds": kymas * one_kyma,
    }
