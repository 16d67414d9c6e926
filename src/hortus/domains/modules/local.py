"""Modules in `hortus up`: sample modules in its registry, and the flags by which controllers read them there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hortus.domains import REGISTRY_FILE, LocalArtifact, LocalSetup


def local_setup(folder: Path) -> LocalSetup:
    """The flag that names the registry whose file is in `folder`."""
    from hortus.domains.modules.registry import access_from_docker_config

    file = folder / REGISTRY_FILE
    if not file.exists():
        return LocalSetup()
    access = access_from_docker_config(file.read_bytes())
    scheme = "http://" if access.insecure else ""
    return LocalSetup(
        flags=(
            "--modules",
            f"--oci-registry-host={scheme}{access.repository}",
            # A module that is pushed again is to be seen while one looks at it.
            "--modules-revalidation-interval=5s",
            f"--modules-cache-directory={folder / 'modules'}",
        )
    )


def local_artifacts(registry: str) -> Iterator[LocalArtifact]:
    """The sample modules, as they are published at an address."""
    from hortus.domains.modules.registry import access_from_host, component_tag
    from hortus.domains.modules.samples import sample_modules
    from hortus.render.oci import OCI_MANIFEST

    access = access_from_host(registry)
    for module in sample_modules():
        layout = module.layout(access)
        yield LocalArtifact(
            layout.repository, component_tag(layout.version), layout.manifest, OCI_MANIFEST, layout.blobs
        )
