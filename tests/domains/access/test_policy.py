"""The policy: each way to further permissions is closed, named by rule and verb, and opened by its power alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from hortus.apiserver.authz.policy import default_policy
from hortus.apiserver.builtin import definitions
from hortus.domains.access.coverage import RbacRule, read_rules
from hortus.domains.access.policy import AccessPolicy
from hortus.domains.access.powers import POWERS, SYSTEM, TABLE, UNLISTED

RBAC = "rbac.authorization.k8s.io"
CERTIFICATES = "certificates.k8s.io"
CLOSED = AccessPolicy()


def rule(verbs: str, resources: str, group: str = "", names: tuple[str, ...] = ()) -> RbacRule:
    return RbacRule(tuple(verbs.split()), (group,), tuple(resources.split()), names)


def path(verb: str, *paths: str) -> RbacRule:
    return RbacRule((verb,), non_resource_urls=paths)


DANGEROUS = [
    (rule("*", "configmaps"), "wildcards"),
    (rule("get", "*", "apps"), "wildcards unlisted"),
    (rule("get", "*/scale", "apps"), "wildcards unlisted"),
    (path("get", "*"), "wildcards unlisted"),
    (path("get", "/logs/*"), "wildcards unlisted"),
    (path("get", "/debug/pprof/heap"), "unlisted"),
    (path("post", "/version"), "unlisted"),
    (rule("escalate", "clusterroles", RBAC), "escalation"),
    (rule("bind", "roles", RBAC), "escalation"),
    (rule("impersonate", "users"), "escalation"),
    (rule("impersonate", "serviceaccounts", names=("one",)), "escalation"),
    (rule("get create", "rolebindings", RBAC), "escalation"),
    (rule("delete", "clusterroles", RBAC), "escalation"),
    (rule("create", "serviceaccounts/token"), "tokens"),
    (rule("create", "serviceaccounts"), "tokens"),
    (rule("patch", "serviceaccounts"), "tokens"),
    (rule("create", "certificatesigningrequests", CERTIFICATES), "tokens"),
    (rule("update", "certificatesigningrequests/approval", CERTIFICATES), "tokens"),
    (rule("patch", "certificatesigningrequests/status", CERTIFICATES), "tokens"),
    (rule("approve", "signers", CERTIFICATES), "tokens"),
    (rule("attest", "signers", CERTIFICATES), "tokens"),
    (rule("create", "clustertrustbundles", CERTIFICATES), "tokens"),
    (rule("get", "secrets"), "secrets"),
    (rule("list", "configmaps secrets"), "secrets"),
    (rule("get", "secrets", names=("one",)), "secrets"),
    (rule("create", "secrets"), "secrets"),
    (rule("deletecollection", "secrets"), "secrets"),
    (rule("create", "pods"), "workloads"),
    (rule("patch", "deployments", "apps"), "workloads"),
    (rule("update", "controllerrevisions", "apps"), "workloads"),
    (rule("update", "cronjobs", "batch"), "workloads"),
    (rule("create", "pods/exec"), "workloads"),
    (rule("get", "pods/exec"), "workloads"),
    (rule("get", "pods/portforward"), "workloads"),
    (rule("get", "pods/proxy"), "workloads"),
    (rule("patch", "pods/ephemeralcontainers"), "workloads"),
    (rule("patch", "pods/status"), "workloads"),
    (rule("create", "pods/binding"), "workloads"),
    (rule("get", "nodes/proxy"), "nodes"),
    (rule("get", "nodes/log"), "nodes"),
    (rule("patch", "nodes"), "nodes"),
    (rule("create", "persistentvolumes"), "nodes"),
    (rule("create", "storageclasses", "storage.k8s.io"), "nodes"),
    (rule("patch", "runtimeclasses", "node.k8s.io"), "nodes"),
    (rule("create", "services"), "network"),
    (rule("patch", "services/status"), "network"),
    (rule("get", "services/proxy"), "network"),
    (rule("patch", "endpoints"), "network"),
    (rule("create", "endpointslices", "discovery.k8s.io"), "network"),
    (rule("create", "ingresses", "networking.k8s.io"), "network"),
    (rule("delete", "networkpolicies", "networking.k8s.io"), "network"),
    (rule("patch", "httproutes", "gateway.networking.k8s.io"), "network"),
    (rule("patch", "namespaces"), "namespaces"),
    (rule("delete", "namespaces"), "namespaces"),
    (rule("update", "namespaces/finalize"), "namespaces"),
    (rule("create", "mutatingwebhookconfigurations", "admissionregistration.k8s.io"), "admission"),
    (rule("delete", "apiservices", "apiregistration.k8s.io"), "admission"),
    (rule("patch", "customresourcedefinitions", "apiextensions.k8s.io"), "admission"),
    (rule("patch", "customresourcedefinitions/status", "apiextensions.k8s.io"), "admission"),
    (rule("delete", "resourcequotas"), "limits"),
    (rule("create", "priorityclasses", "scheduling.k8s.io"), "limits"),
    (rule("patch", "flowschemas", "flowcontrol.apiserver.k8s.io"), "limits"),
    (rule("get", "gardens", "example.com"), "unlisted"),
    (rule("use", "configmaps"), "unlisted"),
    (rule("get", "configmaps/status"), "unlisted"),
    (rule("get", "pods/"), "unlisted"),
    (rule("get", "Secrets"), "unlisted"),
    (rule("get", "deployments"), "unlisted"),
]
HARMLESS = [
    rule("get list watch", "configmaps pods pods/log namespaces services endpoints serviceaccounts"),
    rule("get list watch create update patch delete", "configmaps"),
    rule("get", "roles", RBAC),
    rule("get list", "deployments", "apps"),
    rule("get update patch", "deployments/scale", "apps"),
    rule("delete", "pods"),
]
FOR_THE_CLUSTER = [
    rule("get list watch", "nodes namespaces persistentvolumes"),
    rule("get", "clusterroles", RBAC),
    rule("get", "customresourcedefinitions", "apiextensions.k8s.io"),
    rule("create", "subjectaccessreviews", "authorization.k8s.io"),
    path("get", "/metrics", "/api/*", "/healthz"),
]


@pytest.mark.parametrize(("asked", "powers"), DANGEROUS, ids=lambda value: value if isinstance(value, str) else "")
def test_each_way_to_other_rights_is_closed_until_its_power_is_allowed(asked: RbacRule, powers: str) -> None:
    rules, places = [HARMLESS[0], asked], ["shop"]
    found = CLOSED.refusals("team", rules, places, "spec.rules")
    assert {refusal.power for refusal in found} == set(powers.split())
    assert all(refusal.place.startswith("spec.rules[1]") for refusal in found)
    assert AccessPolicy.parse(",".join(powers.split())).refusals("team", rules, places, "spec.rules") == []
    others = ",".join(name for name in POWERS if name not in powers.split())
    assert AccessPolicy.parse(others).refusals("team", rules, places, "spec.rules") == found


@pytest.mark.parametrize("asked", HARMLESS, ids=str)
def test_what_leads_to_nothing_else_may_be_asked_for_in_a_namespace(asked: RbacRule) -> None:
    assert CLOSED.refusals("team", [asked], ["shop"], "spec.rules") == []


@pytest.mark.parametrize("asked", HARMLESS, ids=str)
def test_the_whole_cluster_includes_the_systems_namespaces(asked: RbacRule) -> None:
    found = CLOSED.refusals("team", [asked], [], "spec.rules")
    assert {refusal.power for refusal in found} == {"system-namespaces"}
    assert AccessPolicy.parse("system-namespaces").refusals("team", [asked], [], "spec.rules") == []


@pytest.mark.parametrize("asked", FOR_THE_CLUSTER, ids=str)
def test_what_is_in_no_namespace_may_be_read_in_the_whole_cluster(asked: RbacRule) -> None:
    assert CLOSED.refusals("team", [asked], [], "spec.rules") == []


def test_a_refusal_names_the_rule_the_verb_the_resource_and_the_power() -> None:
    asked = [HARMLESS[0], rule("get list", "secrets")]
    [refusal] = CLOSED.refusals("team", asked, ["shop"], "spec.rules")
    assert str(refusal) == "spec.rules[1]: get and list secrets (power secrets)"
    everywhere = CLOSED.refusals("team", asked[1:], [], "spec.rules")
    assert [str(refusal) for refusal in everywhere] == [
        "spec.rules[0]: get and list secrets of the whole cluster (power secrets)",
        "spec.rules[0]: secrets of all namespaces, the system's among them (power system-namespaces)",
    ]


def test_wildcards_alone_do_not_open_what_they_would_include() -> None:
    found = AccessPolicy.parse("wildcards").refusals("team", [rule("*", "*", "*")], [], "spec.rules")
    assert {refusal.power for refusal in found} == set(POWERS) - {"wildcards"}
    reading = AccessPolicy.parse("wildcards").refusals("team", [rule("get list", "*", "*")], ["shop"], "spec.rules")
    assert {refusal.power for refusal in reading} == {"secrets", "workloads", "nodes", "network", "unlisted"}


def test_the_role_view_may_be_asked_for_in_a_namespace() -> None:
    view = next(
        role for role in default_policy() if (role["kind"], role["metadata"]["name"]) == ("ClusterRole", "view")
    )
    assert CLOSED.refusals("team", read_rules(view["rules"]) or (), ["shop"], "rules") == []


def test_every_resource_that_the_server_has_is_in_the_table() -> None:
    known = {(row.group, resource) for row in TABLE for resource in row.resources}
    served = {(each.resource.group, each.resource.plural) for each in definitions()}
    assert served - known == set()
    scopes = {(row.group, resource): row.namespaced for row in TABLE for resource in row.resources}
    for each in definitions():
        assert scopes[each.resource.group, each.resource.plural] is each.resource.namespaced, each.resource


def test_no_resource_is_in_the_table_twice() -> None:
    listed = [(row.group, resource) for row in TABLE for resource in row.resources]
    assert len(listed) == len(set(listed))


def test_the_table_uses_every_power_and_no_other() -> None:
    assert {power for row in TABLE for power in row.verbs.values() if power} | {
        "wildcards",
        UNLISTED,
        SYSTEM,
    } == set(POWERS)


def test_the_systems_namespaces_are_closed() -> None:
    [refusal] = CLOSED.refusals("team", [HARMLESS[0]], ["shop", "kube-system"], "spec.rules")
    assert (refusal.place, refusal.power) == ("spec.namespaces[1]", "system-namespaces")


def test_a_power_may_be_for_one_namespace_alone() -> None:
    policy = AccessPolicy.parse(" modules/secrets , workloads")
    assert policy.powers("modules") == {"secrets", "workloads"}
    assert policy.powers("brokers") == {"workloads"}
    assert policy.refusals("brokers", [rule("get", "secrets")], ["shop"], "spec.rules")
    assert not policy.refusals("modules", [rule("get", "secrets")], ["shop"], "spec.rules")


@pytest.mark.parametrize("text", ["everything", "a/b/secrets x", "/secrets", "modules/", "secrets;nodes"])
def test_a_power_that_there_is_not_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="is no power: known are wildcards"):
        AccessPolicy.parse(text)


_POWERS = some.sets(some.sampled_from(sorted(POWERS)))
_RULES = some.lists(some.sampled_from([asked for asked, _ in DANGEROUS] + HARMLESS + FOR_THE_CLUSTER), max_size=5)
_PLACES = some.lists(some.sampled_from(["shop", "kube-system"]), unique=True)


@given(_POWERS, _POWERS, _RULES, _PLACES)
def test_more_powers_never_refuse_more_and_fewer_rules_neither(
    some_powers: set[str], more: set[str], rules: list[RbacRule], places: list[str]
) -> None:
    narrow = AccessPolicy(frozenset(some_powers))
    wide = AccessPolicy(frozenset(some_powers | more))
    refused = narrow.refusals("team", rules, places, "spec.rules")
    assert set(wide.refusals("team", rules, places, "spec.rules")) <= set(refused)
    assert set(narrow.refusals("team", rules[:-1], places, "spec.rules")) <= set(refused)
