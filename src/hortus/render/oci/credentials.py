"""Credentials for registries, out of a docker config.json such as a `kubernetes.io/dockerconfigjson` Secret holds.

Only what stands in the document counts. Helpers and stores would run programs that the document names; they are
refused by name rather than passed over, which would end in an unexplained 401.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping

import msgspec
import orjson

from hortus.kube import Secret

_REFUSED = ("credHelpers", "credsStore")
_HUB = "docker.io"
_HUB_NAMES = ("index.docker.io", "registry-1.docker.io", "docker.io")


class BadCredentials(ValueError):
    """A docker config that cannot be used; the message names the place and holds no credential."""


class RegistryCredentials(msgspec.Struct, frozen=True, kw_only=True):
    """The identity at one registry: a name and password, or tokens handed out before."""

    username: str = ""
    password: Secret | None = None
    identity_token: Secret | None = None
    """An OAuth2 refresh token, for the token realm."""
    registry_token: Secret | None = None
    """A bearer token, for the registry itself."""

    def basic(self) -> Secret | None:
        """The Authorization header of name and password, if there are such."""
        if self.password is None:
            return None
        pair = f"{self.username}:{self.password.reveal()}".encode()
        return Secret("Basic " + base64.b64encode(pair).decode())


class CredentialStore:
    """Credentials by registry, or by registry and a leading part of the repository."""

    def __init__(self, entries: Mapping[str, RegistryCredentials] | None = None) -> None:
        self._entries = {_normalized(place): entry for place, entry in (entries or {}).items()}

    @classmethod
    def from_docker_config(cls, document: bytes) -> CredentialStore:
        """Reads the bytes of a config.json. Raises BadCredentials."""
        try:
            found = orjson.loads(document)
        except orjson.JSONDecodeError:
            raise BadCredentials("the docker config is not JSON") from None
        if not isinstance(found, dict):
            raise BadCredentials("the docker config is not a JSON object")
        for name in _REFUSED:
            if found.get(name):
                raise BadCredentials(f"{name}: programs that give credentials are not run; put them under auths")
        auths = found.get("auths", {})
        if not isinstance(auths, dict):
            raise BadCredentials("auths: expected an object of registries")
        return cls({place: _entry(place, entry) for place, entry in auths.items()})

    def find(self, registry: str, repository: str) -> RegistryCredentials | None:
        """The credentials for the longest part of `registry/repository` that has some."""
        place = f"{_normalized(registry)}/{repository}"
        while place:
            if place in self._entries:
                return self._entries[place]
            place = place.rpartition("/")[0]
        return None


def _normalized(place: str) -> str:
    """A registry as docker clients write it: perhaps with a scheme and the version of the API."""
    text = place.partition("://")[2] or place
    host, _, path = text.rstrip("/").partition("/")
    host = _HUB if host.lower() in _HUB_NAMES else host.lower()
    return host if path in ("", "v1", "v2") else f"{host}/{path}"


def _entry(place: str, entry: object) -> RegistryCredentials:
    where = f"auths[{place[:100]!r}]"
    if not isinstance(entry, dict):
        raise BadCredentials(f"{where}: expected an object")
    fields = {
        name: _text(entry, name, where) for name in ("username", "password", "auth", "identitytoken", "registrytoken")
    }
    name, password = fields["username"], fields["password"]
    if fields["auth"]:
        name, password = _pair(fields["auth"], where)
    return RegistryCredentials(
        username=name,
        password=Secret(password) if password else None,
        identity_token=Secret(fields["identitytoken"]) if fields["identitytoken"] else None,
        registry_token=Secret(fields["registrytoken"]) if fields["registrytoken"] else None,
    )


def _text(entry: dict[str, object], name: str, where: str) -> str:
    value = entry.get(name)
    if value is None:
        return ""
    if not isinstance(value, str) or not (value.isprintable() or name == "auth"):
        raise BadCredentials(f"{where}.{name}: expected a text of one line")
    return value


def _pair(auth: str, where: str) -> tuple[str, str]:
    try:
        text = base64.b64decode("".join(auth.split()) + "==", validate=False).decode()
    except ValueError:
        raise BadCredentials(f"{where}.auth: is not base64 of name:password") from None
    name, colon, password = text.rstrip("\0").partition(":")
    if not colon or not text.rstrip("\0").isprintable():
        raise BadCredentials(f"{where}.auth: is not base64 of name:password")
    return name, password
