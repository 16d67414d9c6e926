"""The ModuleTemplate of a module, and its entry in a ModuleReleaseMeta. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from hortus.domains.modules.names import Annotation, Label
from hortus.domains.modules.publishing.config import ModuleConfig
from hortus.domains.modules.types import MODULE_RELEASE_METAS, MODULE_TEMPLATES
from hortus.kube import yaml
from hortus.kube.objects import Object, shaped

RAW_MANIFEST = "rawManifest"
"""The conventional entry of spec.resources."""


class _Names(msgspec.Struct):
    kind: str = ""


class _Definition(msgspec.Struct):
    group: str = ""
    names: _Names = msgspec.field(default_factory=_Names)
    scope: str = ""


class _CustomResourceDefinition(msgspec.Struct):
    kind: str
    spec: _Definition


class _Typed(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""


def scope_of(default_cr: Object | None, objects: Sequence[Any]) -> str | None:
    """The scope of the default CR's kind as its CRD in the manifest says, None where there is no such CRD."""
    wanted = shaped(default_cr, _Typed)
    if wanted is None:
        return None
    group = wanted.api_version.rpartition("/")[0]
    for obj in objects:
        definition = shaped(obj, _CustomResourceDefinition)
        if definition is None or definition.kind != "CustomResourceDefinition":
            continue
        if (definition.spec.group, definition.spec.names.kind) == (group, wanted.kind):
            return definition.spec.scope
    return None


def module_template(config: ModuleConfig, *, default_cr: Object | None, cluster_scoped: bool) -> Object:
    """The ModuleTemplate as template.yaml holds it, without a namespace."""
    spec: dict[str, Any] = {
        "moduleName": config.module,
        "version": config.version,
        "requiresDowntime": config.requires_downtime,
        "info": {
            "repository": config.repository,
            "documentation": config.documentation,
            "icons": [msgspec.to_builtins(icon) for icon in config.icons],
        },
        "associatedResources": [msgspec.to_builtins(one) for one in config.associated_resources],
        "data": default_cr,
        "manager": msgspec.to_builtins(config.manager) if config.manager else None,
        "descriptor": {},
        "resources": _resources(config),
    }
    return {
        "apiVersion": MODULE_TEMPLATES.api_version,
        "kind": MODULE_TEMPLATES.kind,
        "metadata": {
            "name": f"{config.module}-{config.version}",
            "namespace": "",
            "labels": _labels(config),
            "annotations": _annotations(config, cluster_scoped=cluster_scoped),
        },
        "spec": {key: value for key, value in spec.items() if value is not None and value != []},
    }


def _labels(config: ModuleConfig) -> dict[str, str]:
    found = dict(config.labels)
    if config.beta:
        found[Label.BETA] = "true"
    if config.internal:
        found[Label.INTERNAL] = "true"
    return found | {Label.MODULE_NAME: config.module}


def _annotations(config: ModuleConfig, *, cluster_scoped: bool) -> dict[str, str]:
    found = config.annotations | {Annotation.IS_CLUSTER_SCOPED: str(cluster_scoped).lower()}
    if config.dependencies:
        found[Annotation.DEPENDENCIES] = dependencies_text(config)
    return found


def dependencies_text(config: ModuleConfig) -> str:
    """The dependencies as the annotation of the ModuleTemplate and the component's label hold them."""
    needs = [one._asdict() if one.versions else {"module": one.module} for one in config.dependencies]
    return json.dumps(needs, separators=(",", ":"))


def _resources(config: ModuleConfig) -> list[dict[str, str]]:
    links = {RAW_MANIFEST: config.manifest} if config.manifest.startswith("https://") else {}
    links |= {one.name: one.link for one in config.resources}
    return [{"name": name, "link": link} for name, link in links.items()]


def release_meta(config: ModuleConfig, channels: Sequence[str], *, known: Mapping[str, str] | None = None) -> Object:
    """A ModuleReleaseMeta with this version in `channels`, next to the versions of the others in `known`."""
    versions = dict(known or {}) | dict.fromkeys(channels, config.version)
    return {
        "apiVersion": MODULE_RELEASE_METAS.api_version,
        "kind": MODULE_RELEASE_METAS.kind,
        "metadata": {"name": config.module, "namespace": ""},
        "spec": {
            "moduleName": config.module,
            "ocmComponentName": config.name,
            "channels": [{"channel": channel, "version": versions[channel]} for channel in sorted(versions)],
        },
    }


def template_text(obj: Object) -> str:
    """The content of template.yaml, or of another file of one object: keys sorted."""
    return yaml.dump(obj, sort_keys=True)
