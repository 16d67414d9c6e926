"""Sessions: a random cookie stands for a viewer's credential, which never leaves this process's memory.

A session ends by signing out, with its credential, or after the longest life; a restart of the process ends all. Of
cookies and tickets only digests are kept.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

from hortus.dashboard.oidc import OidcTokens
from hortus.dashboard.viewers import Viewer, ViewerCredential
from hortus.kube.clock import Clock

LONGEST: Final = 12 * 3600.0
"""Seconds; a working day."""
_TICKET: Final = 60.0
"""Seconds in which a browser must use its ticket."""
_MOST: Final = 10_000
"""Sessions in all; where a further one is opened, one of the user with most of them makes room."""
_MOST_OF_USER: Final = 32
"""Sessions of one user; the one that was used least recently makes room."""


class _Ticket(NamedTuple):
    ends: float
    credential: ViewerCredential
    page: Path | None
    """The file that leads a browser here, which is removed with the ticket."""

    def end(self) -> None:
        if self.page is not None:
            self.page.unlink(missing_ok=True)


class ViewerSession:
    """One browser that signed in."""

    def __init__(
        self, viewer: Viewer, *, origin: str, ends: float, last: float, tokens: OidcTokens | None = None
    ) -> None:
        self.viewer = viewer
        self.origin = origin
        """The address by which the browser came; under another one the session is not found."""
        self.tokens = tokens
        """The tokens of the OpenID Connect provider; None for a viewer who signed in otherwise."""
        self.last = last
        """The end that no renewal moves."""
        self.csrf = secrets.token_urlsafe(32)
        """The token that every form carries."""
        self.ends = ends
        self.said: dict[str, str] = {}
        """Outcomes of actions by a random name each, shown once by the page that follows."""

    @property
    def was_last_renewal(self) -> bool:
        """True once the longest life of a session is its end."""
        return self.ends >= self.last

    def renewed(self, tokens: OidcTokens) -> None:
        """Takes renewed tokens: the session ends later."""
        self.tokens = tokens
        self.ends = min(self.last, tokens.claims.exp)

    def say(self, text: str) -> str:
        """Keeps an outcome; returns the name under which the next page finds it."""
        name = secrets.token_urlsafe(8)
        self.said = {name: text}
        return name

    def confirms(self, token: str) -> bool:
        """Reports whether a form carries the session's own token."""
        return hmac.compare_digest(self.csrf.encode(), token.encode())


class ViewerSessions:
    """All sessions by the digests of their cookies, and tickets for browsers that `hortus ui` opens."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[bytes, ViewerSession] = {}
        self._tickets: dict[bytes, _Ticket] = {}

    def open(self, viewer: Viewer, origin: str, tokens: OidcTokens | None = None) -> tuple[str, ViewerSession]:
        """A new session, and the value of its cookie."""
        last = self._clock.now() + LONGEST
        ends = min(last, viewer.expires if viewer.expires is not None else last)
        session = ViewerSession(viewer, origin=origin, ends=ends, last=last, tokens=tokens)
        cookie = secrets.token_urlsafe(32)
        self._make_room(viewer.username)
        self._known[_digest(cookie)] = session
        return cookie, session

    def _make_room(self, user: str) -> None:
        """Ends a session where `user` has too many, or all together."""
        counts = Counter(one.viewer.username for one in self._known.values())
        if counts[user] < _MOST_OF_USER:
            if len(self._known) < _MOST:
                return
            user = counts.most_common(1)[0][0]
        # They stand in the order in which they were used last.
        del self._known[next(key for key, one in self._known.items() if one.viewer.username == user)]

    def find(self, cookie: str, origin: str) -> ViewerSession | None:
        """The session of a cookie; None for a forged one, for that of another address, and for one that ended."""
        key = _digest(cookie)
        session = self._known.get(key)
        if session is None or session.origin != origin or session.ends <= self._clock.now():
            return None
        self._known[key] = self._known.pop(key)  # used last
        return session

    def end(self, cookie: str) -> None:
        self._known.pop(_digest(cookie), None)

    def all(self) -> list[ViewerSession]:
        return list(self._known.values())

    def is_open(self, session: ViewerSession) -> bool:
        return session.ends > self._clock.now() and any(known is session for known in self._known.values())

    def issue_ticket(self, credential: ViewerCredential, page: Path | None = None) -> str:
        """A ticket that opens one session once, within a minute; the file `page` is removed with it."""
        ticket = secrets.token_urlsafe(32)
        self._tickets[_digest(ticket)] = _Ticket(self._clock.now() + _TICKET, credential, page)
        return ticket

    def redeem(self, ticket: str) -> ViewerCredential | None:
        found = self._tickets.pop(_digest(ticket), None)
        if found is None:
            return None
        found.end()
        return found.credential if found.ends > self._clock.now() else None

    def signed_in(self) -> set[Viewer]:
        """The viewers that have a session."""
        return {session.viewer for session in self._known.values()}

    def sweep(self) -> None:
        """Forgets what ended."""
        now = self._clock.now()
        self._known = {key: one for key, one in self._known.items() if one.ends > now}
        for key in [key for key, one in self._tickets.items() if one.ends <= now]:
            self._tickets.pop(key).end()

    def close(self) -> None:
        """Ends all sessions and tickets."""
        self._known.clear()
        while self._tickets:
            self._tickets.popitem()[1].end()


def _digest(cookie: str) -> bytes:
    return hashlib.sha256(cookie.encode(errors="replace")).digest()
