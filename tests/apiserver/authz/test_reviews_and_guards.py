"""Reviews answer what authorization would; nobody grants more than they hold; aggregates show their sum."""

from __future__ import annotations

from typing import Any

import pytest
from tests.apiserver.authn.world import World, world
from tests.apiserver.authz.test_rbac import BORN, JANE, USER, ask, binding, role, rule, urls

from hortus.apiserver.authn import UserInfo
from hortus.apiserver.authz.aggregator import RoleAggregator
from hortus.apiserver.authz.escalation import check_rbac_write
from hortus.apiserver.authz.reviews import REVIEWS
from hortus.apiserver.clusters.quotas import QuotaGuard
from hortus.apiserver.resources.definition import WriteContext
from hortus.kube.errors import ApiError, BadRequest, Forbidden, Invalid, NotFound


async def review(here: World, plural: str, spec: dict[str, Any], *, namespace: str = "", user: UserInfo = JANE) -> Any:
    group = "authentication.k8s.io" if plural == "selfsubjectreviews" else "authorization.k8s.io"
    context = WriteContext(cluster="root", namespace=namespace, user=user, now=here.clock.now())
    body = {"apiVersion": f"{group}/v1", "kind": "Review", "spec": spec}
    answer = await REVIEWS[group, plural](here.authorizer, body, context)
    assert {key: answer[key] for key in body} == body
    return answer["status"]


PODS = {"verb": "list", "resource": "pods", "namespace": "ns"}


async def test_a_review_gives_the_reason_of_a_permission() -> None:
    async with world() as here:
        assert await review(here, "selfsubjectaccessreviews", {"resourceAttributes": PODS}) == {"allowed": False}
        await here.write(*role("r", rule("list", "", "pods")))
        await here.write(*binding("b", USER, "r"))
        reason = 'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "jane"'
        expected = {"allowed": True, "reason": reason}
        assert await review(here, "selfsubjectaccessreviews", {"resourceAttributes": PODS}) == expected
        about = {"user": "jane", "groups": None, "resourceAttributes": {**PODS, "name": None}}
        assert await review(here, "subjectaccessreviews", about) == expected
        assert await review(here, "localsubjectaccessreviews", about, namespace="ns") == expected
        other = {"user": "joe", "resourceAttributes": PODS}
        assert await review(here, "subjectaccessreviews", other) == {"allowed": False}


async def test_a_review_about_a_path() -> None:
    async with world(born=BORN) as here:
        spec = {"nonResourceAttributes": {"path": "/healthz", "verb": "get"}}
        assert (await review(here, "selfsubjectaccessreviews", spec))["allowed"]


async def test_everything_is_asked_for_with_stars() -> None:
    async with world(born=BORN) as here:
        everything = {"resourceAttributes": {"verb": "*", "group": "*", "resource": "*"}}
        assert not (await review(here, "selfsubjectaccessreviews", everything))["allowed"]
        await here.write(*binding("b", USER, "cluster-admin"))
        assert (await review(here, "selfsubjectaccessreviews", everything))["allowed"]


@pytest.mark.parametrize(
    ("plural", "spec", "error"),
    [
        ("subjectaccessreviews", {"resourceAttributes": PODS}, Invalid),
        ("subjectaccessreviews", {"user": "x"}, Invalid),
        ("selfsubjectaccessreviews", {"resourceAttributes": PODS, "nonResourceAttributes": {}}, Invalid),
        ("selfsubjectaccessreviews", {"resourceAttributes": {"verb": 7}}, BadRequest),
        ("selfsubjectaccessreviews", [], Invalid),
        ("selfsubjectaccessreviews", "x", BadRequest),
        ("localsubjectaccessreviews", {"user": "x", "resourceAttributes": PODS}, Invalid),
        ("selfsubjectrulesreviews", {}, BadRequest),
    ],
)
async def test_a_malformed_review_is_the_askers_error(plural: str, spec: Any, error: type[ApiError]) -> None:
    async with world() as here:
        with pytest.raises(error):
            await review(here, plural, spec, namespace="elsewhere")


async def test_the_rules_review_lists_the_rules_of_a_namespace() -> None:
    async with world() as here:
        await here.write(*role("r", rule("list", "", "pods"), urls("get", "/x")))
        await here.write(*role("s", rule("get", "", "secrets", "a"), namespace="ns"))
        await here.write(*binding("b", USER, "r"))
        await here.write(*binding("b", USER, "s", namespace="ns", kind="Role"))
        await here.write(*binding("c", USER, "gone", namespace="ns"))
        assert await review(here, "selfsubjectrulesreviews", {"namespace": "ns"}) == {
            "resourceRules": [
                {"verbs": ["list"], "apiGroups": [""], "resources": ["pods"]},
                {"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["a"]},
            ],
            "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}],
            "incomplete": True,
            "evaluationError": 'clusterrole.rbac.authorization.k8s.io "gone" not found',
        }


async def test_whoami_returns_the_whole_identity() -> None:
    user = UserInfo("jane", "7", ("devs",), {"scopes": ("a", "b")})
    async with world() as here:
        assert await review(here, "selfsubjectreviews", {}, user=user) == {
            "userInfo": {"username": "jane", "uid": "7", "groups": ["devs"], "extra": {"scopes": ["a", "b"]}}
        }


async def test_a_denial_names_a_role_that_is_bound_but_missing() -> None:
    async with world() as here:
        await here.write(*binding("b", USER, "gone"))
        decision = await here.authorizer.authorize(ask("get core/pods ns x"))
        assert decision == (False, 'RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found')


async def write(here: World, made: tuple[Any, dict[str, Any]], old: dict[str, Any] | None = None) -> None:
    key, obj = made
    plural = key.bucket.rpartition("/")[2]
    await check_rbac_write(here.authorizer, plural, obj, old, cluster="root", user=JANE)


async def test_a_role_may_not_hold_more_than_its_writer() -> None:
    async with world() as here:
        await here.write(*role("mine", rule("get,list", "", "pods,pods/log"), urls("get", "/logs/*")))
        await here.write(*binding("b", USER, "mine"))
        await write(here, role("new", rule("list", "", "pods"), urls("get", "/logs/x")))
        await write(here, role("new", rule("list", "", "pods", "x"), namespace="ns"))
        wide = role("new", rule("get,watch,delete", "", "pods"), rule("get", "", "secrets", "a,b"), urls("get", "/x"))
        with pytest.raises(Forbidden) as refused:
            await write(here, wide)
        assert refused.value.message == (
            'clusterroles.rbac.authorization.k8s.io "new" is forbidden: user "jane" (groups=["devs" '
            '"system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n'
            '{APIGroups:[""], Resources:["pods"], Verbs:["watch" "delete"]}\n'
            '{APIGroups:[""], Resources:["secrets"], ResourceNames:["a"], Verbs:["get"]}\n'
            '{APIGroups:[""], Resources:["secrets"], ResourceNames:["b"], Verbs:["get"]}\n'
            '{NonResourceURLs:["/x"], Verbs:["get"]}'
        )


def _wide(count: int) -> dict[str, Any]:
    return rule(*(",".join(f"{word}{number}" for number in range(count)) for word in ("verb", "group", "resource")))


async def test_a_small_role_with_a_million_permissions_is_refused_with_the_first_of_them() -> None:
    async with world() as here:
        with pytest.raises(Forbidden) as refused:
            await write(here, role("new", _wide(100)))
        lines = refused.value.message.splitlines()
        assert lines[0].endswith("is attempting to grant RBAC permissions not currently held:")
        assert lines[1].startswith('{APIGroups:["group0"], Resources:["resource0"], Verbs:["verb0" "verb1" ')
        assert lines[-1] == "and more"
        assert len(lines) == 43


async def test_rights_that_differ_in_too_many_ways_from_a_role_do_not_write_it() -> None:
    async with world() as here:
        wide = _wide(100)
        parts = [
            {**rule("*", "*", "*"), field: [value]}
            for field in ("verbs", "apiGroups", "resources")
            for value in wide[field]
        ]
        await here.write(*role("mine", *parts))
        await here.write(*binding("b", USER, "mine"))
        with pytest.raises(Forbidden, match="too many to be compared with those held"):
            await write(here, role("new", wide))
        await write(here, role("new", _wide(10)))


async def test_a_path_that_is_granted_twice_is_listed_once() -> None:
    async with world() as here:
        with pytest.raises(Forbidden) as refused:
            await write(here, role("new", urls("get", "/x"), urls("get", "/x,/y")))
        assert refused.value.message.endswith(
            'not currently held:\n{NonResourceURLs:["/x"], Verbs:["get"]}\n{NonResourceURLs:["/y"], Verbs:["get"]}'
        )


async def test_rules_held_in_a_namespace_are_granted_there_alone() -> None:
    async with world() as here:
        await here.write(*role("mine", rule("get", "", "pods"), namespace="ns"))
        await here.write(*binding("b", USER, "mine", namespace="ns", kind="Role"))
        made = rule("get", "", "pods")
        await write(here, role("new", made, namespace="ns"))
        for elsewhere in (role("new", made, namespace="other"), role("new", made)):
            with pytest.raises(Forbidden):
                await write(here, elsewhere)
        may = rule("escalate", "rbac.authorization.k8s.io", "roles")
        await here.write(*role("may", may, namespace="ns"))
        await here.write(*binding("c", USER, "may", namespace="ns", kind="Role"))
        await write(here, role("new", rule("*", "*", "*"), namespace="ns"))
        with pytest.raises(Forbidden):
            await write(here, role("new", rule("*", "*", "*"), namespace="other"))


async def test_escalate_permission_or_unchanged_rules_are_admitted() -> None:
    async with world() as here:
        _, obj = made = role("new", rule("*", "*", "*"))
        await write(here, made, obj)
        await here.write(*role("r", rule("escalate", "rbac.authorization.k8s.io", "clusterroles", "new")))
        await here.write(*binding("b", USER, "r"))
        await write(here, made)
        with pytest.raises(Forbidden):
            await write(here, role("other", rule("*", "*", "*")))


async def test_labels_of_a_role_are_changed_by_holders_of_its_rules() -> None:
    async with world(born=BORN) as here:
        _, obj = made = role("strong", rule("delete", "example.com", "gardens"))
        labelled = {**obj, "metadata": {**obj["metadata"], "labels": {"aggregate-to-view": "true"}}}
        with pytest.raises(Forbidden, match="not currently held"):
            await write(here, (made[0], labelled), obj)
        collected = {**obj, "metadata": {**obj["metadata"], "finalizers": ["a/b"], "ownerReferences": []}}
        await write(here, (made[0], collected), obj)
        await here.write(*made)
        await here.write(*binding("b", USER, "strong"))
        await write(here, (made[0], labelled), obj)


async def test_removing_an_aggregation_rule_needs_every_permission() -> None:
    async with world(born=BORN) as here:
        selectors = {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}
        key, old = role("g", aggregationRule=selectors)
        with pytest.raises(Forbidden, match="must have cluster-admin privileges to use the aggregationRule"):
            await write(here, (key, {k: v for k, v in old.items() if k != "aggregationRule"}), old)


async def test_a_right_to_escalate_one_role_makes_no_role_by_a_post() -> None:
    async with world() as here:
        await here.write(*role("r", rule("escalate", "rbac.authorization.k8s.io", "clusterroles", "new")))
        await here.write(*binding("b", USER, "r"))
        _, obj = role("new", rule("*", "*", "*"))
        with pytest.raises(Forbidden):
            await check_rbac_write(here.authorizer, "clusterroles", obj, None, cluster="root", user=JANE, named=False)


async def test_a_role_that_gathers_others_takes_every_right_to_write() -> None:
    async with world(born=BORN) as here:
        gathering = role("g", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})
        with pytest.raises(Forbidden, match="must have cluster-admin privileges to use the aggregationRule"):
            await write(here, gathering)
        await here.write(*binding("b", USER, "cluster-admin"))
        await write(here, gathering)


async def test_a_binding_may_not_give_more_than_its_writer_holds() -> None:
    async with world(born=BORN) as here:
        joe = {"kind": "User", "name": "joe"}
        await here.write(*binding("b", USER, "view", namespace="ns"))
        await write(here, binding("new", joe, "view", namespace="ns"))
        for refused in (binding("new", joe, "view"), binding("new", joe, "edit", namespace="ns")):
            with pytest.raises(Forbidden, match="not currently held"):
                await write(here, refused)
        with pytest.raises(NotFound, match='"gone" not found'):
            await write(here, binding("new", joe, "gone", namespace="ns"))
        await here.write(*role("r", rule("bind", "rbac.authorization.k8s.io", "clusterroles", "edit")))
        await here.write(*binding("r", USER, "r", namespace="ns"))
        await write(here, binding("new", joe, "edit", namespace="ns"))
        with pytest.raises(Forbidden):
            await write(here, binding("new", joe, "admin", namespace="ns"))


async def test_aggregated_roles_show_the_sum_and_are_written_only_when_it_changed() -> None:
    async with world(born=BORN) as here:
        aggregator = RoleAggregator(here.storage, here.clock, QuotaGuard(here.clusters, here.storage.backend).full)
        labels = {"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}
        await here.write(*role("gardens", rule("get", "garden.example", "gardens"), metadata=labels))
        await aggregator.aggregate("root")
        shown = {}
        for name in ("view", "edit", "admin"):
            record = await here.storage.get(role(name)[0])
            assert record is not None
            shown[name] = b'"gardens"' in record.value
        assert shown == {"view": True, "edit": True, "admin": True}
        revision = here.storage.backend.revision
        await aggregator.aggregate("root")
        assert here.storage.backend.revision == revision
