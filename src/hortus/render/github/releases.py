"""Releases and their assets, as much of them as is used, read without trust."""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

from hortus.kube.shapes import decode_json
from hortus.render.artifacts import BadAnswer, BadDigest, Digest, NotFound, parse_digest

_OWNER = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9])?")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_LONGEST_TAG = 255


class BadRepository(ValueError):
    """No name that GitHub gives to owners, repositories or tags."""


class Asset(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a release."""

    id: int
    name: str
    size: int
    content_type: str = ""
    digest: str | None = None
    """`sha256:...`; GitHub reports it for assets uploaded since June 2025."""

    def known_digest(self) -> Digest | None:
        """The digest, when it is one known here."""
        try:
            return parse_digest(self.digest)
        except BadDigest:
            return None


class Release(msgspec.Struct, frozen=True, kw_only=True):
    id: int
    tag: str = msgspec.field(name="tag_name")
    name: str | None = None
    draft: bool = False
    prerelease: bool = False
    immutable: bool = False
    published_at: str | None = None
    assets: tuple[Asset, ...] = ()

    def asset(self, name: str) -> Asset:
        """The asset called `name`. Raises NotFound, naming those there are."""
        for asset in self.assets:
            if asset.name == name:
                return asset
        known = ", ".join(asset.name for asset in self.assets[:20])
        raise NotFound(f"release {self.tag}", f"has no asset {name!r}", f"it has {known[:300]!a}" if known else "")


T = TypeVar("T")


def decode(body: bytes, kind: type[T], place: str) -> T:
    """The API's answer as `kind`. Raises BadAnswer."""
    try:
        return decode_json(body, kind)
    except msgspec.DecodeError as error:
        problem = str(error) if isinstance(error, msgspec.ValidationError) else "not JSON"
        raise BadAnswer(place, f"the answer cannot be read: {problem}") from None


def repository_path(owner: str, name: str) -> str:
    """`repos/<owner>/<name>`. Raises BadRepository for names that could lead elsewhere."""
    if not _OWNER.fullmatch(owner):
        raise BadRepository(f"{owner[:100]!r} is no name of a user or organization")
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise BadRepository(f"{name[:100]!r} is no name of a repository")
    return f"repos/{owner}/{name}"


def check_tag(tag: str) -> None:
    """Raises BadRepository for a text that git takes for no name of a tag (git-check-ref-format)."""
    if not tag or len(tag) > _LONGEST_TAG or not tag.isprintable() or re.search(r"\.\.|[ ~^:?*\[\\]|^[/-]|/$|//", tag):
        raise BadRepository(f"{tag[:100]!r} is no name of a tag")
