"""The Secrets of the watcher in the control plane: the authority, the gateway's, and one for each agent.

A cache holds each as an outline, without values: there may be thousands, and one is needed only when it goes to its
cluster. The gateway's bundle is public and stays.
"""

from __future__ import annotations

import base64
from typing import Final

import msgspec

from hortus.domains.modules.names import MANAGED_BY_LIFECYCLE_MANAGER, Annotation, Label
from hortus.domains.modules.watching.authorities import begins, certificates, ends
from hortus.kube.objects import Object, parse_time

PURPOSE: Final = "klm-watcher-cert-manager"
LABELS: Final = {Label.PURPOSE: PURPOSE, Label.MANAGED_BY: MANAGED_BY_LIFECYCLE_MANAGER}
"""Labels of agents' Secrets in the control plane."""
ISSUED_AT: Final = "watcher.hortus.dev/issued-at"
"""Annotation of a Secret that Hortus issued: the time, which the certificate's notBefore precedes."""
_CERTIFICATE: Final = "tls.crt"
_BUNDLE: Final = "ca.crt"


class SecretMetadata(msgspec.Struct, rename="camel", frozen=True):
    """The metadata of a Secret that matter here."""

    name: str
    namespace: str
    resource_version: str = ""
    annotations: dict[str, str] = {}


class CertificateSecret(msgspec.Struct, frozen=True):
    """The outline of a Secret with a certificate."""

    metadata: SecretMetadata
    begins: float = 0.0
    """Time of notBefore, or of its issue where that is noted; 0 where the certificate cannot be read."""
    ends: float = 0.0
    """Time of notAfter; 0 where the certificate cannot be read."""
    bundle: str = ""
    """The certificates under ca.crt, PEM; of the gateway's Secret alone."""

    @property
    def added_at(self) -> float:
        """The time at which the youngest authority entered the bundle; 0 where it is not noted."""
        return time_of(self.metadata.annotations.get(Annotation.CA_ADDED_TO_BUNDLE_AT, ""))


class TlsSecret(msgspec.Struct, frozen=True):
    """A Secret with its values."""

    metadata: SecretMetadata
    data: dict[str, str] = {}

    def value(self, name: str) -> bytes:
        """One value; empty where there is none, or none that can be read."""
        try:
            return base64.b64decode(self.data.get(name, ""))
        except ValueError:
            return b""


def read_tls(secret: Object) -> TlsSecret:
    """The Secret as a server sent it, with its values."""
    return msgspec.convert(secret, TlsSecret)


def outline(secret: Object) -> Object:
    """A transform for the cache of agents' Secrets."""
    return _outlined(secret, bundle=False)


def outline_with_bundle(secret: Object) -> Object:
    """A transform for the cache of the gateway's Secret."""
    return _outlined(secret, bundle=True)


def read_outline(outlined: Object) -> CertificateSecret:
    """The struct of a cached outline."""
    return msgspec.convert(outlined, CertificateSecret)


def time_of(text: str) -> float:
    """The time of an annotation; 0 where it cannot be read."""
    try:
        return parse_time(text)
    except ValueError:
        return 0.0


def _outlined(secret: Object, *, bundle: bool) -> Object:
    if "begins" in secret:
        return secret  # an outline already
    found = read_tls(secret)
    start, end = _validity(found.value(_CERTIFICATE))
    metadata = secret["metadata"]
    metadata.pop("managedFields", None)
    outlined: Object = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "begins": start, "ends": end}
    issued_at = found.metadata.annotations.get(ISSUED_AT)
    if issued_at is not None:
        outlined["begins"] = time_of(issued_at)
    if bundle:
        outlined["bundle"] = found.value(_BUNDLE).decode("ascii", "replace")
    return outlined


def _validity(pem: bytes) -> tuple[float, float]:
    try:
        first = certificates(pem)[0]
    except (ValueError, IndexError):
        return 0.0, 0.0
    return begins(first), ends(first)
