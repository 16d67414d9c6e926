"""The Runtime in the dashboard's page of a cluster, with the sentence of `hortus why`."""

from __future__ import annotations

from collections.abc import Iterable

from hortus.domains.clusters import service
from hortus.domains.clusters.rows import RuntimeRows, RuntimeSubject
from hortus.domains.clusters.turns import connection_problem, current
from hortus.domains.clusters.views import sentence_of
from hortus.engine.fleet import FleetObjects, RowStanding
from hortus.engine.pages import ClusterNames, ClusterPart, TreeNode, node_of
from hortus.kube.objects import ObjectKey


class RuntimePart(ClusterPart):
    """The Runtime of a cluster."""

    kinds = RuntimeRows.kinds
    order = 0

    def __init__(self) -> None:
        self._view = RuntimeRows()

    def names(self, objects: FleetObjects, cluster: ClusterNames) -> Iterable[str]:
        for subject in self._subjects(objects, cluster):
            yield from _names(subject)

    def nodes(self, objects: FleetObjects, cluster: ClusterNames, now: float) -> Iterable[TreeNode]:
        for subject in self._subjects(objects, cluster):
            row, runtime = self._view.row(subject), subject.runtime
            condition = current(runtime)
            why = connection_problem(runtime, subject.cluster) or (sentence_of(condition) if condition else "")
            conditions = () if runtime.status is None else runtime.status.conditions
            yield node_of(
                row,
                page=RuntimeRows.page,
                note=why if row.standing is not RowStanding.WELL else "",
                conditions=conditions,
            )

    def _subjects(self, objects: FleetObjects, cluster: ClusterNames) -> Iterable[RuntimeSubject]:
        # A Runtime by its own name is looked up; all are searched only for one that has another name.
        found = self._view.named(objects, (ObjectKey(cluster.namespace, name) for name in cluster.names))
        if found:
            return self._view.subjects_of(objects, found)
        known = self._view.subjects(objects)
        return [one for one in known if any(cluster.has(one.runtime.metadata.namespace, name) for name in _names(one))]


def _names(subject: RuntimeSubject) -> tuple[str, ...]:
    runtime = subject.runtime
    return runtime.metadata.name, service.cluster_key(runtime).name, service.shoot_name(runtime)
