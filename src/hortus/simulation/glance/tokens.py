"""The users of the simulated cloud, and tokens for them (api-ref/identity/v3, Authentication)."""

from __future__ import annotations

import secrets
from typing import Any, Final

import msgspec

LIFETIME: Final = 3600.0
"""Seconds that a token lives."""


class CloudUsers(msgspec.Struct, frozen=True, kw_only=True):
    """One user with a project, and an application credential of it."""

    user_id: str = "u-1"
    username: str = "builder"
    domain: str = "Default"
    domain_id: str = "default"
    password: str = "a-long-password"  # noqa: S105 - of a simulation
    project_id: str = "p-1"
    project: str = "images"
    application_id: str = "a-1"
    application_name: str = "hortus"
    application_secret: str = "an-application-secret"  # noqa: S105


class Tokens:
    """Tokens that were handed out, with the times of their ends in seconds."""

    def __init__(self, users: CloudUsers) -> None:
        self._users = users
        self.living: dict[str, float] = {}

    def issue(self, document: Any, now: float) -> str | None:
        """A token for a request's body; None where the credentials are wrong."""
        auth = _at(document, "auth")
        methods = _at(auth, "identity", "methods")
        if methods not in (["password"], ["application_credential"], ["token"]):
            return None
        if not self._accepts(methods[0], _at(auth, "identity", methods[0]), now):
            return None
        if not self._is_project(_at(auth, "scope")):
            return None
        token = secrets.token_urlsafe(24)
        self.living[token] = now + LIFETIME
        return token

    def _accepts(self, method: str, identity: Any, now: float) -> bool:
        if method == "token":
            return self.living.get(str(_at(identity, "id")), 0.0) > now
        return self._is_application(identity) if method == "application_credential" else self._is_user(identity)

    def _is_user(self, identity: Any, *, password: bool = True) -> bool:
        user, known = _at(identity, "user"), self._users
        if password and _at(user, "password") != known.password:
            return False
        if _at(user, "id") is not None:
            return bool(_at(user, "id") == known.user_id)
        return _at(user, "name") == known.username and self._is_domain(_at(user, "domain"))

    def _is_application(self, identity: Any) -> bool:
        known = self._users
        if _at(identity, "secret") != known.application_secret:
            return False
        if _at(identity, "id") is not None:
            return bool(_at(identity, "id") == known.application_id)
        return _at(identity, "name") == known.application_name and self._is_user(identity, password=False)

    def _is_project(self, scope: Any) -> bool:
        if scope is None:
            return True
        project, known = _at(scope, "project"), self._users
        if _at(project, "id") is not None:
            return bool(_at(project, "id") == known.project_id)
        return _at(project, "name") == known.project and self._is_domain(_at(project, "domain"))

    def _is_domain(self, domain: Any) -> bool:
        return bool(_at(domain, "id") == self._users.domain_id or _at(domain, "name") == self._users.domain)


def _at(value: Any, *path: str) -> Any:
    """A part of a document; None where it is missing."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value
