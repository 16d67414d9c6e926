"""The stacks, releases, Clusters and addons of a management cluster, as commands show them; pure but for `gather`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hortus.domains.stacks.capi import CLUSTERS, CapiCluster, read_cluster
from hortus.domains.stacks.catalog.service import summary_of
from hortus.domains.stacks.clusters import release_of
from hortus.domains.stacks.flux.objects import HELM_RELEASES, SELECTOR, FluxObject, read_flux
from hortus.domains.stacks.names import ReleaseName, parse_either
from hortus.domains.stacks.types import (
    CLUSTER_ADDONS,
    CLUSTER_STACK_RELEASES,
    CLUSTER_STACKS,
    ClusterAddon,
    ClusterStack,
    ClusterStackRelease,
    SeverityCondition,
)
from hortus.engine import read
from hortus.engine.conditions import FALSE, READY
from hortus.kube.errors import Forbidden, NotFound

if TYPE_CHECKING:
    from hortus.kube import Client
    from hortus.kube.objects import Object, Resource


class StacksView(NamedTuple):
    """All of it, as it was read."""

    stacks: Sequence[ClusterStack]
    releases: Sequence[ClusterStackRelease]
    clusters: Sequence[CapiCluster]
    addons: Sequence[ClusterAddon]
    helm_releases: Sequence[FluxObject] = ()
    """The HelmReleases by which Flux applies addons."""

    def users(self, release: ClusterStackRelease) -> list[CapiCluster]:
        """The Clusters that use a release."""
        name = parse_either(release.metadata.name)
        return [
            one
            for one in self.clusters
            if name is not None and release_of(one) == name and one.class_namespace == release.metadata.namespace
        ]

    def addon(self, cluster: CapiCluster) -> ClusterAddon | None:
        """The ClusterAddon of a Cluster."""
        found = (one for one in self.addons if one.metadata.namespace == cluster.metadata.namespace)
        return next((one for one in found if one.spec.cluster_ref.name == cluster.metadata.name), None)

    def release(self, cluster: CapiCluster) -> ClusterStackRelease | None:
        """The ClusterStackRelease of a Cluster's class."""
        return next((one for one in self.releases if cluster in self.users(one)), None)


async def gather(client: Client) -> StacksView:
    """Read all of it. Raises KubeError."""
    return StacksView(
        [read(ClusterStack, obj) for obj in await _listed(client, CLUSTER_STACKS)],
        [read(ClusterStackRelease, obj) for obj in await _listed(client, CLUSTER_STACK_RELEASES)],
        [read_cluster(obj) for obj in await _clusters(client)],
        [read(ClusterAddon, obj) for obj in await _listed(client, CLUSTER_ADDONS)],
        [read_flux(obj) for obj in await _handed(client)],
    )


async def _listed(client: Client, resource: Resource) -> list[Object]:
    return (await client.list(resource)).items


async def _handed(client: Client) -> list[Object]:
    """The HelmReleases of addons; none where Flux is not there, or hidden from the reader."""
    try:
        return (await client.list(HELM_RELEASES, labels=SELECTOR)).items
    except (NotFound, Forbidden):
        return []


async def _clusters(client: Client) -> list[Object]:
    *preferred, last = CLUSTERS.values()
    for resource in preferred:
        try:
            return await _listed(client, resource)
        except NotFound:
            continue
    return await _listed(client, last)


def rows(view: StacksView) -> Iterator[tuple[object, ...]]:
    """The rows of `hortus stack list`: namespace, class, Kubernetes version, ready, phase, number of users, message."""
    for release in sorted(view.releases, key=lambda one: (one.metadata.namespace, one.metadata.name)):
        name = parse_either(release.metadata.name)
        if name is None:
            continue
        status, entry = release.status, summary_of(name, release)
        failed = next((one for one in status.conditions if one.type == READY and one.status == FALSE), None)
        yield (
            release.metadata.namespace,
            name.class_name,
            status.kubernetes_version,
            status.ready,
            entry.phase,
            len(view.users(release)),
            failed.message or failed.reason if failed is not None else "",
        )


def targets(view: StacksView, cluster: CapiCluster) -> list[ReleaseName]:
    """The ready releases that a Cluster can move to, the best last: of its stack, its Kubernetes minor or the next."""
    now = release_of(cluster)
    if now is None:
        return []
    names = (
        parse_either(one.metadata.name)
        for one in view.releases
        if one.status.ready and one.metadata.namespace == cluster.class_namespace
    )
    near = [
        name
        for name in names
        if name is not None
        and name != now
        and (name.provider, name.stack) == (now.provider, now.stack)
        and name.kubernetes[0] == now.kubernetes[0]
        and name.kubernetes[1] - now.kubernetes[1] in (0, 1)
    ]
    return sorted(near, key=lambda name: (name.kubernetes, name.version.is_stable, name.version.order))


def is_newer(name: ReleaseName, now: ReleaseName) -> bool:
    """Reports whether a release is an upgrade: a later minor, or a later version of the same channel."""
    if name.kubernetes != now.kubernetes:
        return name.kubernetes > now.kubernetes
    return name.version.channel == now.version.channel and name.version > now.version


def explained(view: StacksView, cluster: CapiCluster) -> Iterator[str]:
    """The state of a Cluster's stack in lines, each condition that is not well with its reason; then the next step."""
    yield f"Cluster {cluster.key} uses class {cluster.class_name or 'none'} of namespace {cluster.class_namespace}"
    if not cluster.has_topology:
        yield "It has no topology, so cluster stacks leave it alone."
        return
    release, addon = view.release(cluster), view.addon(cluster)
    if release is None:
        yield f"No ClusterStackRelease of namespace {cluster.class_namespace} stands for this class."
        yield "Next: the provider of the catalog offers it in a ClusterStack, or the Cluster names another class."
        return
    yield f"ClusterStackRelease {release.metadata.name} is {_word(ready=release.status.ready)}"
    yield from _faults(release.status.conditions)
    if addon is None:
        yield "It has no ClusterAddon yet."
    else:
        hook = f" in hook {addon.spec.hook}" if addon.spec.hook else ""
        yield f"ClusterAddon {addon.metadata.name} is {_word(ready=addon.status.ready)}{hook}"
        yield from (f"  stage {one.name}: {one.action} {one.phase}" for one in addon.status.stages)
        yield from _faults(addon.status.conditions)
    if not release.status.ready:
        yield "Next: the provider of the catalog mends the release."
    elif addon is None or not addon.status.ready:
        yield "Next: the addons are tried again; a condition above says what they wait for."
    else:
        yield "Next: nothing; class and addons are as wanted."


def _word(*, ready: bool) -> str:
    return "ready" if ready else "not ready"


def _faults(conditions: Iterable[SeverityCondition]) -> Iterator[str]:
    for one in conditions:
        if one.type != READY and one.status == FALSE:
            yield f"  {one.type}: {one.reason} [{one.severity}]: {one.message}"
