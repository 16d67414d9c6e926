"""Getting in: basic credentials, and tokens from the realm that a registry names.

The realm comes from the registry's answer, so it is pinned: to the registry's own host, or hosts that the settings list
for it. Anything else is refused, with or without credentials at hand, or any registry could have us call, and tell our
password to, any address. The scope asked for is our own, not the one the registry suggests.
Protocol: distribution project, "Token Authentication Specification" and "OAuth2 token authentication".
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import quote, urlencode

import orjson
from yarl import URL

from hortus.kube.secret import Secret, without_credential
from hortus.render.artifacts import AccessDenied, BadAnswer, PolicyRefused, Transfer
from hortus.render.artifacts.redirects import authority, listed
from hortus.render.oci.answers import refusal
from hortus.render.oci.credentials import RegistryCredentials

_LIFETIME = 60.0
"""Seconds a token lives when the realm does not say (token specification, `expires_in`)."""
_LONGEST_LIFETIME = 3_600.0
_MARGIN = 10.0
"""Seconds before its end that a token is not used any more."""


class Authorizer:
    """Makes Authorization headers for one registry as one user; tokens are kept by scope until they expire."""

    def __init__(
        self,
        transfer: Transfer,
        base: URL,
        credentials: RegistryCredentials | None,
        *,
        realms: frozenset[str] = frozenset(),
    ) -> None:
        self._transfer = transfer
        self._base = base
        self._credentials = credentials or RegistryCredentials()
        self._realms = realms
        self._tokens: dict[str, tuple[Secret, float]] = {}
        self._is_basic = False
        self._asking = asyncio.Lock()

    def header(self, scope: str) -> Secret | None:
        """The credential that is known to be accepted, or worth a try, without asking anybody."""
        if self._credentials.registry_token is not None:
            return Secret("Bearer " + self._credentials.registry_token.reveal())
        if self._is_basic:
            return self._credentials.basic()
        token, ends = self._tokens.get(scope, (None, 0.0))
        return token if token is not None and ends > self._transfer.clock.monotonic() else None

    async def answer(self, headers: Iterable[str], scope: str, *, rejected: Secret | None) -> Secret:
        """A header after a 401 with these WWW-Authenticate headers. Raises ArtifactError."""
        offered = challenges(headers)
        async with self._asking:
            known = self.header(scope)
            if known is not None and known != rejected:
                return known
            for challenge in offered:
                if challenge.scheme == "bearer" and self._credentials.registry_token is None:
                    return await self._token(challenge, scope)
                if challenge.scheme == "basic" and (header := self._credentials.basic()) and header != rejected:
                    self._is_basic = True
                    return header
        place = authority(self._base)
        if not offered:
            raise BadAnswer(place, "asks for credentials, but does not say which kind (WWW-Authenticate)")
        raise AccessDenied(place, "does not let us in", self._advice())

    def _advice(self) -> str:
        if self._credentials == RegistryCredentials():
            return "give credentials for this registry"
        return "check name and password, and that they reach this repository"

    async def _token(self, challenge: Challenge, scope: str) -> Secret:
        realm = self._realm(challenge.parameters.get("realm", ""))
        service = challenge.parameters.get("service", "")
        refresh = self._credentials.identity_token
        if refresh is not None:
            answer = await self._transfer.document(
                "POST",
                realm,
                headers={"Content-Type": "application/x-www-form-urlencoded"},
                body=self._form(service, scope, refresh),
            )
            if answer.status != 200:
                answer = answer._replace(body=without_credential(answer.body, f"Bearer {refresh.reveal()}"))
        else:
            query = urlencode({"service": service, "scope": scope}, quote_via=quote)
            answer = await self._transfer.document(
                "GET",
                URL(f"{realm}{'&' if realm.query_string else '?'}{query}", encoded=True),
                authorization=self._credentials.basic(),
            )
        if answer.status != 200:
            if answer.status in (400, 401, 403):
                raise AccessDenied(authority(realm), "gives no token for this repository", self._advice())
            raise refusal(answer, "the token", self._transfer)
        if answer.url.origin() != realm.origin():
            raise PolicyRefused(authority(realm), "its token realm redirects to another host", "this is never followed")
        token, lifetime = _read_token(answer.body, authority(realm))
        self._tokens[scope] = token, self._transfer.clock.monotonic() + lifetime - _MARGIN
        return token

    def _form(self, service: str, scope: str, token: Secret) -> bytes:
        fields = {
            "grant_type": "refresh_token",
            "service": service,
            "client_id": "hortus",
            "scope": scope,
            "refresh_token": token.reveal(),
        }
        return urlencode(fields).encode()

    def _realm(self, text: str) -> URL:
        place = authority(self._base)
        try:
            realm = URL(text, encoded=True).with_fragment(None)
            ours = realm.origin() == self._base.origin() or (realm.scheme == "https" and listed(realm, self._realms))
        except ValueError:
            raise BadAnswer(place, "names a token realm that is no address") from None
        if not ours:
            advice = "list it among this registry's realms if it belongs to it"
            raise PolicyRefused(place, f"wants a token from {authority(realm)}, which is not allowed", advice)
        self._transfer.destinations.check(realm)
        return realm


def _read_token(body: bytes, place: str) -> tuple[Secret, float]:
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict):
        raise BadAnswer(place, "the token realm did not answer with a JSON object")
    token = found.get("token") or found.get("access_token")
    if not isinstance(token, str) or not token.isprintable() or not token.isascii():
        raise BadAnswer(place, "the token realm gave no token")
    seconds = found.get("expires_in")
    lifetime = float(seconds) if isinstance(seconds, int) and seconds > 0 else _LIFETIME
    return Secret("Bearer " + token), min(lifetime, _LONGEST_LIFETIME)


# WWW-Authenticate headers (RFC 9110, 11.6.1).
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"  # noqa: S105 - a grammar
_SCHEME = re.compile(rf"\s*,?\s*({_TOKEN})(?:\s+|$)(?!\s*=)")
_PARAMETER = re.compile(rf'\s*,?\s*({_TOKEN})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|({_TOKEN}))')
_LONGEST = 8_192


class Challenge(NamedTuple):
    """One way in that a server offers; names in lower case."""

    scheme: str
    parameters: dict[str, str]


def challenges(headers: Iterable[str]) -> list[Challenge]:
    """All challenges in the headers' order; what cannot be read ends a header's list."""
    found = []
    for text in headers:
        place = 0
        while place < len(text[:_LONGEST]) and (scheme := _SCHEME.match(text, place)):
            place = scheme.end()
            parameters: dict[str, str] = {}
            while parameter := _PARAMETER.match(text, place):
                place = parameter.end()
                quoted, plain = parameter[2], parameter[3]
                parameters[parameter[1].lower()] = plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
            found.append(Challenge(scheme[1].lower(), parameters))
    return found
