"""The exec plugin that hands out the credentials of a stored kubeconfig (client.authentication.k8s.io, KEP-541).

A kubeconfig written today names the plugin instead of a credential, so it works tomorrow. The plugin's settings stand
in its arguments, or, where programs get them from an API object, in the extension `client.authentication.k8s.io/exec`
of the cluster. Such an object is untrusted: it names both the stored kubeconfig and the server that will be sent its
credential. So nothing is handed out for a server or a CA that the stored kubeconfig does not name.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

import msgspec

from hortus.kube.access import Access, Credentials
from hortus.kube.kubeconfig.document import Kubeconfig, KubeconfigError
from hortus.kube.objects import Object, format_time
from hortus.kube.tokens import claims_of

EXEC_INFO = "KUBERNETES_EXEC_INFO"
API_VERSION = "client.authentication.k8s.io/v1"
_VERSIONS = (API_VERSION, "client.authentication.k8s.io/v1beta1")
_PORTS = {"https": 443, "http": 80}
_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)


class SecretSettings(msgspec.Struct, frozen=True):
    """The Secret with the stored kubeconfig."""

    namespace: str = ""
    name: str = ""
    key: str = ""
    """Key of its data; empty for the one that is there."""


class PluginSettings(msgspec.Struct, frozen=True):
    """The plugin's part of a cluster's extension."""

    secret: SecretSettings = SecretSettings()


class _Cluster(msgspec.Struct, frozen=True):
    server: str = ""
    ca: str = msgspec.field(default="", name="certificate-authority-data")
    insecure: bool = msgspec.field(default=False, name="insecure-skip-tls-verify")
    config: PluginSettings | None = None


class _Spec(msgspec.Struct, frozen=True):
    cluster: _Cluster | None = None


class ExecRequest(msgspec.Struct, frozen=True, rename="camel"):
    """The client's part of an ExecCredential, as it stands in KUBERNETES_EXEC_INFO."""

    api_version: str = API_VERSION
    spec: _Spec = _Spec()

    @classmethod
    def parse(cls, text: str) -> ExecRequest:
        """The request in the environment; a request without a cluster if there is none. Raises KubeconfigError."""
        try:
            request = msgspec.json.decode(text, type=cls) if text else cls()
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise KubeconfigError(f"{EXEC_INFO} is not an ExecCredential: {error}") from None
        if request.api_version not in _VERSIONS:
            known = ", ".join(_VERSIONS)
            raise KubeconfigError(f"{EXEC_INFO}: apiVersion {request.api_version!r} is not one of {known}")
        return request

    @property
    def settings(self) -> PluginSettings:
        """The settings in the cluster's extension."""
        cluster = self.spec.cluster
        return (cluster.config if cluster is not None else None) or PluginSettings()

    def context_of(self, stored: Kubeconfig, origin: str) -> Access:
        """The context of the stored kubeconfig for the server that the client asks about.

        That is the current context where the client names no server. Raises KubeconfigError.
        """
        wanted = self.spec.cluster
        if wanted is None:
            return stored.access()
        servers = []
        for name in dict.fromkeys((stored.current_context, *stored.contexts)):
            access = stored.access(name)
            servers.append(access.server)
            if _address(access.server) == _address(wanted.server):
                _check_trust(wanted, access, origin)
                return access
        raise KubeconfigError(
            f"{origin} leads to {', '.join(dict.fromkeys(servers))}, and the client asks for {wanted.server}: no "
            "credential is handed out. If the cluster moved, write its context again"
        )


def exec_credential(request: ExecRequest, access: Access, *, origin: str, now: float) -> Object:
    """The answer to a client: token or certificate, and its end. Raises KubeconfigError when there is none."""
    credentials = access.credentials
    status: dict[str, Any] = {}
    if credentials.token is not None:
        status["token"] = credentials.token.reveal()
    if credentials.certificate and credentials.key is not None:
        status["clientCertificateData"] = credentials.certificate.decode()
        status["clientKeyData"] = credentials.key.reveal()
    if not status:
        raise KubeconfigError(f"{origin} holds neither a token nor a client certificate with its key")
    end = _end(credentials, origin)
    if end is not None:
        if end <= now:
            raise KubeconfigError(f"the credential in {origin} ended at {format_time(end)}; do the controllers run?")
        status["expirationTimestamp"] = format_time(end)
    return {"apiVersion": request.api_version, "kind": "ExecCredential", "status": status}


def with_plugin(
    document: Object, command: Sequence[str], arguments: Sequence[str], environment: Mapping[str, str]
) -> Object:
    """A document of one user whose credential is what `command` with `arguments` prints."""
    entry: Object = {
        "apiVersion": API_VERSION,
        "command": command[0],
        "args": [*command[1:], *arguments],
        "env": [{"name": name, "value": value} for name, value in environment.items()] or None,
        "interactiveMode": "Never",
        "provideClusterInfo": True,
        "installHint": f"{command[0]} is the program of Hortus that wrote this entry; write it again where it moved",
    }
    (user,) = document["users"]
    return {**document, "users": [{**user, "user": {"exec": entry}}]}


def _address(server: str) -> tuple[str, str, int, str]:
    """The parts of a URL that lead to a server."""
    try:
        url = urlsplit(server)
        return url.scheme, url.hostname or "", url.port or _PORTS.get(url.scheme, 0), url.path.rstrip("/")
    except ValueError:
        return server, "", 0, ""


def _check_trust(wanted: _Cluster, access: Access, origin: str) -> None:
    """Raises KubeconfigError for a client that trusts more certificates than the stored kubeconfig does."""
    try:
        asked = _certificates(base64.b64decode(wanted.ca, validate=True))
    except (binascii.Error, ValueError):
        raise KubeconfigError(f"{EXEC_INFO}: certificate-authority-data is not base64") from None
    known = _certificates(access.ca)
    if wanted.insecure or not asked <= known or bool(asked) != bool(known):
        raise KubeconfigError(
            f"the client trusts other certificates for {wanted.server} than {origin} does: no credential is handed "
            "out. If the cluster's CA was replaced, write its context again"
        )


def _certificates(pem: bytes) -> frozenset[bytes]:
    return frozenset(b"".join(block.split()) for block in _PEM.findall(pem))


def _end(credentials: Credentials, origin: str) -> float | None:
    """The time at which the first of the credentials ends, in seconds since the epoch."""
    from cryptography import x509

    ends = []
    if credentials.token is not None and (end := claims_of(credentials.token).exp) is not None:
        ends.append(end)
    if credentials.certificate:
        try:
            certificate = x509.load_pem_x509_certificate(credentials.certificate)
        except ValueError:
            raise KubeconfigError(f"{origin}: client-certificate-data is no PEM certificate") from None
        ends.append(certificate.not_valid_after_utc.timestamp())
    return min(ends, default=None)
