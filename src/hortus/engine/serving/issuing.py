"""X.509 of servers. It loads a big library, so it is imported where a certificate is made or read, and not before."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Final, cast

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hortus.kube import Secret

_SUBJECT: Final = "hortus"
"""Clients go by the names of a certificate; a subject of the name of a Service could be longer than X.509 allows."""
_AUTHORITY: Final = x509.BasicConstraints(ca=True, path_length=0)


def issued(names: Sequence[str], *, begins: float, ends: float) -> tuple[bytes, Secret]:
    """A certificate for DNS names and addresses that is its own authority, and its key, both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _subject(_SUBJECT)
    builder = _for_server(_begun(subject, subject, key, begins=begins, ends=ends), names)
    return _finished(builder.add_extension(_AUTHORITY, critical=True), key, key)


def authority_made(*, begins: float, ends: float) -> tuple[bytes, Secret]:
    """An authority that signs certificates of servers, and its key, both PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    mark = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    # Each authority has its own name: clients find the signer by name, and their bundle holds several.
    subject = _subject(f"{_SUBJECT} {mark.digest.hex()[:16]}")
    builder = (
        _begun(subject, subject, key, begins=begins, ends=ends)
        .add_extension(_AUTHORITY, critical=True)
        .add_extension(_use(signs=True), critical=True)
        .add_extension(mark, critical=False)
    )
    return _finished(builder, key, key)


def signed(names: Sequence[str], authority: bytes, by: Secret, *, begins: float, ends: float) -> tuple[bytes, Secret]:
    """A certificate for DNS names and addresses that an authority signs, and its key, both PEM. Raises ValueError."""
    key, signer = ec.generate_private_key(ec.SECP256R1()), load_pem_private_key(by.reveal().encode(), None)
    issuer = x509.load_pem_x509_certificate(authority)
    builder = (
        _for_server(_begun(_subject(_SUBJECT), issuer.subject, key, begins=begins, ends=ends), names)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_use(signs=False), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(_public(issuer)), critical=False)
    )
    return _finished(builder, key, cast(ec.EllipticCurvePrivateKey, signer))


def authorities_alive(bundles: Sequence[bytes], *, now: float) -> bytes:
    """The certificates in bundles that have not ended, each once, in their order; what cannot be read is left out."""
    found = [one for bundle in bundles for one in _all_in(bundle)]
    alive = (one for one in found if one.not_valid_after_utc.timestamp() > now)
    return b"".join(dict.fromkeys(one.public_bytes(Encoding.PEM) for one in alive))


def is_authority(certificate: bytes) -> bool:
    """Reports whether a certificate may sign others. Raises ValueError for one that cannot be read."""
    found = x509.load_pem_x509_certificate(certificate).extensions
    try:
        return found.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def is_signed_by(certificate: bytes, bundle: bytes) -> bool:
    """Reports whether one of a bundle signed a certificate. Raises ValueError for a certificate that is none."""
    found = x509.load_pem_x509_certificate(certificate)
    return any(_has_signed(authority, found) for authority in _all_in(bundle))


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


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, *, begins: float, ends: float
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.fromtimestamp(int(begins), UTC))
        .not_valid_after(datetime.fromtimestamp(int(ends), UTC))
    )


def _for_server(builder: x509.CertificateBuilder, names: Sequence[str]) -> x509.CertificateBuilder:
    return builder.add_extension(
        x509.SubjectAlternativeName([_name(one) for one in names]), critical=False
    ).add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)


def _finished(
    builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, signer: ec.EllipticCurvePrivateKey
) -> tuple[bytes, Secret]:
    made = builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM)
    return made, Secret(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


def _use(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _public(certificate: x509.Certificate) -> ec.EllipticCurvePublicKey:
    return cast(ec.EllipticCurvePublicKey, certificate.public_key())


def _all_in(bundle: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(bundle)
    except ValueError:
        return []


def _has_signed(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
