"""Kubeconfig Secrets as controllers hold them: typed, with checksums in place of what is confidential.

A cache with the transform `sealed` keeps no credential in memory, none can reach a log, and still an edited value is
noticed: its checksum differs from the one that the Secret was written with.
"""

from __future__ import annotations

import base64
import hashlib

from msgspec import field

from hortus.engine.typed import read
from hortus.kube.objects import Object, ObjectKey, Resource
from hortus.schema import Kind, kind

SECRETS = Resource("", "v1", "secrets", "Secret")


@kind(group="", version="v1", name="Secret")
class KubeconfigSecret(Kind, frozen=True):
    """A Secret with a kubeconfig."""

    data: dict[str, str] = field(default_factory=dict)
    """By key: the checksum of each value, or the value itself where the Secret was not `sealed`."""

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.metadata.namespace, self.metadata.name)

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.annotations

    @property
    def owner_uids(self) -> frozenset[str]:
        return frozenset(owner.uid for owner in self.metadata.owner_references)


def sealed(secret: Object) -> Object:
    """The Secret with checksums in place of its values and without managedFields: a transform for caches.

    It changes and returns the very dict it gets. Sealing twice is sealing once: base64 knows no colon.
    """
    data = secret.get("data")
    if data:
        secret["data"] = {key: value if ":" in value else checksum(value) for key, value in data.items()}
    secret["metadata"].pop("managedFields", None)
    return secret


def read_secret(secret: Object) -> KubeconfigSecret:
    """The struct of a Secret as a server sent it, sealed. Raises NotReadable."""
    return read(KubeconfigSecret, sealed(secret))


def encoded(kubeconfig: bytes) -> str:
    """The value that a kubeconfig becomes in a Secret."""
    return base64.b64encode(kubeconfig).decode()


def checksum(value: str) -> str:
    """The checksum of one value of a Secret, as `encoded` returns it."""
    return f"sha256:{hashlib.sha256(value.encode()).hexdigest()}"
