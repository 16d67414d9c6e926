"""Impersonation: each claim is authorized on its own, and none can be slipped past."""

from __future__ import annotations

import pytest

from hortus.apiserver.authn import UserInfo
from hortus.apiserver.authz.attributes import Attributes, AuthorizationDecision
from hortus.apiserver.authz.impersonation import impersonated
from hortus.kube.errors import BadRequest, Forbidden

BOB = UserInfo("bob", groups=("ops",))


class Allowing:
    """Allows what is in its list, written `group/resource[/subresource] [namespace/]name`."""

    def __init__(self, *allowed: str) -> None:
        self.allowed = allowed

    async def authorize(self, attributes: Attributes) -> AuthorizationDecision:
        assert (attributes.cluster, attributes.user, attributes.verb) == ("root", BOB, "impersonate")
        what = "/".join(filter(None, (attributes.group, attributes.resource, attributes.subresource)))
        name = "/".join(filter(None, (attributes.namespace, attributes.name)))
        return AuthorizationDecision(f"{what} {name}" in self.allowed)


async def act(headers: dict[str, str] | list[tuple[str, str]], *allowed: str) -> UserInfo:
    pairs = list(headers.items()) if isinstance(headers, dict) else headers
    return await impersonated(BOB, pairs, cluster="root", authorizer=Allowing(*allowed))


async def test_without_the_headers_one_stays_oneself() -> None:
    assert await act({"Accept": "*/*", "X-Impersonate-User": "jane"}) is BOB


async def test_a_user_is_impersonated_as_an_authenticated_one() -> None:
    assert await act({"Impersonate-User": "jane"}, "users jane") == UserInfo("jane", groups=("system:authenticated",))


async def test_a_service_account_brings_its_groups() -> None:
    user = await act({"Impersonate-User": "system:serviceaccount:ns:bot"}, "serviceaccounts ns/bot")
    assert user.groups == ("system:serviceaccounts", "system:serviceaccounts:ns", "system:authenticated")


async def test_every_part_is_authorized_and_taken_over() -> None:
    headers = [
        ("impersonate-user", "jane"),
        ("Impersonate-Group", "devs"),
        ("IMPERSONATE-GROUP", "ops"),
        ("Impersonate-Uid", "7"),
        ("Impersonate-Extra-Example.org%2fScopes", "read"),
        ("Impersonate-Extra-Example.org%2fScopes", "write"),
    ]
    rights = (
        "users jane",
        "groups devs",
        "groups ops",
        "authentication.k8s.io/uids 7",
        "authentication.k8s.io/userextras/example.org/scopes read",
        "authentication.k8s.io/userextras/example.org/scopes write",
    )
    expected = UserInfo("jane", "7", ("devs", "ops", "system:authenticated"), {"example.org/scopes": ("read", "write")})
    assert await act(headers, *rights) == expected
    for missing in rights:
        with pytest.raises(Forbidden):
            await act(headers, *(right for right in rights if right != missing))


async def test_the_masters_group_is_not_free_with_a_user() -> None:
    with pytest.raises(Forbidden) as refused:
        await act({"Impersonate-User": "jane", "Impersonate-Group": "system:masters"}, "users jane")
    assert refused.value.message == (
        'groups "system:masters" is forbidden: User "bob" cannot impersonate resource "groups" in API group "" '
        "at the cluster scope"
    )


async def test_anonymous_is_impersonated_as_unauthenticated() -> None:
    user = await act({"Impersonate-User": "system:anonymous"}, "users system:anonymous")
    assert user.groups == ("system:unauthenticated",)


@pytest.mark.parametrize(
    "headers",
    [
        [("Impersonate-User", "")],
        [("Impersonate-Group", "devs")],
        [("Impersonate-Uid", "7")],
        [("Impersonate-Extra-Scope", "x")],
        [("Impersonate-User", "jane"), ("Impersonate-User", "root")],
    ],
)
async def test_an_identity_that_is_empty_or_double_is_an_error(headers: list[tuple[str, str]]) -> None:
    with pytest.raises(BadRequest):
        await act(headers, "users jane", "users ", "groups devs", "authentication.k8s.io/uids 7")
