"""Kubeconfig Secrets as this domain remembers them: without what is confidential.

The cache keeps a checksum in place of each value, so that thousands of credentials neither lie in memory nor can reach
a log, and still a Secret that somebody edited is noticed.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable

from hortus.domains.credentials.types import Label
from hortus.kube.objects import Object

LABEL_LIMIT = 63
"""Characters of a label's value; names of objects have 253."""
SELECTOR = Label.SHOOT_NAME
"""Label selector of the Secrets that may be kubeconfig Secrets: the contract finds them by their shoot label."""


def label_of(name: str) -> str:
    """The value of the cluster label for a GardenerCluster's name: itself, shortened where no label is that long."""
    if len(name) <= LABEL_LIMIT:
        return name
    return f"{name[: LABEL_LIMIT - 13]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"


def checksum(content: str) -> str:
    """The checksum of one base64 value of a Secret."""
    return f"sha256:{hashlib.sha256(content.encode()).hexdigest()}"


def checksum_of(kubeconfig: bytes) -> str:
    """The checksum of the value that `kubeconfig` becomes in a Secret."""
    return checksum(base64.b64encode(kubeconfig).decode())


def sealed(secret: Object) -> Object:
    """The Secret with checksums in place of its values, and without what nobody here reads. Changes `secret`.

    Sealing twice is sealing once: base64 knows no colon.
    """
    data = secret.get("data")
    if data:
        secret["data"] = {key: value if ":" in value else checksum(value) for key, value in data.items()}
    secret["metadata"].pop("managedFields", None)
    return secret


def by_shoot(secret: Object) -> Iterable[str]:
    return _label(secret, Label.SHOOT_NAME)


def _label(secret: Object, label: str) -> Iterable[str]:
    value = (secret["metadata"].get("labels") or {}).get(label)
    return (value,) if value else ()
