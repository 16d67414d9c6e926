"""The EnvoyFilters of one Shoot. Pure; the names and the form are those of the Go extension.

Envoy joins all filters of a chain with AND. On chains that several Shoots share, the filter of each lets pass all that
is addressed to another Shoot (the policy `-inverse`), so that only its own Shoot's filter judges a connection.

Every filter has the action ALLOW, also for DENY rules, whose networks are negated: so the addresses that must always
get in are the same on every filter, and nodes cannot be locked out by a DENY rule that has theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec

from hortus.domains.garden.acl.cidrs import EVERYWHERE, Cidr
from hortus.domains.garden.acl.config import ALLOW, DENY, LOG_ONLY, AccessList
from hortus.domains.garden.acl.names import ENVOY_FILTERS, INGRESS_NAMESPACE, PROXY_LISTENER, VPN_LISTENER
from hortus.kube.objects import Object

_NETWORK_RBAC: Final = "type.googleapis.com/envoy.extensions.filters.network.rbac.v3.RBAC"
_HTTP_RBAC: Final = "type.googleapis.com/envoy.extensions.filters.http.rbac.v3.RBAC"
_ALWAYS: Final = "remote_ip"
_NETWORK: Final = "NETWORK_FILTER"
_HTTP: Final = "HTTP_FILTER"
VPN_HEADER: Final = "reversed-vpn"
PROXY_HEADER: Final = "X-Gardener-Destination"


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
    ingress_domain: str = ""
    """Domain of the seed's dashboards; empty where it has none."""
    ingress_labels: dict[str, str] = {}
    """Labels of the pods of the gateway of dashboards."""
    rivals: tuple[str, ...] = ()
    """Short IDs of other Shoots that end like this one, so that their hosts end like its hosts."""


def envoy_filters(inputs: FilterInputs) -> list[Object]:
    """All filters of one Shoot."""
    made = [
        _object("api", inputs.gateway_namespace, inputs, api_spec(inputs)),
        _object("vpn", inputs.gateway_namespace, inputs, vpn_spec(inputs)),
        _object("http-proxy", inputs.gateway_namespace, inputs, proxy_spec(inputs)),
    ]
    if inputs.ingress_domain and inputs.ingress_labels:
        made.append(_object("ingress", INGRESS_NAMESPACE, inputs, ingress_spec(inputs)))
    return made


def _object(part: str, namespace: str, inputs: FilterInputs, spec: Object) -> Object:
    return {
        "apiVersion": ENVOY_FILTERS.api_version,
        "kind": ENVOY_FILTERS.kind,
        "metadata": {"name": f"acl-{part}-{inputs.technical_id}", "namespace": namespace},
        "spec": spec,
    }


def api_spec(inputs: FilterInputs) -> Object:
    """The filter of the kube-apiserver: its chain is chosen by the name of the host, and serves one Shoot alone."""
    policies = {"acl-api": {"permissions": [{"any": True}], "principals": principals(inputs)}}
    match = {"filterChain": {"sni": inputs.host}}
    return _spec(inputs, inputs.gateway_labels, _NETWORK, match, _rbac("acl-api", _NETWORK_RBAC, inputs, policies))


def vpn_spec(inputs: FilterInputs) -> Object:
    """The filter of the VPN, whose requests name the Shoot in a header."""
    return _by_header(inputs, "acl-tls-tunnel", VPN_LISTENER, VPN_HEADER)


def proxy_spec(inputs: FilterInputs) -> Object:
    """The filter of the unified HTTP proxy port, whose requests name the Shoot in a header."""
    return _by_header(inputs, "acl-http-proxy", PROXY_LISTENER, PROXY_HEADER)


def _by_header(inputs: FilterInputs, name: str, listener: str, header: str) -> Object:
    # The dots are anchors: shoot--a--foo must not match shoot--a--foo-bar.
    addressed = {"header": {"name": header, "string_match": {"contains": f".{inputs.technical_id}."}}}
    value = _rbac(name, _HTTP_RBAC, inputs, _own_and_inverse(inputs, addressed))
    return _spec(inputs, inputs.gateway_labels, _HTTP, {"name": listener}, value)


def ingress_spec(inputs: FilterInputs) -> Object:
    """The filter of the dashboards, whose hosts end with the short ID and the seed's domain."""
    domain = inputs.ingress_domain
    value = _rbac("acl-ingress", _NETWORK_RBAC, inputs, _own_and_inverse(inputs, _host_of_shoot(inputs)))
    return _spec(inputs, inputs.ingress_labels, _NETWORK, {"filterChain": {"sni": f"*.{domain}"}}, value)


def _host_of_shoot(inputs: FilterInputs) -> Object:
    """The permission for hosts of this Shoot; those of `x-bar--foo` end like those of `bar--foo` and are left out."""
    own, *rivals = (_suffix(one, inputs.ingress_domain) for one in (inputs.short_id, *inputs.rivals))
    if not rivals:
        return own
    return {"and_rules": {"rules": [own, *({"not_rule": rival} for rival in rivals)]}}


def _suffix(short_id: str, domain: str) -> Object:
    return {"requested_server_name": {"suffix": f"-{short_id}.{domain}"}}


def _own_and_inverse(inputs: FilterInputs, addressed: Object) -> Object:
    everywhere = [_principal(_ALWAYS, one) for one in EVERYWHERE]
    return {
        inputs.short_id: {"permissions": [addressed], "principals": principals(inputs)},
        f"{inputs.short_id}-inverse": {"permissions": [{"not_rule": addressed}], "principals": everywhere},
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


def _spec(inputs: FilterInputs, labels: dict[str, str], apply_to: str, match: Object, value: Object) -> Object:
    return {
        "workloadSelector": {"labels": dict(labels)},
        "configPatches": [
            {
                "applyTo": apply_to,
                "match": {"context": "GATEWAY", "listener": match},
                "patch": {"operation": "INSERT_FIRST", "value": value},
            }
        ],
    }


def rivals_of(short_id: str, others: Iterable[str]) -> tuple[str, ...]:
    """The short IDs whose hosts end like those of `short_id`."""
    return tuple(sorted(one for one in others if one.endswith(f"-{short_id}") and one != short_id))
