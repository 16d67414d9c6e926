"""A release as an OCI artifact: one layer for each file, with csctl's media types and annotations.

Layers carry the file's name as `org.opencontainers.image.title`, by which ORAS and the cluster-stack-operator write
them to a folder.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from hortus.render.artifacts import digest_of
from hortus.render.oci import Descriptor, manifest_bytes

ARTIFACT_TYPE: Final = "application/vnd.scs.cluster-stacks.v1"
TITLE: Final = "org.opencontainers.image.title"
CREATED: Final = "org.opencontainers.image.created"
"""The time of publication, by which releases of hash mode are ordered."""
KUBERNETES: Final = "kubernetesVersion"
HASH: Final = "hash"
_EMPTY: Final = b"{}"
_MEDIA_TYPES: Final = (
    (r".*cluster-addon.*\.tgz", "application/vnd.scs.cluster-addon.layer.v1.tar+gzip"),
    (r".*cluster-class.*\.tgz", "application/vnd.scs.cluster-class.v1.tar+gzip"),
    (r".*node-image.*\.tgz", "application/vnd.scs.node-image.layer.v1.tar+gzip"),
    (r"clusteraddon\.yaml", "application/vnd.scs.cluster-addon.config.layer.v1+yaml"),
    (r"metadata\.yaml", "application/vnd.scs.metadata.layer.v1+yaml"),
    (r"node-images\.yaml", "application/vnd.scs.node-image.config.layer.v1+yaml"),
    (r"hashes\.json", "application/vnd.scs.hashes.layer.v1+yaml"),
)
_OTHER: Final = "application/vnd.oci.image.layer.v1.tar"
"""The type that ORAS gives to files of which csctl says none (oras-go, `content/file`)."""


class ReleaseArtifact(msgspec.Struct, frozen=True):
    """A manifest and its blobs: the config and one layer for each file, in the order of names."""

    manifest: bytes
    blobs: tuple[bytes, ...]


def media_type(file: str) -> str:
    """The media type of a release's file."""
    return next((found for pattern, found in _MEDIA_TYPES if re.fullmatch(pattern, file)), _OTHER)


def release_artifact(files: Mapping[str, bytes], annotations: Mapping[str, str]) -> ReleaseArtifact:
    """The artifact of a release."""
    blobs = (_EMPTY, *(files[name] for name in sorted(files)))
    config = Descriptor("application/vnd.oci.empty.v1+json", digest_of(_EMPTY), len(_EMPTY))
    layers = tuple(
        Descriptor(media_type(name), digest_of(files[name]), len(files[name]), annotations={TITLE: name})
        for name in sorted(files)
    )
    manifest = manifest_bytes(config, layers, artifact_type=ARTIFACT_TYPE, annotations=annotations)
    return ReleaseArtifact(manifest, blobs)
