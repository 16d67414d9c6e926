"""A client of OCI registries: charts and other artifacts, pulled by digest and pushed (distribution-spec 1.1).

    async with OciClient(settings=OciSettings(), credentials=CredentialStore.from_docker_config(data)) as client:
        chart = await client.chart(parse_reference("oci://ghcr.io/team/charts/web:1.2.3"))
        chart.content, chart.digest            # the tgz, and what pins it
        await client.tags(parse_reference("ghcr.io/team/charts/web"))

A tag is looked up once and everything after that goes by digest, so that what was verified is what is used. Credentials
go to the registry and to its pinned token realm, nowhere else. Errors are those of `hortus.render.artifacts`.
"""

from hortus.render.oci.client import Artifact, OciClient, OciSettings
from hortus.render.oci.credentials import BadCredentials, CredentialStore, RegistryCredentials
from hortus.render.oci.manifests import (
    CHART_CONFIG,
    CHART_CONTENT,
    OCI_MANIFEST,
    ChartArtifact,
    Descriptor,
    ImageManifest,
    Index,
    Platform,
    manifest_bytes,
)
from hortus.render.oci.references import BadReference, Reference, parse_reference, tag_of_version

__all__ = [
    "CHART_CONFIG",
    "CHART_CONTENT",
    "OCI_MANIFEST",
    "Artifact",
    "BadCredentials",
    "BadReference",
    "ChartArtifact",
    "CredentialStore",
    "Descriptor",
    "ImageManifest",
    "Index",
    "OciClient",
    "OciSettings",
    "Platform",
    "Reference",
    "RegistryCredentials",
    "manifest_bytes",
    "parse_reference",
    "tag_of_version",
]
