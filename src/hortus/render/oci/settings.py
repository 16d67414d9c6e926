"""What an operator may set for registries."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from hortus.render.artifacts import TransferSettings


def _known_realms() -> Mapping[str, frozenset[str]]:
    return {
        "registry-1.docker.io": frozenset(("auth.docker.io",)),
        "registry.gitlab.com": frozenset(("gitlab.com",)),
    }


class OciSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Limits and allowances beside those of the transfer; sizes in bytes."""

    transfer: TransferSettings = TransferSettings()
    realms: Mapping[str, frozenset[str]] = msgspec.field(default_factory=_known_realms)
    """Hosts, beside the registry's own, where tokens for a registry may be asked for."""
    max_blob: int = 64 << 20
    max_artifact: int = 256 << 20
    """All layers of one artifact that is pulled whole."""
    max_manifests: int = 500
    """Entries of one index."""
    max_layers: int = 500
    max_tags: int = 100_000
    page: int = 1_000
    """Tags asked for at once."""
    max_pages: int = 1_000
    chunk: int = 8 << 20
    """Uploads larger than this go in chunks of this size."""
