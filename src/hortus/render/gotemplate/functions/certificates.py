"""Keys and certificates: genCA, genSignedCert and so on. The shapes are sprig's; the library is `cryptography`."""

from __future__ import annotations

import datetime
import ipaddress
from typing import Any

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import dsa, ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from hortus.render.gotemplate.calls import Functions, table
from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.formatting import text_of
from hortus.render.gotemplate.functions.encoded import IllegalData, decoded_64
from hortus.render.gotemplate.values import Struct, wire_bytes

_BITS = 2048
_LONGEST_DAYS = 365 * 5000


def _certificate(cert: str, key: str) -> Struct:
    return Struct("sprig.certificate", {"Cert": cert, "Key": key})


def _pem(key: Any) -> str:
    """A private key as sprig writes it: PKCS#1, SEC 1, OpenSSL's DSA, PKCS#8 for the rest."""
    old = isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | dsa.DSAPrivateKey)
    kind = serialization.PrivateFormat.TraditionalOpenSSL if old else serialization.PrivateFormat.PKCS8
    found: bytes = key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption())
    return found.decode()


def gen_private_key(kind: str) -> str:
    if kind in ("", "rsa"):
        return _pem(rsa.generate_private_key(65537, 4096))
    if kind == "dsa":
        return _pem(dsa.generate_private_key(2048))
    if kind == "ecdsa":
        return _pem(ec.generate_private_key(ec.SECP256R1()))
    if kind == "ed25519":
        return _pem(ed25519.Ed25519PrivateKey.generate())
    return "Unknown type " + kind


def _parsed_key(text: str) -> Any:
    if "-----BEGIN" not in text:
        raise FunctionError("parsing private key: no PEM data in input")
    try:
        return serialization.load_pem_private_key(wire_bytes(text), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise FunctionError("parsing private key: no private key data in PEM block") from None


def _addresses(values: list[Any]) -> list[x509.GeneralName]:
    found: list[x509.GeneralName] = []
    for value in values:
        if type(value) is not str:
            raise FunctionError(f"error parsing ip: {text_of(value)} is not a string")
        try:
            found.append(x509.IPAddress(ipaddress.ip_address(value)))
        except ValueError:
            raise FunctionError(f"error parsing ip: {value}") from None
    return found


def _names(values: list[Any]) -> list[x509.GeneralName]:
    found: list[x509.GeneralName] = []
    for value in values:
        if type(value) is not str:
            raise FunctionError(f"error processing alternate dns name: {text_of(value)} is not a string")
        try:
            found.append(x509.DNSName(value))
        except ValueError as error:
            raise FunctionError(f"error creating certificate: {error}") from None
    return found


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_encipherment=True,
        key_cert_sign=signs_certificates,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _builder(name: str, days: int, key: Any, *, is_ca: bool) -> x509.CertificateBuilder:
    if not -_LONGEST_DAYS < days < _LONGEST_DAYS:
        raise FunctionError(f"error creating certificate: {days} days are too many")
    begin = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    try:
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else [])
        end = begin + datetime.timedelta(days=days)
        if end < begin:
            begin = end
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(begin)
            .not_valid_after(end)
            .add_extension(_usage(signs_certificates=is_ca), critical=True)
            .add_extension(
                x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
                critical=False,
            )
            .add_extension(x509.BasicConstraints(ca=is_ca, path_length=None), critical=True)
        )
    except (ValueError, OverflowError) as error:
        raise FunctionError(f"error creating certificate: {error}") from None


def _signed(builder: x509.CertificateBuilder, issuer: x509.Name, issuer_key: Any) -> str:
    algorithm = None if isinstance(issuer_key, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    certificate = builder.issuer_name(issuer).add_extension(identifier, critical=False).sign(issuer_key, algorithm)
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)] if name else [])


def _own_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, _BITS)


def _authority(name: str, days: int, key: Any) -> Struct:
    builder = _builder(name, days, key, is_ca=True).add_extension(
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
    )
    return _certificate(_signed(builder, _subject(name), key), _pem(key))


def _leaf(name: str, ips: list[Any], dns: list[Any], days: int, key: Any) -> x509.CertificateBuilder:
    builder = _builder(name, days, key, is_ca=False)
    others = [*_names(dns), *_addresses(ips)]
    return builder.add_extension(x509.SubjectAlternativeName(others), critical=not name) if others else builder


def gen_ca(name: str, days: int) -> Struct:
    return _authority(name, days, _own_key())


def gen_ca_with_key(name: str, days: int, key: str) -> Struct:
    return _authority(name, days, _parsed_key(key))


def gen_self_signed(name: str, ips: list[Any], dns: list[Any], days: int) -> Struct:
    return _self_signed(name, ips, dns, days, _own_key())


def gen_self_signed_with_key(name: str, ips: list[Any], dns: list[Any], days: int, key: str) -> Struct:
    return _self_signed(name, ips, dns, days, _parsed_key(key))


def _self_signed(name: str, ips: list[Any], dns: list[Any], days: int, key: Any) -> Struct:
    return _certificate(_signed(_leaf(name, ips, dns, days, key), _subject(name), key), _pem(key))


def gen_signed(name: str, ips: list[Any], dns: list[Any], days: int, authority: Struct) -> Struct:
    return _signed_by(name, ips, dns, days, authority, _own_key())


def gen_signed_with_key(name: str, ips: list[Any], dns: list[Any], days: int, authority: Struct, key: str) -> Struct:
    return _signed_by(name, ips, dns, days, authority, _parsed_key(key))


def _signed_by(name: str, ips: list[Any], dns: list[Any], days: int, authority: Struct, key: Any) -> Struct:
    issuer = _parsed_certificate(authority.fields["Cert"])
    issuer_key = _parsed_key(authority.fields["Key"])
    return _certificate(_signed(_leaf(name, ips, dns, days, key), issuer.subject, issuer_key), _pem(key))


def _parsed_certificate(text: str) -> x509.Certificate:
    if "-----BEGIN" not in text:
        raise FunctionError("unable to decode certificate")
    try:
        return x509.load_pem_x509_certificate(wire_bytes(text))
    except ValueError:
        raise FunctionError("error parsing certificate: decodedCert.Bytes: x509: malformed certificate") from None


def _decoded(text: str, what: str) -> str:
    try:
        return decoded_64(text)
    except IllegalData:
        raise FunctionError(f"unable to decode base64 {what}") from None


def build_custom(cert: str, key: str) -> Struct:
    """buildCustomCert: a pair of base64 texts, once proven to be a certificate and a key."""
    certificate, private = _decoded(cert, "certificate"), _decoded(key, "private key")
    _parsed_certificate(certificate)
    try:
        _parsed_key(private)
    except FunctionError as error:
        raise FunctionError(f"error {error}") from None
    return _certificate(certificate, private)


CERTIFICATES: Functions = table(
    ("genPrivateKey", "string", gen_private_key),
    ("buildCustomCert", "string, string", build_custom),
    ("genCA", "string, int", gen_ca),
    ("genCAWithKey", "string, int, string", gen_ca_with_key),
    ("genSelfSignedCert", "string, list, list, int", gen_self_signed),
    ("genSelfSignedCertWithKey", "string, list, list, int, string", gen_self_signed_with_key),
    ("genSignedCert", "string, list, list, int, certificate", gen_signed),
    ("genSignedCertWithKey", "string, list, list, int, certificate, string", gen_signed_with_key),
)
