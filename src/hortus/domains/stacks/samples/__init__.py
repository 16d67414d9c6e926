"""A sample stack: published in the registry of `hortus up`, and used by tests.

Its folder is a stack as its author writes it, but for two words: the Kubernetes version, and its minor in names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from hortus.domains.stacks.publishing.building import BuiltStack, StackSource, build_release
from hortus.domains.stacks.publishing.config import CONFIG_FILE, read_stack_config
from hortus.domains.stacks.publishing.hashes import stack_hashes
from hortus.domains.stacks.publishing.versions import StackVersions
from hortus.render.archive import Folder, Tree

FOLDER: Final = Path(__file__).parent / "stack"
RELEASES: Final = (("v1.34.1", "v1"), ("v1.34.1", "v2"), ("v1.35.0", "v1"))
"""Kubernetes version and version of each release."""


def sample_releases() -> list[BuiltStack]:
    """The releases of the sample stack."""
    files = Folder(FOLDER).tree()
    return [_built(files, kubernetes, version) for kubernetes, version in RELEASES]


def _built(files: Tree, kubernetes: str, version: str) -> BuiltStack:
    minor = "-".join(kubernetes.removeprefix("v").split(".")[:2]).encode()
    written = {
        path: file.data.replace(b"KUBERNETES", kubernetes.encode()).replace(b"MINOR", minor)
        for path, file in files.items()
    }
    tree = Tree(written)
    config = read_stack_config(written[CONFIG_FILE], str(FOLDER / CONFIG_FILE))
    versions = StackVersions(cluster_stack=version, kubernetes=kubernetes, cluster_addon=version)
    return build_release(StackSource(FOLDER, tree, config, stack_hashes(tree)), versions)
