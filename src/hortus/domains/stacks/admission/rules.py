"""Decisions about Clusters and the kinds of this domain, as the Go operator's webhooks make them, with its gaps closed.

A Cluster without a topology is none of our concern. Classes are compared as parsed names, in either notation. A class
that is no name of a release protects nothing and hides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from hortus.domains.stacks.admission.lookups import Lookups
from hortus.domains.stacks.approval import is_approved, refusal
from hortus.domains.stacks.capi import CapiCluster
from hortus.domains.stacks.clusters import release_of
from hortus.domains.stacks.names import BadName, ReleaseName, parse_dot, parse_either, parse_minor, tag_of_class
from hortus.domains.stacks.types import CLUSTER_STACKS, ClusterAddon, ClusterStack, ClusterStackRelease
from hortus.engine.serving import ADMITTED, AdmissionVerdict, invalid, refused, warn
from hortus.kube.errors import KubeError

_CLASS = "spec.topology.class"
_CLUSTER = "Cluster"
_IMMUTABLE = ("provider", "name", "channel", "kubernetes_version")


def check_stack(new: ClusterStack, old: ClusterStack | None) -> AdmissionVerdict:
    """A ClusterStack that is created, or updated from `old`."""
    kind, name, spec = CLUSTER_STACKS.kind, new.metadata.name, new.spec
    if old is not None:
        for field in _IMMUTABLE:
            was, is_now = getattr(old.spec, field), getattr(spec, field)
            if was != is_now:
                wire = "kubernetesVersion" if field == "kubernetes_version" else field
                problem = f"is {was!r} and cannot be changed to {is_now!r}; create another ClusterStack"
                return invalid(kind, name, f"spec.{wire}", problem)
    for field in ("provider", "name"):
        if not getattr(spec, field) or "-" in getattr(spec, field):
            return invalid(kind, name, f"spec.{field}", f"is {getattr(spec, field)!r}; give a name without a dash")
    if old is None or old.spec.versions != spec.versions:
        for number, version in enumerate(spec.versions):
            try:
                parse_dot(version)
            except BadName as error:
                return invalid(kind, name, f"spec.versions[{number}]", str(error))
    if spec.provider_ref is None and not spec.no_provider:
        return invalid(kind, name, "spec.providerRef", "is missing; name a template, or set spec.noProvider")
    return ADMITTED


async def check_stack_deletion(stack: ClusterStack, lookups: Lookups) -> AdmissionVerdict:
    """A ClusterStack that is deleted: Clusters of any namespace may use its releases."""
    spec, namespace = stack.spec, stack.metadata.namespace
    try:
        series = spec.provider, spec.name, parse_minor(spec.kubernetes_version)
        users = [
            cluster
            for cluster in await lookups.clusters()
            if cluster.class_namespace == namespace
            and (name := release_of(cluster)) is not None
            and name.series == series
            and name.version.in_channel(spec.channel)
        ]
    except KubeError as error:
        return warn(f"it is not known whether Clusters use ClusterStack {stack.metadata.name}: {error}")
    return _in_use(f"ClusterStack {stack.metadata.name}", users)


async def check_release_deletion(release: ClusterStackRelease, lookups: Lookups) -> AdmissionVerdict:
    """A ClusterStackRelease that is deleted: Clusters of any namespace may use it."""
    name, namespace = parse_either(release.metadata.name), release.metadata.namespace
    try:
        users = [
            cluster
            for cluster in await lookups.clusters()
            if cluster.class_namespace == namespace and name is not None and release_of(cluster) == name
        ]
    except KubeError as error:
        return warn(f"it is not known whether Clusters use ClusterStackRelease {release.metadata.name}: {error}")
    return _in_use(f"ClusterStackRelease {release.metadata.name}", users)


def check_addon(new: ClusterAddon, old: ClusterAddon | None) -> AdmissionVerdict:
    """A ClusterAddon that is created, or updated from `old`."""
    name, reference = new.metadata.name, new.spec.cluster_ref
    if reference.kind != _CLUSTER:
        return invalid("ClusterAddon", name, "spec.clusterRef.kind", f"is {reference.kind!r}; it must be {_CLUSTER}")
    if old is None:
        return ADMITTED
    for field in ("name", "kind"):
        was, is_now = getattr(old.spec.cluster_ref, field), getattr(reference, field)
        if was != is_now:
            problem = f"is {was!r} and cannot be changed to {is_now!r}"
            return invalid("ClusterAddon", name, f"spec.clusterRef.{field}", problem)
    if reference.namespace != new.metadata.namespace:
        problem = f"is {reference.namespace!r}; it must be the namespace of the ClusterAddon, {new.metadata.namespace}"
        return invalid("ClusterAddon", name, "spec.clusterRef.namespace", problem)
    return ADMITTED


async def check_cluster(new: CapiCluster, old: CapiCluster | None, lookups: Lookups) -> AdmissionVerdict:
    """A Cluster that is created, or updated from `old`."""
    if not new.has_topology:
        return ADMITTED
    if not new.class_name:
        return invalid(_CLUSTER, new.metadata.name, _CLASS, "is empty; name a ClusterClass")
    namespace, tag = new.class_namespace, tag_of_class(new.class_name)
    changed = old is None or (old.class_name, old.class_namespace) != (new.class_name, new.class_namespace)
    if changed and (verdict := await _check_approval(new, namespace, lookups)) is not ADMITTED:
        return verdict
    try:
        release = await lookups.release(namespace, tag)
        version = release.status.kubernetes_version if release is not None else ""
        if not version:
            problem = "does not exist" if release is None else "reports no Kubernetes version yet"
            return warn(f"ClusterStackRelease {namespace}/{tag} {problem}: class and version are not checked")
        if new.version != version:
            problem = f"is {new.version!r}; class {new.class_name} has the Kubernetes version {version}"
            return invalid(_CLUSTER, new.metadata.name, "spec.topology.version", problem)
    except KubeError as error:
        return warn(f"ClusterStackRelease {namespace}/{tag} cannot be read: {error}; class and version are not checked")
    return ADMITTED if old is None or not old.class_name else _check_upgrade(new, old)


def _check_upgrade(new: CapiCluster, old: CapiCluster) -> AdmissionVerdict:
    """A Cluster keeps its provider and stack; its Kubernetes minor stays, or becomes the next one."""
    before, after = release_of(old), release_of(new)
    if before is None or after is None:
        odd = old.class_name if before is None else new.class_name
        return invalid(_CLUSTER, new.metadata.name, _CLASS, f"{odd!r} is no name of a release of a cluster stack")
    if (before.provider, before.stack) != (after.provider, after.stack):
        return invalid(
            _CLUSTER,
            new.metadata.name,
            _CLASS,
            f"{after.class_name} is of another stack than {before.class_name}; create another Cluster",
        )
    if after.kubernetes[1] - before.kubernetes[1] not in (0, 1):
        return invalid(
            _CLUSTER,
            new.metadata.name,
            _CLASS,
            f"from Kubernetes {_minor(before)} to {_minor(after)}; upgrade one minor at a time",
        )
    return ADMITTED


async def _check_approval(cluster: CapiCluster, namespace: str, lookups: Lookups) -> AdmissionVerdict:
    """The name of the class alone counts: its release may be installed after the Cluster is there."""
    name, user = release_of(cluster), cluster.metadata.namespace
    if name is None:
        return ADMITTED
    try:
        policies = await lookups.policies(namespace)
    except KubeError as error:
        problem = f"StackPolicies of namespace {namespace} cannot be read: {error}; try again"
        return refused(f"{_CLUSTER} {cluster.metadata.name}: {problem}")
    if is_approved(policies, name, user=user):
        return ADMITTED
    return invalid(_CLUSTER, cluster.metadata.name, _CLASS, refusal(namespace, name, user=user))


def _in_use(what: str, users: Iterable[CapiCluster]) -> AdmissionVerdict:
    named = sorted(str(cluster.key) for cluster in users)
    if not named:
        return ADMITTED
    more = f" and {len(named) - 3} more" if len(named) > 3 else ""
    clusters = ", ".join(named[:3]) + more
    return refused(f"{what} is used by Clusters {clusters}: move them to another class, or delete them")


def _minor(name: ReleaseName) -> str:
    return f"{name.kubernetes[0]}.{name.kubernetes[1]}"
