"""Certificates between parts of an extension, kept in one Secret of the Shoot's namespace. Pure.

A new authority is trusted by all sides for 30 days before it signs anything: some read what they trust once, when they
start. Certificates are renewed when their Shoot is reconciled, 60 days before their end.
"""

from __future__ import annotations

import base64
import binascii
import secrets
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Final

import msgspec
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

from hortus.kube.secret import Secret

DAY: Final = 86_400.0
AUTHORITY_LIFE: Final = 3650 * DAY
AUTHORITY_RENEW: Final = 730 * DAY
"""Seconds before its end at which an authority gets a successor: longer than any certificate lives."""
SETTLED: Final = 30 * DAY
"""Seconds for which an authority is trusted before it signs."""
LIFE: Final = 365 * DAY
RENEW: Final = 60 * DAY
_SKEW: Final = 300.0
"""Seconds by which clocks may differ."""
_KEY_BYTES: Final = 32
_AUTHORITIES: Final = "ca.crt"
_AUTHORITY_KEYS: Final = "ca.key"
_MARK: Final = b"-----BEGIN"


class PairUse(msgspec.Struct, frozen=True, kw_only=True):
    """The holder of one certificate."""

    common_name: str
    names: tuple[str, ...] = ()
    """Names of DNS and addresses; a server has some."""


class ShootPair(msgspec.Struct, frozen=True):
    """A certificate and its key, both PEM."""

    certificate: bytes
    key: Secret


class ShootCertificates(msgspec.Struct, frozen=True, kw_only=True):
    """All certificates of one Shoot."""

    authorities: tuple[ShootPair, ...] = ()
    """The newest first."""
    pairs: dict[str, ShootPair] = {}
    keys: dict[str, Secret] = {}
    """Random keys by name, which stay."""

    def pair(self, name: str) -> ShootPair:
        """The certificate of one use. Raises KeyError."""
        return self.pairs[name]

    @property
    def bundle(self) -> bytes:
        """The certificates of all authorities."""
        return b"".join(one.certificate for one in self.authorities)

    def data(self) -> dict[str, str]:
        """The data of the Secret."""
        found = {
            _AUTHORITIES: self.bundle,
            _AUTHORITY_KEYS: "".join(one.key.reveal() for one in self.authorities).encode(),
        }
        for name, pair in self.pairs.items():
            found |= {f"{name}.crt": pair.certificate, f"{name}.key": pair.key.reveal().encode()}
        found |= {name: key.reveal().encode() for name, key in self.keys.items()}
        return {key: base64.b64encode(value).decode() for key, value in found.items()}


def read_certificates(data: Mapping[str, str]) -> ShootCertificates:
    """The certificates in the data of the Secret, as far as they are whole."""
    try:
        found = {key: base64.b64decode(value, validate=True) for key, value in data.items()}
        authorities = zip(_split(found.get(_AUTHORITIES, b"")), _split(found.get(_AUTHORITY_KEYS, b"")), strict=True)
        pairs = {
            key.removesuffix(".crt"): ShootPair(value, Secret(found[f"{key.removesuffix('.crt')}.key"].decode()))
            for key, value in found.items()
            if key.endswith(".crt") and key != _AUTHORITIES and f"{key.removesuffix('.crt')}.key" in found
        }
        return ShootCertificates(
            authorities=tuple(ShootPair(certificate, Secret(key.decode())) for certificate, key in authorities),
            pairs=pairs,
            keys={
                key: Secret(value.decode())
                for key, value in found.items()
                if not key.endswith(".crt") and f"{key.removesuffix('.key')}.crt" not in found
            },
        )
    except (binascii.Error, ValueError):
        return ShootCertificates()


def renewed(
    former: ShootCertificates, uses: Mapping[str, PairUse], *, now: float, keys: Sequence[str] = ()
) -> ShootCertificates:
    """The certificates for all uses, and random keys: those that still serve, and new ones in the place of others."""
    authorities = [one for one in former.authorities if _left(one, now) > 0]
    if not authorities or _left(authorities[0], now) < AUTHORITY_RENEW:
        authorities.insert(0, _authority(now))
    settled = [one for one in authorities if now - _begin(one) >= SETTLED]
    signer = settled[0] if settled else authorities[-1]
    pairs = {
        name: found if found is not None and _serves(found, use, authorities, now) else _issued(use, signer, now)
        for name, use in uses.items()
        for found in (former.pairs.get(name),)
    }
    return ShootCertificates(
        authorities=tuple(authorities), pairs=pairs, keys={name: _kept(former.keys.get(name)) for name in keys}
    )


def service_names(service: str, namespace: str) -> tuple[str, ...]:
    """The names of a Service in DNS."""
    place = f"{service}.{namespace}"
    return (service, place, f"{place}.svc", f"{place}.svc.cluster.local")


def _kept(key: Secret | None) -> Secret:
    """The key, or another one in the place of none and of one that is too short."""
    return key if key is not None and len(key.reveal()) >= _KEY_BYTES else Secret(secrets.token_hex(_KEY_BYTES))


def _split(text: bytes) -> Sequence[bytes]:
    return [_MARK + one for one in text.split(_MARK)[1:]]


def _parsed(pair: ShootPair) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pair.certificate)


def _left(pair: ShootPair, now: float) -> float:
    """Seconds until its end; below 0 for one that cannot be used."""
    try:
        found = _parsed(pair)
        key = load_pem_private_key(pair.key.reveal().encode(), None)
        if key.public_key() != found.public_key():
            return -1.0
        return found.not_valid_after_utc.timestamp() - now
    except (ValueError, TypeError):
        return -1.0


def _begin(pair: ShootPair) -> float:
    return _parsed(pair).not_valid_before_utc.timestamp()


def _serves(pair: ShootPair, use: PairUse, authorities: Sequence[ShootPair], now: float) -> bool:
    if _left(pair, now) < RENEW:
        return False
    found = _parsed(pair)
    return _names(found) == frozenset(use.names) and any(_has_issued(_parsed(one), found) for one in authorities)


def _has_issued(authority: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _names(certificate: x509.Certificate) -> frozenset[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    return frozenset(str(one.value) for one in found)


def _authority(now: float) -> ShootPair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"ca-extension-{int(now)}")
    made = _begun(name, key, now, AUTHORITY_LIFE).issuer_name(name)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    return _signed(made, key, key)


def _issued(use: PairUse, signer: ShootPair, now: float) -> ShootPair:
    key = ec.generate_private_key(ec.SECP256R1())
    kind = ExtendedKeyUsageOID.SERVER_AUTH if use.names else ExtendedKeyUsageOID.CLIENT_AUTH
    made = _begun(_name(use.common_name), key, now, LIFE).issuer_name(_parsed(signer).subject)
    made = made.add_extension(x509.ExtendedKeyUsage([kind]), critical=False)
    if use.names:
        names = x509.SubjectAlternativeName([_subject_name(one) for one in use.names])
        made = made.add_extension(names, critical=False)
    authority = load_pem_private_key(signer.key.reveal().encode(), None)
    assert isinstance(authority, ec.EllipticCurvePrivateKey), "authorities are made here"
    return _signed(made, key, authority)


def _subject_name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _begun(subject: x509.Name, key: ec.EllipticCurvePrivateKey, now: float, life: float) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(datetime.fromtimestamp(int(now - _SKEW), UTC))
        .not_valid_after(datetime.fromtimestamp(int(now + life), UTC))
    )


def _signed(
    made: x509.CertificateBuilder, key: ec.EllipticCurvePrivateKey, authority: ec.EllipticCurvePrivateKey
) -> ShootPair:
    certificate = made.sign(authority, hashes.SHA256()).public_bytes(Encoding.PEM)
    return ShootPair(certificate, Secret(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()))
