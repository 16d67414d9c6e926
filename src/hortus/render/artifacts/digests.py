"""Digests as OCI writes them: `sha256:<64 hex digits>` or `sha512:<128>` (image-spec, descriptor.md, "Digests")."""

from __future__ import annotations

import hashlib
import re
from typing import NewType, Protocol

Digest = NewType("Digest", str)
"""A well-formed digest of an algorithm known here."""

_FORM = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")


class BadDigest(ValueError):
    """A text that is no digest."""


class Hasher(Protocol):
    def update(self, data: bytes, /) -> None: ...

    def hexdigest(self) -> str: ...


def parse_digest(text: object) -> Digest:
    """`text` as a digest. Raises BadDigest."""
    if not isinstance(text, str) or not _FORM.fullmatch(text):
        raise BadDigest(f"{str(text)[:150]!r} is not a digest: write sha256: and 64 hex digits in lower case")
    return Digest(text)


def hasher(digest: Digest) -> Hasher:
    """A fresh hash of the digest's algorithm."""
    return hashlib.sha256() if digest.startswith("sha256:") else hashlib.sha512()


def is_sum(digest: Digest, found: Hasher) -> bool:
    """True when all that `found` was fed has this digest."""
    return digest.partition(":")[2] == found.hexdigest()


def digest_of(data: bytes) -> Digest:
    """The sha256 digest of `data`."""
    return Digest("sha256:" + hashlib.sha256(data).hexdigest())


def matches(digest: Digest, data: bytes) -> bool:
    found = hasher(digest)
    found.update(data)
    return is_sum(digest, found)
