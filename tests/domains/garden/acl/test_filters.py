"""Filters against the Go extension's own test data, and their parts one by one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hortus.domains.garden.acl.cidrs import parse_cidr
from hortus.domains.garden.acl.config import AccessList, read_config
from hortus.domains.garden.acl.destinations import KNOWN, own_destination, unknown_destination
from hortus.domains.garden.acl.filters import (
    FilterInputs,
    GatewayChains,
    api_spec,
    envoy_filters,
    ingress_spec,
    principals,
    proxy_spec,
    rivals_of,
    vpn_spec,
)
from hortus.kube import yaml

LABELS = {"app": "istio-ingressgateway", "istio": "ingressgateway"}
ALWAYS = tuple(parse_cidr(one)[0] for one in ("10.250.0.0/16", "10.96.0.0/11"))


def access(*rules: dict[str, Any], **more: Any) -> AccessList:
    found = read_config({"rules": list(rules), **more}, "")
    assert not found.errors
    return found.access


def rule(*cidrs: str, action: str = "ALLOW", type: str = "remote_ip") -> dict[str, Any]:
    return {"cidrs": list(cidrs), "action": action, "type": type}


def inputs(chosen: AccessList, **more: Any) -> FilterInputs:
    return msgspec.structs.replace(
        FilterInputs(
            technical_id="shoot--bar--foo",
            short_id="bar--foo",
            access=chosen,
            always=ALWAYS,
            host="api.test.garden.s.testseed.dev.ske.eu01.stackit.cloud",
            gateway_namespace="istio-ingress",
            gateway_labels=LABELS,
            ingress_domain="ingress.testseed.dev.ske.eu01.stackit.cloud",
            ingress_labels=LABELS,
        ),
        **more,
    )


_OLD_DESTINATION = {"header": {"name": "reversed-vpn", "string_match": {"contains": ".shoot--bar--foo."}}}
"""The header by which the Go extension knows requests for a Shoot."""


def _as_here(golden: Any) -> Any:
    """The data of the Go extension with the deviations of docs/adr/0022-acl-entry-points.md, and no other."""
    patch = golden["configPatches"][0]
    if patch["match"]["listener"] == {"name": "0.0.0.0_8132"}:
        patch["match"]["listener"] = {"portNumber": 8132}
        policies = patch["patch"]["value"]["typed_config"]["rules"]["policies"]
        assert policies["bar--foo"]["permissions"] == [_OLD_DESTINATION]
        assert policies["bar--foo-inverse"]["permissions"] == [{"not_rule": _OLD_DESTINATION}]
        own = own_destination("reversed-vpn", "shoot--bar--foo")
        elsewhere = [{"not_rule": own}, {"not_rule": unknown_destination("reversed-vpn")}]
        policies["bar--foo"]["permissions"] = [own]
        policies["bar--foo-inverse"]["permissions"] = [{"and_rules": {"rules": elsewhere}}]
    return golden


@pytest.mark.parametrize(
    ("golden", "make", "written"),
    [
        ("api", api_spec, rule("0.0.0.0/0", type="source_ip")),
        ("vpn", vpn_spec, rule("10.180.0.0/16")),
        ("ingress", ingress_spec, rule("10.180.0.0/16")),
        ("api", api_spec, rule("0.0.0.0/0", type="SOURCE_IP", action="allow")),
        ("vpn", vpn_spec, rule("10.180.0.0/16", action="Allow", type="Remote_IP")),
    ],
)
def test_filters_are_those_of_the_go_extension(upstream: Path, golden: str, make: Any, written: dict[str, Any]) -> None:
    wanted = yaml.load((upstream / "gardener" / "acl" / f"golden-{golden}.yaml").read_text())
    assert make(inputs(access(written))) == _as_here(wanted)


def test_a_destination_is_known_by_the_technical_id_before_a_dot_two_dashes_or_its_end() -> None:
    def forms(technical_id: str) -> Any:
        return [one["header"]["string_match"] for one in own_destination("x", technical_id)["or_rules"]["rules"]]

    assert forms("shoot--a--b") == [
        {"contains": ".shoot--a--b."},
        {"contains": "shoot--a--b--"},
        {"suffix": "shoot--a--b"},
    ]
    assert forms("shoot-a-b") == [{"contains": ".shoot-a-b."}, {"prefix": "shoot-a-b--"}, {"exact": "shoot-a-b"}]


@pytest.mark.parametrize(
    ("destination", "known"),
    [
        ("outbound|443||kube-apiserver.shoot--a--b.svc.cluster.local", True),
        ("outbound|1194||vpn-seed-server-4.shoot-a-b.svc.cluster.local", True),
        ("outbound|8443||later.shoot--a--b.svc.cluster.local", True),
        ("shoot--a--b--kube-apiserver-socket", True),
        ("shoot-a-b--kube-apiserver-socket", True),
        ("shoot--a--b--later", True),
        ("", False),
        ("later", False),
        ("Shoot--a--b--kube-apiserver-socket", False),
        ("outbound|443||kube-apiserver.shoot--a--b.svc.cluster.local.", False),
        ("outbound|443||kube-apiserver.a.b.svc.cluster.local", False),
        ("shoot--a--b--kube-apiserver-socket,shoot--a--c--kube-apiserver-socket", False),
        ("shoot--a--b--kube%2dapiserver-socket", False),
    ],
)
def test_destinations_of_another_form_are_unknown(destination: str, known: bool) -> None:
    assert (re.fullmatch(KNOWN, destination) is not None) is known


def test_the_proxy_filter_differs_from_that_of_the_vpn_in_port_header_and_name() -> None:
    vpn, proxy = (make(inputs(access(rule("10.180.0.0/16")))) for make in (vpn_spec, proxy_spec))
    text = yaml.dump(vpn).replace("8132", "8443").replace("acl-tls-tunnel", "acl-http-proxy")
    assert yaml.load(text.replace("reversed-vpn", "X-Gardener-Destination")) == proxy


def test_further_gateways_get_filters_for_hosts_and_for_headers() -> None:
    other = {"istio": "other"}
    chains = (
        GatewayChains("istio-ingress", LABELS, ("api-bar--foo.example.org", "gu-bar--foo.example.org")),
        GatewayChains("istio-other", other, ("p-bar--foo.example.org",)),
        GatewayChains("istio-third", other),
    )
    made = envoy_filters(inputs(access(rule("10.180.0.0/16")), chains=chains, ingress_domain=""))
    assert [(one["metadata"]["namespace"], one["metadata"]["name"]) for one in made] == [
        ("istio-ingress", "acl-api-shoot--bar--foo"),
        ("istio-ingress", "acl-vpn-shoot--bar--foo"),
        ("istio-ingress", "acl-http-proxy-shoot--bar--foo"),
        ("istio-ingress", "acl-hosts-shoot--bar--foo"),
        ("istio-other", "acl-hosts-shoot--bar--foo"),
        ("istio-other", "acl-vpn-shoot--bar--foo"),
        ("istio-other", "acl-http-proxy-shoot--bar--foo"),
        ("istio-third", "acl-vpn-shoot--bar--foo"),
        ("istio-third", "acl-http-proxy-shoot--bar--foo"),
    ]
    labels = [one["spec"]["workloadSelector"]["labels"] for one in made]
    assert labels == [LABELS] * 4 + [other] * 5
    api, hosts = made[0]["spec"]["configPatches"], made[3]["spec"]["configPatches"]
    assert [one["match"]["listener"]["filterChain"]["sni"] for one in hosts] == list(chains[0].hosts)
    judged = api[0]["patch"]["value"]["typed_config"]["rules"]["policies"]["acl-api"]
    for one in hosts:
        assert one["patch"]["value"]["typed_config"]["rules"]["policies"] == {"acl-hosts": judged}


def test_a_shoot_has_four_filters_in_the_namespaces_of_their_gateways() -> None:
    made = envoy_filters(inputs(access(rule("10.180.0.0/16")), gateway_namespace="istio-ingress--zone-a"))
    assert [(one["metadata"]["namespace"], one["metadata"]["name"]) for one in made] == [
        ("istio-ingress--zone-a", "acl-api-shoot--bar--foo"),
        ("istio-ingress--zone-a", "acl-vpn-shoot--bar--foo"),
        ("istio-ingress--zone-a", "acl-http-proxy-shoot--bar--foo"),
        ("istio-ingress", "acl-ingress-shoot--bar--foo"),
    ]
    assert {(one["apiVersion"], one["kind"]) for one in made} == {("networking.istio.io/v1alpha3", "EnvoyFilter")}


@pytest.mark.parametrize("missing", [{"ingress_domain": ""}, {"ingress_labels": {}}])
def test_a_seed_without_dashboards_has_no_filter_for_them(missing: dict[str, Any]) -> None:
    names = [one["metadata"]["name"] for one in envoy_filters(inputs(access(rule("10.0.0.0/8")), **missing))]
    assert names == ["acl-api-shoot--bar--foo", "acl-vpn-shoot--bar--foo", "acl-http-proxy-shoot--bar--foo"]


def _cidr(text: str, type_: str = "remote_ip") -> dict[str, Any]:
    network = parse_cidr(text)[0]
    return {type_: {"address_prefix": str(network.network_address), "prefix_len": network.prefixlen}}


_ALWAYS = [_cidr("10.250.0.0/16"), _cidr("10.96.0.0/11")]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([rule("1.0.0.0/8", "2.0.0.0/8")], [_cidr("1.0.0.0/8"), _cidr("2.0.0.0/8"), *_ALWAYS]),
        ([rule("1.0.0.0/8", action="DENY")], [{"not_id": _cidr("1.0.0.0/8")}, *_ALWAYS]),
        (
            [rule("1.0.0.0/8", "2.0.0.0/8", action="deny")],
            [{"not_id": {"or_ids": {"ids": [_cidr("1.0.0.0/8"), _cidr("2.0.0.0/8")]}}}, *_ALWAYS],
        ),
        (
            [rule("1.0.0.0/8"), rule("1.2.0.0/16", action="DENY", type="direct_remote_ip")],
            [
                {"and_ids": {"ids": [_cidr("1.0.0.0/8"), {"not_id": _cidr("1.2.0.0/16", "direct_remote_ip")}]}},
                *_ALWAYS,
            ],
        ),
        (
            [rule("1.0.0.0/8"), rule("::/0", type="source_ip")],
            [_cidr("1.0.0.0/8"), _cidr("::/0", "source_ip"), *_ALWAYS],
        ),
    ],
)
def test_principals_say_who_gets_in(rules: list[dict[str, Any]], expected: list[Any]) -> None:
    assert principals(inputs(access(*rules))) == expected


@pytest.mark.parametrize("make", [api_spec, vpn_spec, proxy_spec, ingress_spec])
def test_a_list_that_only_logs_has_its_rules_as_shadow_rules(make: Any) -> None:
    enforced, logged = (
        make(inputs(access(rule("1.0.0.0/8"), mode=mode)))["configPatches"][0]["patch"]["value"]["typed_config"]
        for mode in ("Enforce", "logonly")
    )
    assert logged.pop("shadow_rules_stat_prefix") == "acl_bar--foo_"
    assert logged.pop("shadow_rules") == enforced.pop("rules")
    assert logged == enforced


def test_hosts_of_a_shoot_whose_id_ends_like_another_one_are_left_to_its_own_filter() -> None:
    assert rivals_of("bar--foo", ["x-bar--foo", "bar--foo", "a-x-bar--foo", "xbar--foo", "bar--foo-x"]) == (
        "a-x-bar--foo",
        "x-bar--foo",
    )
    made = ingress_spec(inputs(access(rule("1.0.0.0/8")), rivals=("x-bar--foo",), ingress_domain="in.example.org"))
    policies = made["configPatches"][0]["patch"]["value"]["typed_config"]["rules"]["policies"]
    own = {
        "and_rules": {
            "rules": [
                {"requested_server_name": {"suffix": "-bar--foo.in.example.org"}},
                {"not_rule": {"requested_server_name": {"suffix": "-x-bar--foo.in.example.org"}}},
            ]
        }
    }
    assert policies["bar--foo"]["permissions"] == [own]
    assert policies["bar--foo-inverse"]["permissions"] == [{"not_rule": own}]
