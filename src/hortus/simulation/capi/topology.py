"""Pure decisions about a Cluster with a topology: its class, the objects that are made from it, the way of an upgrade.

Cluster API v1beta1 and v1beta2 differ in the names of a few fields. An object is written in the form in which its
Cluster names its class.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.simulation.capi.kinds import CLONED_FROM, CLUSTER_NAME, CLUSTERS, TOPOLOGY_OWNED, VERSIONS


class Topology(NamedTuple):
    """The topology of a Cluster."""

    class_key: ObjectKey
    version: str
    is_v1beta2: bool


class TopologyError(Exception):
    """A topology that cannot be realized; the text names object, field and fix."""


def topology_of(cluster: Object) -> Topology | None:
    """The topology of a Cluster; None for a classic one."""
    metadata, spec = cluster["metadata"], cluster.get("spec") or {}
    topology = spec.get("topology")
    if not topology:
        return None
    reference = topology.get("classRef")
    if reference:
        place = reference.get("namespace") or metadata["namespace"]
        return Topology(ObjectKey(place, reference.get("name", "")), topology.get("version", ""), is_v1beta2=True)
    place = topology.get("classNamespace") or metadata["namespace"]
    return Topology(ObjectKey(place, topology.get("class", "")), topology.get("version", ""), is_v1beta2=False)


def is_paused(cluster: Object) -> bool:
    """True where spec.paused or the annotation says so."""
    return bool((cluster.get("spec") or {}).get("paused"))


def template_of(cluster_class: Object, part: str) -> tuple[Resource, str]:
    """The kind and the name of the template of `controlPlane` or `infrastructure`. Raises TopologyError."""
    name = cluster_class["metadata"]["name"]
    section: dict[str, Any] = (cluster_class.get("spec") or {}).get(part) or {}
    reference = section.get("templateRef") or section.get("ref") or {}
    if not (reference.get("apiVersion") and reference.get("kind") and reference.get("name")):
        raise TopologyError(f"ClusterClass {name}: spec.{part} names no template: give apiVersion, kind and name")
    return _resource(reference["apiVersion"], reference["kind"]), reference["name"]


def made_from(template: Object, name: str, cluster: Object, **spec: Any) -> Object:
    """The object that is cloned from a template for a Cluster. Raises TopologyError."""
    kind = str(template["kind"])
    if not kind.endswith("Template"):
        raise TopologyError(f"{kind} {template['metadata']['name']}: its kind must end in Template")
    inner = ((template.get("spec") or {}).get("template") or {}).get("spec") or {}
    owner, namespace = cluster["metadata"], cluster["metadata"]["namespace"]
    return {
        "apiVersion": template["apiVersion"],
        "kind": kind.removesuffix("Template"),
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {CLUSTER_NAME: owner["name"], TOPOLOGY_OWNED: ""},
            "annotations": {CLONED_FROM: template["metadata"]["name"]},
            "ownerReferences": [owner_reference(cluster)],
        },
        "spec": {**inner, **spec},
    }


def owner_reference(cluster: Object) -> Object:
    """A reference to the Cluster as controller."""
    metadata = cluster["metadata"]
    return {
        "apiVersion": CLUSTERS.api_version,
        "kind": CLUSTERS.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def reference_to(obj: Object, *, is_v1beta2: bool) -> Object:
    """The reference of a Cluster to one of its objects, in one of both forms."""
    metadata, api_version = obj["metadata"], obj["apiVersion"]
    named = {"kind": obj["kind"], "name": metadata["name"]}
    if is_v1beta2:
        return {"apiGroup": api_version.rpartition("/")[0], **named}
    return {"apiVersion": api_version, "namespace": metadata["namespace"], **named}


def referenced(cluster: Object, field: str) -> tuple[Resource, str] | None:
    """The kind and the name of `controlPlaneRef` or `infrastructureRef`; None where it is not set yet."""
    reference = (cluster.get("spec") or {}).get(field) or {}
    if not reference.get("name"):
        return None
    version = reference.get("apiVersion") or f"{reference['apiGroup']}/{VERSIONS[-1]}"
    return _resource(version, reference["kind"]), reference["name"]


def next_version(current: str, wanted: str, cluster_class: Object) -> str:
    """The version to which the control plane is upgraded next on the way to `wanted`. Raises TopologyError.

    More than one minor version needs `spec.kubernetesVersions` of the class, whose highest patch of each is taken.
    """
    (major, minor, _), (to_major, to_minor, _) = _numbers(current), _numbers(wanted)
    if to_major != major or to_minor < minor:
        raise TopologyError(f"spec.topology.version: {wanted} cannot be reached from {current}: choose a later version")
    if to_minor <= minor + 1:
        return wanted
    known = (cluster_class.get("spec") or {}).get("kubernetesVersions") or ()
    steps: list[str] = [version for version in known if _numbers(version)[:2] == (major, minor + 1)]
    if not steps:
        raise TopologyError(
            f"spec.topology.version: from {current} to {wanted} are {to_minor - minor} minor versions, and "
            f"spec.kubernetesVersions of ClusterClass {cluster_class['metadata']['name']} names none of "
            f"{major}.{minor + 1}: add one, or upgrade one minor version at a time"
        )
    return max(steps, key=_numbers)


def _resource(api_version: str, kind: str) -> Resource:
    group, _, version = api_version.rpartition("/")
    return Resource(group, version, f"{kind.lower()}s", kind)


def _numbers(version: str) -> tuple[int, int, int]:
    parts = version.removeprefix("v").split("-")[0].split("+")[0].split(".")
    try:
        major, minor, patch = (int(part) for part in parts)
    except ValueError:
        raise TopologyError(f"spec.topology.version: {version!r} is no version: write it as v1.34.1") from None
    return major, minor, patch
