"""The rows of GardenerClusters in `hortus top` and `hortus problems`: those that no Runtime has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from hortus.domains.clusters.types import RUNTIMES, Runtime
from hortus.domains.credentials.garden import SHOOTS
from hortus.domains.credentials.types import (
    GARDENER_CLUSTERS,
    SECRET_SELECTOR,
    Annotation,
    GardenerCluster,
    Label,
    Reason,
    State,
)
from hortus.engine import Actor, NotReadable, metadata_of
from hortus.engine.fleet import (
    FleetKind,
    FleetObjects,
    FleetRow,
    FleetView,
    RowStanding,
    WideColumns,
    WideFacts,
    changed_at,
    reading,
    seconds_of,
)
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube.objects import Object, ObjectKey
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
    page = "clusters"
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
            since=changed_at(metadata, condition),
            expires=seconds_of(secret.annotations.get(Annotation.EXPIRATION)) if secret is not None else None,
            provider=metadata.labels.get(Label.PROVIDER, ""),
            region=metadata.labels.get(Label.REGION, ""),
            labels=metadata.labels,
        )


def _place_of(runtime: ObjectMeta) -> tuple[str, str]:
    """Namespace and name of the GardenerCluster of a Runtime."""
    return runtime.namespace, runtime.labels.get(Label.RUNTIME_ID) or runtime.name


def _owner(cluster: GardenerCluster) -> Actor:
    condition = cluster.condition
    garden = condition is not None and condition.reason == Reason.KUBECONFIG_FAILED
    return Actor.PROVIDER if garden else Actor.OPERATOR


class _ShootVersion(msgspec.Struct, frozen=True):
    version: str = ""


class _ShootSpec(msgspec.Struct, frozen=True):
    region: str = ""
    kubernetes: _ShootVersion = _ShootVersion()


class _ShootSummary(msgspec.Struct, frozen=True):
    """The parts of a Shoot that `hortus get clusters -o wide` shows."""

    metadata: ObjectMeta
    spec: _ShootSpec = _ShootSpec()


def _shoot_facts(obj: Object) -> _ShootSummary:
    try:
        return msgspec.convert(obj, _ShootSummary)
    except msgspec.ValidationError as error:
        raise NotReadable(str(error)) from None


_SHOOTS: Final = FleetKind(SHOOTS, _shoot_facts, garden=True)


def _facts(objects: FleetObjects) -> dict[ObjectKey, WideFacts]:
    shoots = {shoot.metadata.name: shoot.spec for shoot in objects.all(_SHOOTS, _ShootSummary)}
    found = {}
    for cluster in objects.all(_CLUSTERS, GardenerCluster):
        secret = objects.get(_SECRETS, cluster.secret.object_key, ObjectMeta)
        shoot = shoots.get(cluster.shoot, _ShootSpec())
        found[cluster.key] = WideFacts(
            expires=seconds_of(secret.annotations.get(Annotation.EXPIRATION)) if secret is not None else None,
            version=shoot.kubernetes.version,
            region=shoot.region or cluster.metadata.labels.get(Label.REGION, ""),
        )
    return found


WIDE: Final = {GARDENER_CLUSTERS: WideColumns((_CLUSTERS, _SECRETS, _SHOOTS), _facts)}
