"""Signing in by an OpenID Connect provider: the code flow with PKCE, renewal and the end at the provider.

The ID token is the viewer's bearer token, and the API server verifies it. It comes from the token endpoint by TLS, so
its signature is not verified here a second time (OpenID Connect Core 1.0, 3.1.3.7, point 6); issuer, audience, time and
nonce are. No token reaches the browser.

A sign-in under way is kept by its browser, sealed in a cookie, and not here: others cannot push it out. The provider
accepts its code once (RFC 6749, 4.1.2).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import ssl
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import quote

import aiohttp
import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from yarl import URL

from hortus.kube import Secret
from hortus.kube.clock import Clock

_WELL_KNOWN: Final = "/.well-known/openid-configuration"
_LARGEST: Final = 256 * 1024
"""Bytes of an answer of the provider."""
_PATIENCE: Final = 10.0
_DISCOVERED: Final = 3600.0
"""Seconds for which the provider's configuration is kept."""
_LOGIN: Final = 600.0
"""Seconds in which a person signs in at the provider."""
_SEALED: Final = b"a sign-in of the dashboard"
_SALT: Final = 12
"""Bytes; each cookie has its own (NIST SP 800-38D, 8.2)."""
_SKEW: Final = 60.0
"""Seconds by which clocks may differ."""
_LONGEST: Final = 2000
"""Characters of a code or state of an address."""


class OidcRefused(Exception):
    """A sign-in or a renewal did not succeed; the message says why, and has no secret."""


class OidcUnreachable(OidcRefused):
    """The provider does not answer, or not as it should; another attempt may succeed."""


class OidcSettings(NamedTuple):
    """The provider, and this dashboard as its client."""

    issuer: str
    client_id: str
    client_secret: Secret | None = None
    """None for a public client."""
    scopes: tuple[str, ...] = ()
    """Besides openid."""
    ca: bytes = b""
    """PEM; the system's authorities when empty."""


class Endpoints(msgspec.Struct, frozen=True):
    """The provider's configuration (OpenID Connect Discovery 1.0)."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    revocation_endpoint: str = ""
    end_session_endpoint: str = ""
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    code_challenge_methods_supported: tuple[str, ...] | None = None
    authorization_response_iss_parameter_supported: bool = False


class IdClaims(msgspec.Struct, frozen=True):
    """The claims of an ID token that a client checks."""

    iss: str
    sub: str
    aud: str | tuple[str, ...]
    exp: float
    nonce: str = ""
    azp: str = ""


class OidcTokens(NamedTuple):
    """The answer of the token endpoint."""

    id_token: Secret
    claims: IdClaims
    refresh_token: Secret | None


class _Login(msgspec.Struct, frozen=True):
    """A sign-in under way."""

    state: str
    ends: float
    nonce: str
    verifier: str
    redirect: str
    next: str


class Begun(NamedTuple):
    """A sign-in that begins: where the browser goes, and the cookie that it keeps meanwhile."""

    address: str
    cookie: str
    """The sign-in itself, which this process alone can read."""


class _Answer(msgspec.Struct):
    id_token: str = ""
    refresh_token: str = ""
    error: str = ""


class OidcProvider:
    """One provider."""

    def __init__(self, settings: OidcSettings, clock: Clock) -> None:
        """Raises ValueError for an issuer that cannot be used."""
        url = URL(settings.issuer)
        if not _is_safe(url) or url.query_string or url.fragment or url.user:
            raise ValueError(f"{settings.issuer} is no issuer: give the https URL that its tokens name")
        self.settings = settings
        self._clock = clock
        self._seal = AESGCM(AESGCM.generate_key(256))
        self._known: tuple[float, Endpoints] | None = None
        # The system's authorities are read with the first call, and by few dashboards.
        self._tls: ssl.SSLContext | None = None

    @property
    def name(self) -> str:
        """The provider in the words of the sign-in page."""
        return str(URL(self.settings.issuer).host)

    async def begin(self, redirect: str, next: str) -> Begun:
        """Begins a sign-in that comes back to `redirect` and ends at the page `next`. Raises OidcRefused."""
        found = await self._endpoints()
        methods = found.code_challenge_methods_supported
        if methods is not None and "S256" not in methods:
            raise OidcRefused("the provider does not offer PKCE with S256")
        state, nonce, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        login = _Login(state, self._clock.now() + _LOGIN, nonce, verifier, redirect, next)
        query = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": redirect,
            "scope": " ".join(dict.fromkeys(("openid", *self.settings.scopes))),
            "state": state,
            "nonce": nonce,
            "code_challenge": _unpadded(hashlib.sha256(verifier.encode()).digest()),
            "code_challenge_method": "S256",
        }
        return Begun(str(URL(found.authorization_endpoint).update_query(query)), self._sealed(login))

    async def finish(self, query: Mapping[str, str], cookie: str) -> tuple[OidcTokens, str]:
        """The tokens of a sign-in that came back, and the page where it ends. Raises OidcRefused."""
        login = self._opened(cookie)
        if login is None or login.ends <= self._clock.now():
            raise OidcRefused("this sign-in is not known: another browser began it, or it took longer than ten minutes")
        if not hmac.compare_digest(login.state.encode(), query.get("state", "")[:_LONGEST].encode(errors="replace")):
            raise OidcRefused("this is not the sign-in that this browser began last: sign in again")
        found = await self._endpoints()
        issuer = query.get("iss", "")
        if (issuer or found.authorization_response_iss_parameter_supported) and issuer != found.issuer:
            raise OidcRefused("the answer comes from another issuer")  # RFC 9207
        if problem := query.get("error", ""):
            raise OidcRefused(f"the provider says {problem[:100]}: {query.get('error_description', '')[:300]}")
        form = {
            "grant_type": "authorization_code",
            "code": query.get("code", "")[:_LONGEST],
            "redirect_uri": login.redirect,
            "code_verifier": login.verifier,
        }
        tokens = await self._tokens(found, form)
        if not hmac.compare_digest(tokens.claims.nonce.encode(), login.nonce.encode()):
            raise OidcRefused("the ID token is that of another sign-in: its nonce does not fit")
        return tokens, login.next

    async def renew(self, before: OidcTokens) -> OidcTokens:
        """New tokens for the same person. Raises OidcRefused; OidcUnreachable where another attempt may succeed."""
        if before.refresh_token is None:
            raise OidcRefused("the provider gave no refresh token")
        form = {"grant_type": "refresh_token", "refresh_token": before.refresh_token.reveal()}
        tokens = await self._tokens(await self._endpoints(), form)
        if tokens.claims.sub != before.claims.sub:
            raise OidcRefused("the renewed ID token is that of another person")
        if tokens.claims.nonce not in ("", before.claims.nonce):
            raise OidcRefused("the renewed ID token is that of another sign-in: its nonce does not fit")
        return tokens._replace(refresh_token=tokens.refresh_token or before.refresh_token)

    async def revoke(self, tokens: OidcTokens) -> None:
        """Ends the refresh token, where the provider can (RFC 7009). Raises OidcRefused."""
        found = await self._endpoints()
        if found.revocation_endpoint and tokens.refresh_token is not None:
            form = {"token": tokens.refresh_token.reveal(), "token_type_hint": "refresh_token"}
            await self._post(found, found.revocation_endpoint, form)

    async def end_address(self, home: str) -> str:
        """The page where a person signs out at the provider, too; empty where it has none. Raises OidcRefused.

        The ID token is not given as a hint, since addresses are kept in histories and logs.
        """
        found = await self._endpoints()
        if not found.end_session_endpoint:
            return ""
        query = {"client_id": self.settings.client_id, "post_logout_redirect_uri": home}
        return str(URL(found.end_session_endpoint).update_query(query))

    def _sealed(self, login: _Login) -> str:
        salt = secrets.token_bytes(_SALT)
        return _unpadded(salt + self._seal.encrypt(salt, msgspec.json.encode(login), _SEALED))

    def _opened(self, cookie: str) -> _Login | None:
        """The sign-in of a cookie; None for a cookie that this process did not seal."""
        try:
            sealed = base64.urlsafe_b64decode(cookie + "=" * (-len(cookie) % 4))
            return msgspec.json.decode(self._seal.decrypt(sealed[:_SALT], sealed[_SALT:], _SEALED), type=_Login)
        except (ValueError, InvalidTag):  # no base64, too short, or not ours
            return None

    async def _endpoints(self) -> Endpoints:
        now = self._clock.monotonic()
        if self._known is None or now - self._known[0] >= _DISCOVERED:
            address = self.settings.issuer.rstrip("/") + _WELL_KNOWN
            try:
                found = msgspec.json.decode(await self._call("GET", address), type=Endpoints)
            except msgspec.MsgspecError as error:
                raise OidcUnreachable(f"the configuration of the provider cannot be used: {error}") from None
            if found.issuer != self.settings.issuer:
                raise OidcRefused(f"the provider calls itself {found.issuer[:200]}, and not {self.settings.issuer}")
            for url in (found.authorization_endpoint, found.token_endpoint, found.revocation_endpoint):
                if url and not _is_safe(URL(url)):
                    raise OidcRefused(f"the provider's endpoint {url[:200]} is no https URL")
            self._known = now, found
        return self._known[1]

    async def _tokens(self, found: Endpoints, form: dict[str, str]) -> OidcTokens:
        body = await self._post(found, found.token_endpoint, form)
        try:
            answer = msgspec.json.decode(body, type=_Answer)
        except msgspec.MsgspecError as error:
            raise OidcUnreachable(f"the answer of the token endpoint cannot be used: {error}") from None
        if answer.error or not answer.id_token:
            raise OidcRefused(f"the provider refuses: {answer.error[:100] or 'it gave no ID token'}")
        refresh = Secret(answer.refresh_token) if answer.refresh_token else None
        return OidcTokens(Secret(answer.id_token), self._checked(answer.id_token), refresh)

    def _checked(self, token: str) -> IdClaims:
        """The claims of an ID token for us (OpenID Connect Core 1.0, 3.1.3.7). Raises OidcRefused."""
        try:
            body = token.split(".")[1]
            claims = msgspec.json.decode(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)), type=IdClaims)
        except (IndexError, ValueError):  # binascii's and msgspec's errors are ValueErrors
            raise OidcRefused("the ID token of the provider cannot be read") from None
        audiences = (claims.aud,) if isinstance(claims.aud, str) else claims.aud
        if claims.iss != self.settings.issuer:
            raise OidcRefused(f"the ID token is of the issuer {claims.iss[:200]}, and not of {self.settings.issuer}")
        if self.settings.client_id not in audiences or claims.azp not in ("", self.settings.client_id):
            raise OidcRefused("the ID token is for another client")
        if claims.exp + _SKEW <= self._clock.now():
            raise OidcRefused("the ID token has expired: compare the clocks of the provider and of this machine")
        return claims

    async def _post(self, found: Endpoints, url: str, form: dict[str, str]) -> bytes:
        secret, headers = self.settings.client_secret, dict[str, str]()
        if secret is not None and "client_secret_basic" in found.token_endpoint_auth_methods_supported:
            # Both parts are encoded as in a form before they are joined (RFC 6749, 2.3.1).
            pair = f"{quote(self.settings.client_id, safe='')}:{quote(secret.reveal(), safe='')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form = {**form, "client_id": self.settings.client_id}
            if secret is not None:
                form["client_secret"] = secret.reveal()
        return await self._call("POST", url, form, headers)

    async def _call(
        self, method: str, url: str, form: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """One bounded call; 400 and 401 have an answer that says why. Raises OidcUnreachable."""
        if self._tls is None:
            self._tls = ssl.create_default_context(cadata=self.settings.ca.decode() or None)
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_PATIENCE)) as session,
                session.request(
                    method, url, data=form, headers=headers, ssl=self._tls, allow_redirects=False
                ) as answer,
            ):
                body = await answer.content.read(_LARGEST + 1)
                while len(body) <= _LARGEST and (more := await answer.content.read(_LARGEST)):
                    body += more
                if answer.status not in (200, 400, 401) or len(body) > _LARGEST:
                    raise OidcUnreachable(f"the provider answers {answer.status} at {URL(url).path}")
                return body
        except (OSError, aiohttp.ClientError, TimeoutError) as error:
            raise OidcUnreachable(f"the provider does not answer: {error or type(error).__name__}") from None


def _is_safe(url: URL) -> bool:
    """Reports whether tokens may go there: by https, or on this machine."""
    return bool(url.host) and (
        url.scheme == "https" or (url.scheme == "http" and url.host in ("127.0.0.1", "::1", "localhost"))
    )


def _unpadded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
