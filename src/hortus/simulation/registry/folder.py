"""The content of a registry on disk.

    blobs/sha256/<hex>                              every blob and manifest, once
    repositories/<name>/_blobs/<hex>                the repository has the blob
    repositories/<name>/_manifests/<hex>            the same of a manifest; holds its media type
    repositories/<name>/_tags/<tag>                 holds a digest
    uploads/<id>                                    bytes that came so far

A file is written under another name and renamed, so that a kill leaves no half of one. No part of a repository's name
begins with `_`.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

_ALGORITHM = "sha256:"


class StoredManifest(NamedTuple):
    """A manifest with the media type it was pushed as."""

    digest: str
    media_type: str
    raw: bytes


class RegistryFolder:
    """One folder, made when missing. Names, tags and digests are checked by the caller."""

    def __init__(self, folder: Path) -> None:
        self._blobs = folder / "blobs" / "sha256"
        self._repositories = folder / "repositories"
        self._uploads = folder / "uploads"
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in (self._blobs, self._repositories, self._uploads):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
        for left in self._uploads.iterdir():
            left.unlink()

    def add(
        self, repository: str, tag: str, manifest: bytes, blobs: Iterable[bytes], *, media_type: str
    ) -> StoredManifest:
        """Store an artifact at once, without its way over the network."""
        for data in blobs:
            self.put_blob(repository, data)
        return self.put_manifest(repository, manifest, media_type, tag=tag)

    def blob(self, repository: str, digest: str) -> Path | None:
        """The file of a blob that the repository has."""
        place = self._blobs / _hex(digest)
        return place if self._link(repository, "_blobs", digest).exists() and place.exists() else None

    def put_blob(self, repository: str, data: bytes) -> str:
        digest = digest_of(data)
        self._store(digest, data)
        _write(self._link(repository, "_blobs", digest), b"")
        return digest

    def mount(self, repository: str, source: str, digest: str) -> bool:
        """Give `repository` a blob that `source` has."""
        if self.blob(source, digest) is None:
            return False
        _write(self._link(repository, "_blobs", digest), b"")
        return True

    def manifest(self, repository: str, reference: str) -> StoredManifest | None:
        """The manifest of a tag or digest."""
        digest = reference if reference.startswith(_ALGORITHM) else self._read(self._tag(repository, reference))
        media_type = self._read(self._link(repository, "_manifests", digest)) if digest else None
        if digest is None or media_type is None:
            return None
        return StoredManifest(digest, media_type, (self._blobs / _hex(digest)).read_bytes())

    def put_manifest(self, repository: str, raw: bytes, media_type: str, *, tag: str = "") -> StoredManifest:
        digest = digest_of(raw)
        self._store(digest, raw)
        _write(self._link(repository, "_manifests", digest), media_type.encode())
        if tag:
            _write(self._tag(repository, tag), digest.encode())
        return StoredManifest(digest, media_type, raw)

    def manifests(self, repository: str) -> list[StoredManifest]:
        """All manifests of a repository, by digest."""
        folder = self._repositories / repository / "_manifests"
        digests = sorted(_ALGORITHM + path.name for path in folder.iterdir()) if folder.is_dir() else []
        return [found for digest in digests if (found := self.manifest(repository, digest)) is not None]

    def tags(self, repository: str) -> list[str]:
        folder = self._repositories / repository / "_tags"
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []

    def repositories(self) -> list[str]:
        found = self._repositories.rglob("_manifests")
        return sorted(str(path.parent.relative_to(self._repositories)) for path in found)

    def remove(self, repository: str, kind: str, reference: str) -> bool:
        """Take a tag, manifest or blob out of a repository; False when it has no such thing."""
        if kind == "manifests" and not reference.startswith(_ALGORITHM):
            return _removed(self._tag(repository, reference))
        link = self._link(repository, f"_{kind}", reference)
        if kind == "manifests":
            for tag in self.tags(repository):
                if self._read(self._tag(repository, tag)) == reference:
                    _removed(self._tag(repository, tag))
        return _removed(link)

    def begin_upload(self) -> str:
        name = secrets.token_hex(16)
        (self._uploads / name).touch(mode=0o600)
        return name

    def upload(self, name: str) -> Path | None:
        """The file of an upload that has begun."""
        place = self._uploads / name
        return place if name.isalnum() and place.exists() else None

    def finish_upload(self, repository: str, name: str, digest: str) -> bool:
        """Take the upload as the blob with `digest`; False, and nothing is kept, when its bytes have another one."""
        place = self._uploads / name
        with place.open("rb") as file:
            found = _ALGORITHM + hashlib.file_digest(file, "sha256").hexdigest()
        if found != digest:
            place.unlink()
            return False
        place.replace(self._blobs / _hex(digest))
        _write(self._link(repository, "_blobs", digest), b"")
        return True

    def _store(self, digest: str, data: bytes) -> None:
        place = self._blobs / _hex(digest)
        if not place.exists():
            _write(place, data)

    def _link(self, repository: str, kind: str, digest: str) -> Path:
        return self._repositories / repository / kind / _hex(digest)

    def _tag(self, repository: str, tag: str) -> Path:
        return self._repositories / repository / "_tags" / tag

    def _read(self, path: Path) -> str | None:
        try:
            return path.read_text()
        except FileNotFoundError:
            return None


def digest_of(data: bytes) -> str:
    return _ALGORITHM + hashlib.sha256(data).hexdigest()


def _hex(digest: str) -> str:
    return digest.removeprefix(_ALGORITHM)


def _removed(path: Path) -> bool:
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    return True


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    unfinished.replace(path)
