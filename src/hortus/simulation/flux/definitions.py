"""CustomResourceDefinitions of Flux. Specs keep every field: their validation is Flux' own concern."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Final

from hortus.kube import Client
from hortus.kube.objects import Object, Resource
from hortus.simulation.flux.kinds import HELM_RELEASES, OCI_REPOSITORIES

CRDS: Final = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
_MANAGER: Final = "hortus-simulation"
_READY: Final = '.status.conditions[?(@.type=="Ready")]'
_AGE: Final = ("Age", ".metadata.creationTimestamp", "date")
_STATE: Final = (("Ready", f"{_READY}.status", "string"), ("Status", f"{_READY}.message", "string"))


def definitions() -> Iterator[Object]:
    """The CRDs, in no order that matters."""
    yield _crd(HELM_RELEASES, "hr", (_AGE, *_STATE))
    yield _crd(OCI_REPOSITORIES, "ocirepo", (("URL", ".spec.url", "string"), *_STATE, _AGE))


async def install(client: Client) -> None:
    """Apply all CRDs. Raises KubeError."""
    await asyncio.gather(*(client.apply(CRDS, one, field_manager=_MANAGER) for one in definitions()))


def _crd(resource: Resource, short: str, columns: tuple[tuple[str, str, str], ...]) -> Object:
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: dict[str, Any] = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [{"name": name, "jsonPath": path, "type": kind} for name, path, kind in columns],
    }
    names: dict[str, Any] = {
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
        "plural": resource.plural,
        "singular": resource.kind.lower(),
        "shortNames": [short],
    }
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {"group": resource.group, "names": names, "scope": "Namespaced", "versions": [version]},
    }
