"""Helm charts as OCI artifacts (Helm's HIP-6): one config, one layer with the tgz, perhaps its provenance."""

from __future__ import annotations

import msgspec

from hortus.render.artifacts import BadAnswer, Digest
from hortus.render.oci.manifests import Descriptor, Manifest

CONFIG = "application/vnd.cncf.helm.config.v1+json"
CONTENT = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
LEGACY_CONTENT = "application/tar+gzip"
PROVENANCE = "application/vnd.cncf.helm.chart.provenance.v1.prov"


class ChartArtifact(msgspec.Struct, frozen=True, kw_only=True):
    """A chart with the digest that pins it."""

    digest: Digest
    """Of the manifest: what to write after @ to get exactly this again."""
    content: bytes
    """The chart's tgz."""
    provenance: bytes | None
    """The signature file, not verified here."""


def chart_layers(manifest: Manifest, place: str) -> tuple[Descriptor, Descriptor | None]:
    """The layer of the tgz, and that of the provenance. Raises BadAnswer when this is no chart."""
    if manifest.config.media_type != CONFIG:
        raise BadAnswer(place, f"is no Helm chart: its config has the media type {manifest.config.media_type[:100]!r}")
    content = [layer for layer in manifest.layers if layer.media_type in (CONTENT, LEGACY_CONTENT)]
    provenance = [layer for layer in manifest.layers if layer.media_type == PROVENANCE]
    if len(content) != 1 or len(provenance) > 1:
        found = f"{len(content)} chart and {len(provenance)} provenance layers"
        raise BadAnswer(place, f"is no Helm chart: it has {found} instead of one, and one at most")
    return content[0], provenance[0] if provenance else None
