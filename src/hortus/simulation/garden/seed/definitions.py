"""CustomResourceDefinitions of the simulated seed. Specs keep every field: their rules are Gardener's and Istio's."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Final

from hortus.kube import Client
from hortus.kube.objects import Object, Resource
from hortus.simulation.garden.seed.kinds import (
    CLUSTERS,
    ENVOY_FILTERS,
    EXTENSIONS,
    GATEWAYS,
    INFRASTRUCTURES,
    MANAGED_RESOURCES,
    MANAGER,
)

CRDS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
_ANYTHING: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_OPERATION: Final = (("Type", ".spec.type", "string"), ("Status", ".status.lastOperation.state", "string"))
_RESOURCES: Final = (
    ("Class", ".spec.class", "string"),
    ("Applied", '.status.conditions[?(@.type=="ResourcesApplied")].status', "string"),
    ("Healthy", '.status.conditions[?(@.type=="ResourcesHealthy")].status', "string"),
)
_AGE: Final = ("Age", ".metadata.creationTimestamp", "date")


def definitions() -> Iterator[Object]:
    """The CRDs, in no order that matters."""
    yield definition(EXTENSIONS, columns=_OPERATION, short=("ext",))
    yield definition(INFRASTRUCTURES, columns=_OPERATION, short=("infra",))
    yield definition(CLUSTERS)
    yield definition(MANAGED_RESOURCES, columns=_RESOURCES, short=("mr",))
    yield definition(GATEWAYS, short=("gw",))
    yield definition(ENVOY_FILTERS)


async def install(client: Client) -> None:
    """Apply all CRDs. Raises KubeError."""
    await asyncio.gather(*(client.apply(CRDS, one, field_manager=MANAGER) for one in definitions()))


def definition(
    resource: Resource, *, columns: Sequence[tuple[str, str, str]] = (), short: Sequence[str] = ()
) -> Object:
    """The CRD of one kind."""
    singular = resource.kind.lower()
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": singular,
                "shortNames": list(short),
            },
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "properties": {"spec": _ANYTHING, "status": _ANYTHING}}
                    },
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": [
                        {"name": name, "jsonPath": path, "type": kind} for name, path, kind in (*columns, _AGE)
                    ],
                }
            ],
        },
    }
