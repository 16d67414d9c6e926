"""Creating a release: the versions by mode, the files, the node images, the folder; and publishing it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from hortus.domains.stacks.publishing.artifact import CREATED, HASH, KUBERNETES, TITLE, release_artifact
from hortus.domains.stacks.publishing.building import BuiltStack, StackSource, build_release
from hortus.domains.stacks.publishing.errors import BadStack
from hortus.domains.stacks.publishing.folders import write_release
from hortus.domains.stacks.publishing.hashes import HASHES_FILE, read_hashes
from hortus.domains.stacks.publishing.nodeimages import create_node_images, needs_plugin
from hortus.domains.stacks.publishing.remotes import OciRemote, ReleaseRemote
from hortus.domains.stacks.publishing.versions import (
    METADATA_FILE,
    LatestRelease,
    following,
    latest_stable,
    read_versions,
)
from hortus.render.artifacts import digest_of


class StableChoice(msgspec.Struct, frozen=True):
    """A release in mode stable, with the one that it follows and the remote's names that are of no release."""

    built: BuiltStack
    latest: str
    skipped: tuple[str, ...]


class PublishedRelease(msgspec.Struct, frozen=True):
    """A release in a registry."""

    reference: str
    digest: str
    was_there: bool = False
    differs: bool = False
    """True where other files are published under the name."""


async def build_stable(stack: StackSource, remote: ReleaseRemote) -> StableChoice:
    """Make the release after the latest one of a remote. Raises BadStack, ArtifactError."""
    name, skipped = latest_stable(await remote.tags(), stack.config)
    latest = await _latest(remote, name.tag) if name is not None else None
    built = build_release(stack, following(stack.config, stack.hashes, latest))
    return StableChoice(built, latest.name if latest is not None else "", tuple(skipped))


async def _latest(remote: ReleaseRemote, tag: str) -> LatestRelease:
    files = await remote.files(tag, (HASHES_FILE, METADATA_FILE))
    if lacking := [name for name in (HASHES_FILE, METADATA_FILE) if name not in files]:
        advice = "publish it again, or choose versions with --mode custom"
        raise BadStack(*(f"the latest release {tag} has no {name}; {advice}" for name in lacking))
    return LatestRelease(
        tag,
        read_hashes(files[HASHES_FILE], f"{tag}/{HASHES_FILE}"),
        read_versions(files[METADATA_FILE], f"{tag}/{METADATA_FILE}"),
    )


def write_built(stack: StackSource, built: BuiltStack, output: Path, *, registry: str) -> Path:
    """Write a release to its folder below `output`, with the node images of the provider's plugin. Raises BadStack."""
    provider = stack.config.provider

    def complete(folder: Path) -> None:
        if needs_plugin(provider):
            create_node_images(provider, stack.folder, folder, registry)

    return write_release(output, built.name.tag, built.files, complete=complete)


async def publish(remote: OciRemote, name: str, files: Mapping[str, bytes], *, created: str) -> PublishedRelease:
    """Push a release unless its name is taken. Raises BadStack, ArtifactError."""
    versions = read_versions(files.get(METADATA_FILE, b""), f"{name}/{METADATA_FILE}")
    hashes = read_hashes(files.get(HASHES_FILE, b"{}"), f"{name}/{HASHES_FILE}")
    reference = f"{remote.repository}:{name}"
    there = await remote.manifest(name)
    if there is not None:
        published = {layer.annotations.get(TITLE, ""): layer.digest for layer in there.layers}
        differs = published != {file: digest_of(data) for file, data in files.items()}
        return PublishedRelease(reference, there.digest, was_there=True, differs=differs)
    artifact = release_artifact(files, {KUBERNETES: versions.kubernetes, HASH: hashes.short, CREATED: created})
    await remote.push(name, artifact)
    return PublishedRelease(reference, digest_of(artifact.manifest))
