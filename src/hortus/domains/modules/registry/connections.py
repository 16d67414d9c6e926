"""Clients of the registry that follow its credentials: a rotated Secret is noticed without a restart."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hortus.domains.modules.registry.access import ReadAccess, RegistryAccess
from hortus.kube import Clock
from hortus.render.artifacts import AccessDenied, ArtifactCache, TransferSettings
from hortus.render.oci import OciClient, OciSettings

SILENCE = 15.0
"""Seconds without a byte after which a registry counts as unavailable."""
ACCESS_AGE = 60.0
"""Seconds after which the access is read again."""


class _Connection:
    """One client with the access it was made for; closed when it is replaced and unused."""

    def __init__(self, access: RegistryAccess, client: OciClient) -> None:
        self.access = access
        self.client = client
        self.users = 0
        self.replaced = False


class RegistryClients:
    """The client for the access as it is now. Used in one event loop."""

    def __init__(self, read: ReadAccess, *, cache: ArtifactCache | None, clock: Clock) -> None:
        self._read = read
        self._cache = cache
        self._clock = clock
        self._current: _Connection | None = None
        self._read_at = 0.0

    @asynccontextmanager
    async def client(self) -> AsyncIterator[tuple[OciClient, RegistryAccess]]:
        """The client and its access. A refusal has the access read again by the next caller. Raises StepError."""
        current = await self._connection()
        current.users += 1
        try:
            yield current.client, current.access
        except AccessDenied:
            self._read_at = -ACCESS_AGE
            raise
        finally:
            current.users -= 1
            await self._close_unused(current)

    @property
    def repository(self) -> str:
        """Registry and path of the access that was read last; empty before the first."""
        return self._current.access.repository if self._current is not None else ""

    async def close(self) -> None:
        current, self._current = self._current, None
        if current is not None:
            await current.client.close()

    async def _connection(self) -> _Connection:
        if self._current is None or self._clock.monotonic() - self._read_at >= ACCESS_AGE:
            access = await self._read()
            self._read_at = self._clock.monotonic()
            if self._current is None or self._current.access != access:
                client = registry_client(access, cache=self._cache, clock=self._clock)
                former, self._current = self._current, _Connection(access, client)
                if former is not None:
                    former.replaced = True
                    await self._close_unused(former)
        return self._current

    async def _close_unused(self, connection: _Connection) -> None:
        if connection.replaced and not connection.users:
            await connection.client.close()


def registry_client(
    access: RegistryAccess, *, cache: ArtifactCache | None = None, clock: Clock | None = None
) -> OciClient:
    """A client for one registry, to be closed. Raises BadCredentials."""
    hosts = frozenset((access.host,))
    transfer = TransferSettings(
        connect_timeout=5.0,
        idle_timeout=SILENCE,
        whole_timeout=120.0,
        attempts=2,  # a reconcile waits for it, and is retried
        plain_http=hosts if access.insecure else frozenset(),
        # The operator names this registry; it may well lie on a local address.
        local_hosts=hosts,
    )
    settings = OciSettings(transfer=transfer)
    return OciClient(settings=settings, credentials=access.credentials(), cache=cache, clock=clock)
