"""Client certificates: the common name is the user, each organization a group (Kubernetes docs, "Authenticating").

The TLS layer has proven that the peer owns the key and that an authority below the server's root signed; this module
checks that it was *this* cluster's authority and that the certificate is valid now.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from collections.abc import Sequence

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID

from hortus.apiserver.authn.cluster_keys import Checked, ClusterKeyLookup, ClusterKeys
from hortus.apiserver.authn.identity import RequestCredentials, UserInfo
from hortus.apiserver.authn.subjects import subject_of
from hortus.apiserver.tenants import ROOT_CLUSTER
from hortus.kube.clock import Clock
from hortus.kube.errors import Unauthorized

AUTHENTICATED = "system:authenticated"
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"


def peer_certificate(transport: asyncio.BaseTransport | None) -> bytes:
    """The verified client certificate of a connection in DER, empty when there is none; ask once per connection."""
    tls: ssl.SSLObject | None = transport.get_extra_info("ssl_object") if transport is not None else None
    return (tls.getpeercert(binary_form=True) or b"") if tls is not None else b""


class CertificateAuthenticator:
    """Certificates of each cluster's own authority, and of `authorities` for users of the root cluster."""

    def __init__(
        self, clusters: ClusterKeyLookup, clock: Clock, *, authorities: Sequence[x509.Certificate] = ()
    ) -> None:
        self._clusters = clusters
        self._clock = clock
        self._authorities = authorities

    async def authenticate(self, credentials: RequestCredentials) -> UserInfo | None:
        return self.check(credentials.cluster, credentials.certificate)

    def check(self, cluster: str, der: bytes) -> UserInfo | None:
        """The user of a certificate, None without one. About 0.2 ms the first time, below 1 µs afterwards."""
        if not der:
            return None
        keys = self._clusters.keys(cluster)
        if keys is None:
            raise Unauthorized("Unauthorized")
        checked = keys.certificates.get(der) if keys.certificates is not None else None
        if checked is None:
            authorities = self._authorities if cluster == ROOT_CLUSTER else ()
            checked = _verified(keys, der, authorities)
            keys.remember_certificate(der, checked)
        if not checked.not_before <= self._clock.now() <= checked.not_after:
            raise Unauthorized("Unauthorized")
        return checked.user


def _verified(keys: ClusterKeys, der: bytes, authorities: Sequence[x509.Certificate]) -> Checked:
    try:
        certificate = x509.load_der_x509_certificate(der)
        if not _for_clients(certificate):
            raise Unauthorized("Unauthorized")
        issuer = keys.authority
        if certificate.issuer == issuer.certificate.subject:
            issuer.key.public_key().verify(
                certificate.signature, certificate.tbs_certificate_bytes, ec.ECDSA(hashes.SHA256())
            )
        elif not any(_issued_by(certificate, authority) for authority in authorities):
            raise Unauthorized("Unauthorized")
        return Checked(
            _user(certificate, der),
            certificate.not_valid_before_utc.timestamp(),
            certificate.not_valid_after_utc.timestamp(),
        )
    except (ValueError, InvalidSignature, x509.ExtensionNotFound) as problem:
        raise Unauthorized("Unauthorized") from problem


def _issued_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _for_clients(certificate: x509.Certificate) -> bool:
    try:
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        constraints = x509.BasicConstraints(ca=False, path_length=None)
    return not constraints.ca and _allows_clients(certificate)


def _allows_clients(certificate: x509.Certificate) -> bool:
    """Reports whether the key may identify a client; without extended key usages it may be used for all (RFC 5280,
    section 4.2.1.12)."""
    try:
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return True
    return ExtendedKeyUsageOID.CLIENT_AUTH in usage or ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE in usage


def _user(certificate: x509.Certificate, der: bytes) -> UserInfo:
    names, organizations = subject_of(certificate)
    if not names or not names[0]:
        raise ValueError("the certificate names no user")
    groups = tuple(dict.fromkeys([*organizations, AUTHENTICATED]))
    credential = f"X509SHA256={hashlib.sha256(der).hexdigest()}"
    return UserInfo(username=names[-1], groups=groups, extra={CREDENTIAL_ID: (credential,)})
