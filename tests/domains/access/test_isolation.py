"""A requester gets what is its own: no Secret, cluster or account of another, whatever its request names."""

from __future__ import annotations

import pytest
from tests.domains.access.world import CONFIGMAPS, NAMESPACES, World, content, name_of

from hortus.domains.access.manifests import ACCOUNTS, CLUSTER_BINDINGS
from hortus.domains.access.types import CLUSTER_ACCESSES
from hortus.domains.credentials.types import GARDENER_CLUSTERS
from hortus.engine.remote import SECRETS
from hortus.kube.errors import Invalid

RBAC = "rbac.authorization.k8s.io"


async def test_two_requesters_share_nothing(here: World) -> None:
    await here.cluster()
    other = f"{here.namespace}-b"
    await here.client.create(NAMESPACES, {"metadata": {"name": other}})
    async with here.controlled():
        # The same name, client and Secret name, in two namespaces.
        first = await here.ask()
        second = await here.ask(
            namespace=other,
            clusterRef={"name": "tulip", "namespace": here.namespace},
            rules=[{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}],
        )
        await here.until_reason("Issued")
        await here.until_reason("Issued", namespace=other)
        mine, theirs = await here.until_secret(), await here.until_secret(namespace=other)
        assert content(mine) != content(theirs)
        assert name_of(first) != name_of(second)
        assert await here.as_client(mine, lambda client: client.list(CONFIGMAPS, "default"))
        assert not await here.as_client(theirs, lambda client: client.list(CONFIGMAPS, "default"))
        await here.delete()
        await here.until_gone()
        left = await here.objects_inside()
        assert len(left) == 3
        assert all(name_of(second) in line for line in left)
        await here.client.delete(CLUSTER_ACCESSES, "reader", other)
        await here.until_gone("ClusterAccess", "reader", other)


async def test_a_secret_that_is_there_is_not_touched(here: World) -> None:
    await here.cluster()
    await here.client.create(
        SECRETS, {"metadata": {"name": "access-reader", "namespace": here.namespace}, "data": {"config": "bWluZQ=="}}
    )
    async with here.controlled():
        await here.ask()
        condition = await here.until_reason("SecretTaken")
        assert "Secret access-reader is there already and was not made for this request" in condition["message"]
        await here.delete()
        await here.until_gone()
    found = await here.client.get(SECRETS, "access-reader", here.namespace)
    assert content(found) == b"mine"
    assert await here.objects_inside() == []


async def test_a_cluster_that_names_anothers_secret_leads_nowhere(here: World) -> None:
    """A user who may make a GardenerCluster must not come by the kubeconfig of another one."""
    await here.cluster()
    await here.client.create(
        GARDENER_CLUSTERS,
        {
            "apiVersion": GARDENER_CLUSTERS.api_version,
            "kind": GARDENER_CLUSTERS.kind,
            "metadata": {"name": "thief", "namespace": here.namespace},
            "spec": {
                "shoot": {"name": "tulip"},
                "kubeconfig": {"secret": {"name": "kubeconfig-tulip", "namespace": here.namespace, "key": "config"}},
            },
        },
    )
    async with here.controlled():
        await here.ask(clusterRef={"name": "thief"})
        assert "has no kubeconfig yet" in (await here.until_reason("ClusterMissing"))["message"]
    assert await here.objects_inside() == []


async def test_more_than_the_policy_allows_is_refused_and_nothing_is_made(here: World) -> None:
    await here.cluster()
    here.allowed = ""
    async with here.controlled():
        asked = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
        access = await here.ask(rules=[{**asked, "resources": ["nodes"]}, asked])
        condition = await here.until_reason("NotAllowed")
        assert condition["message"] == (
            "spec.rules[1]: get secrets of the whole cluster (power secrets); spec.rules[1]: secrets of all "
            "namespaces, the system's among them (power system-namespaces) (requester: ask for less; or operator: "
            "allow secrets, system-namespaces with --access-allow)"
        )
        found = await here.client.get(CLUSTER_ACCESSES, "reader", here.namespace)
        assert "finalizers" not in found["metadata"]
        assert found["metadata"]["uid"] == access["metadata"]["uid"]
        less = {"namespaces": ["default"], "rules": [{**asked, "resources": ["pods"]}]}
        await here.change(CLUSTER_ACCESSES, "reader", {"spec": less})
        await here.until_reason("Issued")
        # Asked for more afterwards: what was granted is taken back.
        await here.change(CLUSTER_ACCESSES, "reader", {"spec": {"namespaces": ["default", "kube-system"]}})
        await here.until_reason("NotAllowed")
        await here.until_gone("Secret", "access-reader")
        assert await here.objects_inside() == []


async def test_what_the_operator_allows_for_one_namespace_is_served_there(here: World) -> None:
    await here.cluster()
    here.allowed = f"nowhere/workloads,{here.namespace}/secrets"
    here.flags = ["--access-max-lifetime=10m"]
    async with here.controlled():
        await here.ask(namespaces=["default"], rules=[{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list"]}])
        await here.until_reason("Issued")
        secret = await here.until_secret()
        assert await here.as_client(secret, lambda client: client.list(SECRETS, "default"))
        assert 0 < await here.time_left() <= 360, "the operator's ten minutes count, not the requester's hour"


async def test_an_account_that_may_more_than_asked_gets_no_kubeconfig(here: World) -> None:
    await here.cluster()
    async with here.controlled():
        access = await here.ask()
        await here.until_reason("Issued")
        async with here.inside() as inside:
            await inside.create(
                CLUSTER_BINDINGS,
                {
                    "metadata": {"name": "sly"},
                    "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "view"},
                    "subjects": [{"kind": ACCOUNTS.kind, "name": name_of(access), "namespace": "kube-system"}],
                },
            )
        kept = content(await here.until_secret())
        await here.change(CLUSTER_ACCESSES, "reader", {"spec": {"expirationSeconds": 1200, "namespaces": ["default"]}})
        condition = await here.until_reason("MoreThanAsked")
        assert "another binding in the cluster gives it permissions" in condition["message"]
        assert content(await here.until_secret()) == kept


async def test_what_the_cluster_gives_to_everybody_is_not_more_than_asked(here: World) -> None:
    await here.cluster()
    async with here.inside() as inside:
        await inside.create(
            CLUSTER_BINDINGS,
            {
                "metadata": {"name": "generous"},
                "roleRef": {
                    "apiGroup": RBAC,
                    "kind": "ClusterRole",
                    "name": "system:node-proxier",
                },
                "subjects": [{"apiGroup": RBAC, "kind": "Group", "name": "system:serviceaccounts"}],
            },
        )
    async with here.controlled():
        await here.ask()
        await here.until_reason("Issued")
        assert content(await here.until_secret())


BAD = [
    ({"rules": []}, "rules"),
    ({"roleRef": {"name": "view"}, "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["a"]}]}, "either"),
    ({"roleRef": {"name": "view", "kind": "Role"}}, "name namespaces"),
    ({"rules": [{"verbs": ["get"]}]}, "apiGroups and resources, or nonResourceURLs"),
    ({"rules": [{"verbs": ["get"], "nonResourceURLs": ["/a"], "resources": ["b"]}]}, "or nonResourceURLs"),
    ({"rules": [{"verbs": ["get"], "nonResourceURLs": ["/a"]}], "namespaces": ["default"]}, "leave namespaces out"),
    ({"client": "../kube-system"}, "spec.client"),
    ({"client": "a" * 41}, "spec.client"),
    ({"namespaces": ["a/b"]}, "namespaces"),
    ({"namespaces": ["default", "default"]}, "Duplicate"),
    ({"secret": {"name": "../x"}}, "spec.secret.name"),
    ({"secret": {"name": "x", "key": "a/b"}}, "spec.secret.key"),
    ({"expirationSeconds": 599}, "expirationSeconds"),
    ({"expirationSeconds": 86401}, "expirationSeconds"),
    ({"rotateAtPercent": 91}, "rotateAtPercent"),
    ({"clusterRef": {"name": "tulip", "kind": "Shoot"}}, "clusterRef.kind"),
]


@pytest.mark.parametrize(("spec", "says"), BAD, ids=[says for _, says in BAD])
async def test_a_request_that_makes_no_sense_is_refused_by_the_api_server(
    here: World, spec: dict[str, object], says: str
) -> None:
    with pytest.raises(Invalid, match=says):
        await here.ask(**spec)


async def test_a_request_stays_with_its_cluster_and_client(here: World) -> None:
    await here.ask()
    for change, says in (({"clusterRef": {"name": "rose"}}, "clusterRef is"), ({"client": "other"}, "client is")):
        with pytest.raises(Invalid, match=f"{says} immutable"):
            await here.change(CLUSTER_ACCESSES, "reader", {"spec": change})
