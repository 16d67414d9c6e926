"""RBAC against an evaluator written the slow and obvious way."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.apiserver.authn import UserInfo
from hortus.apiserver.authz.attributes import Attributes
from hortus.apiserver.authz.index import BindingIndex, RbacObjects
from hortus.apiserver.authz.rules import PolicyRule, rule_allows
from hortus.kube.permissions import lacking

VERBS, GROUPS = ["get", "list", "*"], ["", "apps", "*"]
RESOURCES = ["pods", "pods/log", "deployments", "deployments/scale", "*/scale", "*", "pods/*"]
URLS = ["/a", "/a/*", "/a/b", "*"]
NAMES, NAMESPACES = ["x", "y"], ["one", "two"]
USERS = [{"kind": "User", "name": "jane"}, {"kind": "Group", "name": "devs"}, {"kind": "ServiceAccount", "name": "bot"}]


def some(values: list[str], least: int = 1) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(values), min_size=least, max_size=2, unique=True)


rules = st.one_of(
    st.fixed_dictionaries(
        {"verbs": some(VERBS), "apiGroups": some(GROUPS), "resources": some(RESOURCES), "resourceNames": some(NAMES, 0)}
    ),
    st.fixed_dictionaries({"verbs": some(VERBS), "nonResourceURLs": some(URLS)}),
)
roles = st.lists(st.lists(rules, max_size=3), min_size=1, max_size=3)
bindings = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["", *NAMESPACES]), st.sampled_from(USERS)), max_size=4
)
users = st.sampled_from(
    [UserInfo("jane"), UserInfo("joe", groups=("devs",)), UserInfo("system:serviceaccount:one:bot"), UserInfo("joe")]
)
resource_requests = st.builds(
    lambda user, verb, group, resource, namespace, name: Attributes(
        "c", user, verb, group, "v1", *resource, namespace, name
    ),
    users,
    st.sampled_from(["get", "list", "delete"]),
    st.sampled_from(["", "apps", "batch"]),
    st.sampled_from([("pods", ""), ("pods", "log"), ("deployments", ""), ("deployments", "scale"), ("jobs", "scale")]),
    st.sampled_from(["", *NAMESPACES]),
    st.sampled_from(["", *NAMES]),
)
path_requests = st.builds(
    lambda user, verb, path: Attributes("c", user, verb, path=path),
    users,
    st.sampled_from(["get", "list", "delete"]),
    st.sampled_from(["/a", "/a/", "/a/b", "/b"]),
)
requests = st.one_of(resource_requests, path_requests)


def naively(role_rules: list[list[dict[str, Any]]], bound: list[Any], asked: Attributes) -> bool:
    for number, namespace, subject in bound:
        if number >= len(role_rules) or (namespace and namespace != asked.namespace) or (namespace and asked.path):
            continue
        if _is(subject, namespace, asked.user) and any(_grants(rule, asked) for rule in role_rules[number]):
            return True
    return False


def _is(subject: dict[str, str], namespace: str, user: UserInfo) -> bool:
    if subject["kind"] == "Group":
        return subject["name"] in user.groups
    if subject["kind"] == "User":
        return subject["name"] == user.username
    return bool(namespace) and user.username == f"system:serviceaccount:{namespace}:{subject['name']}"


def _grants(rule: dict[str, Any], asked: Attributes) -> bool:
    if not {"*", asked.verb} & set(rule["verbs"]):
        return False
    if asked.path:
        patterns = rule.get("nonResourceURLs", [])
        return any(p == asked.path or (p[-1] == "*" and asked.path.startswith(p[:-1])) for p in patterns)
    if not {"*", asked.group} & set(rule.get("apiGroups", [])):
        return False
    wanted = {"*", asked.resource}
    if asked.subresource:
        wanted = {"*", f"{asked.resource}/{asked.subresource}", f"*/{asked.subresource}"}
    names = rule.get("resourceNames")
    return bool(wanted & set(rule["resources"])) and (not names or asked.name in names)


def compiled(role_rules: list[list[dict[str, Any]]], bound: list[Any]) -> BindingIndex:
    cluster_roles = [{"metadata": {"name": f"r{n}"}, "rules": found} for n, found in enumerate(role_rules)]
    everywhere, inside = [], []
    for order, (number, namespace, subject) in enumerate(bound):
        metadata = {"name": f"b{order}", **({"namespace": namespace} if namespace else {})}
        reference = {"kind": "ClusterRole", "name": f"r{number}"}
        made = {"metadata": metadata, "subjects": [subject], "roleRef": reference}
        (inside if namespace else everywhere).append(made)
    return BindingIndex(RbacObjects(cluster_roles, everywhere, [], inside))


@settings(max_examples=400, deadline=None)
@given(roles, bindings, st.lists(requests, min_size=1, max_size=8))
def test_decisions_are_those_of_the_naive_evaluator(
    role_rules: list[list[dict[str, Any]]], bound: list[Any], asked: list[Attributes]
) -> None:
    index = compiled(role_rules, bound)
    # Each twice: the second time from memory.
    for one in [*asked, *asked]:
        assert index.grants(one.user).decide(one).allowed == naively(role_rules, bound, one)


@settings(max_examples=200, deadline=None)
@given(st.lists(rules, max_size=3), rules, requests)
def test_held_rules_that_cover_a_rule_allow_whatever_it_allows(
    held: list[dict[str, Any]], new: dict[str, Any], asked: Attributes
) -> None:
    owned, wanted = [_rule(one) for one in held], _rule(new)
    if not list(lacking([wanted], owned)) and rule_allows(wanted, asked):
        assert any(rule_allows(rule, asked) for rule in owned)


_labels = st.dictionaries(st.sampled_from(["view", "edit"]), st.just("true"), max_size=2)
_cluster_roles = st.dictionaries(
    st.sampled_from(["r0", "r1", "r2", "r3"]),
    st.tuples(st.lists(rules, max_size=2), _labels, st.sampled_from(["", "", "view", "edit"])),
    max_size=4,
)


def _role_objects(found: dict[str, Any]) -> list[dict[str, Any]]:
    made = []
    for name, (granted, labels, sums) in found.items():
        role: dict[str, Any] = {"metadata": {"name": name, "labels": labels}, "rules": granted}
        if sums:
            role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {sums: "true"}}]}
        made.append(role)
    return made


@settings(max_examples=300, deadline=None)
@given(_cluster_roles, _cluster_roles, bindings, bindings, st.lists(requests, min_size=1, max_size=6))
def test_objects_on_top_of_a_base_decide_as_all_objects_together(
    born: dict[str, Any], own: dict[str, Any], old: list[Any], new: list[Any], asked: list[Attributes]
) -> None:
    base_objects = RbacObjects(_role_objects(born), *_bound(old, "b"))
    own_objects = RbacObjects(_role_objects(own), *_bound(new, "o"))
    base = BindingIndex(base_objects)
    extends = base.extends(own_objects)
    assert extends or own
    if extends:
        on_top = BindingIndex(own_objects, base=base)
        whole = BindingIndex(RbacObjects(*(one + other for one, other in zip(base_objects, own_objects, strict=True))))
        assert on_top.cluster_roles == whole.cluster_roles
        for one in asked:
            assert on_top.grants(one.user).decide(one).allowed == whole.grants(one.user).decide(one).allowed


def test_a_long_chain_of_aggregates_is_summed_from_its_end() -> None:
    """A round over all of them for each would take minutes."""
    granted = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
    links = 600
    chain: list[dict[str, Any]] = [{"metadata": {"name": "r0", "labels": {"link": "0"}}, "rules": [granted]}]
    for number in range(1, links):
        rule = {"clusterRoleSelectors": [{"matchLabels": {"link": str(number - 1)}}]}
        metadata = {"name": f"r{number}", "labels": {"link": str(number)}}
        chain.append({"metadata": metadata, "rules": [], "aggregationRule": rule})
    index = BindingIndex(RbacObjects(chain[::-1], [], [], []))
    assert index.rules("ClusterRole", "", f"r{links - 1}") == (_rule(granted),)


def _bound(found: list[Any], prefix: str) -> tuple[list[Any], list[Any], list[Any]]:
    """Bindings everywhere, no roles, and bindings inside of namespaces."""
    everywhere, inside = [], []
    for order, (number, namespace, subject) in enumerate(found):
        metadata = {"name": f"{prefix}{order}", **({"namespace": namespace} if namespace else {})}
        made = {"metadata": metadata, "subjects": [subject], "roleRef": {"kind": "ClusterRole", "name": f"r{number}"}}
        (inside if namespace else everywhere).append(made)
    return everywhere, [], inside


def _rule(found: dict[str, Any]) -> PolicyRule:
    return PolicyRule(
        verbs=tuple(found["verbs"]),
        api_groups=tuple(found.get("apiGroups", ())),
        resources=tuple(found.get("resources", ())),
        resource_names=tuple(found.get("resourceNames", ())),
        non_resource_urls=tuple(found.get("nonResourceURLs", ())),
    )
