"""The certificate of a server: from files, or made here and kept in a Secret for all replicas.

A certificate that is made here is its own authority. Clients trust it by the `caBundle` of an object, which is written
before the server shows the certificate, and holds the one before as well.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from hortus.kube import Secret
from hortus.kube.objects import Object, ObjectKey
from hortus.kube.tls import server_context

LIFE: Final = 90 * 86400.0
"""Seconds that a certificate is valid, cert-manager's default."""
RENEW: Final = 30 * 86400.0
"""Seconds before its end at which a certificate is replaced."""
SKEW: Final = 300.0
"""Seconds by which clocks may differ: a certificate begins so much earlier."""
_KEYS: Final = ("tls.crt", "tls.key", "ca.crt")


class ServingPair(NamedTuple):
    """A certificate with its key, and the authorities by which a client trusts it, all PEM."""

    certificate: bytes
    key: Secret
    bundle: bytes

    @property
    def ends(self) -> float:
        """Time of notAfter. Raises ValueError for a certificate that cannot be read."""
        from hortus.engine.serving.issuing import end_of

        return end_of(self.certificate)

    @property
    def names(self) -> frozenset[str]:
        """The names for which it is made. Raises ValueError for a certificate that cannot be read."""
        from hortus.engine.serving.issuing import names_of

        return names_of(self.certificate)


def self_signed(names: Sequence[str], *, now: float, before: ServingPair | None = None) -> ServingPair:
    """A new pair for DNS names and addresses; clients that trust `before` go on trusting it."""
    from hortus.engine.serving.issuing import issued

    certificate, key = issued(names, begins=now - SKEW, ends=now + LIFE)
    return ServingPair(certificate, key, certificate + (before.certificate if before is not None else b""))


def is_due(pair: ServingPair, names: Sequence[str], *, now: float) -> bool:
    """Reports whether a pair has to be replaced: it ends soon, lacks a name or its key, or cannot be read."""
    try:
        server_context(certificate=pair.certificate, key=pair.key)
        return pair.ends - now < RENEW or not set(names) <= pair.names
    except ValueError:
        return True


def pair_in(folder: Path) -> ServingPair | None:
    """The pair in the files tls.crt and tls.key; None where they are not there. Raises OSError."""
    certificate, key = folder / _KEYS[0], folder / _KEYS[1]
    if not (certificate.is_file() and key.is_file()):
        return None
    authority = folder / _KEYS[2]
    bundle = authority.read_bytes() if authority.is_file() else b""
    return ServingPair(certificate.read_bytes(), Secret(key.read_text()), bundle)


def pair_of(data: dict[str, str]) -> ServingPair | None:
    """The pair in the data of a Secret; None where it is not complete."""
    return pair_from({key: base64.b64decode(data.get(key, "")) for key in _KEYS})


def pair_from(values: Mapping[str, bytes]) -> ServingPair | None:
    """The pair in the values of a Secret, decoded; None where it is not complete, or the key is no text."""
    found = [values.get(key, b"") for key in _KEYS]
    if not all(found) or not found[1].isascii():
        return None
    return ServingPair(found[0], Secret(found[1].decode()), found[2])


def values_of(pair: ServingPair) -> dict[str, bytes]:
    """The values of the Secret that keeps a pair."""
    return dict(zip(_KEYS, (pair.certificate, pair.key.reveal().encode(), pair.bundle), strict=True))


def secret_of(pair: ServingPair, key: ObjectKey) -> Object:
    """The Secret that keeps a pair."""
    name, namespace = key.name, key.namespace
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "type": "kubernetes.io/tls",
        "data": {key: base64.b64encode(value).decode() for key, value in values_of(pair).items()},
    }
