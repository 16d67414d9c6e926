"""Component versions in a folder: the common transport format of OCM, which its tools transfer to a registry.

    artifact-index.json     repository, tag and digest of each component version
    blobs/sha256.<hex>      every blob and manifest

Format: open-component-model/ocm-spec, doc/04-extensions/03-storage-backends/ctf.md.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from hortus.domains.modules.publishing.layout import ComponentLayout
from hortus.domains.modules.registry import component_tag
from hortus.render.artifacts import Digest, digest_of

INDEX = "artifact-index.json"


class TransportedArtifact(msgspec.Struct, frozen=True):
    """One entry of the index."""

    repository: str
    tag: str
    digest: str


class TransportIndex(msgspec.Struct, frozen=True, rename="camel"):
    """An artifact-index.json."""

    schema_version: int = 1
    artifacts: tuple[TransportedArtifact, ...] = ()


class BadTransport(ValueError):
    """A folder that holds something else than component versions."""


def write_transport(folder: Path, layout: ComponentLayout) -> None:
    """Add a component version to a folder, which is made when missing. Raises BadTransport, OSError.

    The same version in it is replaced; its blobs stay.
    """
    index = read_transport(folder)
    blobs = folder / "blobs"
    blobs.mkdir(parents=True, exist_ok=True)
    for data in (*layout.blobs, layout.manifest):
        _write(blobs / _name(digest_of(data)), data)
    added = TransportedArtifact(layout.repository, component_tag(layout.version), layout.digest)
    kept = [one for one in index.artifacts if (one.repository, one.tag) != (added.repository, added.tag)]
    changed = TransportIndex(artifacts=(*kept, added))
    _write(folder / INDEX, msgspec.json.format(msgspec.json.encode(changed)) + b"\n")


def read_transport(folder: Path) -> TransportIndex:
    """The index of a folder, empty where there is none. Raises BadTransport, OSError."""
    try:
        return msgspec.json.decode((folder / INDEX).read_bytes(), type=TransportIndex)
    except FileNotFoundError:
        if folder.is_dir() and any(folder.iterdir()):
            raise BadTransport(f"{folder} is not empty and has no {INDEX}; choose another folder") from None
        return TransportIndex()
    except msgspec.MsgspecError as error:
        raise BadTransport(f"{folder / INDEX} cannot be read: {error}") from None


def _name(digest: Digest) -> str:
    return digest.replace(":", ".")


def _write(path: Path, data: bytes) -> None:
    unfinished = path.with_name(f".{path.name}.new")
    unfinished.write_bytes(data)
    unfinished.replace(path)
