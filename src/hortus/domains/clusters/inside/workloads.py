"""The way into a workload cluster: the kubeconfig in the Secret of its Runtime, which is data and not to be trusted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from hortus.domains.clusters import service
from hortus.engine.remote import Phase, Place, RemotePool, RemoteUnavailable
from hortus.kube import Client
from hortus.kube.errors import ApiError, KubeError, TooManyRequests, TransportError
from hortus.kube.objects import Object


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
        """A client for the Runtime's cluster while the context lasts.

        A KubeError inside the context leaves it as InsideError, or NoWayIn.
        """


class PoolWorkloads:
    """Clients of a pool, which knows what a cluster that misbehaves is allowed to cost."""

    def __init__(self, pool: RemotePool) -> None:
        self._pool = pool

    @asynccontextmanager
    async def open(self, runtime: Object) -> AsyncIterator[Client]:
        """See `Workloads`."""
        try:
            yield self._pool.at(place_of(runtime))
        except RemoteUnavailable as error:
            if error.state.phase is Phase.NO_CREDENTIAL:
                raise NoWayIn(str(error)) from error
            raise InsideError(str(error), transient=True) from error
        except KubeError as error:
            raise InsideError(str(error), transient=_passes(error)) from error


def place_of(runtime: Object) -> Place:
    """Where the kubeconfig of a Runtime's cluster lies."""
    return Place(*service.secret_key(runtime), service.KUBECONFIG_KEY)


def _passes(error: KubeError) -> bool:
    return isinstance(error, TransportError | TooManyRequests) or (
        isinstance(error, ApiError) and error.http_code >= 500
    )
