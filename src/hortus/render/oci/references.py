"""`registry/repository:tag@digest`, as everybody writes it.

Grammar: the reference package of the distribution project. A registry must be named: the name of a folder on Docker Hub
and that of a host look the same, and a guess would send credentials astray.
"""

from __future__ import annotations

import re

import msgspec

from hortus.render.artifacts import BadDigest, Digest, parse_digest

_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9A-Fa-f:]+\])"
_REGISTRY = re.compile(_HOST + r"(?::[0-9]{1,5})?")
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(f"{_PART}(?:/{_PART})*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_LONGEST_NAME = 255
_LONGEST = 1_000
_DOCKER_HUB = ("docker.io", "index.docker.io", "registry-1.docker.io")


class BadReference(ValueError):
    """A text that names no artifact; the message says what is wrong with it."""


class Reference(msgspec.Struct, frozen=True, kw_only=True):
    """A repository, or with a tag or digest one artifact in it."""

    registry: str
    """Host and perhaps port, as written; Docker Hub is `docker.io`."""
    repository: str
    tag: str = ""
    digest: Digest | None = None
    """Wins over the tag."""

    @property
    def api_host(self) -> str:
        """The host that serves the registry's API."""
        return "registry-1.docker.io" if self.registry == "docker.io" else self.registry

    @property
    def identifier(self) -> str:
        """Digest or tag. Raises BadReference when there is neither."""
        if not (self.digest or self.tag):
            raise BadReference(f"{self} names no tag or digest: write {self}:<tag> or {self}@sha256:<digest>")
        return self.digest or self.tag

    def at(self, digest: Digest) -> Reference:
        """The artifact with `digest` in the same repository."""
        return msgspec.structs.replace(self, digest=digest)

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.registry}/{self.repository}{tag}" + (f"@{self.digest}" if self.digest else "")


def parse_reference(text: str) -> Reference:
    """Reads `[oci://]registry/repository[:tag][@digest]`. Raises BadReference."""
    if len(text) > _LONGEST:
        raise BadReference(f"a reference of {len(text)} characters is longer than {_LONGEST}")
    rest, at, digest = text.removeprefix("oci://").partition("@")
    registry, slash, path = rest.partition("/")
    if not slash or not _is_registry(registry):
        raise BadReference(f"{text[:200]!r} names no registry: write registry.example.com/repository:tag")
    repository, colon, tag = path.partition(":")
    if registry in _DOCKER_HUB:
        registry, repository = "docker.io", repository if "/" in repository else f"library/{repository}"
    if not _REPOSITORY.fullmatch(repository) or len(registry) + len(repository) >= _LONGEST_NAME:
        raise BadReference(
            f"{text[:200]!r}: {repository[:100]!r} is no name of a repository (lower case, digits, ._-/)"
        )
    if colon and not _TAG.fullmatch(tag):
        raise BadReference(f"{text[:200]!r}: {tag[:100]!r} is no tag (at most 128 of letters, digits, _.-)")
    try:
        found = parse_digest(digest) if at else None
    except BadDigest as error:
        raise BadReference(f"{text[:200]!r}: {error}") from None
    return Reference(registry=registry, repository=repository, tag=tag, digest=found)


def tag_of_version(version: str) -> str:
    """The tag under which Helm stores a chart's version: build metadata after `_`, since tags have no `+`."""
    return version.replace("+", "_")


def _is_registry(text: str) -> bool:
    return bool(_REGISTRY.fullmatch(text)) and ("." in text or ":" in text or text == "localhost")
