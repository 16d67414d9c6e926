"""Viewers: one client and one set of watches for each credential, however many pages it has open.

The dashboard has no credential of its own. A viewer is made of what the viewer brought, asked once for the name that
the API server knows it by, and forgotten some time after its last page was closed.
"""

from __future__ import annotations

import asyncio
import hashlib
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple

import msgspec
from cryptography import x509

from hortus.dashboard.readers import FleetWatch
from hortus.dashboard.reviews import Reviews, username_of
from hortus.dashboard.sharing import SharedReading
from hortus.engine.fleetreading import ReadGarden
from hortus.kube import Access, Client, Connection, ConnectionSettings, Credentials, Secret
from hortus.kube.clock import Clock
from hortus.kube.errors import KubeError, Unauthorized
from hortus.kube.tokens import claims_of

ANONYMOUS: Final = "system:anonymous"
IDLE: Final = 120.0
"""Seconds without a page after which the watches of a viewer end."""
_ASKED_AGAIN: Final = 60.0
"""Seconds until the API server is asked again whether it accepts a credential."""
_AWAY: Final = 5.0
"""Seconds until it is asked again when it did not answer."""
MOST_NAMESPACES: Final = 8
"""Namespaces that a viewer watches at once; the one that was shown least recently makes room."""
_MOST_OF_USER: Final = 16
"""Viewers of one user without a session, each with another token; the one that was used least recently makes room."""
_LONGEST_TOKEN: Final = 32 * 1024
# Two calls at once: each connection of each viewer is a handshake, and holds the buffers of one.
_SETTINGS: Final = ConnectionSettings(connections=2, timeout=10.0, connect_timeout=5.0, user_agent="hortus-dashboard")


class SignInRefused(Exception):
    """A credential cannot be used; the message says why, without the credential."""


class TooManyAtOnce(Exception):
    """A viewer already uses as much as one may; the message names what, and the fix."""


class ViewerCredential(NamedTuple):
    """The credential that a viewer brought."""

    access: Access
    garden: Access | None = None
    """The garden with the viewer's own credential; only `hortus ui` has one."""
    garden_namespace: str = ""

    @property
    def expires(self) -> float | None:
        """The end of the credential, in seconds since 1970; None where it is not known."""
        held = self.access.credentials
        if held.certificate:
            return x509.load_pem_x509_certificate(held.certificate).not_valid_after_utc.timestamp()
        return claims_of(held.token).exp if held.token is not None else None

    @property
    def digest(self) -> bytes:
        """Equal for credentials that are equal in every part, secrets and server too; kept where they are compared."""
        return hashlib.sha256(msgspec.json.encode(self, enc_hook=_revealed)).digest()


def _revealed(value: object) -> str:
    if isinstance(value, Secret):
        return value.reveal()
    raise TypeError(f"a {type(value).__name__} is no part of a credential")


def token_credential(cluster: Access, token: str) -> ViewerCredential:
    """A bearer token for the management cluster. Raises SignInRefused."""
    text = token.strip()
    if not text:
        raise SignInRefused("there is no token: paste one, as `kubectl create token NAME` prints it")
    if len(text) > _LONGEST_TOKEN or not text.isascii() or not text.isprintable() or " " in text:
        raise SignInRefused("this is no bearer token: it has spaces, line breaks or characters that a token never has")
    # Built from the server and its trust alone, so that nothing else of the configuration can reach a viewer.
    plain = Access(server=cluster.server, ca=cluster.ca, insecure=cluster.insecure)
    return ViewerCredential(msgspec.structs.replace(plain, credentials=Credentials(token=Secret(text))))


class Viewer:
    """One credential: its name, its permissions and its watches."""

    def __init__(self, credential: ViewerCredential, shared: SharedReading, clock: Clock) -> None:
        self.username = ""
        self.groups: tuple[str, ...] = ()
        self.expires = credential.expires
        self._connection = Connection(credential.access, settings=_SETTINGS, clock=clock)
        self.client = Client.over(self._connection)
        self.reviews = Reviews(self.client, clock)
        self._shared = shared
        self._clock = clock
        self._garden: ReadGarden | None = None
        if credential.garden is not None:
            garden = Client(credential.garden, settings=_SETTINGS, clock=clock)
            self._garden = ReadGarden(garden, credential.garden_namespace)
        self._watches: dict[str, FleetWatch] = {}
        """By namespace, in the order in which they were used last."""
        self._ending: set[asyncio.Task[None]] = set()
        self._open = 0
        self._refused = False
        self.used = self._identified = clock.monotonic()

    async def identify(self) -> None:
        """Asks the API server for the name. Raises SignInRefused for none, and KubeError."""
        self.username, self.groups = await username_of(self.client)
        if not self.username or self.username == ANONYMOUS:
            raise SignInRefused("the API server does not know whose credential this is")
        self._identified, self._refused = self._clock.monotonic(), False

    async def still_known(self) -> bool:
        """Reports whether the API server still accepts the credential; asked once a minute, and kept while it is away.

        Watches go on after a credential was revoked, so they do not tell.
        """
        now = self._clock.monotonic()
        if not self._refused and now - self._identified >= _ASKED_AGAIN:
            self._identified = now - _ASKED_AGAIN + _AWAY  # of all pages the first asks
            try:
                await self.identify()
            except (Unauthorized, SignInRefused):
                self._refused = True
            except KubeError:
                pass  # it is asked again
        return not self._refused

    def renew(self, token: Secret) -> None:
        """Goes on with a new token of the same person; watches that run are not cut."""
        self._connection.authorize(token)
        self.expires = claims_of(token).exp

    def watch(self, namespace: str) -> FleetWatch:
        """The objects in a namespace, or in all. Raises TooManyAtOnce."""
        self.used = self._clock.monotonic()
        found = self._watches.pop(namespace, None)
        if found is None:
            self._make_room()
            found = FleetWatch(
                self.client, self.reviews, namespace, garden=self._garden, shared=self._shared, clock=self._clock
            )
        self._watches[namespace] = found  # used last
        return found

    def _make_room(self) -> None:
        if len(self._watches) < MOST_NAMESPACES:
            return
        unseen = next((name for name, one in self._watches.items() if not one.has_listeners), None)
        if unseen is None:
            raise TooManyAtOnce(f"you have pages of {MOST_NAMESPACES} namespaces open: close a page to see another one")
        self._ending.add(task := asyncio.create_task(self._watches.pop(unseen).close()))
        task.add_done_callback(self._ending.discard)

    @contextmanager
    def page(self) -> Iterator[None]:
        """Keeps the watches while a page is open."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1
            self.used = self._clock.monotonic()

    @property
    def has_pages(self) -> bool:
        return self._open > 0

    @property
    def idle(self) -> bool:
        return not self.has_pages and self._clock.monotonic() - self.used >= IDLE

    @property
    def watching(self) -> bool:
        return bool(self._watches)

    async def rest(self) -> None:
        """Ends the watches; the next page begins them again."""
        watches, self._watches = list(self._watches.values()), {}
        await asyncio.gather(*self._ending, *(watch.close() for watch in watches))

    async def close(self) -> None:
        await self.rest()
        await self.client.close()
        if self._garden is not None and self._garden.client is not None:
            await self._garden.client.close()


class Viewers:
    """All viewers by their credentials."""

    def __init__(self, clock: Clock, signed_in: Callable[[], set[Viewer]]) -> None:
        """`signed_in` returns the viewers that have a session."""
        self._clock = clock
        self._signed_in = signed_in
        self._known: dict[bytes, Viewer] = {}
        self._shared = SharedReading()

    async def get(self, credential: ViewerCredential, *, renewable: bool = False) -> Viewer:
        """The viewer of a credential that the API server accepts. Raises SignInRefused, TooManyAtOnce, KubeError.

        A viewer that goes on with renewed tokens belongs to one session, and no credential finds it: the API server
        would be asked about the renewed token, and not about the one that was presented.
        """
        try:
            digest = secrets.token_bytes(32) if renewable else credential.digest
            if (known := self._known.get(digest)) is not None:
                await known.identify()  # it may have been revoked since
                return known
            viewer = Viewer(credential, self._shared, self._clock)
        except ValueError as error:
            raise SignInRefused(f"the credential cannot be read: {error}") from None
        try:
            await viewer.identify()
            await self._make_room(viewer.username)
        except BaseException:
            await viewer.close()
            raise
        if (known := self._known.get(digest)) is not None:
            await viewer.close()
            return known
        self._known[digest] = viewer
        return viewer

    async def _make_room(self, user: str) -> None:
        """Ends viewers of `user` that have no session, where there are too many. Raises TooManyAtOnce."""
        own = [(key, one) for key, one in self._known.items() if one.username == user]
        if len(own) < _MOST_OF_USER:
            return
        signed_in = self._signed_in()
        loose = sorted((one.used, key) for key, one in own if one not in signed_in)
        free = [key for _, key in loose if not self._known[key].has_pages]
        # All leave before the first is closed: another caller may make room meanwhile.
        ended = [self._known.pop(key) for key in free[: max(0, len(loose) + 1 - _MOST_OF_USER)]]
        await asyncio.gather(*(viewer.close() for viewer in ended))
        if len(loose) - len(free) >= _MOST_OF_USER:
            raise TooManyAtOnce(f"{_MOST_OF_USER} tokens of {user} are in use at once: use one for many requests")

    async def sweep(self) -> None:
        """Ends the watches of idle viewers, and forgets those without a session."""
        signed_in = self._signed_in()
        for digest, viewer in list(self._known.items()):
            if viewer.idle and viewer not in signed_in:
                if self._known.pop(digest, None) is not None:  # another caller may have ended it meanwhile
                    await viewer.close()
            elif viewer.idle and viewer.watching:
                await viewer.rest()

    async def close(self) -> None:
        known, self._known = list(self._known.values()), {}
        for viewer in known:
            await viewer.close()
