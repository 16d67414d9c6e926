"""Configurations of access lists: reading, cleaning, errors with the paths of fields, lockouts, warnings."""

from __future__ import annotations

import random
from ipaddress import ip_address, ip_network
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.domains.garden.world import shoot_document

from hortus.domains.garden.acl.cidrs import Cidr, merge_cidrs, parse_cidr, without
from hortus.domains.garden.acl.config import read_config
from hortus.domains.garden.acl.lockout import admitted
from hortus.domains.garden.acl.review import AclReviewer
from hortus.domains.garden.acl.settings import AclSettings
from hortus.domains.garden.extension.admission import review_shoot
from hortus.domains.garden.kinds.seedcluster import GardenShoot

RULE = {"action": "ALLOW", "type": "remote_ip", "cidrs": ["203.0.113.0/24"]}
PATH = "spec.extensions[0].providerConfig"


def shoot(config: Any, *, disabled: bool = False, **spec: Any) -> GardenShoot:
    entry = {"type": "acl", "providerConfig": config, **({"disabled": True} if disabled else {})}
    document = shoot_document(extensions=[entry], **spec)
    return msgspec.convert(document, GardenShoot)


def review(config: Any, *, limit: int = 50, former: Any = None, **spec: Any) -> tuple[list[str], list[str]]:
    before = shoot(former) if former is not None else None
    found = review_shoot([AclReviewer(AclSettings(max_cidrs=limit))], shoot(config, **spec), before)
    return [str(one) for one in found.errors], list(found.warnings)


@pytest.mark.parametrize("action", ["ALLOW", "allow", "Deny", "DENY"])
@pytest.mark.parametrize("kind", ["remote_ip", "Direct_Remote_IP", "SOURCE_IP"])
def test_words_count_in_any_case(action: str, kind: str) -> None:
    found = read_config({"rule": {**RULE, "action": action, "type": kind}}, "c")
    assert not found.errors
    (made,) = found.access.rules
    assert (made.action, made.type) == (action.upper(), kind.lower())


@pytest.mark.parametrize(
    ("config", "error"),
    [
        (
            {"rule": {**RULE, "action": "LOG"}},
            '.rule.action: Unsupported value: "LOG": supported values: "ALLOW", "DENY"',
        ),
        ({"rule": {**RULE, "action": None}}, ".rule.action: Required value: one of ALLOW, DENY"),
        ({"rule": {**RULE, "action": 3}}, '.rule.action: Unsupported value: 3: supported values: "ALLOW", "DENY"'),
        (
            {"rule": {**RULE, "type": "ip"}},
            '.rule.type: Unsupported value: "ip": supported values: "remote_ip", "direct_remote_ip", "source_ip"',
        ),
        ({"rule": {**RULE, "cidrs": []}}, ".rule.cidrs: Required value: give at least one CIDR"),
        ({"rule": {"action": "ALLOW", "type": "remote_ip"}}, ".rule.cidrs: Required value: give at least one CIDR"),
        ({"rule": {**RULE, "cidrs": "10.0.0.0/8"}}, '.rule.cidrs: Invalid value: "10.0.0.0/8": must be a list'),
        ({"rule": {**RULE, "cidrs": [7]}}, ".rule.cidrs[0]: Invalid value: 7: must be a CIDR as text"),
        (
            {"rule": {**RULE, "cidrs": ["10.0.0.0/8", "10.0.0.1"]}},
            '.rule.cidrs[1]: Invalid value: "10.0.0.1": must have a prefix length, as 10.0.0.0/8 has',
        ),
        (
            {"rule": {**RULE, "cidrs": ["10.0.0.0/33"]}},
            '.rule.cidrs[0]: Invalid value: "10.0.0.0/33": ',
        ),
        (
            {"rule": {**RULE, "cidrs": ["10.0.0.0/255.0.0.0"]}},
            '.rule.cidrs[0]: Invalid value: "10.0.0.0/255.0.0.0": the prefix length must be a number of bits',
        ),
        (
            {"rule": {**RULE, "cidrs": ["fe80::%eth0/64"]}},
            '.rule.cidrs[0]: Invalid value: "fe80::%eth0/64": must have no zone',
        ),
        ({"rule": RULE, "rules": [RULE]}, ".rules: Forbidden: cannot stand next to rule; move that one into rules"),
        ({"rules": []}, ".rules: Required value: give at least one rule"),
        ({"rules": RULE}, ".rules: Invalid value: "),
        ({"rules": [RULE, "x"]}, '.rules[1]: Invalid value: "x": must be an object'),
        ({"rule": []}, ".rule: Invalid value: []: must be an object"),
        ({"rule": RULE, "mode": "Off"}, '.mode: Unsupported value: "Off": supported values: "Enforce", "LogOnly"'),
        ({"rule": RULE, "keepOpenFor": ["x/8"]}, '.keepOpenFor[0]: Invalid value: "x/8": '),
        ({"rule": RULE, "confirmLockout": "yes"}, '.confirmLockout: Invalid value: "yes": must be a boolean'),
    ],
)
def test_a_wrong_field_is_named_with_its_value_and_the_fix(config: Any, error: str) -> None:
    errors, _ = review(config)
    assert len(errors) == 1
    assert errors[0].startswith(PATH + error)


def test_a_configuration_that_is_no_object_is_refused() -> None:
    found = read_config(["rule"], "c")
    assert [str(one) for one in found.errors] == ['c: Invalid value: ["rule"]: must be an object']


def test_too_many_cidrs_are_refused_at_admission_alone() -> None:
    many = {"rule": {**RULE, "cidrs": [f"10.{number}.0.0/16" for number in range(51)]}}
    assert review(many)[0] == [f"{PATH}.rule.cidrs: Too many: 51: must have at most 50 items"]
    assert review(many, limit=0)[0] == []
    two = {"rules": [{**RULE, "cidrs": ["10.0.0.0/16"] * 30}, {**RULE, "cidrs": ["10.1.0.0/16"] * 30}]}
    assert review(two)[0] == [f"{PATH}.rules[1].cidrs: Too many: 60: must have at most 50 items"]


@pytest.mark.parametrize("config", [None, {}])
def test_a_shoot_without_a_rule_is_admitted_with_a_warning(config: Any) -> None:
    errors, warnings = review(config)
    assert errors == []
    assert warnings == [f"{PATH}: there is no rule; the extension stays in state Error until there is one"]


def test_a_disabled_extension_is_not_judged() -> None:
    found = review_shoot([AclReviewer(AclSettings())], shoot({"rule": 3}, disabled=True))
    assert (found.errors, found.warnings) == ((), ())


def test_an_extension_that_is_listed_twice_is_refused() -> None:
    document = shoot_document(extensions=[{"type": "acl", "providerConfig": {"rule": RULE}}, {"type": "acl"}])
    found = review_shoot([AclReviewer(AclSettings())], msgspec.convert(document, GardenShoot))
    assert [str(one) for one in found.errors] == ['spec.extensions[1].type: Duplicate value: "acl"']


@pytest.mark.parametrize(
    ("written", "counted", "warning"),
    [
        (["10.1.2.3/8"], ["10.0.0.0/8"], "[0]: 10.1.2.3/8 has host bits; it counts as 10.0.0.0/8"),
        (
            ["::ffff:10.0.0.0/104"],
            ["10.0.0.0/8"],
            "[0]: ::ffff:10.0.0.0/104 is an IPv4 network written as IPv6; it counts as 10.0.0.0/8",
        ),
        (["10.0.0.0/8", "10.0.0.0/8"], ["10.0.0.0/8"], '[1]: Duplicate value: "10.0.0.0/8"'),
        (["10.1.0.0/16", "10.0.0.0/8"], ["10.0.0.0/8"], ": 2 networks are merged into 1"),
        (["10.0.0.0/25", "1.0.0.0/8", "10.0.0.128/25"], ["10.0.0.0/24", "1.0.0.0/8"], ": 3 networks are merged into 2"),
        (["10.2.0.0/16", "10.1.0.0/16"], ["10.2.0.0/16", "10.1.0.0/16"], ""),
    ],
)
def test_networks_are_cleaned_with_a_warning(written: list[str], counted: list[str], warning: str) -> None:
    found = read_config({"rule": {**RULE, "cidrs": written}}, "c")
    assert [str(one) for one in found.access.rules[0].cidrs] == counted
    assert list(found.warnings) == ([f"c.rule.cidrs{warning}"] if warning else [])


def test_a_field_that_does_not_count_is_reported() -> None:
    _, warnings = review({"rule": {**RULE, "cidr": []}, "Mode": "LogOnly"})
    assert warnings == [f"{PATH}.rule.cidr: unknown field", f"{PATH}.Mode: unknown field"]


_EVERYBODY = {"action": "DENY", "type": "remote_ip", "cidrs": ["0.0.0.0/0", "::/0"]}


@pytest.mark.parametrize(
    ("config", "error"),
    [
        (
            {"rule": _EVERYBODY},
            ".rule: Forbidden: the rules let nobody in but the cluster's own nodes; set confirmLockout: true if that "
            "is intended",
        ),
        (
            {"rules": [RULE, {**RULE, "action": "DENY", "cidrs": ["203.0.113.0/25", "203.0.113.128/25"]}]},
            ".rules: Forbidden: the rules let nobody in but the cluster's own nodes; set confirmLockout: true if that "
            "is intended",
        ),
        (
            {"rule": RULE, "keepOpenFor": ["198.51.100.7/32"]},
            '.keepOpenFor: Forbidden: the rules lock out 198.51.100.7/32 of "198.51.100.7/32"; allow it, or set '
            "confirmLockout: true if that is intended",
        ),
        (
            {
                "rules": [RULE, {**RULE, "action": "DENY", "cidrs": ["203.0.113.8/32"]}],
                "keepOpenFor": ["203.0.113.8/31"],
            },
            '.keepOpenFor: Forbidden: the rules lock out 203.0.113.8/32 of "203.0.113.8/31"; allow it, or set '
            "confirmLockout: true if that is intended",
        ),
    ],
)
def test_a_lockout_is_refused_unless_it_is_confirmed(config: Any, error: str) -> None:
    assert review(config)[0] == [PATH + error]
    assert review({**config, "confirmLockout": True})[0] == []


def test_an_address_that_is_kept_open_and_let_in_is_no_lockout() -> None:
    assert review({"rule": RULE, "keepOpenFor": ["203.0.113.9/32"]})[0] == []


@pytest.mark.parametrize(
    ("config", "spec", "warning"),
    [
        ({"rule": {**RULE, "cidrs": ["0.0.0.0/0"]}}, {}, "the rules let everybody in from 0.0.0.0/0"),
        ({"rule": {**RULE, "type": "source_ip"}}, {}, "type source_ip is deprecated in Envoy; use remote_ip"),
        (
            {"rule": {**RULE, "action": "DENY", "cidrs": ["10.0.0.0/8"]}},
            {},
            "10.0.0.0/8 is denied, but nodes call from it; they stay allowed",
        ),
        (
            {"rule": RULE},
            {"provider": {"type": "gcp", "workers": [{"name": "w"}], "infrastructureConfig": {"networks": {}}}},
            "Cloud NAT allocates addresses dynamically: name addresses in networks.cloudNAT.natIPNames. The access "
            "list may lock out the nodes.",
        ),
        (
            {"rule": RULE},
            {"provider": {"type": "azure", "workers": [{"name": "w"}], "infrastructureConfig": {"networks": {}}}},
            "Nodes call through a load balancer's changing addresses: enable networks.natGateway. The access list may "
            "lock out the nodes.",
        ),
    ],
)
def test_a_list_that_may_surprise_its_owner_is_admitted_with_a_warning(
    config: Any, spec: dict[str, Any], warning: str
) -> None:
    errors, warnings = review(config, **spec)
    assert errors == []
    assert f"{PATH}: {warning}" in warnings


@pytest.mark.parametrize(
    ("provider", "networks"),
    [
        ("gcp", {"cloudNAT": {"natIPNames": [{"name": "one"}]}}),
        ("azure", {"natGateway": {"enabled": True}}),
        ("azure", {"zones": [{"name": 1, "natGateway": {"enabled": True}}]}),
        ("aws", {"vpc": {"cidr": "10.0.0.0/16"}}),
        ("openstack", {}),
        ("gcp", []),
    ],
)
def test_stable_addresses_and_unreadable_configurations_bring_no_warning(provider: str, networks: Any) -> None:
    spec = {"type": provider, "workers": [{"name": "w"}], "infrastructureConfig": {"networks": networks}}
    warnings = review({"rule": RULE}, provider=spec)[1]
    assert (warnings == []) == (not (provider == "gcp" and networks == []))


def test_a_configuration_that_was_there_before_stays_changeable() -> None:
    bad = {"rule": {**RULE, "cidrs": ["10.0.0.1"]}}
    errors, warnings = review(bad, former=bad)
    assert errors == []
    assert any("must have a prefix length" in one for one in warnings)
    assert review(bad, former={"rule": RULE})[0] != []


@st.composite
def networks(draw: st.DrawFn) -> Cidr:
    bits = draw(st.integers(0, 8))
    value = draw(st.integers(0, 255))
    return parse_cidr(f"10.0.0.{value}/{24 + bits}")[0]


def _members(cidrs: list[Cidr]) -> set[int]:
    return {int(ip) & 255 for one in cidrs for ip in one}


@settings(max_examples=60)
@given(st.lists(networks(), max_size=6), st.lists(networks(), max_size=6))
def test_merging_and_excluding_keep_the_sets_of_addresses(one: list[Cidr], other: list[Cidr]) -> None:
    assert _members(merge_cidrs(one)) == _members(one)
    assert len(merge_cidrs(one)) <= len(set(one))
    assert merge_cidrs(merge_cidrs(one)) == merge_cidrs(one)
    assert _members(without(one, other)) == _members(one) - _members(other)


def test_the_order_of_rules_does_not_matter() -> None:
    rules = [
        {**RULE, "cidrs": ["10.0.0.0/8"]},
        {**RULE, "cidrs": ["192.0.2.0/24"]},
        {**RULE, "action": "DENY", "cidrs": ["10.3.0.0/16"]},
        {**RULE, "action": "DENY", "cidrs": ["192.0.2.7/32"]},
    ]
    expected = None
    for seed in range(6):
        random.Random(seed).shuffle(rules)
        found = set(admitted(read_config({"rules": rules}, "").access))
        expected = expected or found
        assert found == expected
    assert expected
    assert any(ip_address("10.2.0.1") in one for one in expected)
    assert all(ip_network("10.3.0.0/16") != one and ip_address("10.3.9.9") not in one for one in expected)
