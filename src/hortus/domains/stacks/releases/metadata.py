"""The documents of a release that are read here: metadata.yaml and hashes.json."""

from __future__ import annotations

from typing import Final

import msgspec

from hortus.domains.stacks.names import BadName, ReleaseName, StackVersion, parse_dot, parse_minor
from hortus.domains.stacks.releases.errors import BadRelease
from hortus.kube import yaml
from hortus.kube.shapes import decode_json

METADATA: Final = "metadata.yaml"
HASHES: Final = "hashes.json"
_HASH_CHANNEL: Final = "sha"


class ReleaseVersions(msgspec.Struct, frozen=True):
    """The versions of one release."""

    stack: StackVersion
    kubernetes: str
    """With patch, such as v1.27.3."""
    addon: StackVersion
    node_image: StackVersion | None = None
    """None for a release without node images."""


class _Components(msgspec.Struct, rename="camel"):
    cluster_addon: str = ""
    node_image: str | None = None


class _Versions(msgspec.Struct, rename="camel"):
    cluster_stack: str = ""
    kubernetes: str = ""
    components: _Components = msgspec.field(default_factory=_Components)


class _Metadata(msgspec.Struct):
    versions: _Versions


class _Hashes(msgspec.Struct, rename="camel"):
    cluster_stack: str


def parse_metadata(document: bytes, name: ReleaseName) -> ReleaseVersions:
    """The versions of a release, from its metadata.yaml. Raises BadRelease."""
    try:
        found = msgspec.convert(yaml.load(document), _Metadata).versions
    except (yaml.YamlError, msgspec.ValidationError) as error:
        raise _bad(name, METADATA, str(error)) from None
    image = found.components.node_image
    try:
        parse_minor(found.kubernetes)
    except BadName as error:
        raise _bad(name, METADATA, f"versions.kubernetes: {error}") from None
    return ReleaseVersions(
        stack=_version(name, "versions.clusterStack", found.cluster_stack),
        kubernetes=found.kubernetes,
        addon=_version(name, "versions.components.clusterAddon", found.components.cluster_addon),
        node_image=_version(name, "versions.components.nodeImage", image) if image else None,
    )


def check_hashes(document: bytes, name: ReleaseName) -> None:
    """Raises BadRelease when hashes.json cannot be read, or when it is not that of a version made of a hash."""
    try:
        hashes = decode_json(document, _Hashes)
    except msgspec.MsgspecError as error:
        raise _bad(name, HASHES, str(error)) from None
    version = name.version
    if version.channel == _HASH_CHANNEL and not hashes.cluster_stack.startswith(version.patch):
        problem = f"clusterStack is {hashes.cluster_stack[:20]!r}, which does not begin with {version.patch!r}"
        raise _bad(name, HASHES, f"{problem}: publish the release again")


def _version(name: ReleaseName, field: str, text: str) -> StackVersion:
    try:
        return parse_dot(text)
    except BadName as error:
        raise _bad(name, METADATA, f"{field}: {error}") from None


def _bad(name: ReleaseName, file: str, problem: str) -> BadRelease:
    return BadRelease(f"release {name.tag}: {file}: {problem}")
