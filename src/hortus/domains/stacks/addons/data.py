"""The data of values templates: the Cluster, its control plane and its infrastructure, as the API server has them."""

from __future__ import annotations

import msgspec

from hortus.domains.stacks.addons.reasons import AGAIN, VALUES_FAILED, AddonCondition
from hortus.domains.stacks.capi import CapiCluster, CapiRef
from hortus.domains.stacks.conditions import Severity
from hortus.domains.stacks.context import ConditionError
from hortus.engine import Actor
from hortus.engine.applysets import DiscoveredKinds, UnknownKind
from hortus.kube import Client
from hortus.kube.errors import NotFound
from hortus.kube.objects import GroupVersionKind, Object, Resource


class _PlaneStatus(msgspec.Struct):
    version: str = ""


class _Plane(msgspec.Struct):
    status: _PlaneStatus = msgspec.field(default_factory=_PlaneStatus)


class _Data(msgspec.Struct, rename="pascal"):
    control_plane: _Plane | None = None


def control_plane_version(data: Object) -> str:
    """The Kubernetes version that the control plane runs; empty where it does not report one."""
    try:
        plane = msgspec.convert(data, _Data).control_plane
    except msgspec.ValidationError:
        return ""
    return plane.status.version if plane is not None else ""


async def template_data(cluster: CapiCluster, obj: Object, *, client: Client, kinds: DiscoveredKinds) -> Object:
    """`Cluster`, and `ControlPlane` and `InfraCluster` where the Cluster refers to them. Raises ConditionError."""
    data: Object = {"Cluster": obj}
    for name, reference in (("ControlPlane", cluster.control_plane), ("InfraCluster", cluster.infrastructure)):
        if reference is not None:
            data[name] = await _live(cluster, reference, client, kinds)
    return data


async def _live(cluster: CapiCluster, reference: CapiRef, client: Client, kinds: DiscoveredKinds) -> Object:
    # Values of charts may hold what is read here: never a Secret, or another object of the core group.
    resource = await _resource(reference, kinds)
    try:
        if resource is not None and resource.group:
            return await client.get(resource, reference.name, cluster.key.namespace)
    except NotFound:
        pass
    raise ConditionError(
        f"Cluster {cluster.key} refers to {reference.kind} {reference.name}, which does not exist or "
        "is no object of a provider",
        condition=AddonCondition.CHART_TEMPLATED,
        reason=VALUES_FAILED,
        severity=Severity.ERROR,
        actor=Actor.PROVIDER,
        after=AGAIN,
    )


async def _resource(reference: CapiRef, kinds: DiscoveredKinds) -> Resource | None:
    """The kind as it is served, in the version of the reference if it names one."""
    if not reference.version:
        return await kinds.named(f"{reference.kind}.{reference.group}")
    gvk = GroupVersionKind(reference.group, reference.version, reference.kind)
    for fresh in (False, True):
        try:
            return await kinds.resource(gvk, fresh=fresh)
        except UnknownKind:
            continue
    return None
