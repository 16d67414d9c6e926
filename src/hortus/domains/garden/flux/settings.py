"""The operator's choices for Flux in Shoots."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from hortus.engine.flags import Flag, FlagError

MANIFESTS_FLAG: Final = "flux-manifests"
DIGESTS_FLAG: Final = "flux-manifest-digests"
VERSION_PLACEHOLDER: Final = "{version}"
RELEASES: Final = "https://github.com/fluxcd/flux2/releases/download/{version}/manifests.tar.gz"
_DIGEST: Final = re.compile(r"sha256:[0-9a-f]{64}")

FLAGS: Final = (
    Flag(
        MANIFESTS_FLAG,
        "string",
        RELEASES,
        "Folder, https:// address or oci:// artifact with Flux's install manifests; {version} stands for the version.",
    ),
    Flag(
        DIGESTS_FLAG,
        "string",
        "",
        "Digests of these by version, as v2.9.2=sha256:..., separated by commas; a version without one is refused "
        "where any is given, unless the manifests are in a folder.",
    ),
)


class FluxManifestSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The choices."""

    manifests: str = RELEASES
    digests: Mapping[str, str] = {}
    """Digests by version."""

    @property
    def is_folder(self) -> bool:
        """True where the manifests are on this machine."""
        return "://" not in self.manifests

    def place(self, version: str) -> str:
        """The place of the manifests of a version."""
        return self.manifests.replace(VERSION_PLACEHOLDER, version)


def flux_settings(values: Mapping[str, Any]) -> FluxManifestSettings:
    """The choices that flags make. Raises FlagError."""
    place = values[MANIFESTS_FLAG]
    if not place:
        raise FlagError(f"flag --{MANIFESTS_FLAG} is empty: name a folder, an https:// address or an oci:// artifact")
    scheme = place.partition("://")[0] if "://" in place else ""
    if scheme not in ("", "https", "http", "oci"):
        raise FlagError(f"invalid value {place!r} for flag --{MANIFESTS_FLAG}: must begin with https:// or oci://")
    digests = {}
    for word in values[DIGESTS_FLAG].split(","):
        if not word.strip():
            continue
        version, _, digest = word.strip().partition("=")
        if not version.startswith("v") or not _DIGEST.fullmatch(digest):
            raise FlagError(
                f"invalid value {word.strip()!r} for flag --{DIGESTS_FLAG}: must be a version and sha256: with 64 hex "
                "digits, as v2.9.2=sha256:..."
            )
        digests[version] = digest
    if scheme == "http" and not digests:
        raise FlagError(f"flag --{MANIFESTS_FLAG} has http://, which nothing protects: give --{DIGESTS_FLAG}")
    return FluxManifestSettings(manifests=place, digests=digests)
