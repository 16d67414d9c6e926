"""X.509 of servers. It loads a big library, so it is imported where a certificate is made or read, and not before."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hortus.kube import Secret

_SUBJECT: Final = "hortus"
"""Clients go by the names of a certificate; a subject of the name of a Service could be longer than X.509 allows."""


def issued(names: Sequence[str], *, begins: float, ends: float) -> tuple[bytes, Secret]:
    """A certificate for DNS names and addresses that is its own authority, and its key, both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _SUBJECT)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.fromtimestamp(int(begins), UTC))
        .not_valid_after(datetime.fromtimestamp(int(ends), UTC))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectAlternativeName([_name(one) for one in names]), critical=False)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(Encoding.PEM)
    )
    return made, Secret(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


def end_of(certificate: bytes) -> float:
    """Time of notAfter. Raises ValueError for a certificate that cannot be read."""
    return x509.load_pem_x509_certificate(certificate).not_valid_after_utc.timestamp()


def names_of(certificate: bytes) -> frozenset[str]:
    """The names for which a certificate is made. Raises ValueError for one that cannot be read."""
    found = x509.load_pem_x509_certificate(certificate).extensions
    try:
        names = found.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(map(str, (one.value for one in names)))


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)
