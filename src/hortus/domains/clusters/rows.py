"""The rows of Runtimes in `hortus top` and `hortus problems`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from hortus.domains.clusters import service
from hortus.domains.clusters.garden import SHOOTS
from hortus.domains.clusters.outline import ShootOutline
from hortus.domains.clusters.shoots import shoot_of
from hortus.domains.clusters.turns import connection_problem, current, turn_of
from hortus.domains.clusters.types import RUNTIMES, Runtime, State
from hortus.domains.credentials.types import GARDENER_CLUSTERS, SECRET_SELECTOR, Annotation, GardenerCluster
from hortus.engine import Actor, metadata_of
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


class ShootPart(NamedTuple):
    """The parts of a Shoot that a row is made of."""

    outline: ShootOutline
    version: str
    """The version of Kubernetes."""

    @classmethod
    def of(cls, document: Object) -> ShootPart:
        """Raises NotReadable."""
        shoot = shoot_of(document)
        return cls(ShootOutline.of(shoot), shoot.spec.kubernetes.version)


_SHOOTS: Final = FleetKind(SHOOTS, ShootPart.of, garden=True)


class RuntimeSubject(NamedTuple):
    """The objects of one Runtime; None for those that do not exist or cannot be read."""

    runtime: Runtime
    cluster: GardenerCluster | None
    secret: ObjectMeta | None
    shoot: ShootPart | None


class RuntimeRows(FleetView[RuntimeSubject]):
    """One row for each Runtime."""

    kinds = (_RUNTIMES, _CLUSTERS, _SECRETS, _SHOOTS)
    page = "clusters"
    order = 0

    def subjects(self, objects: FleetObjects) -> Iterable[RuntimeSubject]:
        return self.subjects_of(objects, objects.all(_RUNTIMES, Runtime))

    def named(self, objects: FleetObjects, keys: Iterable[ObjectKey]) -> list[Runtime]:
        """The Runtimes of these names that exist."""
        found = (objects.get(_RUNTIMES, key, Runtime) for key in keys)
        return [runtime for runtime in found if runtime is not None]

    def subjects_of(self, objects: FleetObjects, runtimes: Iterable[Runtime]) -> Iterable[RuntimeSubject]:
        """The subjects of some Runtimes."""
        shoots = {shoot.outline.name: shoot for shoot in objects.all(_SHOOTS, ShootPart)}
        for runtime in runtimes:
            cluster = objects.get(_CLUSTERS, service.cluster_key(runtime), GardenerCluster)
            secret = objects.get(_SECRETS, cluster.secret.object_key, ObjectMeta) if cluster is not None else None
            yield RuntimeSubject(runtime, cluster, secret, shoots.get(service.shoot_name(runtime)))

    def row(self, subject: RuntimeSubject) -> FleetRow:
        runtime, cluster, secret, shoot = subject
        metadata, condition, state = runtime.metadata, current(runtime), service.state_of(runtime)
        broken = connection_problem(runtime, cluster)
        turn = turn_of(runtime, None if shoot is None else shoot.outline, broken)
        wanted = runtime.spec.shoot if runtime.spec is not None else None
        reason = "" if condition is None else condition.reason
        return FleetRow(
            kind=RUNTIMES.kind,
            namespace=metadata.namespace,
            name=metadata.name,
            standing=_standing(runtime, turn.actor),
            state=state or ("Locked" if service.locked(runtime) else "New"),
            reason="KubeconfigNotReady" if broken else "Suspended" if service.suspended(runtime) else reason,
            message=broken or ("" if condition is None else condition.message),
            owner=turn.actor,
            step=turn.advice,
            since=changed_at(metadata, condition),
            expires=seconds_of(secret.annotations.get(Annotation.EXPIRATION)) if secret is not None else None,
            provider=wanted.provider.type if wanted is not None else "",
            region=wanted.region if wanted is not None else "",
            version=shoot.version if shoot is not None else "" if wanted is None else wanted.version,
            labels=metadata.labels,
        )


def _standing(runtime: Runtime, owner: Actor) -> RowStanding:
    state = service.state_of(runtime)
    if not state:
        return RowStanding.WAITING
    if state == State.READY and owner == Actor.NOBODY:
        return RowStanding.WELL
    return RowStanding.FAILED if state == State.FAILED or owner != Actor.NOBODY else RowStanding.WAITING


def _facts(objects: FleetObjects) -> dict[ObjectKey, WideFacts]:
    rows = map(RuntimeRows().row, RuntimeRows().subjects(objects))
    return {
        ObjectKey(row.namespace, row.name): WideFacts(expires=row.expires, version=row.version, region=row.region)
        for row in rows
    }


WIDE: Final = {RUNTIMES: WideColumns(RuntimeRows.kinds, _facts)}
