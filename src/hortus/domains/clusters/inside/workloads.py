"""The way into a workload cluster: the kubeconfig in the Secret of its Runtime, which is data and not to be trusted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

from hortus.domains.clusters import service
from hortus.domains.clusters.types import Runtime
from hortus.domains.credentials.types import Label
from hortus.engine import Cache, metadata_of
from hortus.engine.deputies import Deputies, refusal, secret_reading
from hortus.engine.remote import SECRETS, KubeconfigRef, Phase, RemotePool, RemoteUnavailable
from hortus.kube import Client
from hortus.kube.errors import ApiError, KubeError, NotFound, TooManyRequests, TransportError
from hortus.kube.objects import ObjectKey


class InsideError(Exception):
    """Something inside a cluster could not be read or written; the text may be shown."""

    def __init__(self, text: str, *, transient: bool) -> None:
        super().__init__(text)
        self.transient = transient
        """A retry may succeed without anybody's action."""


class NoWayIn(InsideError):
    """The cluster has no usable kubeconfig."""

    def __init__(self, text: str) -> None:
        super().__init__(text, transient=True)


class NotPermitted(InsideError):
    """The deputy of the Runtime's namespace may not read the kubeconfig, which leads to all of the cluster."""

    def __init__(self, text: str) -> None:
        super().__init__(text, transient=True)


class Workloads(Protocol):
    """A source of clients of workload clusters."""

    def open(self, runtime: Runtime) -> AbstractAsyncContextManager[Client]:
        """A client for the Runtime's cluster while the context lasts.

        A KubeError inside the context leaves it as InsideError, NoWayIn or NotPermitted.
        """


class PoolWorkloads:
    """Clients of a pool, which knows what a cluster that misbehaves is allowed to cost."""

    def __init__(self, pool: RemotePool, client: Client, kubeconfigs: Cache, deputies: Deputies) -> None:
        """`kubeconfigs` holds the Secrets with the label of a shoot, which `client` reads where it is behind."""
        self._pool = pool
        self._client = client
        self._kubeconfigs = kubeconfigs
        self._deputies = deputies

    @asynccontextmanager
    async def open(self, runtime: Runtime) -> AsyncIterator[Client]:
        """See `Workloads`."""
        place = place_of(runtime)
        try:
            await self._check_permission(place)
            await self._check_shoot(place, service.shoot_name(runtime))
            yield self._pool.at(place)
        except RemoteUnavailable as error:
            if error.state.phase is Phase.NO_CREDENTIAL:
                raise NoWayIn(str(error)) from error
            raise InsideError(str(error), transient=True) from error
        except KubeError as error:
            raise InsideError(str(error), transient=_passes(error)) from error

    async def _check_permission(self, place: KubeconfigRef) -> None:
        reading = secret_reading(place.namespace, place.name)
        if not await self._deputies.may(place.namespace, reading):
            raise NotPermitted(refusal(place.namespace, reading))

    async def _check_shoot(self, place: KubeconfigRef, shoot: str) -> None:
        """See that the Secret was written for this shoot. Raises NoWayIn.

        A user who may write Runtimes and no Secrets must not reach another cluster, whose kubeconfig happens to lie
        where the runtime-id points to.
        """
        secret = self._kubeconfigs.get(ObjectKey(place.namespace, place.name))
        if secret is None:
            try:
                secret = await self._client.get(SECRETS, place.name, place.namespace, metadata_only=True)
            except NotFound:
                return  # the pool says so
        found = metadata_of(secret).labels.get(Label.SHOOT_NAME)
        if found != shoot:
            raise NoWayIn(
                f"{place}: it was not written for shoot {shoot}: its label {Label.SHOOT_NAME} is {found!r} (operator: "
                "delete it, or give the Runtime another runtime-id)"
            )


def place_of(runtime: Runtime) -> KubeconfigRef:
    """The place of the kubeconfig of a Runtime's cluster."""
    return KubeconfigRef(*service.secret_key(runtime), service.KUBECONFIG_KEY)


def _passes(error: KubeError) -> bool:
    return isinstance(error, TransportError | TooManyRequests) or (
        isinstance(error, ApiError) and error.http_code >= 500
    )
