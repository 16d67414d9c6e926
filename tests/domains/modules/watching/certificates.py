"""Certificates of a control plane and of its agents, for tests on loopback."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from hortus.domains.modules.watching.authorities import IssuedPair, certificates, issued_client, new_authority

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


def nameless(ca: IssuedPair) -> bytes:
    """A certificate of `ca` without a common name, PEM."""
    signer = load_pem_private_key(ca.key, password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([]))
        .issuer_name(certificates(ca.certificate)[0].subject)
        .public_key(ec.generate_private_key(ec.SECP256R1()).public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=1))
        .not_valid_after(now + timedelta(hours=1))
        .sign(signer, hashes.SHA256())
    )
    return made.public_bytes(Encoding.PEM)


def write_files(folder: Path, issued: IssuedPair, *, ca: bytes) -> Mapping[str, str]:
    """Writes the files of an agent's Secret volume; returns the variables that name them."""
    folder.mkdir(exist_ok=True)
    names = {"CA_CERT": "ca.crt", "TLS_CERT": "tls.crt", "TLS_KEY": "tls.key"}
    for name, content in zip(names.values(), (ca, issued.certificate, issued.key), strict=True):
        path = folder / name
        path.with_suffix(".new").write_bytes(content)
        path.with_suffix(".new").replace(path)
    return {variable: str(folder / name) for variable, name in names.items()}
