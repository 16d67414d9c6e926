"""The way into a workload cluster: the kubeconfig in the Secret of its Runtime, which is data and not to be trusted."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from hortus.domains.clusters import service
from hortus.kube import Client, ConnectionSettings
from hortus.kube.errors import ApiError, KubeError, NotFound, TooManyRequests, TransportError
from hortus.kube.kubeconfig import KubeconfigError, Trust, from_untrusted
from hortus.kube.objects import Object, Resource

SECRETS = Resource("", "v1", "secrets", "Secret")
_LONGEST_ANSWER = 32 * 1024 * 1024
"""Bytes; a cluster that answers with more than its bindings is not read to the end."""


class InsideError(Exception):
    """Something inside a cluster could not be read or written; the text may be shown."""

    def __init__(self, text: str, *, transient: bool) -> None:
        super().__init__(text)
        self.transient = transient
        """Whether trying again may help without anybody's doing."""


class NoWayIn(InsideError):
    """There is no usable kubeconfig."""

    def __init__(self, text: str) -> None:
        super().__init__(text, transient=True)


class Workloads(Protocol):
    """Where clients of workload clusters come from."""

    def open(self, runtime: Object) -> AbstractAsyncContextManager[Client]:
        """A client for the Runtime's cluster while the context lasts. Raises NoWayIn.

        A KubeError inside the context leaves it as InsideError.
        """


class KubeconfigWorkloads:
    """One connection for each use, which is rare: a cluster at rest is not visited."""

    def __init__(self, client: Client, *, timeout: float, plain_http: bool = False) -> None:
        """`client` is the management cluster; `timeout` in seconds, for each request."""
        self._client = client
        self._trust = Trust(plain_http=plain_http)
        self._settings = ConnectionSettings(
            connections=2, timeout=timeout, connect_timeout=timeout, max_response=_LONGEST_ANSWER
        )

    @asynccontextmanager
    async def open(self, runtime: Object) -> AsyncIterator[Client]:
        """See `Workloads`."""
        content = await self._kubeconfig(runtime)
        origin = f"kubeconfig of shoot {service.shoot_name(runtime)}"
        try:
            access = from_untrusted(content, trust=self._trust, origin=origin).access()
            client = Client(access, settings=self._settings)
        except (KubeconfigError, ValueError) as error:
            raise NoWayIn(str(error)) from error
        async with client:
            try:
                yield client
            except KubeError as error:
                raise InsideError(str(error), transient=_passes(error)) from error

    async def _kubeconfig(self, runtime: Object) -> bytes:
        namespace, name = service.secret_key(runtime)
        where = f"secret {namespace}/{name}"
        try:
            secret = await self._client.get(SECRETS, name, namespace)
        except NotFound:
            raise NoWayIn(f"{where} does not exist") from None
        try:
            return base64.b64decode((secret.get("data") or {})[service.KUBECONFIG_KEY], validate=True)
        except (KeyError, TypeError, ValueError, binascii.Error):
            raise NoWayIn(f"{where} has no readable key {service.KUBECONFIG_KEY}") from None


def _passes(error: KubeError) -> bool:
    return isinstance(error, TransportError | TooManyRequests) or (
        isinstance(error, ApiError) and error.http_code >= 500
    )
