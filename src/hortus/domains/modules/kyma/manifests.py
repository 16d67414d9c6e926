"""Manifests of a Kyma's modules: their names, their content, and the cases in which one is written. Pure."""

from __future__ import annotations

from typing import Final

import msgspec

from hortus.domains.modules.kinds.manifest import CONFIG_TYPES
from hortus.domains.modules.kyma.resolution import ResolvedModule
from hortus.domains.modules.names import MANAGED_BY_LIFECYCLE_MANAGER, Annotation, Label
from hortus.domains.modules.registry import Component
from hortus.domains.modules.types import InstallSource, Kyma, Manifest, ModuleStatus, ModuleTemplate
from hortus.kube.objects import Object, shaped

INSTALL_NAME: Final = "raw-manifest"
_LONGEST_NAME: Final = 62
"""Characters; a longer name is cut to as many."""


class _Embedded(msgspec.Struct):
    metadata: Object = {}


class UnusableComponent(Exception):
    """A component without a layer of objects; the text names it and the fix."""


def manifest_name(kyma: str, component: str, module: str) -> str:
    """Name of the Manifest of a module: that of the Kyma, the component's last segment, and a hash of both names."""
    name = f"{kyma}-{component.rpartition('/')[2]}-{_fnv1(component + module)}"
    return name if len(name) <= _LONGEST_NAME else name[:_LONGEST_NAME].rstrip("-")


def _fnv1(text: str) -> int:
    """The 32-bit FNV-1 hash: multiplied first, then combined, unlike FNV-1a."""
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value * 0x01000193 & 0xFFFFFFFF) ^ byte
    return value


def manifest_for(
    kyma: Kyma, resolved: ResolvedModule, component: Component, *, sync_namespace: str, mandatory: bool = False
) -> Object:
    """The Manifest of a module, as it is applied. Raises UnusableComponent."""
    module, template = resolved.module, resolved.template
    name = manifest_name(kyma.metadata.name, resolved.component, module.name)
    labels = {
        Label.KYMA_NAME: kyma.metadata.name,
        Label.MODULE_NAME: module.name,
        Label.MANAGED_BY: MANAGED_BY_LIFECYCLE_MANAGER,
        **({Label.MANDATORY_MODULE: "true"} if mandatory else {Label.CHANNEL: resolved.channel}),
    }
    if template.metadata.labels:
        labels[Label.CONTROLLER_NAME] = template.metadata.labels.get(Label.CONTROLLER_NAME, "")
    annotations = {Annotation.FQDN: resolved.component, Annotation.OCM_COMPONENT_NAME: resolved.component}
    if not module.managed:
        annotations[Annotation.IS_UNMANAGED] = "true"
    return {
        "apiVersion": Manifest.FACTS.api_version,
        "kind": Manifest.FACTS.name,
        "metadata": {
            "name": name,
            "namespace": kyma.metadata.namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [_owner(kyma)],
        },
        "spec": _spec(resolved, component, default_name=name, sync_namespace=sync_namespace),
    }


def _owner(kyma: Kyma) -> Object:
    return {
        "apiVersion": kyma.FACTS.api_version,
        "kind": kyma.FACTS.name,
        "name": kyma.metadata.name,
        "uid": kyma.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def _spec(resolved: ResolvedModule, component: Component, *, default_name: str, sync_namespace: str) -> Object:
    if component.install is None:
        raise UnusableComponent(
            f"component {component.name}:{component.version} has no resource {INSTALL_NAME} in a registry; publish "
            "the module again"
        )
    template = resolved.template
    spec: Object = {
        "customResourcePolicy": resolved.module.custom_resource_policy,
        "remote": False,
        "version": component.version,
        "install": {"name": INSTALL_NAME, "source": _source(component.install)},
    }
    if component.config is not None and component.config.type in CONFIG_TYPES:
        spec["config"] = _source(component.config)
    if template.spec.data is not None:
        spec["resource"] = _resource(template, default_name, sync_namespace)
    if template.spec.manager is not None:
        manager = template.spec.manager
        spec["manager"] = {
            "group": manager.group,
            "version": manager.version,
            "kind": manager.kind,
            "name": manager.name,
            **({"namespace": manager.namespace} if manager.namespace else {}),
        }
    if component.localized_images:
        spec["localizedImages"] = list(component.localized_images)
    return spec


def _source(source: InstallSource) -> Object:
    return {"repo": source.repo, "name": source.name, "ref": source.ref, "type": source.type}


def _resource(template: ModuleTemplate, default_name: str, sync_namespace: str) -> Object:
    data = template.spec.data or {}
    defaults = {"name": default_name, "namespace": sync_namespace}
    metadata = (shaped(data, _Embedded) or _Embedded()).metadata
    return {**data, "metadata": {**defaults, **{name: value for name, value in metadata.items() if value}}}


def is_update_needed(
    current: Manifest | None, wanted: Manifest, template: ModuleTemplate, status: ModuleStatus | None
) -> bool:
    """Reports whether the Manifest of a module is written. `status` is the module's in the Kyma.

    A Manifest that somebody edited is written again only when its version, its channel, its layer or the generation of
    the ModuleTemplate differs.
    """
    unmanaged = Annotation.IS_UNMANAGED in wanted.metadata.annotations
    if current is None:
        return not unmanaged
    if current.metadata.annotations.get(Annotation.IS_UNMANAGED) == "true":
        return False
    if unmanaged or current.spec is None or wanted.spec is None:
        return True
    if (current.spec.version, current.spec.install.source) != (wanted.spec.version, wanted.spec.install.source):
        return True
    if current.metadata.labels.get(Label.CHANNEL) != wanted.metadata.labels.get(Label.CHANNEL):
        return True
    if Label.MANDATORY_MODULE in wanted.metadata.labels or status is None or status.template is None:
        return False
    return status.template.metadata.generation != template.metadata.generation
