"""Cells of services, endpoints and ingresses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hortus.apiserver.builtin.cells.parts import NONE, UNSET, Cell, Printer, items, joined, look, selector_text
from hortus.kube.objects import Object

_SHOWN = 3


def _first(values: list[str]) -> str:
    """At most three, and the number of further ones."""
    if not values:
        return NONE
    rest = len(values) - _SHOWN
    return ",".join(values[:_SHOWN]) + (f" + {rest} more..." if rest > 0 else "")


def service_cluster_ip(service: Object, now: float) -> Cell:
    addresses = items(service, "spec", "clusterIPs")
    return (addresses[0] if addresses else look(service, "spec", "clusterIP")) or NONE


def _load_balancer(obj: Object) -> list[str]:
    entries = items(obj, "status", "loadBalancer", "ingress")
    return [entry.get("ip") or entry.get("hostname") or "" for entry in entries]


def service_external_ip(service: Object, now: float) -> Cell:
    kind = look(service, "spec", "type")
    if kind == "ExternalName":
        return str(look(service, "spec", "externalName") or "")
    given = items(service, "spec", "externalIPs")
    if kind == "LoadBalancer":
        return joined([*_load_balancer(service), *given], "<pending>")
    return joined(given, NONE)


def service_ports(service: Object, now: float) -> Cell:
    return joined((_port(port) for port in items(service, "spec", "ports")), NONE)


def _port(port: dict[str, Any]) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{node}/{port.get('protocol', 'TCP')}"


def endpoints(obj: Object, now: float) -> Cell:
    found: list[str] = []
    for subset in items(obj, "subsets"):
        addresses = [address["ip"] for address in subset.get("addresses") or []]
        ports = subset.get("ports") or []
        for port in ports:
            found += [_host_port(address, port["port"]) for address in addresses]
        if not ports:
            found += addresses
    return _first(found)


def _host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def slice_ports(obj: Object, now: float) -> Cell:
    ports = obj.get("ports") or []
    return _first([str(port["port"]) if port.get("port") is not None else "*" for port in ports]) if ports else UNSET


def slice_endpoints(obj: Object, now: float) -> Cell:
    found = [address for endpoint in obj.get("endpoints") or [] for address in endpoint.get("addresses") or []]
    return _first(found) if found else UNSET


def ingress_hosts(obj: Object, now: float) -> Cell:
    hosts = [rule["host"] for rule in items(obj, "spec", "rules") if rule.get("host")]
    return _first(hosts) if hosts else "*"


def ingress_address(obj: Object, now: float) -> Cell:
    return ",".join(_load_balancer(obj))


def ingress_ports(obj: Object, now: float) -> Cell:
    return "80, 443" if items(obj, "spec", "tls") else "80"


def ingress_class_parameters(obj: Object, now: float) -> Cell:
    parameters = look(obj, "spec", "parameters")
    if not parameters:
        return NONE
    group = f".{parameters['apiGroup']}" if parameters.get("apiGroup") else ""
    return f"{parameters['kind']}{group}/{parameters['name']}"


def pod_selector(obj: Object, now: float) -> Cell:
    return selector_text(look(obj, "spec", "podSelector"))


def ip_parent(obj: Object, now: float) -> Cell:
    parent = look(obj, "spec", "parentRef") or {}
    parts: Iterable[str] = (str(parent.get(key) or "") for key in ("resource", "group", "namespace", "name"))
    resource, group, namespace, name = parts
    return "/".join(part for part in (f"{resource}.{group}" if group else resource, namespace, name) if part)


def service_cidrs(obj: Object, now: float) -> Cell:
    return joined(items(obj, "spec", "cidrs"))


PRINTERS: dict[str, Printer] = {
    "service_cluster_ip": service_cluster_ip,
    "service_external_ip": service_external_ip,
    "service_ports": service_ports,
    "endpoints": endpoints,
    "slice_ports": slice_ports,
    "slice_endpoints": slice_endpoints,
    "ingress_hosts": ingress_hosts,
    "ingress_address": ingress_address,
    "ingress_ports": ingress_ports,
    "ingress_class_parameters": ingress_class_parameters,
    "pod_selector": pod_selector,
    "ip_parent": ip_parent,
    "service_cidrs": service_cidrs,
}
