"""What may be asked for: each way to other rights is closed, named by rule and verb, and opened by its power alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from hortus.domains.access.policy import POWERS, AccessPolicy
from hortus.kube.objects import Object

RBAC = "rbac.authorization.k8s.io"
CLOSED = AccessPolicy()


def rule(verbs: str, resources: str, group: str = "", **more: Any) -> Object:
    return {"verbs": verbs.split(), "resources": resources.split(), "apiGroups": [group], **more}


DANGEROUS = [
    (rule("*", "configmaps"), "wildcards"),
    (rule("get", "*", "apps"), "wildcards"),
    (rule("get", "*/scale", "apps"), "wildcards"),
    (rule("get", "configmaps", "*"), "wildcards"),
    ({"verbs": ["get"], "nonResourceURLs": ["*"]}, "wildcards"),
    ({"verbs": ["get"], "nonResourceURLs": ["/logs/*"]}, "wildcards"),
    (rule("escalate", "clusterroles", RBAC), "escalation"),
    (rule("bind", "roles", RBAC), "escalation"),
    (rule("impersonate", "users"), "escalation"),
    (rule("get create", "rolebindings", RBAC), "escalation"),
    (rule("create", "serviceaccounts/token"), "tokens"),
    (rule("update", "certificatesigningrequests/approval", "certificates.k8s.io"), "tokens"),
    (rule("approve", "signers", "certificates.k8s.io"), "tokens"),
    (rule("get", "secrets"), "secrets"),
    (rule("list", "configmaps secrets"), "secrets"),
    (rule("get", "secrets", resourceNames=["one"]), "secrets"),
    (rule("create", "pods"), "workloads"),
    (rule("patch", "deployments", "apps"), "workloads"),
    (rule("update", "cronjobs", "batch"), "workloads"),
    (rule("create", "pods/exec"), "workloads"),
    (rule("get", "pods/portforward"), "workloads"),
    (rule("get", "nodes/proxy"), "nodes"),
    (rule("patch", "nodes"), "nodes"),
    (rule("create", "persistentvolumes"), "nodes"),
    (rule("create", "mutatingwebhookconfigurations", "admissionregistration.k8s.io"), "admission"),
    (rule("delete", "apiservices", "apiregistration.k8s.io"), "admission"),
    (rule("patch", "customresourcedefinitions", "apiextensions.k8s.io"), "admission"),
]
HARMLESS = [
    rule("get list watch", "configmaps pods nodes namespaces"),
    rule("get list watch create update patch delete", "configmaps"),
    rule("get", "roles clusterroles", RBAC),
    rule("get list", "deployments", "apps"),
    rule("delete", "pods"),
    {"verbs": ["get"], "nonResourceURLs": ["/metrics"]},
]


@pytest.mark.parametrize(("asked", "power"), DANGEROUS, ids=lambda value: value if isinstance(value, str) else "")
def test_each_way_to_other_rights_is_closed_until_its_power_is_allowed(asked: Object, power: str) -> None:
    rules = [HARMLESS[0], asked]
    found = CLOSED.refusals("team", rules, [], "spec.rules")
    assert {refusal.power for refusal in found} == {power}
    assert all(refusal.place.startswith("spec.rules[1]") for refusal in found)
    assert AccessPolicy.parse(power).refusals("team", rules, [], "spec.rules") == []
    others = ",".join(name for name in POWERS if name != power)
    assert AccessPolicy.parse(others).refusals("team", rules, [], "spec.rules") == found


@pytest.mark.parametrize("asked", HARMLESS, ids=str)
def test_what_leads_to_nothing_else_may_be_asked_for(asked: Object) -> None:
    assert CLOSED.refusals("team", [asked], [], "spec.rules") == []


def test_a_refusal_names_the_rule_the_verb_the_resource_and_the_power() -> None:
    [refusal] = CLOSED.refusals("team", [HARMLESS[0], rule("get list", "secrets")], [], "spec.rules")
    assert str(refusal) == "spec.rules[1]: get and list secrets of the whole cluster (power secrets)"


def test_wildcards_alone_do_not_open_what_they_would_include() -> None:
    found = AccessPolicy.parse("wildcards").refusals("team", [rule("*", "*", "*")], [], "spec.rules")
    assert {refusal.power for refusal in found} == set(POWERS) - {"wildcards", "system-namespaces"}
    reading = AccessPolicy.parse("wildcards").refusals("team", [rule("get list", "*", "*")], [], "spec.rules")
    assert {refusal.power for refusal in reading} == {"secrets", "workloads", "nodes"}


def test_within_a_namespace_its_secrets_and_pods_may_be_asked_for() -> None:
    rules = [rule("get list", "secrets"), rule("create", "pods pods/exec")]
    assert CLOSED.refusals("team", rules, ["shop"], "spec.rules") == []
    assert CLOSED.refusals("team", [rule("create", "serviceaccounts/token")], ["shop"], "spec.rules")


def test_the_systems_namespaces_are_closed() -> None:
    [refusal] = CLOSED.refusals("team", [HARMLESS[0]], ["shop", "kube-system"], "spec.rules")
    assert (refusal.place, refusal.power) == ("spec.namespaces[1]", "system-namespaces")


def test_a_power_may_be_for_one_namespace_alone() -> None:
    policy = AccessPolicy.parse(" modules/secrets , workloads")
    assert policy.powers("modules") == {"secrets", "workloads"}
    assert policy.powers("brokers") == {"workloads"}
    assert policy.refusals("brokers", [rule("get", "secrets")], [], "spec.rules")
    assert not policy.refusals("modules", [rule("get", "secrets")], [], "spec.rules")


@pytest.mark.parametrize("text", ["everything", "a/b/secrets x", "/secrets", "modules/", "secrets;nodes"])
def test_a_power_that_there_is_not_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="is no power: known are wildcards"):
        AccessPolicy.parse(text)


_POWERS = some.sets(some.sampled_from(sorted(POWERS)))
_RULES = some.lists(some.sampled_from([asked for asked, _ in DANGEROUS] + HARMLESS), max_size=5)
_PLACES = some.lists(some.sampled_from(["shop", "kube-system"]), unique=True)


@given(_POWERS, _POWERS, _RULES, _PLACES)
def test_more_powers_never_refuse_more_and_fewer_rules_neither(
    some_powers: set[str], more: set[str], rules: list[Object], places: list[str]
) -> None:
    narrow = AccessPolicy(frozenset(some_powers))
    wide = AccessPolicy(frozenset(some_powers | more))
    refused = narrow.refusals("team", rules, places, "spec.rules")
    assert set(wide.refusals("team", rules, places, "spec.rules")) <= set(refused)
    assert set(narrow.refusals("team", rules[:-1], places, "spec.rules")) <= set(refused)
