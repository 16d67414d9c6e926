"""The connection to one cluster, replaced without an interruption when its credential rotates.

    closed ── first call ──▶ read the Secret ──▶ connect ──▶ probe ──▶ ready
       ▲                          │ missing, malformed      │ refused, silent, not an API server
       │ idle                     ▼                         ▼
       └──────────────────────── open breaker: calls fail at once; a probe now and then, and when the Secret changes

The probe asks for the namespace kube-system: that is proof of the credential, and its uid is part of the cluster's
identity (`identity`), by which one that was created again under the same name is known. When the Secret changes, the
new credential is tried before the old one is dropped; then streams end (watches go on where they stopped, over the new
connection) and calls under way finish. A cluster of another identity ends its streams with `Expired`: what was seen of
the old one says nothing. The same uid at another address, or behind another CA, is another cluster too, unless the two
connections are proven to reach one. A Secret that cannot be read decides nothing: the old credential serves on, and the
new one is still to be tried.
"""

from __future__ import annotations

import asyncio

import structlog

from hortus.engine.remote.budget import Account
from hortus.engine.remote.context import PoolContext
from hortus.engine.remote.credentials import CredentialMissing, KubeconfigRef
from hortus.engine.remote.health import Health
from hortus.engine.remote.identity import MemberIdentity, are_one
from hortus.engine.remote.links import Link, digest_of
from hortus.engine.remote.states import Phase, RemoteState, state_for
from hortus.kube import Client, CredentialsFailed, Dialing
from hortus.kube.errors import KubeError
from hortus.kube.kubeconfig import from_untrusted

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_UNDECIDED = 1.0
"""Seconds until a credential is tried again whose trial was cut short."""


class _CannotConnect(Exception):
    """No usable credential, or a cluster that does not serve it; `cause` says which."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause = cause


class _Unread(Exception):
    """The management cluster did not hand the Secret out, for `cause`."""

    def __init__(self, cause: KubeError) -> None:
        super().__init__(str(cause))
        self.cause = cause


class ActiveLink:
    """Holds the connection of the moment, `link`, and makes the next one."""

    def __init__(self, place: KubeconfigRef, pool: PoolContext, *, account: Account) -> None:
        self.place = place
        self._pool = pool
        self._account = account
        self.health = Health(
            place,
            pool,
            connected=lambda: self.link is not None,
            changed=lambda before: pool.changed(place, before, self.health.state),
            probe_in=lambda seconds: pool.probe_in(place, seconds),
        )
        self.link: Link | None = None
        self._old: list[Link] = []
        self._lock = asyncio.Lock()
        self.identity = MemberIdentity()
        """The cluster that answered last."""

    async def connect(self) -> None:
        """Make a connection unless there is one or calls are refused for now."""
        async with self._lock:
            if self.link is None and not self.health.closed_off:
                await self._open()

    async def _open(self) -> None:
        """Read the credential, connect, probe. Whatever prevents that closes the cluster off for a while."""
        self.health.become(RemoteState(Phase.CONNECTING, "Connecting"))
        try:
            self.link = await self._dial()
            self.health.succeeded()
        except _CannotConnect as error:
            self.health.open_breaker(error.cause)
        except _Unread as error:
            self.health.was_not_read(error.cause)
        except BaseException:
            self.health.rest()
            raise

    async def _read(self) -> bytes:
        """The kubeconfig as it is now. Raises CredentialMissing, _Unread."""
        try:
            document = await self._pool.credentials.read(self.place)
        except CredentialMissing:
            self.health.was_read()
            raise
        except KubeError as error:
            raise _Unread(error) from error
        self.health.was_read()
        return document

    async def _dial(self) -> Link:
        """A proven connection. Raises _CannotConnect when the credential does not lead to one, _Unread."""
        # A change that is reported while this one is read or tried counts as another one.
        self.health.reread = False
        try:
            return await self._tried()
        except _CannotConnect:
            raise
        except BaseException as error:
            self.health.reread = True
            if self.link is not None and not isinstance(error, _Unread):
                self._pool.probe_in(self.place, _UNDECIDED)
            raise

    async def _tried(self) -> Link:
        try:
            document = await self._read()
            if self.link is not None and self.link.digest == digest_of(document):
                # The same kubeconfig: its sockets and TLS sessions are kept, and proven again.
                link = self.link
            else:
                link = self._link_for(document)
        except (CredentialMissing, CredentialsFailed, ValueError) as error:
            raise _CannotConnect(error) from error
        try:
            await self._prove(link)
        except BaseException as error:
            if link is not self.link:
                await link.connection.close()
            if isinstance(error, KubeError):
                raise _CannotConnect(error) from error
            raise
        # Another cluster with the same credential: what was open to its predecessor ends.
        return self._link_for(document) if link.superseded else link

    def _link_for(self, document: bytes) -> Link:
        pool = self._pool
        access = from_untrusted(document, trust=pool.settings.trust, origin=str(self.place)).access()
        connection = pool.connect(
            access,
            settings=pool.settings.connection(),
            clock=pool.clock,
            observer=pool.observer,
            dialing=Dialing(pool.contexts, self._account.make_socket, self._account.opened, pool.memory),
        )
        return Link(connection, digest_of(document))

    async def _prove(self, link: Link) -> None:
        """Ask the cluster who it is. A credential that may not read that is proven by the refusal."""
        use = await self._account.enter()
        try:
            uid = await link.identify()
            found = MemberIdentity.reached(link.connection.access, uid)
            known = self.identity
            same = not known.address or await self._is_same(known, found, link)
        finally:
            use.end()
        # A credential that may not read the uid leads to the cluster that had it, by the same way alone.
        self.identity = found._replace(uid=found.uid or known.uid) if same else found
        if not same:
            self._recreated()

    async def _is_same(self, known: MemberIdentity, found: MemberIdentity, link: Link) -> bool:
        if known.same_way(found):
            return not (known.uid and found.uid) or known.uid == found.uid
        before = self.link
        if known.uid != found.uid or not found.uid or before is None or self.health.broken:
            return False
        try:
            return await are_one(Client.over(before.connection), Client.over(link.connection))
        except KubeError as error:
            _log.info("not known to be one cluster", place=str(self.place), problem=str(error))
            return False

    def _recreated(self) -> None:
        _log.info("another cluster answers", place=str(self.place))
        self._supersede("recreated")
        self._pool.recreated(self.place)

    async def probe(self) -> None:
        """See whether the cluster answers, with a fresh credential when there may be one. Never raises KubeError."""
        async with self._lock:
            if (self.link is None or self.health.reread) and await self._replaced():
                return
            if self.link is None:
                return
            try:
                await self._prove(self.link)
                self.health.succeeded()
            except KubeError as error:
                self.health.open_breaker(error)

    async def _replaced(self) -> bool:
        """Connect with the credential as it is now, and only then let the old connection go.

        False when the old one is what there is: the new one does not work, or could not be read.
        """
        before = self.link
        try:
            link = await self._dial()
        except _Unread as error:
            self.health.was_not_read(error.cause)
            return False
        except _CannotConnect as error:
            self._not_replaced(error.cause)
            return self.link is None
        if self.link is not None and self.link is not link:
            self._supersede("rotated")
            self._pool.rotated()
        self.link = link
        self.health.succeeded()
        if link is not before:
            self._pool.changed(self.place, self.health.state, self.health.state)
        return True

    def _not_replaced(self, cause: Exception) -> None:
        if isinstance(cause, CredentialMissing):
            self._supersede("gone")
        if self.link is None:
            self.health.open_breaker(cause)
            return
        # The new one is tried again, also when it is the cluster that did not answer.
        self.health.reread = True
        if not self.health.broken:
            found = state_for(cause, self._pool.clock.now())
            message = f"the new credential does not work, the old one still does: {found.message}"
            self.health.become(RemoteState(Phase.READY, found.reason, message, found.since))
        self._pool.probe_in(self.place, self._pool.settings.breaker.cap)

    async def renewed(self, refused: Link) -> bool:
        """After a 401: whether the Secret holds another credential than the refused one, that works."""
        async with self._lock:
            if self.link is not refused:
                return self.link is not None
            try:
                document = await self._read()
            except CredentialMissing:
                return False
            except _Unread as error:
                self.health.was_not_read(error.cause)
                return False
            if digest_of(document) != refused.digest:
                await self._replaced()
                return self.link is not refused and self.link is not None
        return False

    def credential_changed(self) -> None:
        """The Secret has changed: try what it holds now, at once when somebody needs it."""
        if self.link is not None or self.health.closed_off or self._lock.locked():
            self.health.reread = True
            self._pool.probe_in(self.place, 0.0)

    def _supersede(self, why: str) -> None:
        """End the streams of the present connection; its calls may finish."""
        link, self.link = self.link, None
        if link is None:
            return
        link.superseded = why
        link.connection.end_streams()
        self._old.append(link)
        self._pool.spawn(lambda: self._drain(link), f"drain {self.place}")

    async def _drain(self, link: Link) -> None:
        clock, settings = self._pool.clock, self._pool.settings
        if link.calls:
            await clock.sleep(settings.timeout)
        await link.connection.close()
        self._old.remove(link)

    def close_idle(self) -> int:
        """Give unused sockets back; returns how many. Without anything under way the next call connects again."""
        if self.link is None:
            return 0
        if self._account.uses:
            return self.link.connection.close_idle()
        link, self.link = self.link, None
        if not self.health.broken:
            self.health.rest()
        self._pool.spawn(link.connection.close, f"close {self.place}")
        return self._account.sockets

    async def close(self) -> None:
        """Drop everything; calls and streams fail, and so does who waits for the breaker."""
        self.health.waiters.give_up(self.health.unavailable)
        links, self.link = [*self._old, *([self.link] if self.link is not None else [])], None
        for link in links:
            link.superseded = "gone"
            await link.connection.close()
