"""Client certificates of a logical cluster, on request, and kubeconfigs for it.

Approved CertificateSigningRequests for `kubernetes.io/kube-apiserver-client` are signed here (Kubernetes documentation,
"Certificates and Certificate Signing Requests"): the way by which users of `kubectl` get a client certificate.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding

from hortus.apiserver.authn.certificates import (
    SKEW_SECONDS,
    IssuedCertificate,
    PublicKey,
    client_certificate,
    key_pem,
    new_key,
    parsed_request,
)
from hortus.apiserver.authn.cluster_keys import ClusterKeys
from hortus.apiserver.authn.subjects import name_of, subject_of
from hortus.apiserver.authz.rbac import MASTERS
from hortus.apiserver.authz.signers import CLIENT_SIGNER
from hortus.kube.errors import BadRequest
from hortus.kube.objects import Object


def issue(
    keys: ClusterKeys, *, username: str, groups: Sequence[str] = (), seconds: float, now: float, csr: bytes = b""
) -> IssuedCertificate:
    """A certificate for `username` in that cluster, valid for `seconds` from now; takes about 0.3 ms.

    With `csr` (PEM) its key is certified and its subject ignored; else a new key is made. Raises BadRequest.
    """
    if seconds <= 0:
        raise BadRequest(f"a certificate must be valid for more than 0 seconds, not {seconds:g}")
    key = None if csr else new_key()
    try:
        subject = name_of(username, tuple(dict.fromkeys(groups)))
        public_key = key.public_key() if key else requested_key(csr)
    except ValueError as problem:
        raise BadRequest(f"cannot issue a client certificate: {problem}") from problem
    authority = keys.authority
    end = min(now + seconds, authority.certificate.not_valid_after_utc.timestamp())
    leaf = client_certificate(authority, public_key, subject, start=now - SKEW_SECONDS, end=end)
    return IssuedCertificate(
        certificate=leaf.public_bytes(Encoding.PEM) + authority.pem,
        key=key_pem(key) if key else b"",
        ca=keys.server_ca,
        not_before=leaf.not_valid_before_utc.timestamp(),
        not_after=leaf.not_valid_after_utc.timestamp(),
    )


def requested_key(pem: bytes) -> PublicKey:
    """The public key of a certificate signing request with a valid signature; raises ValueError otherwise."""
    return _usable(parsed_request(pem).public_key())


def _usable(key: CertificatePublicKeyTypes) -> PublicKey:
    if isinstance(key, rsa.RSAPublicKey) and key.key_size < 2048:
        raise ValueError(f"the signing request's RSA key has {key.key_size} bits; use at least 2048")
    if not isinstance(key, ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey | rsa.RSAPublicKey):
        raise ValueError("the signing request's key must be of type ECDSA, Ed25519 or RSA")
    return key


LONGEST_SECONDS = 365 * 86400
"""The default and the maximum of a request's time (kube-controller-manager's default)."""

_ALLOWED_USAGES = frozenset({"client auth", "digital signature", "key encipherment"})


def certificate_for(request: Object, keys: ClusterKeys, *, now: float) -> str:
    """The base64 text for `status.certificate` of an approved request; empty when it is not ours or not yet to sign.

    Raises BadRequest saying why it cannot be signed, for the condition `Failed`.
    """
    spec, status = request.get("spec") or {}, request.get("status") or {}
    conditions = {condition.get("type") for condition in status.get("conditions") or ()}
    if spec.get("signerName") != CLIENT_SIGNER or "Approved" not in conditions or conditions & {"Denied", "Failed"}:
        return ""
    if status.get("certificate"):
        return ""
    usages = set(spec.get("usages") or ())
    if "client auth" not in usages or usages - _ALLOWED_USAGES:
        raise BadRequest(f"spec.usages {sorted(usages)}: {CLIENT_SIGNER} signs for client auth only")
    seconds = min(spec.get("expirationSeconds") or LONGEST_SECONDS, LONGEST_SECONDS)
    csr, user, groups = _subject(spec.get("request", ""))
    issued = issue(keys, username=user, groups=groups, seconds=seconds, now=now, csr=csr)
    return base64.b64encode(issued.certificate).decode()


def _subject(encoded: str) -> tuple[bytes, str, Sequence[str]]:
    try:
        pem = base64.b64decode(encoded, validate=True)
        names, groups = subject_of(parsed_request(pem))
    except (ValueError, binascii.Error) as problem:
        raise BadRequest(f"spec.request is no certificate signing request: {problem}") from problem
    if MASTERS in groups:
        raise BadRequest(f"spec.request asks for the group {MASTERS}, which {CLIENT_SIGNER} does not sign for")
    return pem, names[-1] if names else "", groups


def certificate_kubeconfig(issued: IssuedCertificate, *, server: str, name: str, user: str = "admin") -> Object:
    """A kubeconfig that logs in with a client certificate; `server` is the cluster's URL, `name` its context."""
    if not issued.key:
        raise ValueError("a kubeconfig needs the private key, and this certificate was made for a signing request")
    credential = {"client-certificate-data": _encode(issued.certificate), "client-key-data": _encode(issued.key)}
    return _document(server, issued.ca, name, user, credential)


def token_kubeconfig(token: str, *, ca: bytes, server: str, name: str, user: str = "admin") -> Object:
    """A kubeconfig that logs in with a bearer token; `ca` is PEM."""
    return _document(server, ca, name, user, {"token": token})


def _document(server: str, ca: bytes, name: str, user: str, credential: Mapping[str, str]) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, "certificate-authority-data": _encode(ca)}}],
        "users": [{"name": f"{name}-{user}", "user": dict(credential)}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": f"{name}-{user}"}}],
        "current-context": name,
    }


def _encode(pem: bytes) -> str:
    return base64.b64encode(pem).decode()
