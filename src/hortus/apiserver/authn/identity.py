"""Identities and credentials: the interface that every authenticator implements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from hortus.kube.objects import Object


class UserInfo(msgspec.Struct, frozen=True):
    """authentication.k8s.io/v1 UserInfo."""

    username: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict)

    def to_json(self) -> Object:
        """The form of the API: empty parts are omitted."""
        extra = {key: list(values) for key, values in self.extra.items()}
        parts = {"username": self.username, "uid": self.uid, "groups": list(self.groups), "extra": extra}
        return {key: value for key, value in parts.items() if value}


class RequestCredentials(msgspec.Struct, frozen=True):
    """The credentials of a request. `certificate` is the verified peer certificate in DER."""

    cluster: str
    bearer: str = ""
    certificate: bytes = b""


class Authenticator(Protocol):
    async def authenticate(self, credentials: RequestCredentials) -> UserInfo | None:
        """The user of these credentials, None when they are of a kind that this authenticator does not know.

        Raises hortus.kube.errors.Unauthorized when they are of its kind and invalid.
        """
