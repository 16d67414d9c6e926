"""Gardenlets in `hortus up`: a small chart in its registry, and the flags to read it there.

Nothing runs in `hortus up`: the simulated gardenlet reads the objects of the chart. Its versions differ in their image
alone, and the gardenlet of `BAD` does not work.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from hortus.domains import REGISTRY_FILE, LocalArtifact

REPOSITORY: Final = "charts/gardenlet"
VERSIONS: Final = ("1.120.0", "1.121.0")
BAD: Final = "1.122.0"
"""The version with a gardenlet that does not work."""
SEED_FOLDER: Final = "seeds"
"""The kubeconfigs of simulated seeds, in the state directory."""


class _DockerConfig(msgspec.Struct):
    auths: dict[str, object]


def local_flags(folder: Path) -> tuple[str, ...]:
    """The flags with which Gardenlets are served next to the registry whose file is in `folder`."""
    file = folder / REGISTRY_FILE
    if not file.exists():
        return ()
    (address,) = msgspec.json.decode(file.read_bytes(), type=_DockerConfig).auths
    return (
        "--gardenlets",
        "--gardenlet-self-upgrade=*",
        f"--gardenlet-seed-kubeconfigs={folder / SEED_FOLDER}",
        f"--gardenlet-registry-hosts={address}",
        "--gardenlet-settle-duration=3s",
    )


def local_artifacts(registry: str) -> Iterator[LocalArtifact]:
    """The charts, as they are published."""
    from hortus.domains.garden.gardenlets.samplechart import chart_files
    from hortus.render.archive import Tree
    from hortus.render.artifacts import digest_of
    from hortus.render.helm import package_chart
    from hortus.render.oci import CHART_CONFIG, CHART_CONTENT, OCI_MANIFEST, Descriptor, manifest_bytes

    for version in (*VERSIONS, BAD):
        archive = package_chart(Tree(chart_files(version, broken=version == BAD)), version=version).archive
        about = msgspec.json.encode({"name": "gardenlet", "version": version, "apiVersion": "v2"})
        config, layer = (
            Descriptor(kind, digest_of(blob), len(blob))
            for kind, blob in ((CHART_CONFIG, about), (CHART_CONTENT, archive))
        )
        yield LocalArtifact(REPOSITORY, version, manifest_bytes(config, (layer,)), OCI_MANIFEST, (about, archive))
