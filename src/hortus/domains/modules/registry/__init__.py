"""Modules in an OCI registry: component descriptors, raw manifests and default custom resources.

    registry = open_registry(manager, settings.registry, client=client, namespace="kcp-system")
    component = await registry.component("kyma-project.io/module/template-operator", "1.0.3")
    component.install                 # an InstallSource, written to Manifest.spec.install.source
    component.localized_images
    manifest = await registry.manifest(component.install)      # YAML, from a tar or not

In tests and commands: `ModuleRegistry(ReadingLimits(), fixed(access_from_host("localhost:5000")))`, to be closed.

A component version is the manifest that the tag of the version names; its descriptor layer lists the resources of the
module. Descriptors are kept in memory and compared by digest with the registry after a time, so that a version that was
pushed again is seen. Blobs are kept on disk by digest and verified whenever they are read. Errors are
`ModuleSourceError`s: steps of a reconcile may raise them as they are.

Format: open-component-model/ocm-spec, doc/04-extensions/03-storage-backends/oci.md.
"""

from __future__ import annotations

from hortus.domains.modules.registry.access import (
    BadRegistryAccess,
    RegistryAccess,
    access_from_docker_config,
    access_from_host,
    fixed,
)
from hortus.domains.modules.registry.components import Component
from hortus.domains.modules.registry.composition import open_registry
from hortus.domains.modules.registry.descriptors import (
    ComponentAccess,
    ComponentDescriptor,
    ComponentLabel,
    ComponentResource,
)
from hortus.domains.modules.registry.errors import ModuleSourceError
from hortus.domains.modules.registry.reading import (
    COMPONENT_FOLDER,
    ModuleRegistry,
    ReadingLimits,
    component_reference,
    component_tag,
)

__all__ = [
    "COMPONENT_FOLDER",
    "BadRegistryAccess",
    "Component",
    "ComponentAccess",
    "ComponentDescriptor",
    "ComponentLabel",
    "ComponentResource",
    "ModuleRegistry",
    "ModuleSourceError",
    "ReadingLimits",
    "RegistryAccess",
    "access_from_docker_config",
    "access_from_host",
    "component_reference",
    "component_tag",
    "fixed",
    "open_registry",
]
