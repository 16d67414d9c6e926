"""Sessions by OpenID Connect: the way to the provider and back, and ID tokens that are renewed while pages are open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final, NamedTuple

import structlog
from aiohttp import web

from hortus.dashboard.guarding import Guard, local_path
from hortus.dashboard.oidc import OidcProvider, OidcRefused, OidcTokens, OidcUnreachable
from hortus.dashboard.sessions import ViewerSession
from hortus.dashboard.viewers import ViewerCredential, token_credential
from hortus.kube import Access
from hortus.kube.clock import Clock
from hortus.kube.errors import Unauthorized

START, BACK = "/login/oidc", "/login/callback"
_COOKIE: Final = "__Host-hortus-login"
"""The sign-in that a browser began last, sealed."""
_MINUTES: Final = 600
_AHEAD: Final = 60.0
"""Seconds before the end of an ID token at which a new one is asked for."""
_AT_ONCE: Final = 8

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class SignIn(NamedTuple):
    """The dashboard's own part of a sign-in."""

    cluster: Access
    open: Callable[[web.Request, ViewerCredential, str, OidcTokens | None], Awaitable[web.Response]]
    """Opens a session for a credential, and leads to a page. Raises SignInRefused, KubeError."""
    refuse: Callable[[str, str, int], web.Response]
    """The sign-in form again: the page to end at, the problem, the status."""


class OidcSessions:
    """The handlers of the flow, and the renewal of the sessions that came by it."""

    def __init__(self, provider: OidcProvider, sign_in: SignIn, guard: Guard, clock: Clock) -> None:
        self.provider = provider
        self._sign_in = sign_in
        self._guard = guard
        self._clock = clock

    def routes(self) -> list[web.RouteDef]:
        return [web.get(START, self._begin), web.get(BACK, self._finish)]

    async def _begin(self, request: web.Request) -> web.StreamResponse:
        next = local_path(request.query.get("next", ""))
        try:
            begun = await self.provider.begin(self._guard.origin_of(request) + BACK, next)
        except OidcRefused as refused:
            return self._sign_in.refuse(next, f"Not signed in: {refused}.", 502)
        answer = web.Response(status=303, headers={"Location": begun.address})
        answer.set_cookie(_COOKIE, begun.cookie, max_age=_MINUTES, path="/", secure=True, httponly=True, samesite="Lax")
        return answer

    async def _finish(self, request: web.Request) -> web.StreamResponse:
        next = local_path("")
        try:
            tokens, next = await self.provider.finish(request.query, request.cookies.get(_COOKIE, ""))
            credential = token_credential(self._sign_in.cluster, tokens.id_token.reveal())
            answer = await self._sign_in.open(request, credential, next, tokens)
        except OidcRefused as refused:
            status = 502 if isinstance(refused, OidcUnreachable) else 401
            answer = self._sign_in.refuse(next, f"Not signed in: {refused}.", status)
        except Unauthorized:
            issuer = self.provider.settings.issuer
            problem = f"the API server does not accept the ID tokens of {issuer} for this client"
            answer = self._sign_in.refuse(next, f"Not signed in: {problem}.", 401)
        answer.del_cookie(_COOKIE, path="/", secure=True, httponly=True, samesite="Lax")
        return answer

    async def renew(self, sessions: Iterable[ViewerSession]) -> None:
        """Renews ID tokens that end soon; a session whose token cannot be renewed ends with it."""
        soon = self._clock.now() + _AHEAD
        due = [one for one in sessions if one.tokens is not None and one.tokens.refresh_token and one.ends <= soon]
        gate, away = asyncio.Semaphore(_AT_ONCE), False

        async def renew(session: ViewerSession) -> None:
            nonlocal away
            async with gate:
                before = session.tokens
                if away or before is None or session.was_last_renewal:
                    return
                try:
                    tokens = await self.provider.renew(before)
                except OidcUnreachable as problem:
                    away = True  # the others would wait as long; all are tried again
                    _log.warning("ID tokens are not renewed", problem=str(problem))
                except OidcRefused as refused:
                    if session.tokens is before:
                        session.tokens = before._replace(refresh_token=None)
                        _log.info("an ID token is not renewed", user=session.viewer.username, reason=str(refused))
                else:
                    if session.tokens is before:
                        session.renewed(tokens)
                        session.viewer.renew(tokens.id_token)
                    else:
                        await self._revoke(tokens)  # it was signed out meanwhile

        await asyncio.gather(*map(renew, due))

    async def end(self, session: ViewerSession) -> None:
        """Ends the refresh token of a session that was signed out."""
        tokens, session.tokens = session.tokens, None
        if tokens is not None:
            await self._revoke(tokens)

    async def _revoke(self, tokens: OidcTokens) -> None:
        try:
            await self.provider.revoke(tokens)
        except OidcRefused as refused:
            _log.warning("a refresh token is not revoked", reason=str(refused))

    async def end_address(self, request: web.Request) -> str:
        """The page where a person may sign out at the provider, too; empty where that is not known."""
        try:
            return await self.provider.end_address(self._guard.origin_of(request) + "/login")
        except OidcRefused:
            return ""
