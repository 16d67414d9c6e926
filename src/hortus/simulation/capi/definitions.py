"""CustomResourceDefinitions of Cluster API and of the providers whose objects it makes.

Specs keep every field: their validation is Cluster API's own concern, and charts of all its versions shall apply.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, Final

from hortus.kube import Client
from hortus.kube.objects import Object, Resource
from hortus.simulation.capi.kinds import CLUSTER_CLASSES, CLUSTERS, EXTENSION_CONFIGS, GROUP, VERSIONS

CRDS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
MANAGER: Final = "hortus-simulation"
_ANYTHING: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_PROVIDERS: Final = (
    ("controlplane", "KubeadmControlPlane", "kubeadmcontrolplanes"),
    ("controlplane", "KubeadmControlPlaneTemplate", "kubeadmcontrolplanetemplates"),
    ("bootstrap", "KubeadmConfigTemplate", "kubeadmconfigtemplates"),
    ("infrastructure", "DockerCluster", "dockerclusters"),
    ("infrastructure", "DockerClusterTemplate", "dockerclustertemplates"),
    ("infrastructure", "DockerMachineTemplate", "dockermachinetemplates"),
    ("infrastructure", "OpenStackCluster", "openstackclusters"),
    ("infrastructure", "OpenStackClusterTemplate", "openstackclustertemplates"),
    ("infrastructure", "OpenStackMachineTemplate", "openstackmachinetemplates"),
)
_COLUMNS: Final = (
    ("ClusterClass", ".spec.topology.class", "string"),
    ("Phase", ".status.phase", "string"),
    ("Age", ".metadata.creationTimestamp", "date"),
    ("Version", ".spec.topology.version", "string"),
)


def definitions() -> Iterator[Object]:
    """The CRDs, in no order that matters."""
    yield _crd(CLUSTERS, VERSIONS, short=("cl",), columns=_COLUMNS)
    yield _crd(CLUSTER_CLASSES, VERSIONS, short=("cc",))
    yield _crd(EXTENSION_CONFIGS, (EXTENSION_CONFIGS.version,), short=("ext",))
    for part, kind, plural in _PROVIDERS:
        yield _crd(Resource(f"{part}.{GROUP}", VERSIONS[-1], plural, kind), VERSIONS)


async def install(client: Client) -> None:
    """Apply all CRDs. Raises KubeError."""
    await asyncio.gather(*(client.apply(CRDS, one, field_manager=MANAGER) for one in definitions()))


def _crd(
    resource: Resource,
    versions: Sequence[str],
    *,
    short: Sequence[str] = (),
    columns: Sequence[tuple[str, str, str]] = (),
) -> Object:
    served: list[dict[str, Any]] = [
        {
            "name": version,
            "served": True,
            "storage": version == versions[-1],
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": _ANYTHING, "status": _ANYTHING}}},
            "subresources": {"status": {}},
            "additionalPrinterColumns": [
                {"name": name, "jsonPath": path, "type": kind} for name, path, kind in columns
            ],
        }
        for version in versions
    ]
    names: dict[str, Any] = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
    }
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {
            "name": f"{resource.plural}.{resource.group}",
            # The contract labels by which Cluster API finds the version of a provider's kind.
            "labels": {f"{GROUP}/{version}": version for version in versions},
        },
        "spec": {
            "group": resource.group,
            "names": {**names, "shortNames": list(short)} if short else names,
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": served,
        },
    }
