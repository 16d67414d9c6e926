"""Modules in the demo of `hortus up`: the catalog of sample modules, and a Kyma for each cluster."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from hortus.domains import DemoFleet
from hortus.domains.modules.names import CONTROL_NAMESPACE, Annotation, Label
from hortus.domains.modules.types import KYMAS, MODULE_RELEASE_METAS, MODULE_TEMPLATES
from hortus.kube.objects import Object, Resource

_CHANNEL: Final = "regular"
_MODULE: Final = "template-operator"


class _TypeMeta(msgspec.Struct):
    kind: str


def catalog() -> Iterator[tuple[Resource, Object]]:
    """The ModuleTemplates and ModuleReleaseMetas of the sample modules."""
    from hortus.domains.modules.samples import sample_catalog, sample_modules

    by_kind = {resource.kind: resource for resource in (MODULE_TEMPLATES, MODULE_RELEASE_METAS)}
    for obj in sample_catalog(sample_modules(), namespace=CONTROL_NAMESPACE):
        yield by_kind[msgspec.convert(obj, _TypeMeta).kind], obj


def kymas(fleet: DemoFleet) -> Iterator[tuple[Resource, Object]]:
    """A Kyma with one module for each cluster; the kubeconfig is that of its GardenerCluster."""
    for name in fleet.names:
        yield KYMAS, _kyma(name)


def _kyma(name: str) -> Object:
    return {
        "apiVersion": KYMAS.api_version,
        "kind": KYMAS.kind,
        "metadata": {
            "name": name,
            "namespace": CONTROL_NAMESPACE,
            "labels": {Label.RUNTIME_ID: name, Label.INSTANCE_ID: f"instance-{name}"},
            "annotations": {Annotation.SKR_DOMAIN: f"{name}.demo.example.org"},
        },
        "spec": {"channel": _CHANNEL, "modules": [{"name": _MODULE, "managed": True}]},
    }
