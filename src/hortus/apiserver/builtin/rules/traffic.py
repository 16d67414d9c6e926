"""Ingresses, ingress classes, network policies, endpoints and endpoint slices."""

from __future__ import annotations

import ipaddress
from typing import Any

from hortus.apiserver.builtin.names import port_name, port_number, wildcard_subdomain
from hortus.apiserver.builtin.problems import every, immutable, invalid, required, unsupported
from hortus.apiserver.builtin.rules.selectors import label_selector
from hortus.apiserver.builtin.strategy import BuiltinStrategy
from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.kube.naming import dns_label, dns_subdomain
from hortus.kube.objects import Object

_NOT_AN_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NOT_A_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


class IngressStrategy(BuiltinStrategy):
    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        spec = obj["spec"]
        rules, backend = spec.get("rules") or [], spec.get("defaultBackend")
        found: list[FieldProblem] = []
        if not rules and backend is None:
            found.append(invalid("spec", rules, "either `defaultBackend` or `rules` must be specified"))
        if backend is not None:
            found += _backend(backend, "spec.defaultBackend")
        for place, rule in enumerate(rules):
            found += _rule(rule, f"spec.rules[{place}]")
        for place, tls in enumerate(spec.get("tls") or []):
            for number, host in enumerate(tls.get("hosts") or []):
                found += _host(host, f"spec.tls[{place}].hosts[{number}]")
        return found


def _host(host: str, path: str) -> list[FieldProblem]:
    return every(path, host, wildcard_subdomain(host) if "*" in host else dns_subdomain(host))


def _rule(rule: dict[str, Any], path: str) -> list[FieldProblem]:
    host = rule.get("host", "")
    found: list[FieldProblem] = []
    if host and _is_address(host):
        found.append(invalid(f"{path}.host", host, "must be a DNS name, not an IP address"))
    elif host:
        found += _host(host, f"{path}.host")
    http = rule.get("http")
    if http is None:
        return found
    if not http.get("paths"):
        found.append(required(f"{path}.http.paths"))
    for place, entry in enumerate(http.get("paths") or []):
        found += _path(entry, f"{path}.http.paths[{place}]")
    return found


def _path(entry: dict[str, Any], path: str) -> list[FieldProblem]:
    kind, location = entry.get("pathType"), entry.get("path", "")
    found: list[FieldProblem] = []
    if kind is None:
        found.append(required(f"{path}.pathType", "pathType must be specified"))
    elif not location.startswith("/") and (location or kind in ("Exact", "Prefix")):
        found.append(invalid(f"{path}.path", location, "must be an absolute path"))
    return found + _backend(entry.get("backend") or {}, f"{path}.backend")


def _backend(backend: dict[str, Any], path: str) -> list[FieldProblem]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is None:
        return [] if resource is not None else [required(path, "resource or service backend is required")]
    if resource is not None:
        return [invalid(path, "", "cannot set both resource and service backends")]
    name, port = service.get("name", ""), service.get("port") or {}
    found = every(f"{path}.service.name", name, dns_label(name)) if name else [required(f"{path}.service.name")]
    if port.get("name") and port.get("number"):
        found.append(invalid(path, "", "cannot set both port name & port number"))
    elif port.get("number"):
        found += every(f"{path}.service.port.number", port["number"], port_number(port["number"]))
    elif not port.get("name"):
        found.append(required(path, "port name or number is required"))
    return found


class IngressClassStrategy(BuiltinStrategy):
    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        controller = obj["spec"].get("controller", "")
        if not controller:
            return [required("spec.controller")]
        sentence = 'must be a domain-prefixed path (such as "acme.io/foo")'
        return [] if "/" in controller else [invalid("spec.controller", controller, sentence)]

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        return immutable("spec.controller", obj["spec"].get("controller"), old["spec"].get("controller"))


class NetworkPolicyStrategy(BuiltinStrategy):
    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        spec = obj["spec"]
        if not spec.get("policyTypes"):
            spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        spec = obj["spec"]
        found = label_selector(spec.get("podSelector"), "spec.podSelector")
        for direction, peers in (("ingress", "from"), ("egress", "to")):
            for place, rule in enumerate(spec.get(direction) or []):
                for number, port in enumerate(rule.get("ports") or []):
                    found += _policy_port(port, f"spec.{direction}[{place}].ports[{number}]")
                for number, peer in enumerate(rule.get(peers) or []):
                    found += _peer(peer, f"spec.{direction}[{place}].{peers}[{number}]")
        return found


def _policy_port(port: dict[str, Any], path: str) -> list[FieldProblem]:
    value, end = port.get("port"), port.get("endPort")
    if isinstance(value, str):
        return every(f"{path}.port", value, port_name(value))
    if value is None:
        return [required(f"{path}.port", "must be specified when `endPort` is specified")] if end is not None else []
    found = every(f"{path}.port", value, port_number(value))
    if end is not None:
        found += every(f"{path}.endPort", end, port_number(end))
        if end < value:
            found.append(invalid(f"{path}.endPort", end, "must be greater than or equal to `port`"))
    return found


def _peer(peer: dict[str, Any], path: str) -> list[FieldProblem]:
    if not peer:
        return [required(path, "must specify a peer")]
    found: list[FieldProblem] = []
    for key in ("podSelector", "namespaceSelector"):
        if key in peer:
            found += label_selector(peer[key], f"{path}.{key}")
    block = peer.get("ipBlock")
    if block is not None and len(peer) > 1:
        from_peer = "may not specify both ipBlock and another peer"
        found.append(invalid(path, peer, from_peer))
    if block is not None and not _is_cidr(block.get("cidr", "")):
        found.append(invalid(f"{path}.ipBlock.cidr", block.get("cidr", ""), _NOT_A_CIDR))
    return found


def _is_cidr(text: str) -> bool:
    try:
        ipaddress.ip_network(text, strict=False)
    except ValueError:
        return False
    return "/" in text


class EndpointsStrategy(BuiltinStrategy):
    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        found: list[FieldProblem] = []
        for place, subset in enumerate(obj.get("subsets") or []):
            path = f"subsets[{place}]"
            if not subset.get("addresses") and not subset.get("notReadyAddresses"):
                found.append(required(path, "must specify `addresses` or `notReadyAddresses`"))
            for number, address in enumerate(subset.get("addresses") or []):
                if not _is_address(address.get("ip", "")):
                    found.append(invalid(f"{path}.addresses[{number}].ip", address.get("ip", ""), _NOT_AN_ADDRESS))
            for number, port in enumerate(subset.get("ports") or []):
                found += every(f"{path}.ports[{number}].port", port.get("port", 0), port_number(port.get("port", 0)))
        return found


class EndpointSliceStrategy(BuiltinStrategy):
    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        kind = obj.get("addressType", "")
        kinds = ("FQDN", "IPv4", "IPv6")
        if not kind:
            return [required("addressType")]
        if kind not in kinds:
            return [unsupported("addressType", kind, kinds)]
        found: list[FieldProblem] = []
        for place, endpoint in enumerate(obj.get("endpoints") or []):
            path = f"endpoints[{place}].addresses"
            if not endpoint.get("addresses"):
                found.append(required(path, "must contain at least 1 address"))
            for number, address in enumerate(endpoint.get("addresses") or []):
                if kind != "FQDN" and not _is_address(address):
                    found.append(invalid(f"{path}[{number}]", address, _NOT_AN_ADDRESS))
        return found

    def check_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        return immutable("addressType", obj.get("addressType"), old.get("addressType"))


STRATEGIES: dict[str, type[BuiltinStrategy]] = {
    "networking.Ingress": IngressStrategy,
    "networking.IngressClass": IngressClassStrategy,
    "networking.NetworkPolicy": NetworkPolicyStrategy,
    "core.Endpoints": EndpointsStrategy,
    "discovery.EndpointSlice": EndpointSliceStrategy,
}
