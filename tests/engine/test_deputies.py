"""The permissions with which the objects of a namespace act, judged by the API server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from hortus.engine import StepError
from hortus.engine.deputies import ACCOUNT, GO_NAMESPACES, Action, Deputies, deputy_of, trusted_namespaces
from hortus.kube import Client, Resource
from hortus.kube.errors import Forbidden
from hortus.testing import FakeClock, TestCluster

SECRETS = Resource("", "v1", "secrets", "Secret")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")
READS = Action("get", "", "secrets", "default", "shared")


@pytest.fixture
async def admin(hortus_cluster: TestCluster) -> AsyncIterator[Client]:
    async with hortus_cluster.client() as client:
        yield client


async def _grant(admin: Client) -> None:
    metadata = {"name": "reads-shared", "namespace": "default"}
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["shared"], "verbs": ["get"]}
    await admin.create(ROLES, {"metadata": metadata, "rules": [rule]})
    reference = {"apiGroup": ROLES.group, "kind": ROLES.kind, "name": metadata["name"]}
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": "team"}
    await admin.create(BINDINGS, {"metadata": metadata, "roleRef": reference, "subjects": [subject]})


@pytest.mark.parametrize(
    ("trusted", "namespace", "expected"),
    [
        (GO_NAMESPACES, "kcp-system", True),
        (GO_NAMESPACES, "shoot--dev--one", True),
        (GO_NAMESPACES, "kcp-system2", False),
        (GO_NAMESPACES, "my-instana-agent", False),
        (GO_NAMESPACES, "fleet", False),
        (" a , b*", "b1", True),
        ("a.c", "abc", False),
        ("*", "anything", True),
        ("*", "", False),
        ("", "default", False),
        (",", "", False),
    ],
)
def test_a_namespace_is_trusted_by_its_whole_name(trusted: str, namespace: str, expected: bool) -> None:
    client = Client.over(None)  # type: ignore[arg-type]
    assert Deputies(client, trusted, clock=FakeClock()).trusts(namespace) is expected


def test_the_one_watched_namespace_is_trusted_besides() -> None:
    client = Client.over(None)  # type: ignore[arg-type]
    values = {"trusted-namespaces": "a,b*", "watch-namespace": "mine"}
    deputies = Deputies(client, trusted_namespaces(values), clock=FakeClock())
    assert [deputies.trusts(name) for name in ("a", "b1", "mine", "other")] == [True, True, True, False]
    watches_all = Deputies(client, trusted_namespaces({**values, "watch-namespace": ""}), clock=FakeClock())
    assert [watches_all.trusts(name) for name in ("a", "mine", "")] == [True, False, False]


async def test_calls_for_an_untrusted_namespace_are_made_as_its_deputy(admin: Client) -> None:
    deputies = Deputies(admin, "trusted", clock=FakeClock())
    await admin.create(SECRETS, {"metadata": {"name": "shared", "namespace": "default"}})
    await admin.create(SECRETS, {"metadata": {"name": "other", "namespace": "default"}})
    await _grant(admin)
    assert deputies.client("trusted") is admin
    acting = deputies.client("team")
    assert (await acting.get(SECRETS, "shared", "default"))["metadata"]["name"] == "shared"
    with pytest.raises(Forbidden, match=f'User "{deputy_of("team")}" cannot get resource "secrets"'):
        await acting.get(SECRETS, "other", "default")
    with pytest.raises(Forbidden, match=f'User "{deputy_of("team")}" cannot watch resource "secrets"'):
        async with acting.watch(SECRETS, "default") as events:
            async for _ in events:
                pass
    await acting.close()
    assert (await admin.get(SECRETS, "other", "default"))["metadata"]["name"] == "other"


async def test_an_answer_is_kept_as_long_as_kube_apiservers_webhook_authorizer_keeps_it(admin: Client) -> None:
    clock = FakeClock()
    deputies = Deputies(admin, "", clock=clock)
    assert not await deputies.may("team", READS)
    await _grant(admin)
    assert not await deputies.may("team", READS)
    await clock.advance(30.0)
    assert await deputies.may("team", READS)
    assert not await deputies.may("other", READS)
    await admin.delete(BINDINGS, "reads-shared", "default")
    assert await deputies.may("team", READS)
    await clock.advance(300.0)
    assert not await deputies.may("team", READS)


async def test_a_refusal_names_the_account_the_action_and_both_ways_out(admin: Client) -> None:
    deputies = Deputies(admin, "kcp-system", clock=FakeClock())
    await deputies.require("kcp-system", READS)
    with pytest.raises(StepError) as refused:
        await deputies.require("team", READS)
    assert refused.value.reason == "NotPermitted"
    assert str(refused.value) == (
        "namespace team may not get secrets/shared in namespace default: its objects act with the permissions of "
        "ServiceAccount hortus-deputy in it; grant them to system:serviceaccount:team:hortus-deputy, or add the "
        "namespace to --trusted-namespaces"
    )
