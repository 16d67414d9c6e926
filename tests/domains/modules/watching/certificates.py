"""Certificates of a control plane and of its agents, for tests on loopback."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from hortus.domains.modules.watching.authorities import IssuedPair, issued_client, new_authority

RUNTIME = "runtime-1"
DOMAIN = "c-1.shoot.example.org"
HOUR = 3600.0
_SKEW = 60.0


def authority() -> IssuedPair:
    """An authority whose certificate serves on loopback."""
    return new_authority(["127.0.0.1", "localhost"], now=time.time() - _SKEW, seconds=HOUR)


def client(ca: IssuedPair, *, name: str = RUNTIME, domain: str = DOMAIN) -> IssuedPair:
    """A certificate of an agent that also serves on loopback."""
    return issued_client(ca, name, [domain, "127.0.0.1"], now=time.time() - _SKEW, seconds=HOUR)


def write_files(folder: Path, issued: IssuedPair, *, ca: bytes) -> Mapping[str, str]:
    """Writes the files of an agent's Secret volume; returns the variables that name them."""
    folder.mkdir(exist_ok=True)
    names = {"CA_CERT": "ca.crt", "TLS_CERT": "tls.crt", "TLS_KEY": "tls.key"}
    for name, content in zip(names.values(), (ca, issued.certificate, issued.key), strict=True):
        path = folder / name
        path.with_suffix(".new").write_bytes(content)
        path.with_suffix(".new").replace(path)
    return {variable: str(folder / name) for variable, name in names.items()}
