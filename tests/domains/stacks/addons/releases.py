"""Releases in a folder: those of the Go system's own tests, and small ones with stages."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hortus.domains.stacks.names import parse_tag
from hortus.kube import yaml
from hortus.kube.objects import Object
from hortus.render.archive import Tree, pack_tgz
from hortus.render.helm import Rendered, RenderRequest, load_files, render_chart
from hortus.render.helm.pool import Reader

FOLDER = "cluster-stacks"


class DirectRenderer:
    """Renders in this process: a worker process takes a second to start."""

    def __init__(self) -> None:
        self.requests = 0

    async def render(self, request: RenderRequest, *, lookup: Reader | None = None) -> Rendered:
        self.requests += 1
        return render_chart(
            load_files(list(request.chart.files)),
            dict(request.values),
            release=request.release,
            capabilities=request.capabilities,
            options=request.options,
        )

    async def close(self) -> None:
        return


class ReleaseShelf:
    """The folder of releases, read in place or published from there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / FOLDER).mkdir(parents=True)

    def upstream(self, data: Path, *tags: str) -> None:
        """Add releases of the Go system's tests."""
        for tag in tags:
            shutil.copytree(data / "cso" / "releases" / tag, self.folder / FOLDER / tag)

    def staged(
        self,
        tag: str,
        charts: Mapping[str, list[Object] | Mapping[str, str]],
        stages: Mapping[str, Any],
        *,
        kubernetes: str = "v1.33.1",
        addon: str = "",
    ) -> None:
        """Add a release with stages. A chart is a list of objects, or files by name."""
        name = parse_tag(tag)
        files: dict[str, bytes] = {}
        for chart, content in charts.items():
            files[f"{chart}/Chart.yaml"] = yaml.dump({"apiVersion": "v2", "name": chart, "version": "1.0.0"}).encode()
            if isinstance(content, list):
                content = {"templates/all.yaml": yaml.dump_all(content)}
            files |= {f"{chart}/{path}": text.encode() for path, text in content.items()}
        config = {
            "apiVersion": "clusteraddonconfig.x-k8s.io/v1alpha1",
            "clusterAddonVersion": "clusteraddons.clusterstack.x-k8s.io/v1alpha1",
            "addonStages": stages,
        }
        version = addon or name.version.dot
        self._write(tag, "clusteraddon.yaml", yaml.dump(config).encode())
        self._write(tag, f"{name.stem}-cluster-addon-{version}.tgz", pack_tgz(Tree(files)))
        self._write(tag, f"{name.stem}-cluster-class-{name.version.dot}.tgz", pack_tgz(Tree({"c/Chart.yaml": b"{}"})))
        self._metadata(tag, kubernetes, version)

    def single(
        self,
        tag: str,
        content: Mapping[str, str],
        *,
        values: str | None = None,
        kubernetes: str = "v1.33.1",
        addon: str = "",
    ) -> None:
        """Add a release with one chart, given by its files."""
        name = parse_tag(tag)
        version = addon or name.version.dot
        stem = f"{name.stem}-cluster-addon"
        files = {f"{stem}/Chart.yaml": yaml.dump({"apiVersion": "v2", "name": stem, "version": "1.0.0"}).encode()}
        files |= {f"{stem}/{path}": text.encode() for path, text in content.items()}
        self._write(tag, f"{stem}-{version}.tgz", pack_tgz(Tree(files)))
        self._write(tag, f"{name.stem}-cluster-class-{name.version.dot}.tgz", pack_tgz(Tree({"c/Chart.yaml": b"{}"})))
        if values is not None:
            self._write(tag, "cluster-addon-values.yaml", values.encode())
        self._metadata(tag, kubernetes, version)

    def remove(self, tag: str) -> None:
        shutil.rmtree(self.folder / FOLDER / tag)

    def _metadata(self, tag: str, kubernetes: str, addon: str) -> None:
        versions = {
            "clusterStack": parse_tag(tag).version.dot,
            "kubernetes": kubernetes,
            "components": {"clusterAddon": addon},
        }
        self._write(tag, "metadata.yaml", yaml.dump({"versions": versions}).encode())

    def _write(self, tag: str, file: str, data: bytes) -> None:
        folder = self.folder / FOLDER / tag
        folder.mkdir(exist_ok=True)
        (folder / file).write_bytes(data)


def config_map(name: str, namespace: str = "", **data: str) -> Object:
    """A ConfigMap for a chart."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


WIDGETS: Object = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.org"},
    "spec": {
        "group": "example.org",
        "names": {"kind": "Widget", "plural": "widgets"},
        "scope": "Namespaced",
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}
"""The definition of a kind that no cluster has at first."""
