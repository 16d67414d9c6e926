"""The kubeconfig of a remote cluster: its place, one key of one Secret of the management cluster, and how it is read.

A cache of Secrets says when one changes; it may hold checksums in place of values (`sealed`), so that thousands of
credentials do not lie in memory. The value itself is read when a connection is opened, and forgotten after.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol

from hortus.engine.kubeconfigs.secrets import SECRETS
from hortus.kube.errors import KubeError, NotFound
from hortus.kube.objects import Object, Resource

if TYPE_CHECKING:
    from hortus.engine.cache import Cache, Change


class KubeconfigRef(NamedTuple):
    """One key of one Secret: what a connection is known by."""

    namespace: str
    name: str
    key: str

    def __str__(self) -> str:
        return f"Secret {self.namespace}/{self.name}, key {self.key}"


class CredentialMissing(KubeError):
    """A Secret that does not exist or lacks the key."""


class KubeconfigSource(Protocol):
    """The source of kubeconfigs."""

    async def read(self, place: KubeconfigRef) -> bytes:
        """The kubeconfig as it is now. Raises CredentialMissing, or KubeError when the place cannot be asked."""

    def subscribe(self, changed: Callable[[str, str], None]) -> Callable[[], None]:
        """Call `changed(namespace, name)` when a Secret has appeared, changed or gone; returns the way to stop it."""


class SecretReader(Protocol):
    """The part of `hortus.kube.Client` that reading uses."""

    async def get(self, resource: Resource, name: str, namespace: str = "") -> Object: ...


class SecretCredentials:
    """Kubeconfigs from the Secrets of the management cluster; `cache` reports their changes."""

    def __init__(self, client: SecretReader, cache: Cache) -> None:
        self._client = client
        self._cache = cache

    async def read(self, place: KubeconfigRef) -> bytes:
        # Not from the cache: it may be a moment behind, and a moment later nobody would ask again.
        try:
            secret = await self._client.get(SECRETS, place.name, place.namespace)
        except NotFound:
            raise CredentialMissing(f"{place}: there is no such Secret; create it with a kubeconfig") from None
        value = (secret.get("data") or {}).get(place.key)
        if not value:
            raise CredentialMissing(f"{place}: the Secret has no such key; put a kubeconfig there")
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            raise CredentialMissing(f"{place}: the value is not base64") from None

    def subscribe(self, changed: Callable[[str, str], None]) -> Callable[[], None]:
        def on_change(change: Change) -> None:
            before = change.old.get("data") if change.old is not None else None
            after = change.new.get("data") if change.new is not None else None
            if before != after:
                changed(change.key.namespace, change.key.name)

        return self._cache.subscribe(on_change)
