"""The controller of the hook server's certificate, and of the ExtensionConfig by which Cluster API finds the server.

It owns: the Secret hortus-stacks-hooks, and clientConfig and namespaceSelector of the ExtensionConfig.
It watches: that Secret. It never: touches them where the certificate comes from files, as it does with cert-manager.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import Final
from urllib.parse import urlsplit

import msgspec

from hortus.domains.stacks.hooks.certificates import (
    RENEW,
    SECRET,
    ServingPair,
    is_due,
    pair_of,
    secret_of,
    self_signed,
)
from hortus.engine import Result
from hortus.engine.kubeconfigs import SECRETS
from hortus.kube import Client, Clock
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object, ObjectKey, Resource

EXTENSION_CONFIGS: Final = Resource(
    "runtime.cluster.x-k8s.io", "v1alpha1", "extensionconfigs", "ExtensionConfig", namespaced=False
)
MANAGER: Final = "hortus-stacks"
_PORT: Final = 443


class HookEndpoint(msgspec.Struct, frozen=True):
    """The place at which Cluster API reaches the server: a URL, or a Service in the controllers' namespace."""

    url: str = ""
    service: str = ""
    namespace: str = ""

    def names(self) -> Sequence[str]:
        """The names for which the certificate is made."""
        if self.url:
            return [urlsplit(self.url).hostname or ""]
        service = f"{self.service}.{self.namespace}"
        return [f"{service}.svc", f"{service}.svc.cluster.local"]

    @property
    def host(self) -> str:
        """Host and port for clients that follow no Service, such as those of a registry."""
        return urlsplit(self.url).netloc if self.url else self.names()[0]

    def client_config(self, bundle: bytes) -> Object:
        """The `clientConfig` of the ExtensionConfig."""
        trusted = {"caBundle": base64.b64encode(bundle).decode()}
        if self.url:
            return {"url": self.url, **trusted}
        return {"service": {"name": self.service, "namespace": self.namespace, "port": _PORT}, **trusted}


class HookRegistration:
    """Reconciles the Secret of the certificate, by its key."""

    def __init__(self, client: Client, *, endpoint: HookEndpoint, config: str, namespace: str, clock: Clock) -> None:
        """`config` is the name of the ExtensionConfig; empty leaves it to somebody else."""
        self._client = client
        self._endpoint = endpoint
        self._config = config
        self._clock = clock
        self.key = ObjectKey(namespace, SECRET)

    async def reconcile(self, key: ObjectKey) -> Result | None:
        if key != self.key:
            return None
        found = await self._found()
        now, names = self._clock.now(), self._endpoint.names()
        pair = found
        if pair is None or is_due(pair, names, now=now):
            pair = self_signed(names, now=now, before=found)
        # Before the server shows it: what is not trusted yet is refused.
        await self._register(pair)
        if pair is not found:
            await self._client.apply(SECRETS, secret_of(pair, self.key.namespace), field_manager=MANAGER)
        return Result(requeue_after=max(1.0, pair.ends - RENEW - now))

    async def _found(self) -> ServingPair | None:
        try:
            secret = await self._client.get(SECRETS, self.key.name, self.key.namespace)
        except NotFound:
            return None
        return read_pair(secret)

    async def _register(self, pair: ServingPair) -> None:
        if not self._config:
            return
        spec = {"clientConfig": self._endpoint.client_config(pair.bundle), "namespaceSelector": {}}
        wanted = {"metadata": {"name": self._config}, "spec": spec}
        await self._client.apply(EXTENSION_CONFIGS, wanted, field_manager=MANAGER)


class _PairSecret(msgspec.Struct):
    data: dict[str, str] = {}


def read_pair(secret: Object) -> ServingPair | None:
    """The pair in a Secret; None where it is not complete."""
    return pair_of(msgspec.convert(secret, _PairSecret).data)


def following(identify: Callable[[ServingPair], None]) -> Callable[[Object | None], None]:
    """The function that has a server show the pair of each new state of the Secret."""

    def show(secret: Object | None) -> None:
        pair = read_pair(secret) if secret is not None else None
        if pair is not None:
            identify(pair)

    return show
