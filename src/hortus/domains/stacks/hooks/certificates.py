"""The certificate of the hook server: from files, or made here and kept in a Secret for all replicas.

A certificate that is made here is its own authority. Cluster API trusts it by the ExtensionConfig, whose `caBundle` is
written before the server shows the certificate, and holds the one before as well.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hortus.kube import Secret
from hortus.kube.objects import Object

SECRET: Final = "hortus-stacks-hooks"  # noqa: S105 - the name of an object
LIFE: Final = 90 * 86400.0
"""Seconds that a certificate is valid, cert-manager's default."""
RENEW: Final = 30 * 86400.0
"""Seconds before its end at which a certificate is replaced."""
_SKEW: Final = 300.0
"""Seconds by which clocks may differ: a certificate begins so much earlier."""
_KEYS: Final = ("tls.crt", "tls.key", "ca.crt")


class ServingPair(NamedTuple):
    """A certificate with its key, and the authorities by which a client trusts it, all PEM."""

    certificate: bytes
    key: Secret
    bundle: bytes

    @property
    def ends(self) -> float:
        """Time of notAfter. Raises ValueError for a certificate that cannot be read."""
        return x509.load_pem_x509_certificate(self.certificate).not_valid_after_utc.timestamp()

    @property
    def names(self) -> frozenset[str]:
        """The names for which it is made. Raises ValueError for a certificate that cannot be read."""
        found = x509.load_pem_x509_certificate(self.certificate).extensions
        try:
            names = found.get_extension_for_class(x509.SubjectAlternativeName).value
        except x509.ExtensionNotFound:
            return frozenset()
        return frozenset(map(str, (one.value for one in names)))


def self_signed(names: Sequence[str], *, now: float, before: ServingPair | None = None) -> ServingPair:
    """A new pair for DNS names and addresses; clients that trust `before` go on trusting it."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, SECRET)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.fromtimestamp(int(now - _SKEW), UTC))
        .not_valid_after(datetime.fromtimestamp(int(now + LIFE), UTC))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName([_name(one) for one in names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(Encoding.PEM)
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return ServingPair(made, Secret(private), made + (before.certificate if before is not None else b""))


def is_due(pair: ServingPair, names: Sequence[str], *, now: float) -> bool:
    """Reports whether a pair has to be replaced: it ends soon, lacks a name, or cannot be read."""
    try:
        return pair.ends - now < RENEW or not set(names) <= pair.names
    except ValueError:
        return True


def pair_in(folder: Path) -> ServingPair | None:
    """The pair in the files tls.crt and tls.key; None where they are not there. Raises OSError."""
    certificate, key = folder / _KEYS[0], folder / _KEYS[1]
    if not (certificate.is_file() and key.is_file()):
        return None
    authority = folder / _KEYS[2]
    bundle = authority.read_bytes() if authority.is_file() else b""
    return ServingPair(certificate.read_bytes(), Secret(key.read_text()), bundle)


def pair_of(data: dict[str, str]) -> ServingPair | None:
    """The pair in the data of a Secret; None where it is not complete."""
    found = [base64.b64decode(data.get(key, "")) for key in _KEYS]
    return ServingPair(found[0], Secret(found[1].decode()), found[2]) if all(found) else None


def secret_of(pair: ServingPair, namespace: str) -> Object:
    """The Secret that keeps a pair."""
    values = zip(_KEYS, (pair.certificate, pair.key.reveal().encode(), pair.bundle), strict=True)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": SECRET, "namespace": namespace},
        "type": "kubernetes.io/tls",
        "data": {key: base64.b64encode(value).decode() for key, value in values},
    }


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)
