"""Charts of releases as OCI artifacts, which Flux fetches: made of the chart's files alone, so equal in every replica.

A release has its charts in an archive of many, or as a file on a web server; Flux has a source for neither. An artifact
is known by the digest of its manifest (helm/community, `hips/hip-0006.md`).
"""

from __future__ import annotations

from typing import Final

import msgspec

from hortus.render.archive import Tree, pack_tgz
from hortus.render.artifacts import Digest, digest_of
from hortus.render.bounded import Bounded
from hortus.render.helm import ChartError, ChartSource
from hortus.render.oci import Descriptor, manifest_bytes

CONTENT: Final = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
CONFIG: Final = "application/vnd.cncf.helm.config.v1+json"
_KEPT: Final = 64 << 20
"""Bytes of artifacts that are kept; each serves all Clusters that use a release."""


class ChartBundle(msgspec.Struct, frozen=True):
    """A chart as an artifact: the manifest, and its blobs by digest."""

    chart: str
    """The name in Chart.yaml."""
    digest: Digest
    manifest: bytes
    blobs: dict[str, bytes]


class _Metadata(msgspec.Struct):
    name: str


class ChartBundles:
    """Makes artifacts of charts, each once."""

    def __init__(self) -> None:
        self._made: Bounded[str, ChartBundle] = Bounded(_KEPT, _weight)

    def of(self, source: ChartSource) -> ChartBundle:
        """The artifact of a chart. Raises ChartError."""
        found = self._made.get(source.digest)
        if found is None:
            found = _bundle(source)
            self._made.put(source.digest, found)
        return found


def _bundle(source: ChartSource) -> ChartBundle:
    document = source.document("Chart.yaml")
    try:
        name = msgspec.convert(document, _Metadata).name
    except msgspec.ValidationError as error:
        raise ChartError(f"Chart.yaml: {error}") from None
    if not name or "/" in name:
        raise ChartError(f"Chart.yaml: name is {name!r}; it must be the name of a chart")
    config = msgspec.json.encode(document, order="sorted")
    content = pack_tgz(Tree(dict(source.files)), prefix=name)
    manifest = manifest_bytes(
        Descriptor(CONFIG, digest_of(config), len(config)), (Descriptor(CONTENT, digest_of(content), len(content)),)
    )
    return ChartBundle(name, digest_of(manifest), manifest, {digest_of(config): config, digest_of(content): content})


def _weight(key: str, bundle: ChartBundle) -> int:
    return len(bundle.manifest) + sum(map(len, bundle.blobs.values()))
