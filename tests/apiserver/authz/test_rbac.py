"""RBAC over stored objects: matching, bindings, default policy, and separation of clusters."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.authn.world import World, world

from hortus.apiserver.authn import ANONYMOUS, UserInfo
from hortus.apiserver.authz import Attributes, denied
from hortus.apiserver.clusters.born import born_objects
from hortus.apiserver.store import StoreKey

BORN = born_objects(
    created=1_672_574_400.0,
    identity="6f0c7f0a-6a1c-4c38-8d0a-2f9c2f6b5d11",
    address="10.0.0.1",
    port=443,
    versions=(),
)
GROUP = "rbac.authorization.k8s.io"
JANE = UserInfo("jane", groups=("devs", "system:authenticated"))


def role(name: str, *rules: dict[str, list[str]], namespace: str = "", **more: Any) -> tuple[StoreKey, dict[str, Any]]:
    plural, kind = ("roles", "Role") if namespace else ("clusterroles", "ClusterRole")
    metadata = {"name": name, **({"namespace": namespace} if namespace else {}), **more.pop("metadata", {})}
    obj = {"kind": kind, "metadata": metadata, "rules": list(rules), **more}
    return StoreKey(f"root/{GROUP}/{plural}", f"{namespace}/{name}"), obj


def rule(verbs: str, groups: str, resources: str, names: str = "") -> dict[str, list[str]]:
    found = {"verbs": verbs.split(","), "apiGroups": groups.split(","), "resources": resources.split(",")}
    return {**found, "resourceNames": names.split(",")} if names else found


def urls(verbs: str, paths: str) -> dict[str, list[str]]:
    return {"verbs": verbs.split(","), "nonResourceURLs": paths.split(",")}


def binding(
    name: str, to: dict[str, str], of: str, *, namespace: str = "", kind: str = "ClusterRole", cluster: str = "root"
) -> tuple[StoreKey, dict[str, Any]]:
    plural = "rolebindings" if namespace else "clusterrolebindings"
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    obj = {"metadata": metadata, "subjects": [to], "roleRef": {"apiGroup": GROUP, "kind": kind, "name": of}}
    return StoreKey(f"{cluster}/{GROUP}/{plural}", f"{namespace}/{name}"), obj


USER = {"kind": "User", "apiGroup": GROUP, "name": "jane"}


def ask(text: str, *, user: UserInfo = JANE, cluster: str = "root") -> Attributes:
    """`verb group/resource[/subresource] [namespace [name]]` or `verb /path`; `core` is the empty group, - nothing."""
    verb, what, *rest = text.split(" ")
    if what.startswith("/"):
        return Attributes(cluster, user, verb, path=what)
    group, resource, *subresource = what.split("/")
    namespace, name = [*("" if word == "-" else word for word in rest), "", ""][:2]
    return Attributes(
        cluster,
        user,
        verb,
        "" if group == "core" else group,
        "v1",
        resource,
        subresource[0] if subresource else "",
        namespace,
        name,
    )


async def may(here: World, text: str, **who: Any) -> bool:
    return (await here.authorizer.authorize(ask(text, **who))).allowed


@pytest.mark.parametrize(
    ("rules", "allowed", "refused"),
    [
        (
            rule("get", "", "pods"),
            ["get core/pods ns x"],
            ["list core/pods ns", "get core/pods/log ns x", "get apps/pods"],
        ),
        (rule("*", "", "pods"), ["list core/pods ns", "bind core/pods"], ["list core/secrets ns"]),
        (
            rule("get", "*", "*"),
            ["get apps/deployments/scale a b", "get core/pods"],
            ["update apps/deployments", "get /api"],
        ),
        (rule("get", "", "pods/log"), ["get core/pods/log ns x"], ["get core/pods ns x", "get core/pods/exec ns x"]),
        (rule("get", "*", "*/scale"), ["get apps/deployments/scale ns x"], ["get apps/deployments ns x"]),
        (rule("get", "", "pods/*"), [], ["get core/pods/log ns x", "get core/pods"]),
        (
            rule("get", "", "secrets", "a,b"),
            ["get core/secrets ns a"],
            ["get core/secrets ns c", "get core/secrets ns"],
        ),
        (urls("get", "/healthz/*"), ["get /healthz/", "get /healthz/etcd"], ["get /healthz", "post /healthz/etcd"]),
        (urls("get", "/api"), ["get /api"], ["get /api/v1", "get /apis"]),
        (urls("*", "*"), ["post /anything/at/all"], ["get core/pods"]),
        (
            rule("get", "apps", "deployments"),
            ["get apps/deployments"],
            ["get extensions/deployments", "get core/deployments"],
        ),
    ],
)
async def test_a_rule_covers_requests_as_documented(
    rules: dict[str, list[str]], allowed: list[str], refused: list[str]
) -> None:
    async with world() as here:
        await here.write(*role("r", rules))
        await here.write(*binding("b", USER, "r"))
        assert [text for text in allowed if not await may(here, text)] == []
        assert [text for text in refused if await may(here, text)] == []


async def test_a_role_binding_holds_in_its_namespace_only() -> None:
    async with world() as here:
        await here.write(*role("r", rule("*", "*", "*"), urls("*", "*")))
        await here.write(*binding("b", USER, "r", namespace="one"))
        assert await may(here, "delete core/pods one x")
        assert not await may(here, "delete core/pods two x")
        assert not await may(here, "list core/pods")
        assert not await may(here, "get /api")


async def test_a_namespaced_role_is_found_in_the_namespace_of_its_binding() -> None:
    async with world() as here:
        await here.write(*role("r", rule("get", "", "pods"), namespace="one"))
        await here.write(*binding("b", USER, "r", namespace="one", kind="Role"))
        await here.write(*binding("b", USER, "r", namespace="two", kind="Role"))
        assert await may(here, "get core/pods one x")
        assert not await may(here, "get core/pods two x")


async def test_groups_and_service_accounts_are_subjects() -> None:
    async with world() as here:
        await here.write(*role("r", rule("get", "", "pods")))
        await here.write(*binding("g", {"kind": "Group", "name": "devs"}, "r", namespace="one"))
        await here.write(*binding("s", {"kind": "ServiceAccount", "name": "bot"}, "r", namespace="two"))
        assert await may(here, "get core/pods one x")
        assert await may(here, "get core/pods two x", user=UserInfo("system:serviceaccount:two:bot"))
        assert not await may(here, "get core/pods two x", user=UserInfo("system:serviceaccount:one:bot"))


async def test_masters_may_do_everything_without_any_role() -> None:
    async with world() as here:
        assert await may(here, "delete core/nodes - x", user=UserInfo("x", groups=("system:masters",)))


async def test_a_decision_follows_each_write_at_once() -> None:
    async with world() as here:
        assert not await may(here, "get core/pods ns x")
        await here.write(*role("r", rule("get", "", "pods")))
        await here.write(*binding("b", USER, "r"))
        assert await may(here, "get core/pods ns x")
        await here.write(*role("r", rule("get", "", "secrets")))
        assert not await may(here, "get core/pods ns x")
        await here.write(*role("r", rule("get", "", "pods")))
        await here.remove(binding("b", USER, "r")[0])
        assert not await may(here, "get core/pods ns x")


async def test_a_role_of_one_cluster_gives_nothing_in_another() -> None:
    async with world(born=BORN) as here:
        await here.create_cluster("other")
        await here.write(*binding("b", USER, "cluster-admin"))
        assert await may(here, "delete core/nodes - x")
        assert not await may(here, "delete core/nodes - x", cluster="other")


async def test_an_aggregated_role_grants_the_sum_also_of_aggregates() -> None:
    async with world() as here:
        label = {"labels": {"sum": "yes"}}
        chain = {"clusterRoleSelectors": [{"matchExpressions": [{"key": "sum", "operator": "In", "values": ["yes"]}]}]}
        top = {"clusterRoleSelectors": [{"matchLabels": {"top": "yes"}}]}
        await here.write(*role("leaf", rule("get", "", "pods"), metadata=label))
        await here.write(*role("middle", metadata={"labels": {"top": "yes"}}, aggregationRule=chain))
        await here.write(*role("summit", rule("get", "", "nodes"), aggregationRule=top))
        await here.write(*binding("b", USER, "summit"))
        assert await may(here, "get core/pods ns x")
        assert not await may(here, "get core/nodes - x")


@pytest.mark.parametrize(
    ("cluster_role", "allowed", "refused"),
    [
        (
            "view",
            ["list core/pods ns", "get apps/deployments ns x"],
            ["get core/secrets ns x", "delete core/pods ns x"],
        ),
        (
            "edit",
            ["get core/secrets ns x", "create core/pods/exec ns x"],
            ["create rbac.authorization.k8s.io/roles ns"],
        ),
        (
            "admin",
            ["create rbac.authorization.k8s.io/roles ns", "patch core/pods ns x"],
            ["update core/namespaces - ns"],
        ),
    ],
)
async def test_the_default_user_facing_roles_differ_as_documented(
    cluster_role: str, allowed: list[str], refused: list[str]
) -> None:
    async with world(born=BORN) as here:
        await here.write(*binding("b", USER, cluster_role, namespace="ns"))
        assert [text for text in allowed if not await may(here, text)] == []
        assert [text for text in refused if await may(here, text)] == []


async def test_anonymous_requests_reach_health_and_version_only() -> None:
    async with world(born=BORN) as here:
        for path in ("/healthz", "/livez", "/readyz", "/version"):
            assert await may(here, f"get {path}", user=ANONYMOUS)
        for asked in ("get /api", "get /apis", "get /metrics", "list core/namespaces"):
            assert not await may(here, asked, user=ANONYMOUS)
        assert await may(here, "get /apis")


async def test_clusters_with_only_the_default_policy_share_one_index() -> None:
    async with world(born=BORN) as here:
        for name in ("one", "two"):
            await here.create_cluster(name)
        one, two = await here.authorizer.index("one"), await here.authorizer.index("two")
        assert one is two
        await here.write(*binding("b", USER, "view", cluster="two"))
        assert await here.authorizer.index("one") is one
        assert await here.authorizer.index("two") is not one


async def test_a_cluster_with_bindings_of_its_own_shares_the_roles_and_keeps_the_default_bindings() -> None:
    async with world(born=BORN) as here:
        for name in ("one", "two"):
            await here.create_cluster(name)
        await here.write(*binding("b", USER, "view", cluster="two"))
        one, two = await here.authorizer.index("one"), await here.authorizer.index("two")
        assert two.cluster_roles is one.cluster_roles
        assert await may(here, "list core/pods ns", cluster="two")
        assert await may(here, "get /apis", cluster="two")
        assert not await may(here, "list core/pods ns", cluster="one")


async def test_an_allowed_request_says_which_binding_allowed_it() -> None:
    async with world(born=BORN) as here:
        await here.write(*binding("b", {"kind": "ServiceAccount", "name": "bot"}, "view", namespace="ns"))
        bot = UserInfo("system:serviceaccount:ns:bot")
        decision = await here.authorizer.authorize(ask("list core/pods ns", user=bot))
        assert decision.reason == (
            'RBAC: allowed by RoleBinding "b/ns" of ClusterRole "view" to ServiceAccount "bot/ns"'
        )


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            "list core/pods ns",
            'pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "ns"',
        ),
        (
            "get apps/deployments/scale ns web",
            'deployments.apps "web" is forbidden: User "jane" cannot get resource "deployments/scale" in API '
            'group "apps" in the namespace "ns"',
        ),
        (
            "list core/nodes",
            'nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope',
        ),
        ("get /metrics", 'forbidden: User "jane" cannot get path "/metrics"'),
    ],
)
def test_a_denial_reads_as_kubernetes_writes_it(asked: str, message: str) -> None:
    assert denied(ask(asked)).message == message
