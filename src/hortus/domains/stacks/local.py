"""Cluster stacks in `hortus up`: sample releases in its registry, and the flags to read them there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from hortus.domains import REGISTRY_FILE, LocalArtifact, LocalSetup, free_port

REPOSITORY: Final = "cluster-stacks"


class _DockerConfig(msgspec.Struct):
    auths: dict[str, object]


def local_setup(folder: Path) -> LocalSetup:
    """The flags that name the registry whose file is in `folder`, and an address for runtime hooks."""
    file = folder / REGISTRY_FILE
    if not file.exists():
        return LocalSetup()
    (address,) = msgspec.json.decode(file.read_bytes(), type=_DockerConfig).auths
    port = free_port()
    return LocalSetup(
        flags=(
            "--stacks",
            "--source=oci",
            f"--release-repository={address}/{REPOSITORY}",
            f"--release-dir={folder / 'stacks'}",
            "--stacks-inventory",
            "--stacks-flux",
            f"--hook-bind-address=127.0.0.1:{port}",
            f"--hook-url=https://127.0.0.1:{port}",
            "--hook-namespace=kube-system",
            "--webhook-bind-address=0",
            "--openstack-local-networks",
            "--openstack-poll-interval=1s",
        )
    )


def local_artifacts(registry: str) -> Iterator[LocalArtifact]:
    """The sample releases, as they are published."""
    from hortus.domains.stacks.publishing.artifact import release_artifact
    from hortus.domains.stacks.samples import sample_releases
    from hortus.render.oci import OCI_MANIFEST

    for built in sample_releases():
        made = release_artifact(built.files, {})
        yield LocalArtifact(REPOSITORY, built.name.tag, made.manifest, OCI_MANIFEST, made.blobs)
