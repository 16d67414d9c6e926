"""Cluster stacks in `hortus up`: sample releases in its registry, and the flags to read them there."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from hortus.domains import REGISTRY_FILE, LocalArtifact, LocalSetup

REPOSITORY: Final = "cluster-stacks"


class _DockerConfig(msgspec.Struct):
    auths: dict[str, object]


def local_setup(folder: Path) -> LocalSetup:
    """The flags that name the registry whose file is in `folder`, and an address for runtime hooks."""
    file = folder / REGISTRY_FILE
    if not file.exists():
        return LocalSetup()
    (address,) = msgspec.json.decode(file.read_bytes(), type=_DockerConfig).auths
    port = _free_port()
    return LocalSetup(
        flags=(
            "--stacks",
            "--source=oci",
            f"--release-repository={address}/{REPOSITORY}",
            f"--release-dir={folder / 'stacks'}",
            "--stacks-inventory",
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


def _free_port() -> int:
    """A port of loopback that is free now; Cluster API is given it with the address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
