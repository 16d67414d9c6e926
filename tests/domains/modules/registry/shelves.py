"""Components for tests: published by our own code to the registry of the renderer's tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from tests.render.oci.registry import Registry
from tests.render.serving import Site, serving

from hortus.domains.modules.publishing.constructor import ConstructedComponent
from hortus.domains.modules.publishing.layout import ComponentLayout, component_layout
from hortus.domains.modules.publishing.pushing import push_component
from hortus.domains.modules.registry import access_from_host

NAME = "kyma-project.io/module/template-operator"
VERSION = "1.0.3"
MANIFEST = b"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: of-the-module\n"
IMAGE = "europe-docker.pkg.dev/kyma-project/prod/template-operator:1.0.3"


def component(version: str = VERSION, **fields: Any) -> ConstructedComponent:
    """An entry of a constructor's `components`."""
    found: dict[str, Any] = {
        "name": NAME,
        "version": version,
        "provider": {"name": "kyma-project.io"},
        "labels": [{"name": "operator.kyma-project.io/beta", "value": "true", "version": "v1"}],
        "resources": [
            {
                "name": "template-operator",
                "type": "ociArtifact",
                "version": "1.0.3",
                "relation": "external",
                "access": {"type": "ociArtifact", "imageReference": IMAGE},
            },
            directory("raw-manifest", "raw-manifest.yaml"),
        ],
    }
    return msgspec.convert(found | fields, ConstructedComponent)


def directory(name: str, file: str) -> dict[str, Any]:
    """A resource that is packed as a tar."""
    source = {"type": "dir", "path": ".", "compress": False, "includeFiles": [file]}
    return {"name": name, "type": "directoryTree", "version": VERSION, "relation": "local", "input": source}


class Shelf:
    """A running registry, and the access to it."""

    def __init__(self, registry: Registry, site: Site) -> None:
        self.registry = registry
        self.site = site
        self.access = access_from_host(site.url, subpath="prod/modules")

    async def publish(
        self, found: ConstructedComponent | None = None, *, manifest: bytes = MANIFEST, overwrite: bool = True
    ) -> ComponentLayout:
        contents = {"raw-manifest": manifest, "default-cr": b"kind: Sample\n"}
        layout = component_layout(found or component(), contents, access=self.access)
        await push_component(self.access, layout, overwrite=overwrite)
        return layout

    @property
    def asked(self) -> list[tuple[str, str]]:
        return [(one.method, one.path) for one in self.site.asked]


@asynccontextmanager
async def shelf(docker_config: bytes = b"") -> AsyncIterator[Shelf]:
    registry = Registry()
    async with serving(registry.handle) as site:
        registry.site = site
        yield Shelf(registry, site)
