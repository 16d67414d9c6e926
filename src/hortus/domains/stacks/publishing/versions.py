"""The versions of a release, by mode, and metadata.yaml, which carries them. Pure.

- hash: all versions are `v0-sha.` and the first characters of the stack's hash.
- stable: the release after the latest one; each part is raised when its hash differs.
- custom: the author's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from hortus.domains.stacks.names import BadName, ReleaseName, parse_dot, parse_tag
from hortus.domains.stacks.publishing.config import StackConfig
from hortus.domains.stacks.publishing.errors import BadStack
from hortus.domains.stacks.publishing.hashes import StackHashes
from hortus.kube.shapes import problem_of
from hortus.kube.yaml import YamlError, load

METADATA_FILE = "metadata.yaml"
_FIRST = "v1"
_METADATA = """\
apiVersion: metadata.clusterstack.x-k8s.io/v1alpha1
versions:
    clusterStack: {cluster_stack}
    kubernetes: {kubernetes}
    components:
        clusterAddon: {cluster_addon}
"""


class StackVersions(msgspec.Struct, frozen=True, kw_only=True):
    """The versions of a release and of its parts, with a dot before the patch: v0-sha.hipstsw."""

    cluster_stack: str
    kubernetes: str
    cluster_addon: str
    node_image: str = ""

    def document(self) -> bytes:
        """The content of metadata.yaml, as Go's yaml.v3 writes it."""
        text = _METADATA.format(**msgspec.structs.asdict(self))
        return (text + (f"        nodeImage: {self.node_image}\n" if self.node_image else "")).encode()

    def placeholders(self) -> Mapping[str, str]:
        """The values of the placeholders in a stack's files."""
        return {
            "ClusterClassVersion": self.cluster_stack,
            "ClusterAddonVersion": self.cluster_addon,
            "NodeImageVersion": self.node_image,
        }


class LatestRelease(NamedTuple):
    """A published release, to which stable mode compares a stack."""

    name: str
    hashes: StackHashes
    versions: StackVersions


class _Components(msgspec.Struct, rename="camel"):
    cluster_addon: str = ""
    node_image: str = ""


class _Versions(msgspec.Struct, rename="camel"):
    cluster_stack: str = ""
    kubernetes: str = ""
    components: _Components = msgspec.field(default_factory=_Components)


class _Metadata(msgspec.Struct):
    versions: _Versions = msgspec.field(default_factory=_Versions)


def read_versions(data: bytes, place: str) -> StackVersions:
    """A metadata.yaml at `place`. Raises BadStack."""
    try:
        found = msgspec.convert(load(data), _Metadata).versions
    except YamlError as error:
        raise BadStack(f"{place}: {error}") from None
    except msgspec.ValidationError as error:
        raise BadStack(problem_of(error, place=f"{place}: ")) from None
    parts = {
        "versions.clusterStack": found.cluster_stack,
        "versions.components.clusterAddon": found.components.cluster_addon,
    }
    if found.components.node_image:
        parts["versions.components.nodeImage"] = found.components.node_image
    problems = [f"{place}: {problem}" for field, text in parts.items() if (problem := _problem(field, text))]
    if not found.kubernetes:
        problems.append(f"{place}: versions.kubernetes: is missing; write it with v and patch, as v1.27.7")
    if problems:
        raise BadStack(*problems)
    return StackVersions(
        cluster_stack=found.cluster_stack,
        kubernetes=found.kubernetes,
        cluster_addon=found.components.cluster_addon,
        node_image=found.components.node_image,
    )


def release_name(config: StackConfig, versions: StackVersions) -> ReleaseName:
    """The name of a stack's release."""
    return ReleaseName(
        config.provider.type, config.cluster_stack_name, config.kubernetes, parse_dot(versions.cluster_stack)
    )


def hashed(config: StackConfig, hashes: StackHashes) -> StackVersions:
    """The versions in mode hash."""
    version = f"v0-sha.{hashes.short}"
    return StackVersions(
        cluster_stack=version, kubernetes=config.kubernetes_version, cluster_addon=version, node_image=version
    )


def chosen(config: StackConfig, options: Mapping[str, str]) -> StackVersions:
    """The versions in mode custom, by the options that give them: of stack, add-on, node image. Raises BadStack."""
    if problems := [problem for option, text in options.items() if (problem := _problem(option, text))]:
        raise BadStack(*problems)
    stack, addon, node_image = options.values()
    return StackVersions(
        cluster_stack=stack, kubernetes=config.kubernetes_version, cluster_addon=addon, node_image=node_image
    )


def following(config: StackConfig, hashes: StackHashes, latest: LatestRelease | None) -> StackVersions:
    """The versions in mode stable. Raises BadStack where nothing changed since the latest release.

    A change of the class alone counts, as does one of csctl.yaml.
    """
    if latest is None:
        return StackVersions(
            cluster_stack=_FIRST, kubernetes=config.kubernetes_version, cluster_addon=_FIRST, node_image=_FIRST
        )
    if hashes == latest.hashes:
        raise BadStack(f"the stack has not changed since {latest.name}; publish it again after a change")
    former = latest.versions
    addon, node_image = former.cluster_addon, former.node_image
    return StackVersions(
        cluster_stack=_next(former.cluster_stack),
        kubernetes=config.kubernetes_version,
        cluster_addon=addon if hashes.addon == latest.hashes.addon else _next(addon),
        node_image=node_image if hashes.node_image_dir == latest.hashes.node_image_dir else _next(node_image),
    )


def latest_stable(tags: Iterable[str], config: StackConfig) -> tuple[ReleaseName | None, list[str]]:
    """The latest stable release of a stack among a remote's names, and the names that are of no release."""
    found: list[ReleaseName] = []
    skipped: list[str] = []
    for tag in tags:
        try:
            name = parse_tag(tag)
        except BadName:
            skipped.append(tag)
            continue
        own = (config.provider.type, config.cluster_stack_name, config.kubernetes)
        if name.version.is_stable and (name.provider, name.stack, name.kubernetes) == own:
            found.append(name)
    return max(found, key=lambda name: name.version.major, default=None), skipped


def _next(version: str) -> str:
    """The version after one of the stable channel; the first one after none."""
    return f"v{parse_dot(version).major + 1}" if version else _FIRST


def _problem(field: str, text: str) -> str:
    try:
        parse_dot(text)
    except BadName as error:
        return f"{field}: {error}" if text else f"{field}: is missing; write a version, as v1 or v1-alpha.0"
    return ""
