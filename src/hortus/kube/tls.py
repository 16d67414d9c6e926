"""One small TLS context per cluster.

It holds only that cluster's CA: the system's CAs cost 777 kB and 24 ms a context, and any server that they certify
could impersonate the cluster. They are loaded only where no CA is given. OpenSSL reads a certificate and key only from
a path, so both pass through an anonymous memory file, or where there is none through a private folder that is deleted
before this module returns.
"""

from __future__ import annotations

import os
import re
import ssl
import tempfile
from pathlib import Path
from weakref import WeakValueDictionary

from hortus.kube.secret import Secret

_CERTIFICATE = re.compile(rb"-----BEGIN (?:TRUSTED )?CERTIFICATE-----[^-]+-----END (?:TRUSTED )?CERTIFICATE-----")


def client_context(
    *, ca: bytes = b"", certificate: bytes = b"", key: Secret | None = None, insecure: bool = False
) -> ssl.SSLContext:
    """A context for calls to one cluster. Raises ValueError, naming the part, for PEM that OpenSSL refuses."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif ca:
        trust(context, ca)
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if certificate and key:
        identify(context, certificate, key)
    return context


def server_context(*, certificate: bytes, key: Secret, client_ca: bytes = b"") -> ssl.SSLContext:
    """A context that serves TLS 1.3 and nothing older; with `client_ca` it requires a certificate of every client.

    Raises ValueError, naming the part, for PEM that OpenSSL refuses.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.set_alpn_protocols(["http/1.1"])
    identify(context, certificate, key)
    if client_ca:
        trust(context, client_ca)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class Contexts:
    """One context for all clients that trust the same CA and show no certificate, for as long as one of them lives.

    A client certificate is part of a context, so a client that shows one has a context of its own.
    """

    def __init__(self) -> None:
        self._shared: WeakValueDictionary[tuple[bytes, bool], ssl.SSLContext] = WeakValueDictionary()

    def __len__(self) -> int:
        """The number of contexts that are shared now."""
        return len(self._shared)

    def get(self, *, ca: bytes, certificate: bytes, key: Secret | None, insecure: bool) -> ssl.SSLContext:
        """Returns the shared `client_context` of these arguments. Raises the same ValueError."""
        if certificate:
            return client_context(ca=ca, certificate=certificate, key=key, insecure=insecure)
        context = self._shared.get((ca, insecure))
        if context is None:
            context = self._shared[ca, insecure] = client_context(ca=ca, insecure=insecure)
        return context


def trust(context: ssl.SSLContext, ca: bytes) -> None:
    """Add the certificates of `ca` to those that `context` trusts; it may be in use. Raises ValueError."""
    found = _CERTIFICATE.findall(ca)
    if not found:
        raise ValueError("the CA holds no PEM certificate")
    try:
        context.load_verify_locations(cadata=b"\n".join(found).decode("ascii"))
    except (ssl.SSLError, UnicodeDecodeError, ValueError):
        raise ValueError("the CA holds a PEM certificate that cannot be read") from None
    # As in Go, each is trusted for itself: it may be the server's own certificate or an intermediate.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN


def identify(context: ssl.SSLContext, certificate: bytes, key: Secret) -> None:
    """Let `context` show this certificate from the next handshake on. Raises ValueError."""
    pem = certificate.rstrip() + b"\n" + key.reveal().encode()
    try:
        if hasattr(os, "memfd_create"):
            _load_from_memory(context, pem)
        else:
            _load_from_folder(context, pem)
    except (ssl.SSLError, ValueError):
        raise ValueError("the certificate and key are not a readable pair of PEM documents") from None


def _refuse_password() -> str:
    raise ValueError("the key is encrypted")


def _load_from_memory(context: ssl.SSLContext, pem: bytes) -> None:
    descriptor = os.memfd_create("certificate")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(pem)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=_refuse_password)
    finally:
        os.close(descriptor)


def _load_from_folder(context: ssl.SSLContext, pem: bytes) -> None:
    with tempfile.TemporaryDirectory(prefix="hortus-") as folder:
        path = Path(folder, "pair.pem")
        path.touch(mode=0o600)
        path.write_bytes(pem)
        context.load_cert_chain(path, password=_refuse_password)
