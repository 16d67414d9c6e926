"""The identity of the sender of a request: its certificate, from Istio's header or from the connection itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from urllib.parse import unquote_to_bytes

from cryptography import x509

from hortus.domains.modules.watching.authorities import certificates

HEADER: Final = "X-Forwarded-Client-Cert"
LONGEST_HEADER: Final = 32 * 1024
"""Bytes."""


class NoCertificate(Exception):
    """A request shows no certificate that can be read."""


def from_header(values: Sequence[str]) -> x509.Certificate:
    """The certificate in the last element of the header, which may be sent several times. Raises NoCertificate.

    Each proxy appends an element, so the last one is that of the proxy in front of the listener, and its sender may
    have made up those before. Elements are separated by commas, their parts by semicolons; a value in double quotes may
    hold both (Envoy's documentation, "x-forwarded-client-cert").
    """
    value = ",".join(values)
    if not value:
        raise NoCertificate(f"the header {HEADER} is missing")
    if len(value.encode()) > LONGEST_HEADER:
        raise NoCertificate(f"the header {HEADER} is longer than {LONGEST_HEADER} bytes")
    given = _last_element(value)
    found = given.get("cert")
    if not found:
        raise NoCertificate(f"the last element of the header {HEADER} holds no Cert")
    try:
        return certificates(unquote_to_bytes(found))[0]
    except (ValueError, IndexError):
        raise NoCertificate(f"the Cert of the header {HEADER} is no PEM certificate") from None


def from_connection(der: bytes | None) -> x509.Certificate:
    """The certificate that a TLS client has shown. Raises NoCertificate."""
    if not der:
        raise NoCertificate("the client has shown no certificate")
    try:
        return x509.load_der_x509_certificate(der)
    except ValueError:
        raise NoCertificate("the client's certificate cannot be read") from None


def _last_element(value: str) -> Mapping[str, str]:
    """The values of its parts, by their keys in small letters."""
    found: dict[str, str] = {}
    for part, separator in _split(value):
        key, equals, text = part.partition("=")
        if equals:
            found[key.strip().lower()] = text
        if separator == ",":
            found = {}
    return found


def _split(value: str) -> Iterator[tuple[str, str]]:
    """Yields the texts between commas and semicolons that are outside of quotes, each with the separator after it.

    Quotes are taken away.
    """
    text: list[str] = []
    quoted = escaped = False
    for letter in value:
        if escaped:
            text.append(letter)
            escaped = False
        elif quoted and letter == "\\":
            escaped = True
        elif letter == '"':
            quoted = not quoted
        elif letter in ",;" and not quoted:
            yield "".join(text), letter
            text = []
        else:
            text.append(letter)
    yield "".join(text), ""
