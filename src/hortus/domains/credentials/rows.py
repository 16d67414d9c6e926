"""The rows of GardenerClusters in `hortus top` and `hortus problems`: those that no Runtime has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from hortus.domains.clusters.types import RUNTIMES, Runtime
from hortus.domains.credentials.types import (
    GARDENER_CLUSTERS,
    SECRET_SELECTOR,
    Annotation,
    GardenerCluster,
    Label,
    Reason,
    State,
)
from hortus.engine import Actor, metadata_of
from hortus.engine.fleet import FleetKind, FleetObjects, FleetRow, FleetView, RowStanding, reading, seconds_of
from hortus.engine.kubeconfigs import SECRETS
from hortus.schema import ObjectMeta

_RUNTIMES: Final = FleetKind(RUNTIMES, reading(Runtime))
_CLUSTERS: Final = FleetKind(GARDENER_CLUSTERS, reading(GardenerCluster))
_SECRETS: Final = FleetKind(SECRETS, metadata_of, labels=SECRET_SELECTOR, metadata_only=True)


class ClusterSubject(NamedTuple):
    """A GardenerCluster and its Secret, where there is one."""

    cluster: GardenerCluster
    secret: ObjectMeta | None


class ClusterRows(FleetView[ClusterSubject]):
    """One row for each GardenerCluster without a Runtime."""

    kinds = (_RUNTIMES, _CLUSTERS, _SECRETS)
    order = 1

    def subjects(self, objects: FleetObjects) -> Iterable[ClusterSubject]:
        taken = {_place_of(runtime.metadata) for runtime in objects.all(_RUNTIMES, Runtime)}
        for cluster in objects.all(_CLUSTERS, GardenerCluster):
            if (cluster.metadata.namespace, cluster.metadata.name) not in taken:
                yield ClusterSubject(cluster, objects.get(_SECRETS, cluster.secret.object_key, ObjectMeta))

    def row(self, subject: ClusterSubject) -> FleetRow:
        cluster, secret = subject
        metadata, condition, state = cluster.metadata, cluster.condition, cluster.status.state
        failed = state == State.ERROR
        return FleetRow(
            kind=GARDENER_CLUSTERS.kind,
            namespace=metadata.namespace,
            name=metadata.name,
            standing=RowStanding.FAILED
            if failed
            else RowStanding.WELL
            if state == State.READY
            else RowStanding.WAITING,
            state=state or "New",
            reason="" if condition is None else condition.reason,
            message="" if condition is None else condition.message,
            owner=_owner(cluster) if failed else Actor.NOBODY,
            step="see the message, or `hortus tree`; it is tried again" if failed else "",
            since=seconds_of(metadata.creation_timestamp if condition is None else condition.last_transition_time),
            expires=seconds_of(secret.annotations.get(Annotation.EXPIRATION)) if secret is not None else None,
            provider=metadata.labels.get(Label.PROVIDER, ""),
            region=metadata.labels.get(Label.REGION, ""),
        )


def _place_of(runtime: ObjectMeta) -> tuple[str, str]:
    """Namespace and name of the GardenerCluster of a Runtime."""
    return runtime.namespace, runtime.labels.get(Label.RUNTIME_ID) or runtime.name


def _owner(cluster: GardenerCluster) -> Actor:
    condition = cluster.condition
    garden = condition is not None and condition.reason == Reason.KUBECONFIG_FAILED
    return Actor.PROVIDER if garden else Actor.OPERATOR
