"""Plans of the adoption of each shoot, made before any write: adopt, differing, present, or refused with a reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from hortus.domains.clusters import service
from hortus.domains.clusters.adoption.comparison import unified
from hortus.domains.clusters.adoption.identity import Identity, Inside, identity_of
from hortus.domains.clusters.adoption.inverse import Adoption, cluster_of, runtime_from
from hortus.domains.clusters.adoption.landscape import Landscape
from hortus.domains.clusters.adoption.report import Entry, Outcome
from hortus.domains.clusters.adoption.sources import (
    ClusterObject,
    OfferedKubeconfig,
    Surroundings,
    kubeconfig_in,
    normal,
    server_of,
)
from hortus.domains.clusters.reading import shoot_name_of
from hortus.domains.clusters.shoot import LiveShoot
from hortus.domains.clusters.types import RUNTIMES, Annotation, Label, Runtime
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.kube.objects import Object, ObjectKey, Resource, key_of


class Wishes(msgspec.Struct, frozen=True):
    """Facts that the user supplies because no object has them."""

    namespace: str
    labels: Mapping[str, str] = {}
    administrators: tuple[str, ...] = ()


class PlannedObject(NamedTuple):
    """An object to create."""

    resource: Resource
    document: Object

    @property
    def key(self) -> ObjectKey:
        return key_of(self.document)

    @property
    def shoot(self) -> str:
        return shoot_name_of(self.document)

    @property
    def title(self) -> str:
        return f"{self.resource.kind} {self.key}"


class Plan(msgspec.Struct, frozen=True):
    """The entry of one cluster, and the objects to make for it, in this order."""

    entry: Entry
    manifests: tuple[PlannedObject, ...] = ()


def plan_shoot(
    shoot: LiveShoot,
    around: Surroundings,
    landscape: Landscape,
    wishes: Wishes,
    *,
    structured: Object | None = None,
    inside: Inside | None = None,
) -> Plan:
    """The Runtime and GardenerCluster of a shoot; `structured` is its ConfigMap with structured authentication."""
    name = shoot.name
    identity = identity_of(
        shoot,
        around.holders_of(name),
        given=wishes.labels,
        administrators=wishes.administrators,
        inside=inside,
    )
    if taken := around.runtimes_of(name):
        return _of_taken(shoot, taken, around)
    context, problems = landscape.context(shoot)
    adoption = runtime_from(
        shoot, landscape.config, context, identity=identity, namespace=wishes.namespace, structured=structured
    )
    reasons = [*map(str, problems), *map(str, adoption.problems), *_taken_by_others(name, identity.runtime_id, around)]
    return _planned(shoot, adoption, identity, reasons)


def _planned(shoot: LiveShoot, adoption: Adoption, identity: Identity, reasons: list[str]) -> Plan:
    wanted = (PlannedObject(RUNTIMES, adoption.runtime), PlannedObject(GARDENER_CLUSTERS, adoption.gardener_cluster))
    made = () if reasons else wanted
    if reasons:
        outcome, why = Outcome.REFUSED, _first(reasons)
    elif adoption.differences:
        outcome, why = Outcome.DIFFERS, f"a patch would change {_first([one.path for one in adoption.differences])}"
    else:
        outcome, why = Outcome.ADOPTED, "a patch would change nothing"
    notes = list(adoption.notes)
    if shoot.owner:
        notes.append(f"the shoot says it belongs to Runtime {shoot.owner}: no other controller may serve that any more")
    entry = Entry(
        shoot=shoot.name,
        outcome=outcome,
        why=why,
        runtime_id=identity.runtime_id,
        problems=tuple(reasons),
        differences=adoption.differences,
        notes=tuple(notes),
        manifests=tuple(one.document for one in made),
        diff=unified(shoot.name, shoot.raw, adoption.patched) if adoption.patched is not None else "",
    )
    return Plan(entry, made)


def _of_taken(shoot: LiveShoot, taken: list[ClusterObject], around: Surroundings) -> Plan:
    """A shoot that a Runtime here names already: nothing to do but what an earlier run left undone."""
    found = taken[0]
    runtime = found.runtime
    if len(taken) > 1 or not belongs(shoot, runtime):
        names = ", ".join(one.title for one in taken)
        whose = f"belongs to Runtime {shoot.owner}" if shoot.owner else "belongs to no Runtime"
        why = f"Runtime {names} names it, but the shoot {whose}"
        return Plan(Entry(shoot=shoot.name, outcome=Outcome.REFUSED, why=why, runtime=found.title, problems=(why,)))
    is_locked = service.locked(runtime)
    left: tuple[PlannedObject, ...] = ()
    if is_locked and around.cluster_named(service.runtime_id(runtime)) is None:
        left = (PlannedObject(GARDENER_CLUSTERS, service.gardener_cluster(runtime, shoot.outline.domain)),)
    entry = Entry(
        shoot=shoot.name,
        outcome=Outcome.PRESENT,
        why=f"Runtime {found.title} has it" + (", locked: compare and release it" if is_locked else ""),
        runtime_id=service.runtime_id(runtime),
        runtime=found.title,
        manifests=tuple(one.document for one in left),
    )
    return Plan(entry, left)


def belongs(shoot: LiveShoot, runtime: Runtime) -> bool:
    """Returns true if a Runtime owns the shoot or adopts it by its uid."""
    if shoot.owner:
        return shoot.owner == service.runtime_id(runtime)
    return runtime.metadata.annotations.get(Annotation.ADOPT) == shoot.metadata.uid


def plan_kyma(kyma: ClusterObject, shoots: Mapping[str, LiveShoot], around: Surroundings, wishes: Wishes) -> Plan:
    """The GardenerCluster of a Kyma's shoot."""
    name = kyma.metadata.labels.get(Label.SHOOT_NAME, "")
    if not name:
        return _refused(kyma.title, f"Kyma {kyma.title} has no label {Label.SHOOT_NAME}")
    if name not in shoots:
        return _refused(name, f"Kyma {kyma.title} names a shoot that the project does not have")
    return plan_cluster(shoots[name], around, wishes)


def plan_kubeconfig(
    origin: str, document: bytes, addresses: Mapping[str, LiveShoot], around: Surroundings, wishes: Wishes
) -> Plan:
    """The GardenerCluster of the shoot that a kubeconfig leads to."""
    try:
        server = server_of(document)
    except ValueError as error:
        return _refused(origin, f"{origin}: {error}")
    shoot = addresses.get(normal(server))
    if shoot is None:
        text = f"{origin}: no shoot of the project has its API server at {server}, so nothing could renew a kubeconfig"
        return _refused(origin, text)
    return plan_cluster(shoot, around, wishes)


def plan_secret(
    secret: OfferedKubeconfig, addresses: Mapping[str, LiveShoot], around: Surroundings, wishes: Wishes
) -> Plan:
    """The same for a Secret; its labels are the cluster's."""
    origin = f"Secret {secret.title}"
    try:
        document = kubeconfig_in(secret)
    except ValueError as error:
        return _refused(origin, f"{origin}: {error}")
    labels = {**wishes.labels, **secret.metadata.labels}
    return plan_kubeconfig(origin, document, addresses, around, msgspec.structs.replace(wishes, labels=labels))


def plan_cluster(shoot: LiveShoot, around: Surroundings, wishes: Wishes) -> Plan:
    """The GardenerCluster alone. Of the labels only the runtime-id must be there: it is the name."""
    name = shoot.name
    identity = identity_of(shoot, around.holders_of(name), given=wishes.labels)
    if present := around.clusters_of(name):
        why = f"GardenerCluster {present[0].title} has it"
        return Plan(Entry(shoot=name, outcome=Outcome.PRESENT, why=why, runtime_id=identity.runtime_id))
    needed = f"metadata.labels[{Label.RUNTIME_ID}]"
    reasons = [str(one) for one in identity.problems if one.path == needed or "says so" in one.message]
    if reasons := [*reasons, *_taken_by_others(name, identity.runtime_id, around)]:
        return _refused(name, *reasons, runtime_id=identity.runtime_id)
    made = cluster_of(shoot, identity, wishes.namespace)
    entry = Entry(
        shoot=name,
        outcome=Outcome.ADOPTED,
        why="a GardenerCluster changes nothing in the shoot",
        runtime_id=identity.runtime_id,
        manifests=(made,),
    )
    return Plan(entry, (PlannedObject(GARDENER_CLUSTERS, made),))


def duplicates_refused(plans: Iterable[Plan]) -> list[Plan]:
    """Plans of which no two make an object of one name; of those that would, none is made."""
    listed = list(plans)
    shoots: dict[str, set[str]] = {}
    for plan in listed:
        for manifest in plan.manifests:
            shoots.setdefault(manifest.key.name, set()).add(plan.entry.shoot)
    found = []
    for plan in listed:
        rivals = {shoot for one in plan.manifests for shoot in shoots[one.key.name]} - {plan.entry.shoot}
        if rivals:
            text = f"shoot {', '.join(sorted(rivals))} has the same runtime-id {plan.entry.runtime_id}"
            plan = _refused(plan.entry.shoot, text, runtime_id=plan.entry.runtime_id)
        found.append(plan)
    return found


def origin_of(path: Path) -> str:
    return f"file {path}"


def _taken_by_others(shoot: str, runtime_id: str, around: Surroundings) -> list[str]:
    """Objects of this runtime-id that are for another shoot."""
    found = []
    runtime, cluster = around.runtime_with(runtime_id), around.cluster_named(runtime_id)
    if runtime is not None and runtime.shoot != shoot:
        found.append(f"runtime-id {runtime_id} is Runtime {runtime.title}'s, for shoot {runtime.shoot}")
    if cluster is not None and cluster.shoot != shoot:
        found.append(f"GardenerCluster {cluster.title} is for shoot {cluster.shoot}")
    return found


def _refused(shoot: str, *reasons: str, runtime_id: str = "") -> Plan:
    return Plan(
        Entry(
            shoot=shoot,
            outcome=Outcome.REFUSED,
            why=_first(list(reasons)),
            runtime_id=runtime_id,
            problems=reasons,
        )
    )


def _first(texts: list[str]) -> str:
    return texts[0] if len(texts) == 1 else f"{texts[0]} and {len(texts) - 1} more"
