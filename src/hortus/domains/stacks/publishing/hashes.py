"""Hashes of a stack's sources, and hashes.json, by which stable mode decides which versions to raise.

A folder is hashed as Go's `golang.org/x/mod/sumdb/dirhash` does (Hash1): one line of SHA-256 and path for each file in
the order of paths, and the SHA-256 of these lines in base64. csctl then removes `/`, `=` and `+`, and lowers the case.
"""

from __future__ import annotations

import base64
import hashlib
import json

import msgspec

from hortus.domains.stacks.publishing.errors import BadStack
from hortus.kube.shapes import decode_json
from hortus.render.archive import Tree

HASHES_FILE = "hashes.json"
ADDON_FOLDER = "cluster-addon"
NODE_IMAGE_FOLDER = "node-image"
VALUES_FILE = "cluster-addon-values.yaml"
SHORT = 7
"""Characters of the hash that a release in hash mode has in its version, and the annotation of a published one."""


class StackHashes(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A hashes.json; the parts that a stack lacks are empty."""

    cluster_stack: str = ""
    cluster_addon_dir: str = ""
    cluster_addon_values: str = ""
    node_image_dir: str = ""

    @property
    def short(self) -> str:
        return self.cluster_stack[:SHORT]

    @property
    def addon(self) -> tuple[str, str]:
        """The parts that a change of the add-ons changes."""
        return self.cluster_addon_dir, self.cluster_addon_values

    def document(self) -> bytes:
        """The content of hashes.json, which csctl writes without a final line break."""
        found = msgspec.to_builtins(self)
        if not self.node_image_dir:
            del found["nodeImageDir"]
        return json.dumps(found, indent=2).encode()


def stack_hashes(stack: Tree) -> StackHashes:
    """The hashes of a stack's folder."""

    def below(folder: str) -> str:
        return folder_hash(stack.below(folder)) if stack.is_folder(folder) else ""

    return StackHashes(
        cluster_stack=folder_hash(stack),
        cluster_addon_dir=below(ADDON_FOLDER),
        cluster_addon_values=_clean(hashlib.sha256(stack.read(VALUES_FILE))) if VALUES_FILE in stack else "",
        node_image_dir=below(NODE_IMAGE_FOLDER),
    )


def folder_hash(folder: Tree) -> str:
    """The hash of all files in a folder."""
    lines = (
        b"%s  %s\n" % (hashlib.sha256(folder[path].data).hexdigest().encode(), path.encode())
        for path in sorted(folder, key=str.encode)
    )
    return _clean(hashlib.sha256(b"".join(lines)))


def _clean(digest: hashlib._Hash) -> str:
    text = base64.b64encode(digest.digest()).decode()
    return text.translate(str.maketrans("", "", "/=+")).lower()


def read_hashes(data: bytes, place: str) -> StackHashes:
    """A hashes.json at `place`. Raises BadStack."""
    try:
        return decode_json(data, StackHashes)
    except msgspec.MsgspecError as error:
        raise BadStack(f"{place}: cannot be read: {error}; publish the release again") from None
