"""A sample stack: published in the registry of `hortus up`, and used by tests.

Its folder is a stack as its author writes it, but for two words: the Kubernetes version, and its minor in names. One
release is of the provider OpenStack and has a node image.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from hortus.domains.stacks.publishing.building import BuiltStack, StackSource, build_release
from hortus.domains.stacks.publishing.config import CONFIG_FILE, read_stack_config
from hortus.domains.stacks.publishing.hashes import stack_hashes
from hortus.domains.stacks.publishing.versions import StackVersions
from hortus.domains.stacks.releases.release import NODE_IMAGES
from hortus.render.archive import File, Folder, Tree

FOLDER: Final = Path(__file__).parent / "stack"
RELEASES: Final = (("v1.34.1", "v1"), ("v1.34.1", "v2"), ("v1.35.0", "v1"))
"""Kubernetes version and version of each release for docker."""
_NODE_IMAGE: Final = """\
apiVersion: openstack.infrastructure.clusterstack.x-k8s.io/v1alpha1
openStackNodeImages:
  - url: https://images.example.org/ubuntu-capi-image-{kubernetes}.qcow2
    createOpts:
      name: ubuntu-capi-image-{kubernetes}
      disk_format: qcow2
      container_format: bare
      visibility: private
"""


def sample_releases() -> list[BuiltStack]:
    """The releases of the sample stack."""
    files = Folder(FOLDER).tree()
    found = [_built(files, kubernetes, version) for kubernetes, version in RELEASES]
    return [*found, _for_openstack(files, *RELEASES[0])]


def _built(files: Tree, kubernetes: str, version: str, *, node_image: str = "") -> BuiltStack:
    minor = "-".join(kubernetes.removeprefix("v").split(".")[:2]).encode()
    written = {
        path: file.data.replace(b"KUBERNETES", kubernetes.encode()).replace(b"MINOR", minor)
        for path, file in files.items()
    }
    tree = Tree(written)
    config = read_stack_config(written[CONFIG_FILE], str(FOLDER / CONFIG_FILE))
    versions = StackVersions(cluster_stack=version, kubernetes=kubernetes, cluster_addon=version, node_image=node_image)
    return build_release(StackSource(FOLDER, tree, config, stack_hashes(tree)), versions)


def _for_openstack(files: Tree, kubernetes: str, version: str) -> BuiltStack:
    """The release for OpenStack, with the file that the provider's plugin writes."""
    written = {
        path: File(file.data.replace(b"docker", b"openstack").replace(b"Docker", b"OpenStack"))
        for path, file in files.items()
    }
    built = _built(Tree(written), kubernetes, version, node_image=version)
    images = _NODE_IMAGE.format(kubernetes=kubernetes).encode()
    return msgspec.structs.replace(built, files={**built.files, NODE_IMAGES: images})
