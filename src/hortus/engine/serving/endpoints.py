"""The place at which clients reach a server of the controllers."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

import msgspec

from hortus.kube.objects import Object

_PORT: Final = 443


class ServingEndpoint(msgspec.Struct, frozen=True):
    """A URL, or a Service in the controllers' namespace."""

    url: str = ""
    service: str = ""
    namespace: str = ""

    def names(self) -> Sequence[str]:
        """The names for which the certificate is made."""
        if self.url:
            return [_canonical(urlsplit(self.url).hostname or "")]
        service = f"{self.service}.{self.namespace}"
        return [f"{service}.svc", f"{service}.svc.cluster.local"]

    @property
    def host(self) -> str:
        """Host and port for clients that follow no Service, such as those of a registry."""
        return urlsplit(self.url).netloc if self.url else self.names()[0]

    def client_config(self, bundle: bytes) -> Object:
        """The `clientConfig` by which Kubernetes' APIs name a server to be called."""
        trusted = {"caBundle": base64.b64encode(bundle).decode()}
        if self.url:
            return {"url": self.url, **trusted}
        return {"service": {"name": self.service, "namespace": self.namespace, "port": _PORT}, **trusted}


def _canonical(host: str) -> str:
    """An address as it is read back from a certificate, or the DNS name as it is."""
    try:
        return str(ip_address(host))
    except ValueError:
        return host
