"""Distinguished names of users and groups, of any length.

X.520 limits a common name to 64 characters, and so does the usual library; Kubernetes, like Go, does not, and a user
such as `gardener.cloud:admin:system:serviceaccount:kcp-system:infrastructure-manager` is longer. So the longer names
are made here, and all names are read here from DER (ITU-T X.690).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cryptography import x509
from cryptography.x509.oid import NameOID

NAME_LIMIT = 1024
"""Bytes of one part. The limit is Hortus' own: TLS stacks want a certificate below 16 kB."""

_X520_LIMIT = 64
_VERSION = 0xA0
_COMMON_NAME, _ORGANIZATION = bytes([0x55, 0x04, 0x03]), bytes([0x55, 0x04, 0x0A])
_ENCODINGS = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1C: "utf-32-be", 0x1E: "utf-16-be"}
"""UTF8String, PrintableString, TeletexString, IA5String, UniversalString, BMPString."""


class CertificateSubject(NamedTuple):
    """The parts of a name that Kubernetes reads: the user candidates and the groups, in their order."""

    common_names: Sequence[str]
    organizations: Sequence[str]


class _LongName(x509.NameAttribute[str]):
    def __init__(self, oid: x509.ObjectIdentifier, value: str) -> None:
        super().__init__(oid, "-")
        self._value = value


def name_of(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    """CN and one O per organization, in one set each; raises ValueError naming a part that cannot be one."""
    for field, value in [("common name", common_name), *(("organization", group) for group in organizations)]:
        if not value or len(value.encode()) > NAME_LIMIT:
            raise ValueError(f"{field} {value[:NAME_LIMIT]!r}: must have 1 to {NAME_LIMIT} bytes")
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in organizations]
    long = len(common_name.encode()) > _X520_LIMIT
    user = (_LongName if long else x509.NameAttribute)(NameOID.COMMON_NAME, common_name)
    return x509.Name([*groups, user])


def subject_of(signed: x509.Certificate | x509.CertificateSigningRequest) -> CertificateSubject:
    """The subject of a certificate or signing request; raises ValueError when a part of it is no text."""
    if isinstance(signed, x509.Certificate):
        fields = list(_elements(_content(signed.tbs_certificate_bytes)))
        # Version, which is optional, serial number, algorithm, issuer, validity, subject (RFC 5280, 4.1).
        name = fields[4 + (fields[0][0] == _VERSION)]
    else:
        name = list(_elements(_content(signed.tbs_certrequest_bytes)))[1]
    found: dict[bytes, list[str]] = {_COMMON_NAME: [], _ORGANIZATION: []}
    for _, part in _elements(name[1]):
        for _, attribute in _elements(part):
            (_, oid), (tag, value) = _elements(attribute)
            if oid in found:
                found[oid].append(_text(tag, value))
    return CertificateSubject(found[_COMMON_NAME], found[_ORGANIZATION])


def _text(tag: int, value: bytes) -> str:
    try:
        return value.decode(_ENCODINGS[tag])
    except KeyError:
        raise ValueError(f"a name is encoded with tag {tag}, which is no text") from None


def _content(der: bytes) -> bytes:
    [(_, content)] = _elements(der)
    return content


def _elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each element in turn; `der` has been parsed before, so its lengths hold."""
    at = 0
    while at < len(der):
        tag, length, at = der[at], der[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            length, at = int.from_bytes(der[at : at + size], "big"), at + size
        yield tag, der[at : at + length]
        at += length
