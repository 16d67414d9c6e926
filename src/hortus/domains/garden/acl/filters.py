"""The EnvoyFilters of one Shoot. Pure; the names and the form are those of the Go extension, as far as these are safe.

Envoy joins all filters of a chain with AND. On chains that several Shoots share, the filter of each lets pass all that
is addressed to another Shoot (the policy `-inverse`), so that only its own Shoot's filter judges a connection. Requests
that name their destination in a header are judged by `destinations`; docs/adr/0022-acl-entry-points.md has the reason.

Every filter has the action ALLOW, also for DENY rules, whose networks are negated: so the addresses that must always
get in are the same on every filter, and nodes cannot be locked out by a DENY rule that has theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from hortus.domains.garden.acl.cidrs import EVERYWHERE, Cidr
from hortus.domains.garden.acl.config import ALLOW, DENY, LOG_ONLY, AccessList
from hortus.domains.garden.acl.destinations import own_destination, unknown_destination
from hortus.domains.garden.acl.names import (
    ENVOY_FILTERS,
    INGRESS_NAMESPACE,
    PROXY_HEADER,
    PROXY_PORT,
    VPN_HEADER,
    VPN_PORT,
)
from hortus.kube.objects import Object

_NETWORK_RBAC: Final = "type.googleapis.com/envoy.extensions.filters.network.rbac.v3.RBAC"
_HTTP_RBAC: Final = "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC"
_ALWAYS: Final = "remote_ip"
_NETWORK: Final = "NETWORK_FILTER"
_HTTP: Final = "HTTP_FILTER"


class GatewayChains(msgspec.Struct, frozen=True):
    """The filter chains that one Deployment of a gateway has for a Shoot alone, besides that of its kube-apiserver."""

    namespace: str
    labels: dict[str, str]
    """Labels of the gateway's pods."""
    hosts: tuple[str, ...] = ()
    """One host of each chain."""


class FilterInputs(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a Shoot that its filters are made from."""

    technical_id: str
    short_id: str
    access: AccessList
    always: tuple[Cidr, ...]
    """Networks that every filter lets in."""
    host: str
    """Name by which the kube-apiserver is reached."""
    gateway_namespace: str
    gateway_labels: dict[str, str]
    """Labels of the gateway's pods."""
    chains: tuple[GatewayChains, ...] = ()
    """Further filter chains, and further gateways that know the way to the Shoot."""
    ingress_domain: str = ""
    """Domain of the dashboards that one chain of the seed serves for all Shoots; empty where it has none."""
    ingress_labels: dict[str, str] = {}
    """Labels of the pods of the gateway of that chain."""
    ingress_namespace: str = INGRESS_NAMESPACE
    """Namespace of these pods."""
    rivals: tuple[str, ...] = ()
    """Short IDs of other Shoots that end like this one, so that their hosts end like its hosts."""


def envoy_filters(inputs: FilterInputs) -> list[Object]:
    """All filters of one Shoot."""
    made = [
        _object("api", inputs.gateway_namespace, inputs, api_spec(inputs)),
        *_by_headers(inputs, inputs.gateway_namespace, inputs.gateway_labels),
    ]
    for one in inputs.chains:
        if one.hosts:
            made.append(_object("hosts", one.namespace, inputs, hosts_spec(inputs, one)))
        if one.namespace != inputs.gateway_namespace:
            # A gateway that serves a host of the Shoot routes the headers that name the Shoot, too.
            made += _by_headers(inputs, one.namespace, one.labels)
    if inputs.ingress_domain and inputs.ingress_labels:
        made.append(_object("ingress", inputs.ingress_namespace, inputs, ingress_spec(inputs)))
    return made


def _by_headers(inputs: FilterInputs, namespace: str, labels: dict[str, str]) -> list[Object]:
    return [
        _object("vpn", namespace, inputs, vpn_spec(inputs, labels)),
        _object("http-proxy", namespace, inputs, proxy_spec(inputs, labels)),
    ]


def _object(part: str, namespace: str, inputs: FilterInputs, spec: Object) -> Object:
    return {
        "apiVersion": ENVOY_FILTERS.api_version,
        "kind": ENVOY_FILTERS.kind,
        "metadata": {"name": f"acl-{part}-{inputs.technical_id}", "namespace": namespace},
        "spec": spec,
    }


def api_spec(inputs: FilterInputs) -> Object:
    """The filter of the kube-apiserver: its chain is chosen by the name of the host, and serves one Shoot alone."""
    return _spec(inputs.gateway_labels, _NETWORK, [_host(inputs.host)], _of_chain("acl-api", inputs))


def hosts_spec(inputs: FilterInputs, chains: GatewayChains) -> Object:
    """The filter of further chains that serve one Shoot alone."""
    matches = [_host(one) for one in chains.hosts]
    return _spec(chains.labels, _NETWORK, matches, _of_chain("acl-hosts", inputs))


def _host(name: str) -> Object:
    return {"filterChain": {"sni": name}}


def _of_chain(name: str, inputs: FilterInputs) -> Object:
    return _rbac(
        name, _NETWORK_RBAC, inputs, {name: {"permissions": [{"any": True}], "principals": principals(inputs)}}
    )


def vpn_spec(inputs: FilterInputs, labels: dict[str, str] | None = None) -> Object:
    """The filter of the VPN's own port, whose requests name the Shoot in a header."""
    return _by_header(inputs, labels, "acl-tls-tunnel", VPN_PORT, VPN_HEADER)


def proxy_spec(inputs: FilterInputs, labels: dict[str, str] | None = None) -> Object:
    """The filter of the unified HTTP proxy port, whose requests name the Shoot in a header."""
    return _by_header(inputs, labels, "acl-http-proxy", PROXY_PORT, PROXY_HEADER)


def _by_header(inputs: FilterInputs, labels: dict[str, str] | None, name: str, port: int, header: str) -> Object:
    own = own_destination(header, inputs.technical_id)
    elsewhere = {"and_rules": {"rules": [{"not_rule": own}, {"not_rule": unknown_destination(header)}]}}
    value = _rbac(name, _HTTP_RBAC, inputs, _own_and_inverse(inputs, own, elsewhere))
    return _spec(labels or inputs.gateway_labels, _HTTP, [{"portNumber": port}], value)


def ingress_spec(inputs: FilterInputs) -> Object:
    """The filter of the dashboards, whose hosts end with the short ID and the seed's domain."""
    domain = inputs.ingress_domain
    own = _host_of_shoot(inputs)
    value = _rbac("acl-ingress", _NETWORK_RBAC, inputs, _own_and_inverse(inputs, own, {"not_rule": own}))
    return _spec(inputs.ingress_labels, _NETWORK, [_host(f"*.{domain}")], value)


def _host_of_shoot(inputs: FilterInputs) -> Object:
    """The permission for hosts of this Shoot; those of `x-bar--foo` end like those of `bar--foo` and are left out."""
    own, *rivals = (_suffix(one, inputs.ingress_domain) for one in (inputs.short_id, *inputs.rivals))
    if not rivals:
        return own
    return {"and_rules": {"rules": [own, *({"not_rule": rival} for rival in rivals)]}}


def _suffix(short_id: str, domain: str) -> Object:
    return {"requested_server_name": {"suffix": f"-{short_id}.{domain}"}}


def _own_and_inverse(inputs: FilterInputs, own: Object, elsewhere: Object) -> Object:
    """The policies of a filter on a chain that Shoots share: requests for this Shoot, and those for others."""
    everywhere = [_principal(_ALWAYS, one) for one in EVERYWHERE]
    return {
        inputs.short_id: {"permissions": [own], "principals": principals(inputs)},
        f"{inputs.short_id}-inverse": {"permissions": [elsewhere], "principals": everywhere},
    }


def principals(inputs: FilterInputs) -> list[Object]:
    """The principals that are let in; any one of them is enough."""
    allowed, denied = (_of_action(inputs.access, action) for action in (ALLOW, DENY))
    if denied:
        outside = {"not_id": _any_of(denied)}
        let_in = [{"and_ids": {"ids": [_any_of(allowed), outside]}}] if allowed else [outside]
    else:
        let_in = allowed
    return [*let_in, *(_principal(_ALWAYS, one) for one in inputs.always)]


def _of_action(access: AccessList, action: str) -> list[Object]:
    return [_principal(rule.type, cidr) for rule in access.rules if rule.action == action for cidr in rule.cidrs]


def _any_of(choices: Sequence[Object]) -> Object:
    return choices[0] if len(choices) == 1 else {"or_ids": {"ids": list(choices)}}


def _principal(type_: str, cidr: Cidr) -> Object:
    return {type_: {"address_prefix": str(cidr.network_address), "prefix_len": cidr.prefixlen}}


def _rbac(name: str, type_: str, inputs: FilterInputs, policies: Object) -> Object:
    rules: dict[str, Any] = {"action": ALLOW, "policies": policies}
    config: dict[str, Any] = {"@type": type_, "stat_prefix": "envoyrbac"}
    if inputs.access.mode == LOG_ONLY:
        config |= {"shadow_rules": rules, "shadow_rules_stat_prefix": shadow_prefix(inputs.short_id)}
    else:
        config["rules"] = rules
    return {"name": name, "typed_config": config}


def shadow_prefix(short_id: str) -> str:
    """The prefix of Envoy's counters and of its log fields for a Shoot whose list only counts."""
    return f"acl_{short_id}_"


def _spec(labels: dict[str, str], apply_to: str, matches: Iterable[Object], value: Object) -> Object:
    return {
        "workloadSelector": {"labels": dict(labels)},
        "configPatches": [
            {
                "applyTo": apply_to,
                "match": {"context": "GATEWAY", "listener": match},
                "patch": {"operation": "INSERT_FIRST", "value": value},
            }
            for match in matches
        ],
    }


def rivals_of(short_id: str, others: Iterable[str]) -> tuple[str, ...]:
    """The short IDs whose hosts end like those of `short_id`."""
    return tuple(sorted(one for one in others if one.endswith(f"-{short_id}") and one != short_id))
