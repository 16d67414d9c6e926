"""The controller of a server's certificate, where no other program makes it.

It owns: the Secret of the certificate, and what its `ServerTrust` writes, the authority in the objects by which clients
find the server. It watches: that Secret. It never: runs where the certificate comes from files, as with cert-manager.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import structlog

from hortus.engine.cache import Cache, Change
from hortus.engine.kubeconfigs import SECRETS
from hortus.engine.manager import Manager
from hortus.engine.outcomes import Result
from hortus.engine.serving.certificates import RENEW, ServingPair, is_due, pair_of, secret_of, self_signed
from hortus.engine.serving.server import HttpsServer, add_mounted, add_server, is_mounted
from hortus.engine.sources import Every, Source, Watch
from hortus.kube import Client, Clock
from hortus.kube.errors import AlreadyExists, KubeError, NotFound
from hortus.kube.objects import Object, ObjectKey

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

ServerTrust = Callable[[bytes], Awaitable[None]]
"""Has clients trust the authorities of a bundle, PEM."""
_SPREAD: Final = 5.0
"""Seconds for all API servers to learn of another authority from their watches, before servers need it."""
_LOOK: Final = 3600.0
"""Seconds between two looks at the certificate: before the first there is no Secret that a watch could show."""
_AGAIN: Final = 10.0
"""Seconds until a replica tries again to make the first certificate: no watch shows when it may."""


class CertificateKeeper:
    """Reconciles the Secret of a server's certificate, by its key."""

    def __init__(
        self,
        client: Client,
        *,
        key: ObjectKey,
        names: Sequence[str],
        trust: ServerTrust,
        field_manager: str,
        clock: Clock,
    ) -> None:
        """`names` are those for which the certificate is made."""
        self._client = client
        self._names = names
        self._trust = trust
        self._field_manager = field_manager
        self._clock = clock
        self.key = key
        self.shown: ServingPair | None = None
        """The pair that replicas show until they learn of another, also while its Secret is lost or damaged."""

    async def reconcile(self, key: ObjectKey) -> Result | None:
        if key != self.key:
            return None
        begun = self.shown is not None
        found = await self._found()
        if found is None and not begun:
            # Clients are led to a server that has a certificate to show.
            found = await self.begin()
        now = self._clock.now()
        pair, before = found, self.shown or found
        if pair is None or is_due(pair, self._names, now=now):
            pair = self_signed(self._names, now=now, before=before)
        # Before the server shows it: what is not trusted yet is refused.
        await self._trust(pair.bundle)
        if pair is not found:
            if before is not None:
                await self._clock.sleep(_SPREAD)
            await self._client.apply(SECRETS, secret_of(pair, self.key), field_manager=self._field_manager)
        self.shown = pair
        return Result(requeue_after=max(1.0, pair.ends - RENEW - now))

    async def begin(self) -> ServingPair | None:
        """Make the first certificate, unless another replica did: then its pair, None where that is not complete."""
        pair = self_signed(self._names, now=self._clock.now())
        try:
            await self._client.create(SECRETS, secret_of(pair, self.key), field_manager=self._field_manager)
        except AlreadyExists:
            return await self._found()
        return pair

    async def _found(self) -> ServingPair | None:
        try:
            secret = await self._client.get(SECRETS, self.key.name, self.key.namespace)
        except NotFound:
            return None
        return read_pair(secret)


def add_kept(
    manager: Manager,
    server: HttpsServer,
    keeper: CertificateKeeper,
    *,
    name: str,
    sources: Sequence[Source] = (),
) -> None:
    """Add a server, and the keeper of its certificate as the controller `name`.

    `sources` are further reasons for the keeper to look.
    """
    add_server(manager, server)
    secret = manager.cache(SECRETS, namespace=keeper.key.namespace, fields=f"metadata.name={keeper.key.name}")

    def identify(pair: ServingPair) -> None:
        server.identify(pair)
        keeper.shown = pair

    show = following(identify)

    def changed(change: Change) -> None:
        show(change.new)

    def to_key(found: Object) -> list[ObjectKey]:
        return [keeper.key]

    secret.subscribe(changed)
    manager.add(f"{server.name} certificate", partial(_begin, keeper, secret, manager.clock), leader_only=False)
    own = (Watch(secret, to=to_key), Every(_LOOK, lambda: [keeper.key]))
    manager.controller(name, keeper, sources=[*own, *sources])


async def _begin(keeper: CertificateKeeper, secret: Cache, clock: Clock) -> None:
    """Make the first certificate on every replica: the leader may be an older one, whose place this is to take."""
    await secret.synced()
    while keeper.key not in secret:
        try:
            await keeper.begin()
            break
        except KubeError as error:
            _log.warning("the first certificate cannot be made", secret=str(keeper.key), error=str(error))
            await clock.sleep(_AGAIN)
    await asyncio.get_running_loop().create_future()


def add_served(manager: Manager, server: HttpsServer, *, name: str, folder: Path, keeper: CertificateKeeper) -> None:
    """Add a server with the certificate in `folder`, or with its keeper as the controller `name` where there is none.

    Raises OSError, ValueError for a certificate in `folder` that cannot be used.
    """
    if is_mounted(folder):
        add_mounted(manager, server, folder)
    else:
        add_kept(manager, server, keeper, name=name)


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
