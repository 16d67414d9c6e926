"""The attributes of a request and the interface of authorizers."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from hortus.apiserver.authn.identity import UserInfo


class Attributes(NamedTuple):
    """One request as authorization sees it (authorization.k8s.io ResourceAttributes / NonResourceAttributes).

    `path` is set for non-resource requests, and then all fields from `group` on are empty.
    """

    cluster: str
    user: UserInfo
    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class AuthorizationDecision(NamedTuple):
    allowed: bool
    reason: str = ""


class Authorizer(Protocol):
    async def authorize(self, attributes: Attributes) -> AuthorizationDecision: ...
