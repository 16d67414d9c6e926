"""X.509 as the API server needs it: small P-256 authorities and the certificates they sign.

In: names, keys and times. Out: PEM. Times are seconds since the epoch and come from the caller, never from the system.
Every certificate carries subject and authority key identifiers and a critical key usage, which strict verifiers (Python
3.13, Go) ask for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import NamedTuple

import msgspec
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID

from hortus.apiserver.authn.subjects import name_of

SKEW_SECONDS = 300
"""Seconds by which notBefore is backdated, for peers whose clock is behind; the same as kube-controller-manager."""

PublicKey = ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey
"""The types of keys that a client certificate may have."""

_CURVE = ec.SECP256R1()
_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""The order of P-256 (SEC 2, 2.4.2)."""


class Authority(NamedTuple):
    """A certificate authority: its key and its certificate."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)


_REQUEST_BLOCK = b"CERTIFICATE REQUEST"


def parsed_request(pem: bytes) -> x509.CertificateSigningRequest:
    """The first PEM block as a signing request that is signed by the key it asks for. Raises ValueError.

    Only the first block counts: two readers of one text must never see two requests.
    """
    _, found, rest = pem.partition(b"-----BEGIN ")
    type_, _, rest = rest.partition(b"-----")
    end = b"-----END " + _REQUEST_BLOCK + b"-----"
    body, closed, _ = rest.partition(end)
    if not found or type_ != _REQUEST_BLOCK or not closed:
        raise ValueError("PEM block type must be CERTIFICATE REQUEST")
    request = x509.load_pem_x509_csr(found + type_ + b"-----" + body + end)
    if not request.is_signature_valid:
        raise ValueError("the signing request is not signed by its own key")
    return request


class IssuedCertificate(msgspec.Struct, frozen=True):
    """A client certificate, its key and the server's CA, as a kubeconfig holds them. All three are PEM.

    `certificate` is the leaf followed by its cluster's authority: both must be sent in the handshake. `key` is empty
    when the requester keeps it (a signing request). `ca` verifies the *server*.
    """

    certificate: bytes
    key: bytes
    ca: bytes
    not_before: float
    not_after: float

    def __repr__(self) -> str:
        return f"IssuedCertificate(not_after={self.not_after})"


def new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(_CURVE)


def derived_key(seed: bytes, purpose: str) -> ec.EllipticCurvePrivateKey:
    """The P-256 key that belongs to `purpose` under a secret `seed`, the same each time (HKDF, RFC 5869).

    48 bytes are reduced modulo the order, so that the bias is below 2**-128 (FIPS 186-5, A.2.1).
    """
    material = HKDF(hashes.SHA256(), 48, None, purpose.encode()).derive(seed)
    return ec.derive_private_key(int.from_bytes(material, "big") % (_ORDER - 1) + 1, _CURVE)


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def load_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    key = load_pem_private_key(pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("not an elliptic-curve private key")
    return key


def root_authority(
    key: ec.EllipticCurvePrivateKey, name: str, *, start: float, days: int, repeatable: bool = False
) -> Authority:
    """A self-signed authority; a `repeatable` one has the same certificate whenever it is made of the same key."""
    subject = name_of(name)
    serial = _serial_of(name) if repeatable else 0
    validity = start, start + days * 86400
    builder = _builder(subject, subject, key.public_key(), key.public_key(), *validity, serial=serial)
    builder = _as_authority(builder, path_length=None)
    return Authority(key, _repeatably_signed(builder, key) if repeatable else builder.sign(key, hashes.SHA256()))


def sub_authority(parent: Authority, key: ec.EllipticCurvePrivateKey, name: str) -> Authority:
    """An authority for leaves only, valid as long as its parent, with the same certificate each time."""
    validity = parent.certificate.not_valid_before_utc.timestamp(), parent.certificate.not_valid_after_utc.timestamp()
    issuer = parent.certificate.subject
    public = key.public_key(), parent.key.public_key()
    builder = _builder(name_of(name), issuer, *public, *validity, serial=_serial_of(name))
    return Authority(key, _repeatably_signed(_as_authority(builder, path_length=0), parent.key))


def _serial_of(name: str) -> int:
    """A serial number that belongs to `name`: positive, and of 20 bytes at most (RFC 5280, section 4.1.2.2)."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:19], "big") | 1


def _repeatably_signed(builder: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    """Signs without randomness where OpenSSL can (RFC 6979).

    Other programs trust the authority by its certificate, so a restart should not show another one.
    """
    try:
        return builder.sign(key, hashes.SHA256(), ecdsa_deterministic=True)
    except UnsupportedAlgorithm:
        return builder.sign(key, hashes.SHA256())


def client_certificate(
    authority: Authority, public_key: PublicKey, subject: x509.Name, *, start: float, end: float
) -> x509.Certificate:
    """A leaf for TLS clients, valid in [start, end] rounded to whole seconds within."""
    builder = _builder(subject, authority.certificate.subject, public_key, authority.key.public_key(), start, end)
    return _as_leaf(builder, ExtendedKeyUsageOID.CLIENT_AUTH).sign(authority.key, hashes.SHA256())


def serving_certificate(
    authority: Authority, public_key: ec.EllipticCurvePublicKey, names: Sequence[str], *, start: float, end: float
) -> x509.Certificate:
    """A leaf for a TLS server which answers to `names`: DNS names and IP addresses."""
    subject = name_of("hortus-apiserver")
    builder = _builder(subject, authority.certificate.subject, public_key, authority.key.public_key(), start, end)
    builder = builder.add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), False)
    return _as_leaf(builder, ExtendedKeyUsageOID.SERVER_AUTH).sign(authority.key, hashes.SHA256())


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: PublicKey,
    issuer_key: ec.EllipticCurvePublicKey,
    start: float,
    end: float,
    *,
    serial: int = 0,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(serial or x509.random_serial_number())
        .not_valid_before(_second(start))
        .not_valid_after(_second(end))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), False)
    )


def _second(seconds: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=int(seconds))


def _as_authority(builder: x509.CertificateBuilder, *, path_length: int | None) -> x509.CertificateBuilder:
    constraints = x509.BasicConstraints(ca=True, path_length=path_length)
    return builder.add_extension(constraints, True).add_extension(_key_usage(signs_certificates=True), True)


def _as_leaf(builder: x509.CertificateBuilder, usage: x509.ObjectIdentifier) -> x509.CertificateBuilder:
    return (
        builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
        .add_extension(_key_usage(signs_certificates=False), True)
        .add_extension(x509.ExtendedKeyUsage([usage]), False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
