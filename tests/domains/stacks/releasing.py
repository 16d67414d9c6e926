"""Releases made for tests: small charts, with everything that a release needs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from hortus.domains.stacks.names import ReleaseName, parse_tag
from hortus.render.archive import Tree, pack_tgz

METADATA = """\
apiVersion: metadata.clusterstack.x-k8s.io/v1alpha1
versions:
  clusterStack: {version}
  kubernetes: {kubernetes}
  components:
    clusterAddon: {version}
"""
CLUSTER_CLASS = """\
apiVersion: cluster.x-k8s.io/v1beta1
kind: ClusterClass
metadata:
  name: {{ .Release.Name }}-{{ .Chart.Version }}
spec:
  infrastructure:
    ref:
      apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
      kind: DockerClusterTemplate
      name: {{ .Release.Name }}-{{ .Chart.Version }}-cluster
"""
CLUSTER_TEMPLATE = """\
apiVersion: infrastructure.cluster.x-k8s.io/v1beta1
kind: DockerClusterTemplate
metadata:
  name: {{ .Release.Name }}-{{ .Chart.Version }}-cluster
spec:
  template:
    spec: {}
"""


def chart(name: str, version: str, templates: Mapping[str, str]) -> bytes:
    """A packed chart."""
    files = {"Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: {version}\n"}
    files |= {f"templates/{path}": text for path, text in templates.items()}
    return pack_tgz(Tree({f"{name}/{path}": text.encode() for path, text in files.items()}))


def release_files(
    name: ReleaseName, *, kubernetes: str = "", templates: Mapping[str, str] | None = None
) -> dict[str, bytes]:
    """The files of a release of the one-chart way."""
    version = name.version.dot
    minor = f"{name.kubernetes[0]}.{name.kubernetes[1]}"
    found = templates if templates is not None else {"class.yaml": CLUSTER_CLASS, "cluster.yaml": CLUSTER_TEMPLATE}
    addon = {"config.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: addon\n"}
    return {
        "metadata.yaml": METADATA.format(version=version, kubernetes=kubernetes or f"v{minor}.3").encode(),
        f"{name.stem}-cluster-class-{version}.tgz": chart(f"{name.stem}-cluster-class", version, found),
        f"{name.stem}-cluster-addon-{version}.tgz": chart(f"{name.stem}-cluster-addon", version, addon),
        "cluster-addon-values.yaml": b"values: |\n  a: b\n",
    }


def write_release(
    folder: Path,
    tag: str,
    *,
    time: float = 0.0,
    changed: Mapping[str, bytes | None] | None = None,
    templates: Mapping[str, str] | None = None,
) -> Path:
    """Write a release below `folder`; a file that is changed to None is left out."""
    place = folder / tag
    place.mkdir(parents=True, exist_ok=True)
    files = release_files(parse_tag(tag), templates=templates) | dict(changed or {})
    for name, data in files.items():
        if data is not None:
            (place / name).write_bytes(data)
    if time:
        os.utime(place, (time, time))
    return place
