"""Acting as somebody else by `Impersonate-*` headers, each claim authorized (Kubernetes docs, "User impersonation").

Every part - user, each group, uid, each extra value - is a request of its own with verb `impersonate`; one refusal
refuses all. An impersonated identity that is empty is an error, never the asker himself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple
from urllib.parse import unquote

from hortus.apiserver.authn.chain import ANONYMOUS
from hortus.apiserver.authn.client_certificates import AUTHENTICATED
from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.authn.service_accounts import groups_of
from hortus.apiserver.authz.attributes import Attributes, Authorizer
from hortus.apiserver.authz.rules import denied
from hortus.kube.errors import BadRequest

_PREFIX = "impersonate-"
_EXTRA = "impersonate-extra-"
_ACCOUNT = "system:serviceaccount:"
_UNAUTHENTICATED = "system:unauthenticated"
_AUTHENTICATION = "authentication.k8s.io"


class _Claims(NamedTuple):
    users: list[str]
    groups: list[str]
    uids: list[str]
    extra: dict[str, list[str]]

    def __bool__(self) -> bool:
        return bool(self.users or self.groups or self.uids or self.extra)


async def impersonated(
    user: UserInfo, headers: Iterable[tuple[str, str]], *, cluster: str, authorizer: Authorizer
) -> UserInfo:
    """The user that the request acts as: `user`, or the one that `headers` (name, value) name.

    Raises Forbidden for what `user` may not impersonate, BadRequest for claims without a user.
    """
    claims = _claims(headers)
    if not claims:
        return user
    if len(claims.users) != 1 or not claims.users[0]:
        raise BadRequest("impersonation needs exactly one Impersonate-User header, and it may not be empty")
    extra = chain(claims.extra, *claims.extra.values())
    if not all(map(_is_text, chain(claims.users, claims.groups, claims.uids, extra))):
        raise BadRequest("impersonation headers must be UTF-8")
    for asked in _requests(claims, cluster, user):
        decision = await authorizer.authorize(asked)
        if not decision.allowed:
            raise denied(asked, decision.reason)
    return _identity(claims)


def _is_text(value: str) -> bool:
    """False for bytes that are no UTF-8, which a header's text holds as halves of surrogate pairs (PEP 383)."""
    return value.isascii() or not any("\ud800" <= each <= "\udfff" for each in value)


def _claims(headers: Iterable[tuple[str, str]]) -> _Claims:
    claims = _Claims([], [], [], {})
    for name, value in headers:
        lower = name.lower()
        if not lower.startswith(_PREFIX):
            continue
        if lower.startswith(_EXTRA):
            claims.extra.setdefault(unquote(lower.removeprefix(_EXTRA)), []).append(value)
            continue
        match lower:
            case "impersonate-user":
                claims.users.append(value)
            case "impersonate-group":
                claims.groups.append(value)
            case "impersonate-uid":
                claims.uids.append(value)
    return claims


def _account(username: str) -> tuple[str, str] | None:
    namespace, colon, name = username.removeprefix(_ACCOUNT).partition(":")
    valid = username.startswith(_ACCOUNT) and namespace and name and ":" not in name
    return (namespace, name) if colon and valid else None


def _requests(claims: _Claims, cluster: str, user: UserInfo) -> Iterator[Attributes]:
    account = _account(claims.users[0])
    if account:
        yield Attributes(
            cluster, user, "impersonate", resource="serviceaccounts", namespace=account[0], name=account[1]
        )
    else:
        yield Attributes(cluster, user, "impersonate", resource="users", name=claims.users[0])
    for group in claims.groups:
        yield Attributes(cluster, user, "impersonate", resource="groups", name=group)
    for key, values in claims.extra.items():
        for value in values:
            yield Attributes(
                cluster, user, "impersonate", _AUTHENTICATION, resource="userextras", subresource=key, name=value
            )
    for uid in claims.uids:
        yield Attributes(cluster, user, "impersonate", _AUTHENTICATION, resource="uids", name=uid)


def _identity(claims: _Claims) -> UserInfo:
    username = claims.users[0]
    account = _account(username)
    groups = claims.groups or (list(groups_of(account[0])) if account else [])
    implied = _UNAUTHENTICATED if username == ANONYMOUS.username else AUTHENTICATED
    if implied not in groups and _UNAUTHENTICATED not in groups:
        groups = [*groups, implied]
    extra = {key: tuple(values) for key, values in claims.extra.items()}
    return UserInfo(username, claims.uids[-1] if claims.uids else "", tuple(groups), extra)
