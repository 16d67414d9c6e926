"""Kymas, ModuleTemplates, ModuleReleaseMetas and components for tests, each with what a test says of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from hortus.domains.modules.names import Annotation
from hortus.domains.modules.types import Kyma, Manifest, ModuleReleaseMeta, ModuleTemplate
from hortus.schema import decode

NAMESPACE = "kcp-system"


def kyma(
    *modules: str | Mapping[str, Any],
    channel: str = "regular",
    labels: Mapping[str, str] | None = None,
    installed: Sequence[Mapping[str, Any]] = (),
    **spec: Any,
) -> Kyma:
    listed = [{"name": one} if isinstance(one, str) else dict(one) for one in modules]
    return decode(
        Kyma,
        {
            "metadata": {"name": "default-id", "namespace": NAMESPACE, "uid": "uid-1", "labels": dict(labels or {})},
            "spec": {"channel": channel, "modules": listed, **spec},
            "status": {"modules": [dict(one) for one in installed]},
        },
    )


def template(
    name: str,
    version: str,
    *,
    needs: Iterable[Mapping[str, str]] = (),
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> ModuleTemplate:
    annotations = {Annotation.DEPENDENCIES: json.dumps(list(needs))} if needs else {}
    metadata = {
        "name": f"{name}-{version}",
        "namespace": NAMESPACE,
        "generation": 1,
        "labels": dict(labels or {}),
        "annotations": annotations,
    }
    return decode(
        ModuleTemplate,
        {"metadata": metadata, "spec": {"descriptor": {}, "moduleName": name, "version": version, **spec}},
    )


def release(name: str, channels: Mapping[str, str] | None = None, **spec: Any) -> ModuleReleaseMeta:
    fields: dict[str, Any] = {"moduleName": name, "ocmComponentName": f"kyma-project.io/module/{name}", **spec}
    if channels is not None:
        fields["channels"] = [{"channel": channel, "version": version} for channel, version in channels.items()]
    fields = {name: value for name, value in fields.items() if value is not None}
    return decode(ModuleReleaseMeta, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": fields})


class Shelf:
    """A catalog of given objects."""

    def __init__(self, *objects: ModuleTemplate | ModuleReleaseMeta) -> None:
        self._templates = {one.metadata.name: one for one in objects if isinstance(one, ModuleTemplate)}
        self._releases = {one.metadata.name: one for one in objects if isinstance(one, ModuleReleaseMeta)}

    def release(self, name: str) -> ModuleReleaseMeta | None:
        return self._releases.get(name)

    def template(self, name: str) -> ModuleTemplate | None:
        return self._templates.get(name)


def module(name: str, *versions: str, channels: Mapping[str, str] | None = None) -> Shelf:
    """A module with these versions; the channel regular has the first one unless `channels` says otherwise."""
    found = channels if channels is not None else {"regular": versions[0]}
    return Shelf(release(name, found), *(template(name, version) for version in versions))


def as_manifest(obj: Mapping[str, Any], **status: Any) -> Manifest:
    return decode(Manifest, {**msgspec.to_builtins(obj), "status": {"state": "Ready", **status}})
