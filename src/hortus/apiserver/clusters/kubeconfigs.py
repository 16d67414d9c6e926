"""Kubeconfig documents for a logical cluster."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from hortus.apiserver.authn.certificates import IssuedCertificate
from hortus.kube.objects import Object


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
