"""X.509 of the watcher: reading certificates, checking a client's, and issuing both kinds where no cert-manager does.

In: PEM and times. Out: PEM. Times are seconds since the epoch and come from the caller. The authority's certificate is
also the listener's serving certificate, as with the Go system's cert-manager set-up, so it carries the listener's
names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_NAME: Final = "klm-watcher-selfsigned-ca"
_SKEW = 300
"""Seconds by which clocks may differ: certificates begin so much earlier."""
_BLOCK = re.compile(rb"-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----")


class IssuedPair(NamedTuple):
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: bytes


def certificates(pem: bytes) -> list[x509.Certificate]:
    """The certificates of a PEM document, in order. Raises ValueError for one that cannot be read."""
    return [x509.load_pem_x509_certificate(block) for block in _BLOCK.findall(pem)]


def pem_of(found: Iterable[x509.Certificate]) -> bytes:
    """One PEM document with all of them."""
    return b"".join(one.public_bytes(Encoding.PEM) for one in found)


def begins(certificate: x509.Certificate) -> float:
    """Time of notBefore."""
    return certificate.not_valid_before_utc.timestamp()


def ends(certificate: x509.Certificate) -> float:
    """Time of notAfter."""
    return certificate.not_valid_after_utc.timestamp()


def common_name(certificate: x509.Certificate) -> str:
    """The subject's common name; empty where it has none."""
    try:
        found = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    except ValueError:
        return ""
    return str(found[0].value) if found else ""


def dns_names(certificate: x509.Certificate) -> frozenset[str]:
    """The DNS names of a certificate."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return frozenset()
    return frozenset(names.get_values_for_type(x509.DNSName))


def distrust(certificate: x509.Certificate, authorities: Iterable[x509.Certificate], *, now: float) -> str:
    """The reason for which a client's certificate is not accepted; empty where it is."""
    if not begins(certificate) <= now <= ends(certificate):
        return "the certificate is not valid at this time"
    for authority in authorities:
        try:
            certificate.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return ""
    return "the certificate is not signed by an authority of the watcher"


def new_authority(names: Sequence[str], *, now: float, seconds: float) -> IssuedPair:
    """A self-signed authority that also serves under `names`, which are DNS names and IP addresses."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, AUTHORITY_NAME)])
    builder = (
        _builder(key, subject, subject, names, now=now, seconds=seconds)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(signs=True), critical=True)
    )
    return _signed(builder, key, key)


def issued_client(authority: IssuedPair, name: str, names: Sequence[str], *, now: float, seconds: float) -> IssuedPair:
    """A certificate of an agent: `name` is its common name; it serves the webhook under `names`."""
    issuer = certificates(authority.certificate)[0]
    signer = load_pem_private_key(authority.key, password=None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise ValueError("the authority's key is not one that Hortus made: it must be of the curve P-256")
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    uses = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
    builder = (
        _builder(key, subject, issuer.subject, names, now=now, seconds=seconds)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(uses, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    return _signed(builder, key, signer)


def _builder(
    key: ec.EllipticCurvePrivateKey,
    subject: x509.Name,
    issuer: x509.Name,
    names: Sequence[str],
    *,
    now: float,
    seconds: float,
) -> x509.CertificateBuilder:
    alternatives = x509.SubjectAlternativeName([_general(name) for name in dict.fromkeys(names)])
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.fromtimestamp(int(now) - _SKEW, UTC))
        .not_valid_after(datetime.fromtimestamp(int(now + seconds), UTC))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(alternatives, critical=False)
    )


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=True,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _signed(
    builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey
) -> IssuedPair:
    made = builder.sign(signer, hashes.SHA256())
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return IssuedPair(made.public_bytes(Encoding.PEM), text)
