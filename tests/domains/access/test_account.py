"""A request that describes the ServiceAccount: it is as described, and never somebody else's."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domains.access.world import CONFIGMAPS, NAMESPACES, READ_CONFIG, World, mark_of

from hortus.domains.access.manifests import ACCOUNTS, BINDINGS, CLUSTER_BINDINGS
from hortus.domains.access.types import CLUSTER_ACCESSES, Label
from hortus.kube.errors import Invalid
from hortus.kube.objects import Object

ACCOUNT: Object = {"name": "deployer", "namespace": "default"}
RBAC = "rbac.authorization.k8s.io"


async def test_the_account_is_as_the_request_describes_it(here: World) -> None:
    await here.cluster()
    wanted = {**ACCOUNT, "labels": {"team": "a"}, "annotations": {"cloud.example.org/role": "reader"}}
    async with here.controlled():
        access = await here.ask(namespaces=["default"], serviceAccount=wanted)
        await here.until_reason("Issued")
        secret = await here.until_secret()
        assert await here.rules_held(secret) == [READ_CONFIG]
        assert await here.as_client(secret, lambda client: client.list(CONFIGMAPS, "default"))
        async with here.inside() as inside:
            account = await inside.get(ACCOUNTS, "deployer", "default")
            assert account["metadata"]["labels"]["team"] == "a"
            assert account["metadata"]["labels"][Label.REQUEST] == mark_of(access)
            assert account["metadata"]["annotations"]["cloud.example.org/role"] == "reader"
            await here.change(CLUSTER_ACCESSES, "reader", {"spec": {"serviceAccount": {"labels": {"team": "b"}}}})
            await here.until_inside(
                ACCOUNTS, "deployer", "default", lambda obj: obj["metadata"]["labels"]["team"] == "b"
            )
        await here.delete()
        await here.until_gone()
        assert await here.objects_inside() == []


async def test_a_request_does_not_claim_marks_of_others(here: World) -> None:
    await here.cluster()
    async with here.controlled():
        access = await here.ask(serviceAccount={**ACCOUNT, "labels": {Label.REQUEST: "another", "a": "b"}})
        await here.until_reason("Issued")
        async with here.inside() as inside:
            labels = (await inside.get(ACCOUNTS, "deployer", "default"))["metadata"]["labels"]
        assert labels[Label.REQUEST] == mark_of(access)


async def test_an_account_of_somebody_else_gets_neither_rights_nor_tokens(here: World) -> None:
    await here.cluster()
    async with here.inside() as inside:
        made = await inside.create(ACCOUNTS, {"metadata": {"name": "deployer", "namespace": "default"}})
        async with here.controlled():
            await here.ask(namespaces=["default"], serviceAccount=ACCOUNT)
            shown = await here.until_reason("AccountTaken")
            assert "ServiceAccount default/deployer exists and is not this request's" in shown["message"]
            assert await here.objects_inside() == []
            assert (await inside.list(BINDINGS, "default")).items == []
            await here.delete()
            await here.until_gone()
        assert await inside.get(ACCOUNTS, "deployer", "default") == made


@pytest.mark.parametrize("group", [False, True])
async def test_rights_that_wait_for_an_account_of_that_name_are_not_handed_out(here: World, group: bool) -> None:
    """Somebody bound the name before, or all accounts of the namespace."""
    await here.cluster()
    subject: Object = {"kind": "ServiceAccount", **ACCOUNT}
    if group:
        subject = {"kind": "Group", "apiGroup": RBAC, "name": "system:serviceaccounts:ci"}
    binding = {
        "metadata": {"name": "waiting"},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [subject],
    }
    async with here.inside() as inside:
        await inside.create(NAMESPACES, {"metadata": {"name": "ci"}})
        await inside.create(CLUSTER_BINDINGS, binding)
    async with here.controlled():
        await here.ask(namespaces=["default"], serviceAccount={**ACCOUNT, "namespace": "ci" if group else "default"})
        condition = await here.until_reason("MoreThanAsked")
        assert condition["status"] == "False"


@pytest.mark.parametrize("namespace", ["kube-system", "kube-public", "kube-node-lease"])
async def test_an_account_in_a_namespace_of_the_system_is_the_operators_to_allow(here: World, namespace: str) -> None:
    await here.cluster()
    here.allowed = ""
    async with here.controlled():
        await here.ask(namespaces=["default"], serviceAccount={**ACCOUNT, "namespace": namespace})
        shown = await here.until_reason("NotAllowed")
        assert f"spec.serviceAccount.namespace: namespace {namespace} is the system's" in shown["message"]


@pytest.mark.parametrize(
    "change",
    [{"serviceAccount": None}, {"serviceAccount": {"name": "other"}}, {"serviceAccount": {"namespace": "other"}}],
)
async def test_an_account_keeps_its_place(here: World, change: Any) -> None:
    await here.ask(serviceAccount=ACCOUNT)
    with pytest.raises(Invalid, match="serviceAccount keeps its name and namespace"):
        await here.change(CLUSTER_ACCESSES, "reader", {"spec": change})
    await here.ask("plain")
    with pytest.raises(Invalid, match="serviceAccount keeps its name and namespace"):
        await here.change(CLUSTER_ACCESSES, "plain", {"spec": {"serviceAccount": ACCOUNT}})
